#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::io;

use proptest::prelude::*;

use super::attribute::*;
use super::encode::{HEADER, put};
use super::*;

/// Answers that lie ready; each goes with the request that comes first.
#[derive(Debug, Default)]
struct Answers {
    requests: Vec<Vec<u8>>,
    datagrams: VecDeque<Vec<u8>>,
}

impl Transport for &mut Answers {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.requests.push(message.to_vec());
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let none = || io::Error::from_raw_os_error(libc::EAGAIN);
        self.datagrams.pop_front().ok_or_else(none)
    }
}

/// Device management, the reply to GET.
const GET: u16 = 5 << 10 | 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;

fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER + payload.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attributes(list: &[(Attribute, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (attribute, payload) in list {
        put(&mut bytes, *attribute, payload);
    }
    bytes
}

fn object(sequence: u32, list: &[(Attribute, &[u8])]) -> Vec<u8> {
    message(GET, 2, sequence, &attributes(list))
}

fn done(sequence: u32) -> Vec<u8> {
    message(DONE, 2, sequence, &0u32.to_ne_bytes())
}

/// An acknowledgement, or a refusal, with the header of its request.
fn acknowledged(sequence: u32, errno: i32, flags: u16, extended: &[u8]) -> Vec<u8> {
    let mut payload = (-errno).to_ne_bytes().to_vec();
    payload.extend(message(GET, 5, sequence, &[]));
    payload.extend(extended);
    message(ERROR, flags, sequence, &payload)
}

fn ask<R>(
    datagrams: Vec<Vec<u8>>,
    question: impl FnOnce(&mut Nldev<&mut Answers>) -> R,
) -> (R, Answers) {
    let mut answers = Answers {
        datagrams: datagrams.into(),
        ..Answers::default()
    };
    let answer = question(&mut Nldev::new(&mut answers));
    (answer, answers)
}

fn u32s(value: u32) -> [u8; 4] {
    value.to_ne_bytes()
}

fn u64s(value: u64) -> [u8; 8] {
    value.to_ne_bytes()
}

#[test]
fn devices_come_in_several_messages_and_datagrams() {
    let device = |index: u32, name: &[u8]| {
        object(
            1,
            &[
                (DEV_INDEX, &u32s(index)),
                (DEV_NAME, name),
                (PORT_INDEX, &u32s(1)),
            ],
        )
    };
    let first = [device(0, b"rxe_a\0"), device(1, b"rxe_b\0")].concat();
    let second = [device(7, b"siw_a\0"), done(1)].concat();
    let (devices, answers) = ask(vec![first, second], |nldev| nldev.devices());
    let names: Vec<(u32, String)> = devices
        .unwrap()
        .into_iter()
        .map(|device| (device.index, device.name))
        .collect();
    let expected = [(0, "rxe_a"), (1, "rxe_b"), (7, "siw_a")];
    assert_eq!(
        names,
        expected.map(|(index, name)| (index, name.to_owned()))
    );
    assert_eq!(answers.requests.len(), 1);
    // Type and flags: client 5, GET; request, acknowledgement, dump.
    assert_eq!(answers.requests[0][4..8], [1, 0x14, 5, 3]);
}

#[test]
fn a_device_is_read_with_all_that_the_kernel_tells() {
    let answer = object(
        1,
        &[
            (DEV_INDEX, &u32s(3)),
            (DEV_NAME, b"rxe0\0"),
            (PORT_INDEX, &u32s(1)),
            (CAP_FLAGS, &u64s(0x0122_3c76)),
            // The kernel pads before numbers of 64 bits.
            (
                Attribute {
                    number: 0,
                    name: "PAD",
                },
                &[],
            ),
            (NODE_GUID, &u64s(0x00ff_fe00_0001)),
            (DEV_NODE_TYPE, &[1]),
            (DEV_PROTOCOL, b"roce\0"),
            (DEV_DIM, &[0]),
            (
                Attribute {
                    number: 9999,
                    name: "of tomorrow",
                },
                &[1, 2, 3],
            ),
        ],
    );
    let datagrams = vec![answer, acknowledged(1, 0, 0, &[])];
    let (device, _) = ask(datagrams, |nldev| nldev.device(3));
    let expected = DeviceInfo {
        index: 3,
        name: "rxe0".into(),
        ports: Some(1),
        cap_flags: Some(0x0122_3c76),
        node_guid: Some(0x00ff_fe00_0001),
        node_type: Some(1),
        protocol: Some("roce".into()),
        adaptive_moderation: Some(0),
        ..DeviceInfo::default()
    };
    assert_eq!(device.unwrap(), expected);
}

#[test]
fn the_uverbs_node_is_decoded_from_the_kernels_numbers() {
    for (encoded, major, minor) in [(0xe7c0, 231, 192), (0x10_0a04, 10, 260)] {
        let answer = object(
            1,
            &[
                (CHARDEV, &u64s(encoded)),
                (CHARDEV_ABI, &u64s(2)),
                (CHARDEV_NAME, b"uverbs0\0"),
                (UVERBS_DRIVER_ID, &u32s(14)),
            ],
        );
        let (node, answers) = ask(
            vec![[answer, acknowledged(1, 0, 0, &[])].concat()],
            |nldev| nldev.uverbs(0),
        );
        let node = node.unwrap();
        assert_eq!((node.number.major, node.number.minor), (major, minor));
        assert_eq!((node.abi, node.driver_id), (2, Some(14)));
        assert!(answers.requests[0].ends_with(b"\x0b\0\x45\0uverbs\0\0"));
    }
}

#[test]
fn a_refusal_has_the_kernels_number_and_words() {
    let text = attributes(&[(
        Attribute {
            number: 1,
            name: "text",
        },
        b"Attribute failed policy validation.\0",
    )]);
    let (added, _) = ask(vec![acknowledged(1, libc::EINVAL, 0x300, &text)], |nldev| {
        nldev.add_link("x", "rxe", "eth0")
    });
    let error = added.unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL));
    assert_eq!(
        error.extended(),
        Some("Attribute failed policy validation.")
    );
    let message = error.to_string();
    assert!(
        message.starts_with("the kernel refused to make the device"),
        "{message}"
    );
    // Without the flag nothing is looked for behind the request.
    let (added, _) = ask(vec![acknowledged(1, libc::EEXIST, 0, &text)], |nldev| {
        nldev.add_link("x", "rxe", "eth0")
    });
    let error = added.unwrap_err();
    assert_eq!(
        (error.errno(), error.extended()),
        (Some(libc::EEXIST), None)
    );
    // A dump that breaks off says so in its last message.
    let broken = message_of_done(-libc::EINTR);
    let (devices, _) = ask(vec![broken], |nldev| nldev.devices());
    assert_eq!(devices.unwrap_err().errno(), Some(libc::EINTR));
}

fn message_of_done(code: i32) -> Vec<u8> {
    message(DONE, 2, 1, &code.to_ne_bytes())
}

#[test]
fn answers_to_other_requests_are_passed_over() {
    let stale = object(77, &[(DEV_INDEX, &u32s(9))]);
    let datagram = [stale, done(77), done(1)].concat();
    let (devices, _) = ask(vec![datagram], |nldev| nldev.devices());
    assert_eq!(devices.unwrap(), []);
}

#[test]
fn silence_is_an_error() {
    let (devices, _) = ask(Vec::new(), |nldev| nldev.devices());
    let message = devices.unwrap_err().to_string();
    assert!(
        message.starts_with("can't receive over NETLINK_RDMA"),
        "{message}"
    );
}

#[test]
fn odd_attributes_are_named() {
    let index: (Attribute, &[u8]) = (DEV_INDEX, &[0; 4]);
    let name: (Attribute, &[u8]) = (DEV_NAME, b"rxe0\0");
    type Row<'a> = (&'a [(Attribute, &'a [u8])], &'static str);
    let rows: [Row<'_>; 6] = [
        (&[name], "lacks the attribute DEV_INDEX (1)"),
        (&[index], "lacks the attribute DEV_NAME (2)"),
        (
            &[(DEV_INDEX, &[0; 2]), name],
            "DEV_INDEX (1) is 2 bytes long, expected 4 bytes",
        ),
        (
            &[index, (DEV_NAME, b"rxe0")],
            "DEV_NAME (2) is 4 bytes without a zero byte",
        ),
        (&[index, (DEV_NAME, b"")], "DEV_NAME (2) is 0 bytes without"),
        (
            &[index, name, (NODE_GUID, &[0; 9])],
            "NODE_GUID (6) is 9 bytes long",
        ),
    ];
    for (list, expected) in rows {
        let (devices, _) = ask(vec![object(1, list)], |nldev| nldev.devices());
        let message = devices.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_answer_that_is_cut_off_names_the_attribute() {
    let whole = object(1, &[(DEV_INDEX, &u32s(0)), (DEV_NAME, b"rxe_long_name\0")]);
    let mut attribute_too_long = whole.clone();
    attribute_too_long[HEADER + 8] = 200;
    let (devices, _) = ask(vec![attribute_too_long], |nldev| nldev.devices());
    let message = devices.unwrap_err().to_string();
    assert!(
        message.contains("DEV_NAME (2) needs 200 bytes"),
        "{message}"
    );
    for length in 1..whole.len() {
        let (devices, _) = ask(vec![whole[..length].to_vec()], |nldev| nldev.devices());
        let message = devices.unwrap_err().to_string();
        assert!(message.contains("a message needs"), "{length}: {message}");
    }
}

#[test]
fn a_message_of_another_client_is_named() {
    let odd = message(2 << 10, 0, 1, &[]);
    let (devices, _) = ask(vec![odd], |nldev| nldev.devices());
    let message = devices.unwrap_err().to_string();
    assert!(message.contains("type 0x800"), "{message}");
}

#[test]
fn queue_pairs_are_read_entry_by_entry() {
    let entry = |lqpn: u32| {
        attributes(&[
            (PORT_INDEX, &u32s(1)),
            (RES_LQPN, &u32s(lqpn)),
            (RES_SQ_PSN, &u32s(5)),
            (RES_TYPE, &[2]),
            (RES_STATE, &[3]),
            (RES_KERN_NAME, b"ib_core\0"),
        ])
    };
    let table = attributes(&[(RES_QP_ENTRY, &entry(17)), (RES_QP_ENTRY, &entry(18))]);
    // Whether the kernel sets the nested flag or not.
    for flag in [0, 0x8000] {
        let list = Attribute {
            number: RES_QP.number | flag,
            name: "RES_QP",
        };
        let answer = object(1, &[(DEV_INDEX, &u32s(0)), (list, &table)]);
        let (objects, answers) = ask(vec![[answer, done(1)].concat()], |nldev| {
            nldev.objects(Table::Qp, 0, Some(1), false)
        });
        let objects = objects.unwrap();
        assert_eq!(objects.len(), 2);
        assert_eq!((objects[1].lqpn, objects[1].kind), (Some(18), Some(2)));
        assert_eq!(objects[0].kern_name.as_deref(), Some("ib_core"));
        assert_eq!(answers.requests[0][4..6], [10, 0x14]);
    }
    let lacking = attributes(&[(RES_QP_ENTRY, &attributes(&[(RES_LQPN, &u32s(1))]))]);
    let (objects, _) = ask(vec![object(1, &[(RES_QP, &lacking)])], |nldev| {
        nldev.objects(Table::Qp, 0, None, false)
    });
    let message = objects.unwrap_err().to_string();
    assert!(message.contains("RES_SQ_PSN (24)"), "{message}");
}

#[test]
fn addresses_of_connections_are_read() {
    let mut v4 = vec![0; 128];
    v4[..8].copy_from_slice(&[2, 0, 0x48, 0x57, 10, 0, 0, 1]);
    let mut v6 = vec![0; 128];
    v6[..2].copy_from_slice(&10u16.to_ne_bytes());
    v6[2..4].copy_from_slice(&[0x48, 0x57]);
    v6[23] = 1;
    let object_of = |source: &[u8]| {
        let entry = attributes(&[
            (RES_STATE, &[5]),
            (RES_PS, &u32s(0x106)),
            (RES_SRC_ADDR, source),
        ]);
        let table = attributes(&[(RES_CM_ID_ENTRY, &entry)]);
        let answer = [object(1, &[(RES_CM_ID, &table)]), done(1)].concat();
        ask(vec![answer], |nldev| {
            nldev.objects(Table::CmId, 0, None, false)
        })
        .0
    };
    let source = |bytes: &[u8]| object_of(bytes).unwrap()[0].source;
    assert_eq!(source(&v4), Some("10.0.0.1:18519".parse().unwrap()));
    assert_eq!(source(&v6), Some("[::1]:18519".parse().unwrap()));
    assert_eq!(source(&[0; 128]), None);
    let message = object_of(&v6[..12]).unwrap_err().to_string();
    assert!(
        message.contains("RES_SRC_ADDR (33) is 12 bytes"),
        "{message}"
    );
    assert!(object_of(&[2]).is_err());
}

#[test]
fn drivers_tell_names_print_types_and_values() {
    let driver = attributes(&[
        (DRIVER_STRING, b"dct\0"),
        (DRIVER_U32, &u32s(7)),
        (DRIVER_STRING, b"flags\0"),
        (DRIVER_PRINT_TYPE, &[1]),
        (DRIVER_U64, &u64s(0xff)),
        (DRIVER_STRING, b"mode\0"),
        (DRIVER_STRING, b"fast\0"),
    ]);
    let entry = attributes(&[(RES_CTXN, &u32s(1)), (DRIVER, &driver)]);
    let table = attributes(&[(RES_CTX_ENTRY, &entry)]);
    let (objects, _) = ask(
        vec![[object(1, &[(RES_CTX, &table)]), done(1)].concat()],
        |nldev| nldev.objects(Table::Ctx, 0, None, false),
    );
    let field = |key: &str, print_type, value| DriverField {
        key: key.to_owned(),
        value,
        print_type,
    };
    let expected = [
        field("dct", 0, DriverValue::U32(7)),
        field("flags", 1, DriverValue::U64(0xff)),
        field("mode", 0, DriverValue::Text("fast".into())),
    ];
    assert_eq!(objects.unwrap()[0].driver, expected);
}

#[test]
fn counters_are_read_in_the_kernels_order() {
    let entry = |name: &[u8], value: u64| {
        attributes(&[
            (STAT_HWCOUNTER_ENTRY_NAME, name),
            (STAT_HWCOUNTER_ENTRY_VALUE, &u64s(value)),
        ])
    };
    let table = attributes(&[
        (STAT_HWCOUNTER_ENTRY, &entry(b"sent_pkts\0", 5)),
        (STAT_HWCOUNTER_ENTRY, &entry(b"rcvd_pkts\0", u64::MAX)),
    ]);
    let answer = object(1, &[(STAT_HWCOUNTERS, &table)]);
    let (counters, _) = ask(vec![answer, acknowledged(1, 0, 0, &[])], |nldev| {
        nldev.counters(0, 1)
    });
    let counters = counters.unwrap();
    assert_eq!(counters[1].name, "rcvd_pkts");
    assert_eq!(counters[1].value, u64::MAX);
    let (none, _) = ask(vec![object(1, &[(DEV_INDEX, &u32s(0))])], |nldev| {
        nldev.counters(0, 1)
    });
    let message = none.unwrap_err().to_string();
    assert!(message.contains("STAT_HWCOUNTERS (80)"), "{message}");
}

/// Every question there is, of whatever answer.
fn ask_everything(datagram: &[u8]) {
    const TABLES: [Table; 7] = [
        Table::Qp,
        Table::CmId,
        Table::Cq,
        Table::Mr,
        Table::Pd,
        Table::Ctx,
        Table::Srq,
    ];
    let answers = || vec![datagram.to_vec(); 2];
    let _ = ask(answers(), |nldev| nldev.devices());
    let _ = ask(answers(), |nldev| nldev.port(0, 1));
    let _ = ask(answers(), |nldev| nldev.uverbs(0));
    let _ = ask(answers(), |nldev| nldev.system());
    let _ = ask(answers(), |nldev| nldev.summary(0));
    let _ = ask(answers(), |nldev| nldev.counters(0, 1));
    let _ = ask(answers(), |nldev| nldev.qp_counters(0, 1));
    let _ = ask(answers(), |nldev| nldev.mr_counters(0));
    let _ = ask(answers(), |nldev| nldev.qp_counter_mode(0, 1));
    let _ = ask(answers(), |nldev| nldev.optional_counters(0, 1));
    for table in TABLES {
        let _ = ask(answers(), |nldev| nldev.objects(table, 0, None, false));
        let _ = ask(answers(), |nldev| nldev.object(table, 0, None, true, 1));
    }
}

/// Attributes of random numbers around the known ones, nested at random.
fn attribute_soup() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop::collection::vec(any::<u8>(), 0..24);
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop::collection::vec((0..100u16, inner), 0..6).prop_map(|list| {
            let mut bytes = Vec::new();
            for (number, payload) in list {
                put(&mut bytes, Attribute { number, name: "" }, &payload);
            }
            bytes
        })
    })
}

proptest! {
    #[test]
    fn no_bytes_panic_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        ask_everything(&bytes);
        ask_everything(&message(GET, 2, 1, &bytes));
        ask_everything(&message(ERROR, 0x200, 1, &bytes));
        ask_everything(&message(ERROR, 0x300, 1, &bytes));
        ask_everything(&message(DONE, 0x200, 1, &bytes));
    }

    #[test]
    fn no_attributes_panic_the_parser(bytes in attribute_soup(), cut in 0..64usize) {
        let mut datagram = message(GET, 2, 1, &bytes);
        ask_everything(&datagram);
        datagram.truncate(datagram.len().saturating_sub(cut));
        ask_everything(&datagram);
    }
}
