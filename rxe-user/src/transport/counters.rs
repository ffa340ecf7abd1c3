//! What happened on the wire, counted.

/// Packets and decisions of one NIC since it was made. Every silent drop has
/// a counter of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Packets accepted by a queue pair.
    pub rx_packets: u64,
    /// Packets handed to the link.
    pub tx_packets: u64,
    /// Dropped: shorter than its headers, unknown opcode or transport version.
    pub rx_malformed: u64,
    /// Dropped: the ICRC doesn't match.
    pub rx_icrc_errors: u64,
    /// Dropped: no such queue pair, or one of another service.
    pub rx_unknown_qp: u64,
    /// Dropped: the queue pair's state doesn't take the packet.
    pub rx_wrong_state: u64,
    /// Dropped: not from the peer's address to the own one.
    pub rx_wrong_address: u64,
    /// Dropped: the P_Key doesn't match.
    pub rx_bad_pkey: u64,
    /// Dropped: the Q_Key doesn't match (UD).
    pub rx_bad_qkey: u64,
    /// Dropped: no receive request, or one too small (UC, UD).
    pub rx_no_receive: u64,
    /// Dropped: a response that answers nothing outstanding.
    pub rx_stale_responses: u64,
    /// Congestion notifications.
    pub rx_cnps: u64,
    /// Requests that had been executed before.
    pub duplicate_requests: u64,
    /// Requests later than the expected PSN.
    pub out_of_sequence: u64,
    /// Sequence error NAKs sent.
    pub tx_sequence_naks: u64,
    /// Sequence error NAKs received.
    pub rx_sequence_naks: u64,
    /// RNR NAKs sent.
    pub tx_rnr_naks: u64,
    /// RNR NAKs received.
    pub rx_rnr_naks: u64,
    /// NAKs for fatal errors sent.
    pub tx_error_naks: u64,
    /// NAKs for fatal errors received.
    pub rx_error_naks: u64,
    /// Acknowledgement timeouts.
    pub timeouts: u64,
    /// Request packets sent again.
    pub retransmitted: u64,
    /// Completions lost because their queue was full.
    pub cq_overruns: u64,
}
