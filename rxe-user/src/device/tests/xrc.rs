//! XRC through the verbs traits.

use verbs_sys::{QpInit, SrqInit};

use super::*;

/// Targets and queues keep their domain alive, and the queue its CQ.
#[test]
fn an_xrc_message_arrives_in_the_queue_that_it_names() {
    let (mut a, b) = (End::new(QpType::XrcSend), End::new(QpType::Rc));
    let xrcd = b.context.alloc_xrcd().unwrap();
    let mut cq = b
        .context
        .create_cq(&CqInit {
            depth: 8,
            channel: None,
        })
        .unwrap();
    let srq_init = SrqInit {
        max_wr: 8,
        max_sge: 1,
        limit: 0,
        xrc: Some((&*xrcd, &*cq)),
    };
    let mut srq = b.context.create_srq(&*b.pd, &srq_init).unwrap();
    let init = QpInit {
        qp_type: QpType::XrcReceive,
        send_cq: &*b.cq,
        recv_cq: &*b.cq,
        srq: None,
        xrcd: Some(&*xrcd),
        cap: a.qp.capabilities(),
        sq_sig_all: false,
    };
    let mut target = b.context.create_qp(&*b.pd, &init).unwrap();
    drop(xrcd);
    assert_eq!(target.capabilities(), QpCapabilities::default());
    assert_eq!(a.qp.capabilities().max_recv_wr, 0);
    let (initiator, responder) = (a.qp.qpn(), target.qpn());
    for step in steps(QpType::XrcSend, &*b.context, initiator, responder) {
        a.qp.modify(&step).unwrap();
    }
    for step in steps(QpType::XrcReceive, &*a.context, responder, initiator) {
        target.modify(&step).unwrap();
    }
    let room = [b.sge(0, 4096)];
    srq.post_recv(&[ReceiveRequest {
        wr_id: 7,
        sges: &room,
    }])
    .unwrap();
    a.buffer.write(0, &[9; 3000]).unwrap();
    let sges = [a.sge(0, 3000)];
    let send = SendRequest {
        xrc_srqn: Some(srq.number()),
        ..SendRequest::signaled(1, SendOp::Send, &sges)
    };
    a.qp.post_send(&[send]).unwrap();
    let received = wait(&mut *cq);
    assert_eq!((received.wr_id, received.byte_len), (7, 3000));
    assert_eq!(received.qp_num, responder);
    assert_eq!(a.wait().status, WcStatus::Success);
    // The queue may go before its target.
    drop((srq, cq));
    a.qp.post_send(&[send]).unwrap();
    assert_eq!(a.wait().status, WcStatus::RemoteInvalidRequest);
    drop(target);
}
