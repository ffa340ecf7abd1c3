//! Capabilities that the recorded devices didn't have, as rdma-core prints them.

use std::sync::Arc;

use ironverbs::inventory::{System, ibv_devinfo};
use verbs_sys::nldev::NldevError;
use verbs_sys::{
    Context, DeviceAttributes, ExtendedAttributes, Gid, GidEntry, GidType, LinkLayer,
    OdpCapabilities, PathMtu, PortAttributes, PortState, RssCapabilities, TagMatchingCapabilities,
};

use crate::host::Host;
use crate::verbs::Told;

/// An InfiniBand device with everything.
fn everything() -> Told {
    let mut gid = [0; 16];
    gid[0] = 0xfe;
    gid[1] = 0x80;
    gid[15] = 7;
    Told {
        name: "mlx5_0".to_owned(),
        device: DeviceAttributes {
            phys_port_cnt: 1,
            max_qp: 1 << 31,
            device_cap_flags: 1 | 1 << 15 | 1 << 29,
            max_fmr: 1,
            max_map_per_fmr: 3,
            extended: ExtendedAttributes {
                odp: OdpCapabilities {
                    general: 0b111,
                    rc: 0b11_1111,
                    uc: 0b100_0000,
                    ud: 0,
                    xrc: 1,
                },
                completion_timestamp_mask: 0xff,
                hca_core_clock: 1_000_000,
                device_cap_flags_ex: 1 << 34 | 1 << 36 | 1 << 40 | 5,
                max_tso: 262_144,
                tso_qp_types: 1 << 8 | 1 << 2,
                rss: RssCapabilities {
                    qp_types: 1 << 8 | 1 << 4,
                    max_rwq_indirection_tables: 8,
                    max_rwq_indirection_table_size: 2048,
                    rx_hash_fields_mask: 0x8000_00ff,
                    rx_hash_function: 1,
                },
                max_wq_type_rq: 9,
                qp_rate_limit_min: 1,
                qp_rate_limit_max: 100,
                rate_limit_qp_types: 1 << 8,
                raw_packet_caps: 0b1111,
                tag_matching: TagMatchingCapabilities {
                    max_rndv_hdr_size: 64,
                    max_num_tags: 127,
                    flags: 1,
                    max_ops: 32,
                    max_sge: 1,
                },
                max_cq_moderation_count: 65535,
                max_cq_moderation_period: 4095,
                max_dm_size: 131_072,
                num_comp_vectors: 8,
            },
            ..DeviceAttributes::default()
        },
        port: PortAttributes {
            state: PortState::Init,
            max_mtu: PathMtu::Mtu4096,
            active_mtu: PathMtu::Mtu2048,
            gid_tbl_len: 8,
            pkey_tbl_len: 128,
            port_cap_flags: 0x2259_e84a,
            max_msg_sz: 1 << 30,
            bad_pkey_cntr: 0,
            qkey_viol_cntr: 0,
            lid: 13,
            phys_state: 2,
            link_layer: LinkLayer::InfiniBand,
            sm_lid: 1,
            sm_sl: 2,
            lmc: 3,
            max_vl_num: 4,
            subnet_timeout: 18,
            init_type_reply: 1,
            active_width: 2,
            active_speed: 128,
            port_cap_flags2: 0x32,
        },
        gids: vec![GidEntry {
            gid: Gid(gid),
            index: 0,
            port: 1,
            gid_type: GidType::Ib,
            netdev_index: 0,
        }],
    }
}

#[test]
fn every_capability_has_its_line() {
    let host = Host::new();
    host.add_device(0, "mlx5_0", 1, "1: CA");
    host.set("sys/class/infiniband/mlx5_0/board_id", "MT_0000000008\n");
    let system = System {
        sysfs: host.sysfs(),
        proc: host.proc(),
        netlink: Box::new(|| {
            let error = std::io::Error::from_raw_os_error(nix::libc::EPROTONOSUPPORT);
            Err(NldevError::NoSocket(error))
        }),
        open: Box::new(|_| Ok(Arc::new(everything()) as Arc<dyn Context>)),
        userspace: Ok(Vec::new()),
    };
    let report = ibv_devinfo("ibv_devinfo", &["-v".to_owned()], &system);
    assert_eq!(report.code, 0, "{}", report.stderr);
    for expected in [
        "\tboard_id:\t\t\tMT_0000000008\n\tphys_port_cnt:",
        "\tmax_qp:\t\t\t\t-2147483648\n",
        "\tdevice_cap_flags:\t\t0x20008001\n\t\t\t\t\tRESIZE_MAX_WR\n\
         \t\t\t\t\tMANAGED_FLOW_STEERING\n\t\t\t\t\tUnknown flags: 0x8000\n",
        "\tmax_fmr:\t\t\t1\n\tmax_map_per_fmr:\t\t3\n\tmax_srq:\t\t\t0\n\tmax_pkeys:",
        "\tgeneral_odp_caps:\n\t\t\t\t\tODP_SUPPORT\n\t\t\t\t\tODP_SUPPORT_IMPLICIT\n\
         \t\t\t\t\tUnknown flags: 0x4\n\trc_odp_caps:\n\t\t\t\t\tSUPPORT_SEND\n",
        "\t\t\t\t\tSUPPORT_SRQ\n\tuc_odp_caps:\n\t\t\t\t\tUnknown flags: 0x40\n\
         \tud_odp_caps:\n\t\t\t\t\tNO SUPPORT\n\txrc_odp_caps:\n\t\t\t\t\tSUPPORT_SEND\n\
         \tcompletion timestamp_mask:\t\t\t0x00000000000000ff\n\
         \thca_core_clock:\t\t\t1000000kHZ\n\traw packet caps:\n\
         \t\t\t\t\tC-VLAN stripping offload\n",
        "\t\t\t\t\tDelay drop\n\tdevice_cap_flags_ex:\t\t0x11400000005\n\
         \t\t\t\t\tRAW_SCATTER_FCS\n\t\t\t\t\tPCI_WRITE_END_PADDING\n\
         \t\t\t\t\tUnknown flags: 0x10000000000\n\ttso_caps:\n\t\tmax_tso:\t\t\t262144\n\
         \t\tsupported_qp:\n\t\t\t\t\tSUPPORT_RAW_PACKET\n\t\t\t\t\tUnknown flags: 0x4\n\
         \trss_caps:\n",
        "\t\trx_hash_fields_mask:\t\t\t\t0x800000FF\n\t\tsupported_qp:\n\
         \t\t\t\t\tSUPPORT_RAW_PACKET\n\t\t\t\t\tSUPPORT_UD\n\tmax_wq_type_rq:\t\t\t9\n\
         \tpacket_pacing_caps:\n\t\tqp_rate_limit_min:\t1kbps\n\
         \t\tqp_rate_limit_max:\t100kbps\n\t\tsupported_qp:\n\
         \t\t\t\t\tSUPPORT_RAW_PACKET\n\tmax_rndv_hdr_size:\t\t64\n\tmax_num_tags:\t\t\t127\n\
         \tmax_ops:\t\t\t32\n\tmax_sge:\t\t\t1\n\tflags:\n\t\t\t\t\tIBV_TM_CAP_RC\n\
         \n\tcq moderation caps:\n\t\tmax_cq_count:\t65535\n\t\tmax_cq_period:\t4095 us\n\n\
         \tmaximum available device memory:\t131072Bytes\n\n\tnum_comp_vectors:\t\t8\n",
        "\t\t\tstate:\t\t\tPORT_INIT (2)\n",
        "\t\t\tport_lmc:\t\t0x03\n\t\t\tlink_layer:\t\tInfiniBand\n",
        "\t\t\tmax_vl_num:\t\t8 (4)\n",
        "\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t100.0 Gbps (128)\n\
         \t\t\tphys_state:\t\tPOLLING (2)\n\
         \t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0000:0000:0000:0007\n\n",
    ] {
        assert!(
            report.stdout.contains(expected),
            "{expected}\nin {}",
            report.stdout
        );
    }
}
