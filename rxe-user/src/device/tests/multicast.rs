//! Multicast over the sockets of `lo`.

use std::net::Ipv6Addr;

use verbs_sys::{CompletionChannel, UdTarget};

use super::*;

/// The group that perftest uses unless told otherwise.
const PERFTEST: Ipv6Addr = Ipv6Addr::new(0xff01, 0, 2, 0xc985, 0, 0, 0, 0);
const QKEY: u32 = 0x1111_1111;
const MULTICAST_QPN: u32 = 0xff_ffff;

/// A UD queue pair in RTS with a completion queue that notifies.
struct Member {
    end: End,
    cq: Box<dyn CompletionQueue>,
    channel: Arc<dyn CompletionChannel>,
}

impl Member {
    fn new() -> Self {
        let mut end = End::new(QpType::Ud);
        let channel = end.context.create_comp_channel().unwrap();
        let init = CqInit {
            depth: 16,
            channel: Some(&channel),
        };
        let cq = end.context.create_cq(&init).unwrap();
        let qp_init = verbs_sys::QpInit {
            qp_type: QpType::Ud,
            send_cq: &*cq,
            recv_cq: &*cq,
            srq: None,
            xrcd: None,
            cap: end.qp.capabilities(),
            sq_sig_all: false,
        };
        end.qp = end.context.create_qp(&*end.pd, &qp_init).unwrap();
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            qkey: Some(QKEY),
            ..QpAttributes::to_state(QpState::Init)
        };
        let rts = QpAttributes {
            sq_psn: Some(0),
            ..QpAttributes::to_state(QpState::Rts)
        };
        for step in [init, QpAttributes::to_state(QpState::Rtr), rts] {
            end.qp.modify(&step).unwrap();
        }
        let room = [end.sge(0, 4096)];
        for wr_id in 0..8 {
            let request = ReceiveRequest { wr_id, sges: &room };
            end.qp.post_recv(&[request]).unwrap();
        }
        Self { end, cq, channel }
    }

    fn send(&mut self, mgid: Gid, text: &[u8]) {
        let av = AddressVector {
            dgid: mgid,
            sgid_index: 0,
            flow_label: 0,
            hop_limit: 1,
            traffic_class: 0,
            sl: 0,
            port: 1,
        };
        let ah = self.end.context.create_ah(&*self.end.pd, &av).unwrap();
        let request = SendRequest {
            data: verbs_sys::Gather::Inline(text),
            flags: verbs_sys::SendFlags::empty(),
            ud: Some(UdTarget {
                ah: &*ah,
                qpn: MULTICAST_QPN,
                qkey: QKEY,
            }),
            ..SendRequest::signaled(1, SendOp::Send, &[])
        };
        self.end.qp.post_send(&[request]).unwrap();
    }

    /// Sleeps until something has come, and returns whose it is.
    fn wait(&mut self) -> Completion {
        self.cq.arm(Notify::Any);
        let mut completions = [Completion::default()];
        if self.cq.poll(&mut completions) == 0 {
            let woken = self.channel.wait(Some(Duration::from_secs(5))).unwrap();
            assert_eq!(woken, Some(self.cq.handle()), "no message in 5 s");
            assert_eq!(self.cq.poll(&mut completions), 1);
        }
        completions[0]
    }

    /// Nothing comes for a while.
    fn assert_silent(&mut self) {
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(self.cq.poll(&mut [Completion::default()]), 0);
    }
}

/// UD-014 with sockets: the members are of contexts of their own, as in
/// processes of their own.
#[test]
fn a_group_on_lo_reaches_its_members() {
    let mgid = Gid::from(PERFTEST);
    let [mut sender, mut first, mut second, mut stranger] = [(); 4].map(|()| Member::new());
    first.end.qp.attach_multicast(&mgid).unwrap();
    second.end.qp.attach_multicast(&mgid).unwrap();
    sender.send(mgid, b"to all");
    let from = sender.end.qp.qpn();
    for member in [&mut first, &mut second] {
        let received = member.wait();
        assert_eq!((received.src_qp, received.byte_len), (from, 46));
        let mut text = [0; 6];
        member.end.buffer.read(40, &mut text).unwrap();
        assert_eq!(&text, b"to all");
        let mut hop_limit = [0];
        member.end.buffer.read(28, &mut hop_limit).unwrap();
        assert_eq!(hop_limit, [1], "in the IPv4 header of the GRH");
    }
    stranger.assert_silent();

    first.end.qp.detach_multicast(&mgid).unwrap();
    assert!(first.end.qp.detach_multicast(&mgid).is_err(), "once");
    sender.send(mgid, b"again");
    assert_eq!(second.wait().byte_len, 45);
    first.assert_silent();
    // Another group of the same device is another address.
    let other = Gid::from(Ipv6Addr::new(0xff01, 0, 2, 0xc985, 0, 0, 0, 1));
    stranger.end.qp.attach_multicast(&other).unwrap();
    sender.send(other, b"!");
    assert_eq!(stranger.wait().byte_len, 41);
    second.assert_silent();
    // Own messages arrive as well.
    stranger.send(other, b"me");
    let own = stranger.wait();
    assert_eq!((own.byte_len, own.src_qp), (42, stranger.end.qp.qpn()));
}

#[test]
fn groups_are_for_datagrams() {
    let mut rc = End::new(QpType::Rc);
    let error = rc.qp.attach_multicast(&Gid::from(PERFTEST)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "multicast isn't possible on a RC queue pair"
    );
    let attributes = rc.context.query_device().unwrap();
    assert!(attributes.max_mcast_grp > 0 && attributes.max_mcast_qp_attach > 0);
}
