//! Objects and counters that the recorded host didn't have, as iproute2 prints
//! them.

use ironverbs::inventory::{Report, System, rdma};
use verbs_sys::VerbsError;
use verbs_sys::nldev::Command;
use verbs_sys::nldev::attribute::*;

use crate::host::Host;
use crate::netlink::{Answer, Kernel, Node, Payload, Question};

/// A device `mlx5_0` of one port, whose table or counters are `nodes`.
fn run(line: &str, nodes: impl Fn(Question) -> Vec<Node> + 'static) -> Report {
    let host = Host::new();
    host.add_device(0, "mlx5_0", 1, "1: CA");
    host.add_process(12, "ib_send_bw");
    let kernel = Kernel::new(move |question| {
        let mut object = vec![
            Node::u32(DEV_INDEX, 3),
            Node::text(DEV_NAME, "mlx5_0"),
            Node::u32(PORT_INDEX, 1),
        ];
        if !question.is(Command::Get) {
            object.extend(nodes(question));
        }
        Answer::Objects(vec![object])
    });
    let system = System {
        sysfs: host.sysfs(),
        proc: host.proc(),
        netlink: Box::new(move || Ok(Box::new(kernel.clone()))),
        open: Box::new(|_| Err(VerbsError::Unsupported { what: "opening" })),
        userspace: Ok(Vec::new()),
    };
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    rdma("rdma", &words, &system)
}

fn assert_prints(line: &str, nodes: impl Fn(Question) -> Vec<Node> + 'static, expected: &str) {
    let report = run(line, nodes);
    assert_eq!(report.stdout, expected, "{line}");
    assert_eq!((report.stderr.as_str(), report.code), ("", 0), "{line}");
}

fn bytes(attribute: Attribute, bytes: &[u8]) -> Node {
    Node(attribute, Payload::Bytes(bytes.to_vec()))
}

fn address(attribute: Attribute, port: u16, ip: [u8; 4]) -> Node {
    let mut storage = vec![0; 128];
    storage[..2].copy_from_slice(&2_u16.to_ne_bytes());
    storage[2..4].copy_from_slice(&port.to_be_bytes());
    storage[4..8].copy_from_slice(&ip);
    bytes(attribute, &storage)
}

fn cm_ids(_: Question) -> Vec<Node> {
    let entry = vec![
        Node::u32(PORT_INDEX, 1),
        Node::u32(RES_CM_IDN, 4),
        Node::u32(RES_LQPN, 17),
        Node::u8(RES_TYPE, 2),
        Node::u8(RES_STATE, 5),
        Node::u32(RES_PS, 0x106),
        Node::u32(RES_PID, 12),
        address(RES_SRC_ADDR, 7174, [10, 0, 0, 1]),
        address(RES_DST_ADDR, 40000, [10, 0, 0, 2]),
    ];
    vec![Node::nested(
        RES_CM_ID,
        vec![Node::nested(RES_CM_ID_ENTRY, entry)],
    )]
}

#[test]
fn connections_have_addresses_and_owners() {
    const LINE: &str = "link mlx5_0/1 cm-idn 4 lqpn 17 qp-type RC state CONNECT ps TCP pid 12 \
                        comm ib_send_bw src-addr 10.0.0.1:7174 dst-addr 10.0.0.2:40000 \n";
    for filter in [
        "",
        " ps tcp",
        " src-port 7174",
        " dst-addr 10.0.0.2",
        " link mlx5_0/1 state connect",
    ] {
        assert_prints(&format!("resource show cm_id{filter}"), cm_ids, LINE);
    }
    for filter in [
        "ps udp",
        "src-port 1",
        "src-addr 10.0.0.2",
        "pid 13",
        "lqpn 18",
    ] {
        assert_prints(&format!("resource show cm_id {filter}"), cm_ids, "");
    }
}

fn srqs(_: Question) -> Vec<Node> {
    let qps = vec![
        Node::nested(RES_QP_ENTRY, vec![Node::u32(RES_LQPN, 9)]),
        Node::nested(
            RES_QP_ENTRY,
            vec![Node::u32(MIN_RANGE, 12), Node::u32(MAX_RANGE, 16)],
        ),
    ];
    let entry = vec![
        Node::u32(RES_SRQN, 1),
        Node::u8(RES_TYPE, 0),
        Node::nested(RES_QP, qps),
        Node::u32(RES_PDN, 2),
        Node::u32(RES_PID, 12),
    ];
    vec![Node::nested(
        RES_SRQ,
        vec![Node::nested(RES_SRQ_ENTRY, entry)],
    )]
}

#[test]
fn shared_receive_queues_list_their_queue_pairs() {
    assert_prints(
        "resource show srq",
        srqs,
        "dev mlx5_0 srqn 1 type BASIC lqpn 9,12-16 pdn 2 pid 12 comm ib_send_bw \n",
    );
    assert_prints(
        "-j resource show srq",
        srqs,
        "[{\"ifindex\":3,\"ifname\":\"mlx5_0\",\"srqn\":1,\"type\":\"BASIC\",\
         \"lqpn\":[\"9\",\"12-16\"],\"pdn\":2,\"pid\":12,\"comm\":\"ib_send_bw\"}]\n",
    );
    assert_prints(
        "resource show srq lqpn 13-14,16",
        srqs,
        "dev mlx5_0 srqn 1 type BASIC lqpn 13-14,16 pdn 2 pid 12 comm ib_send_bw \n",
    );
    assert_prints("resource show srq lqpn 99", srqs, "");
}

fn contexts(_: Question) -> Vec<Node> {
    let driver = vec![
        Node::text(DRIVER_STRING, "bfregs"),
        Node::u32(DRIVER_U32, 8),
        Node::text(DRIVER_STRING, "flags"),
        Node::u8(DRIVER_PRINT_TYPE, 1),
        Node::u64(DRIVER_U64, 0xbeef),
        Node::text(DRIVER_STRING, "delta"),
        Node::u32(DRIVER_S32, u32::MAX),
    ];
    let entry = vec![
        Node::u32(RES_CTXN, 0),
        Node::u32(RES_PID, 4711),
        Node::nested(DRIVER, driver),
    ];
    vec![Node::nested(
        RES_CTX,
        vec![Node::nested(RES_CTX_ENTRY, entry)],
    )]
}

#[test]
fn drivers_have_their_say_with_two_d() {
    // Process 4711 is gone, so it has no name.
    assert_prints(
        "-d resource show ctx",
        contexts,
        "dev mlx5_0 ctxn 0 pid 4711 \n",
    );
    assert_prints(
        "-dd resource show ctx",
        contexts,
        "dev mlx5_0 ctxn 0 pid 4711 drv_bfregs 8 drv_flags 0xbeef drv_delta -1 \n",
    );
    assert_prints(
        "-p -d -d resource show ctx",
        contexts,
        "dev mlx5_0 ctxn 0 pid 4711 \n    drv_bfregs 8 drv_flags 0xbeef drv_delta -1 \n",
    );
}

fn regions(question: Question) -> Vec<Node> {
    let entry = match question.is(Command::ResMrGetRaw) {
        true => vec![bytes(RES_RAW, &[1, 2, 255])],
        false => vec![
            Node::u32(RES_MRN, 5),
            Node::u32(RES_RKEY, 0x1ff),
            Node::u32(RES_LKEY, 0x1fe),
            Node::u64(RES_MRLEN, 1 << 40),
            Node::text(RES_KERN_NAME, "rpcrdma"),
        ],
    };
    vec![Node::nested(
        RES_MR,
        vec![Node::nested(RES_MR_ENTRY, entry)],
    )]
}

#[test]
fn regions_have_keys_and_raw_bytes() {
    assert_prints(
        "resource show mr",
        regions,
        "dev mlx5_0 mrn 5 rkey 0x1ff lkey 0x1fe mrlen 1099511627776 comm [rpcrdma] \n",
    );
    assert_prints("resource show mr mrlen 7", regions, "");
    assert_prints(
        "-j -r resource show mr",
        regions,
        "[{\"ifindex\":3,\"ifname\":\"mlx5_0\",\"data\":[1,2,255]}]\n",
    );
}

fn counters(question: Question) -> Vec<Node> {
    let counter = |name: &str, value: u64| {
        Node::nested(
            STAT_HWCOUNTER_ENTRY,
            vec![
                Node::text(STAT_HWCOUNTER_ENTRY_NAME, name),
                Node::u64(STAT_HWCOUNTER_ENTRY_VALUE, value),
                Node::u8(STAT_HWCOUNTER_DYNAMIC, u8::from(name == "a")),
            ],
        )
    };
    let list = Node::nested(STAT_HWCOUNTERS, vec![counter("a", 1), counter("b", 2)]);
    if !question.of_resource {
        return vec![list];
    }
    let qps = vec![
        Node::nested(RES_QP_ENTRY, vec![Node::u32(RES_LQPN, 178)]),
        Node::nested(RES_QP_ENTRY, vec![Node::u32(RES_LQPN, 179)]),
    ];
    let set = vec![
        Node::u32(PORT_INDEX, 1),
        Node::u32(STAT_COUNTER_ID, 4),
        Node::u8(RES_TYPE, 2),
        Node::u32(RES_PID, 12),
        list,
        Node::nested(RES_QP, qps),
    ];
    vec![
        Node::u32(STAT_MODE, 1),
        Node::u32(STAT_AUTO_MODE_MASK, 3),
        Node::nested(STAT_COUNTER, vec![Node::nested(STAT_COUNTER_ENTRY, set)]),
    ]
}

#[test]
fn counters_of_queue_pairs_name_them() {
    const SET: &str = "link mlx5_0/1 cntn 4 qp-type RC pid 12 comm ib_send_bw a 1 b 2 \n    \
                       LQPN: <178,179>\n";
    assert_prints("statistic qp show", counters, SET);
    assert_prints("statistic qp show link mlx5_0/1 cntn 4", counters, SET);
    assert_prints("statistic qp show link mlx5_0/1 cntn 5", counters, "");
    assert_prints(
        "-j statistic qp show",
        counters,
        "[{\"ifindex\":3,\"ifname\":\"mlx5_0\",\"port\":1,\"cntn\":4,\"qp-type\":\"RC\",\
         \"pid\":12,\"comm\":\"ib_send_bw\",\"a\":1,\"b\":2,\"lqpn\":[178,179]}]\n",
    );
    assert_prints(
        "statistic qp mode link mlx5_0/1",
        counters,
        "link mlx5_0/1 mode qp auto type,pid on \n",
    );
}

#[test]
fn optional_counters_are_those_that_can_be_switched() {
    assert_prints(
        "statistic mode",
        counters,
        "link mlx5_0/1 optional-counters a\n",
    );
    assert_prints(
        "statistic mode supported link mlx5_0/1",
        counters,
        "link mlx5_0/1 supported optional-counters a,b\n",
    );
    assert_prints(
        "-p statistic mode supported",
        counters,
        "link mlx5_0/1 supported optional-counters \n    a,\n    b\n",
    );
    assert_prints(
        "-j statistic mode supported",
        counters,
        "[{\"ifname\":\"mlx5_0\",\"port\":1,\"supported optional-counters\":[\"a\",\"b\"]}]\n",
    );
}

#[test]
fn ports_of_infiniband_have_subnets_and_capabilities() {
    let port = |_| {
        vec![
            Node::u64(SUBNET_PREFIX, 0xfe80 << 48),
            Node::u32(LID, 13),
            Node::u32(SM_LID, 1),
            Node::u8(LMC, 0),
            Node::u8(PORT_STATE, 2),
            Node::u8(PORT_PHYS_STATE, 5),
            Node::u64(CAP_FLAGS, 1 << 32 | 0x2),
        ]
    };
    const LINE: &str = "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 \
                        state INIT physical_state LINK_UP ";
    assert_prints("link show mlx5_0/1", port, &format!("{LINE}\n"));
    assert_prints(
        "-d link show mlx5_0/1",
        port,
        &format!("{LINE}\n    caps: <SM, SET_NODE_DESC>\n"),
    );
}
