//! The opcode table.

use crate::wire::{Headers, MAX_HEADER_LEN, Opcode, Operation, PayloadClass, Service, header_len};

/// T-011: exactly the opcodes of the table are known; the optional RC Flush and RC Atomic Write
/// are among them, so that a transport can answer them with a NAK.
#[test]
fn reserved_opcodes_are_unknown() {
    let reserved: Vec<u8> = [
        0x15..=0x15, // RD RESYNC
        0x18..=0x1B,
        0x1E..=0x1F,
        0x2C..=0x3F, // UC has neither responses nor atomics nor invalidates
        0x40..=0x5F, // RD
        0x60..=0x63,
        0x66..=0x80, // 0x80 is only the prefix of the CNP
        0x82..=0x9F,
        0xB5..=0xB5,
        0xB8..=0xFF,
    ]
    .into_iter()
    .flatten()
    .collect();
    for byte in 0..=u8::MAX {
        assert_eq!(
            Opcode::from_byte(byte).is_none(),
            reserved.contains(&byte),
            "0x{byte:02x}"
        );
    }
}

#[test]
fn bytes_and_pairs_agree() {
    for opcode in Opcode::all() {
        assert_eq!(Opcode::from_byte(opcode.byte()), Some(opcode));
        assert_eq!(
            Opcode::new(opcode.service(), opcode.operation()),
            Some(opcode)
        );
    }
    let services = [
        Service::Rc,
        Service::Uc,
        Service::Ud,
        Service::Cnp,
        Service::Xrc,
    ];
    let pairs = services
        .iter()
        .flat_map(|&service| Operation::all().map(move |operation| (service, operation)))
        .filter_map(|(service, operation)| Opcode::new(service, operation));
    assert_eq!(pairs.count(), Opcode::all().count());
    // Not the Send Middle that has the same low bits.
    assert_eq!(Opcode::new(Service::Cnp, Operation::SendMiddle), None);
    assert_eq!(Opcode::new(Service::Rc, Operation::Cnp), None);
}

#[test]
fn bytes_are_those_of_the_specification() {
    let byte = |service, operation| Opcode::new(service, operation).map(Opcode::byte);
    assert_eq!(byte(Service::Rc, Operation::Acknowledge), Some(0x11));
    assert_eq!(byte(Service::Rc, Operation::SendOnlyInvalidate), Some(0x17));
    assert_eq!(byte(Service::Rc, Operation::Flush), Some(0x1C));
    assert_eq!(byte(Service::Rc, Operation::AtomicWrite), Some(0x1D));
    assert_eq!(byte(Service::Uc, Operation::WriteOnlyImm), Some(0x2B));
    assert_eq!(byte(Service::Uc, Operation::ReadRequest), None);
    assert_eq!(byte(Service::Ud, Operation::SendOnly), Some(0x64));
    assert_eq!(byte(Service::Ud, Operation::SendFirst), None);
    assert_eq!(byte(Service::Cnp, Operation::Cnp), Some(0x81));
    assert_eq!(byte(Service::Xrc, Operation::FetchAdd), Some(0xB4));
    assert_eq!(byte(Service::Xrc, Operation::AtomicWrite), None);
    assert_eq!(Opcode::RC_ACKNOWLEDGE.byte(), 0x11);
    assert_eq!(Opcode::UD_SEND_ONLY.byte(), 0x64);
    assert_eq!(Opcode::UD_SEND_ONLY_IMM.byte(), 0x65);
    assert_eq!(Opcode::CNP.byte(), 0x81);
}

#[test]
fn header_lengths() {
    let len = |byte| header_len(Opcode::from_byte(byte).unwrap());
    assert_eq!(len(0x00), 12);
    assert_eq!(len(0x0A), 12 + 16);
    assert_eq!(len(0x0B), 12 + 16 + 4);
    assert_eq!(len(0x0E), 12);
    assert_eq!(len(0x12), 12 + 4 + 8);
    assert_eq!(len(0x14), 12 + 28);
    assert_eq!(len(0x1C), 12 + 4 + 16);
    assert_eq!(len(0x65), 12 + 8 + 4);
    assert_eq!(len(0x81), 12 + 16);
    assert_eq!(len(0xA1), 12 + 4, "every XRC request has an XRCETH");
    assert_eq!(len(0xB1), 12 + 4, "no XRC response has one");
    assert_eq!(MAX_HEADER_LEN, 12 + 4 + 28);
}

#[test]
fn place_in_a_message() {
    use Operation::*;
    for operation in Operation::all() {
        let places = [
            operation.is_first(),
            operation.is_middle(),
            operation.is_last(),
            operation.is_only(),
        ];
        assert_eq!(places.iter().filter(|&&is| is).count(), 1, "{operation}");
        assert_eq!(
            operation.is_start(),
            operation.is_first() || operation.is_only()
        );
        assert_eq!(
            operation.is_end(),
            operation.is_last() || operation.is_only()
        );
        // The names say so, too; what is not in the name fits one packet by nature.
        let name = operation.name();
        assert_eq!(operation.is_first(), name.contains("First"));
        assert_eq!(operation.is_middle(), name.contains("Middle"));
        assert_eq!(operation.is_last(), name.contains("Last"));
        assert_eq!(operation.has_immediate(), name.contains("Immediate"));
        assert_eq!(operation.has_invalidate(), name.contains("Invalidate"));
        assert_eq!(operation.is_send(), name.starts_with("Send"));
        assert_eq!(operation.is_write(), name.starts_with("RDMA Write"));
        assert_eq!(
            operation.is_read_response(),
            name.starts_with("RDMA Read Response")
        );
    }
    let which = |is: fn(Operation) -> bool| Operation::all().filter(|o| is(*o)).collect::<Vec<_>>();
    assert_eq!(
        which(Operation::consumes_receive),
        [
            SendLast,
            SendLastImm,
            SendOnly,
            SendOnlyImm,
            WriteLastImm,
            WriteOnlyImm,
            SendLastInvalidate,
            SendOnlyInvalidate
        ]
    );
    assert_eq!(
        which(Operation::fetches_receive),
        [
            SendFirst,
            SendOnly,
            SendOnlyImm,
            WriteLastImm,
            WriteOnlyImm,
            SendOnlyInvalidate
        ]
    );
    assert_eq!(
        which(Operation::is_response),
        [
            ReadResponseFirst,
            ReadResponseMiddle,
            ReadResponseLast,
            ReadResponseOnly,
            Acknowledge,
            AtomicAcknowledge
        ]
    );
    assert_eq!(
        which(|o| !o.is_request() && !o.is_response()),
        [Cnp],
        "a notification is neither request nor response"
    );
    assert_eq!(
        which(Operation::has_reth),
        [
            WriteFirst,
            WriteOnly,
            WriteOnlyImm,
            ReadRequest,
            Flush,
            AtomicWrite
        ]
    );
    assert_eq!(
        which(Operation::has_aeth),
        [
            ReadResponseFirst,
            ReadResponseLast,
            ReadResponseOnly,
            Acknowledge,
            AtomicAcknowledge
        ]
    );
    assert_eq!(which(Operation::is_atomic), [CompareSwap, FetchAdd]);
}

#[test]
fn payload_classes() {
    let allows = |operation: Operation, len| operation.payload_class().allows(len, 1024);
    assert!(allows(Operation::SendFirst, 1024) && !allows(Operation::SendFirst, 1020));
    assert!(allows(Operation::SendLast, 1) && !allows(Operation::SendLast, 0));
    assert!(allows(Operation::SendOnly, 0) && allows(Operation::SendOnly, 1024));
    assert!(!allows(Operation::SendOnly, 1025) && !allows(Operation::SendLast, 1025));
    assert!(allows(Operation::ReadRequest, 0) && !allows(Operation::ReadRequest, 4));
    assert!(allows(Operation::AtomicWrite, 8) && !allows(Operation::AtomicWrite, 4));
    assert_eq!(Operation::Acknowledge.payload_class(), PayloadClass::Empty);
}

#[test]
fn names() {
    let opcode = Opcode::from_byte(0xB7).unwrap();
    assert_eq!(opcode.to_string(), "XRC Send Only with Invalidate");
    assert_eq!(
        format!("{:?}", Opcode::CNP),
        "Opcode(0x81, CNP Notification)"
    );
    assert_eq!(opcode.headers().to_string(), "XRCETH, IETH");
    assert_eq!(format!("{:?}", Headers::EMPTY), "Headers()");
}
