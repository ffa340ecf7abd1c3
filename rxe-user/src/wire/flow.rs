//! The UDP source port: entropy for ECMP, constant per queue pair and direction so that packets
//! stay in order (IBTA vol. 1, Annex A17; the rule is that of the Linux kernel).

/// The UDP port of RoCEv2. It is the destination port of requests and responses alike.
pub const ROCE_UDP_PORT: u16 = 4791;

const FLOW_LABEL: u32 = 0x000F_FFFF;

/// The UDP source port of a queue pair, 0xC000 to 0xFFFF (`rdma_get_udp_sport`).
///
/// `flow_label` is that of the address vector, 20 bits; if it is 0 one is made up from the two
/// queue pair numbers.
pub fn udp_source_port(flow_label: u32, lqpn: u32, rqpn: u32) -> u16 {
    let label = match flow_label & FLOW_LABEL {
        0 => flow_label_of_qpns(lqpn, rqpn),
        label => label,
    };
    (label & 0x3FFF ^ label >> 14) as u16 | 0xC000
}

/// The flow label made up from two queue pair numbers (`rdma_calc_flow_label`).
fn flow_label_of_qpns(lqpn: u32, rqpn: u32) -> u32 {
    let mut v = u64::from(lqpn) * u64::from(rqpn);
    v ^= v >> 20;
    v ^= v >> 40;
    v as u32 & FLOW_LABEL
}

/// The flow label that rdma_cm derives from the two ports of a connection, when the user gives
/// none (`cma_get_roce_udp_flow_label`).
pub fn cm_flow_label(source_port: u16, destination_port: u16) -> u32 {
    (u32::from(source_port) * 31 + u32::from(destination_port)) & FLOW_LABEL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T-020: the ports that a kernel was seen to choose.
    #[test]
    fn source_ports_of_the_kernel() {
        assert_eq!(udp_source_port(0x12345, 0, 0), 0xE341);
        assert_eq!(udp_source_port(0, 0x11, 0x12), 0xC132);
        assert_eq!(udp_source_port(0, 0x118, 0xD2), 0xE5B3);
        assert_eq!(udp_source_port(0, 0xAB_CDEF, 0x12_3456), 0xC3C8);
    }

    #[test]
    fn flow_label_of_a_cm_connection() {
        assert_eq!(cm_flow_label(0xD431, 18515), 0x9FA42);
        assert_eq!(udp_source_port(cm_flow_label(0xD431, 18515), 1, 2), 0xFA65);
    }

    #[test]
    fn only_twenty_bits_of_the_label_count() {
        assert_eq!(
            udp_source_port(0xFFF1_2345, 1, 2),
            udp_source_port(0x12345, 1, 2)
        );
    }
}
