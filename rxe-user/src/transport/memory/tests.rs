use verbs_sys::memory::Buffer;

use super::*;

mod windows;

struct Fixture {
    table: MemoryTable,
    pd: PdId,
    buffer: Buffer,
    keys: Keys,
}

fn fixture(access: AccessFlags) -> Fixture {
    let mut table = MemoryTable::default();
    let pd = table.alloc_pd();
    let buffer = Buffer::allocate(4096).unwrap();
    let range = buffer.range(64..64 + 128).unwrap();
    let keys = table.register(pd, range, access, || 0x1234_5678).unwrap();
    Fixture {
        table,
        pd,
        buffer,
        keys,
    }
}

impl Fixture {
    /// A queue pair of the domain.
    fn by(&self) -> Accessor {
        Accessor {
            pd: self.pd,
            qpn: 7,
        }
    }
}

fn all() -> AccessFlags {
    AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE
}

#[test]
fn bounds_hold_at_both_ends_and_at_the_end_of_the_address_space() {
    let f = fixture(all());
    let start = f.buffer.addr() + 64;
    let check = |va, len| {
        f.table
            .check_remote(f.by(), f.keys.rkey, va, len, AccessFlags::REMOTE_READ)
    };
    assert_eq!(check(start, 128), Ok(()));
    assert_eq!(check(start + 127, 1), Ok(()));
    assert_eq!(check(start + 128, 0), Ok(()));
    for (va, len) in [
        (start - 1, 1),
        (start, 129),
        (start + 128, 1),
        (start + 129, 0),
        (u64::MAX, 1),
        (u64::MAX, 2),
        (start, u64::MAX),
        (0, 1),
    ] {
        assert_eq!(check(va, len), Err(AccessDenied), "{va:#x} + {len}");
    }
}

#[test]
fn key_domain_and_right_are_checked() {
    let mut f = fixture(AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE);
    let (start, rkey) = (f.buffer.addr() + 64, f.keys.rkey);
    let other = f.table.alloc_pd();
    let write = AccessFlags::REMOTE_WRITE;
    assert_eq!(f.table.check_remote(f.by(), rkey, start, 1, write), Ok(()));
    assert_eq!(
        f.table.check_remote(f.by(), rkey ^ 1, start, 1, write),
        Err(AccessDenied)
    );
    assert_eq!(
        f.table.check_remote(
            Accessor {
                pd: other,
                ..f.by()
            },
            rkey,
            start,
            1,
            write
        ),
        Err(AccessDenied)
    );
    for right in [AccessFlags::REMOTE_READ, AccessFlags::REMOTE_ATOMIC] {
        assert_eq!(
            f.table.check_remote(f.by(), rkey, start, 1, right),
            Err(AccessDenied)
        );
    }
    f.table.deregister(f.keys.lkey).unwrap();
    assert_eq!(
        f.table.check_remote(f.by(), rkey, start, 1, write),
        Err(AccessDenied)
    );
}

#[test]
fn a_region_without_remote_rights_has_no_rkey() {
    assert_eq!(fixture(AccessFlags::LOCAL_WRITE).keys.rkey, 0);
    assert_ne!(fixture(AccessFlags::REMOTE_READ).keys.rkey, 0);
}

#[test]
fn zero_based_regions_count_from_zero() {
    let f = fixture(all() | AccessFlags::ZERO_BASED);
    f.table
        .write_remote(f.by(), f.keys.rkey, 120, &[7; 8])
        .unwrap();
    assert_eq!(f.buffer.load_u8(64 + 127), Ok(7));
    assert_eq!(
        f.table.write_remote(f.by(), f.keys.rkey, 121, &[7; 8]),
        Err(AccessDenied)
    );
}

#[test]
fn lists_skip_split_and_ignore_empty_elements() {
    let f = fixture(all());
    let start = f.buffer.addr() + 64;
    let lkey = f.keys.lkey;
    let sges = [
        Sge {
            addr: start,
            length: 3,
            lkey,
        },
        Sge {
            addr: 0,
            length: 0,
            lkey: 0,
        },
        Sge {
            addr: start + 100,
            length: 5,
            lkey,
        },
    ];
    f.table.scatter(f.pd, &sges, 1, &[1, 2, 3, 4]).unwrap();
    let mut bytes = [0; 4];
    f.table.gather(f.pd, &sges, 1, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4]);
    assert_eq!(f.buffer.load_u8(64 + 1), Ok(1));
    assert_eq!(f.buffer.load_u8(64 + 101), Ok(4));
    assert_eq!(
        f.table.gather(f.pd, &sges, 5, &mut bytes),
        Err(AccessDenied),
        "too short"
    );
    let wrong_key = [Sge {
        addr: start,
        length: 8,
        lkey: lkey ^ 1,
    }];
    assert_eq!(
        f.table.gather(f.pd, &wrong_key, 0, &mut bytes),
        Err(AccessDenied)
    );
    let too_long = [Sge {
        addr: start + 120,
        length: 9,
        lkey,
    }];
    assert_eq!(
        f.table.gather(f.pd, &too_long, 0, &mut bytes),
        Err(AccessDenied)
    );
    let read_only = fixture(AccessFlags::REMOTE_READ);
    let sge = [Sge {
        addr: read_only.buffer.addr() + 64,
        length: 4,
        lkey: read_only.keys.lkey,
    }];
    assert_eq!(
        read_only.table.scatter(read_only.pd, &sge, 0, &bytes),
        Err(AccessDenied)
    );
}

#[test]
fn atomics_return_the_value_before() {
    let f = fixture(all());
    let va = f.buffer.addr() + 64;
    let run = |operation| f.table.atomic_remote(f.by(), f.keys.rkey, va, operation);
    assert_eq!(run(AtomicOperation::FetchAdd { add: u64::MAX }), Ok(0));
    assert_eq!(
        run(AtomicOperation::FetchAdd { add: 2 }),
        Ok(u64::MAX),
        "wraps"
    );
    assert_eq!(
        run(AtomicOperation::CompareSwap {
            compare: 9,
            swap: 5
        }),
        Ok(1),
        "miss"
    );
    assert_eq!(
        run(AtomicOperation::CompareSwap {
            compare: 1,
            swap: 5
        }),
        Ok(1),
        "hit"
    );
    assert_eq!(run(AtomicOperation::FetchAdd { add: 0 }), Ok(5));
    let outside = f.table.atomic_remote(
        f.by(),
        f.keys.rkey,
        va + 124,
        AtomicOperation::FetchAdd { add: 0 },
    );
    assert_eq!(outside, Err(AccessDenied));
}

#[test]
fn a_domain_with_objects_stays() {
    let mut f = fixture(all());
    assert!(f.table.dealloc_pd(f.pd).is_err());
    f.table.deregister(f.keys.lkey).unwrap();
    f.table.dealloc_pd(f.pd).unwrap();
    assert_eq!(f.table.domains(), 0);
    assert!(f.table.dealloc_pd(f.pd).is_err(), "once is enough");
}

#[test]
fn bad_registrations_are_refused() {
    let mut f = fixture(all());
    let range = f.buffer.range(0..8).unwrap();
    assert!(
        f.table
            .register(f.pd, range, AccessFlags::REMOTE_WRITE, || 1)
            .is_err()
    );
    let empty = f.buffer.range(8..8).unwrap();
    assert!(
        f.table
            .register(f.pd, empty, AccessFlags::LOCAL_WRITE, || 1)
            .is_err()
    );
    let mut proposals = [0, 0xff, f.keys.lkey ^ 1, 0x7700].into_iter();
    let range = f.buffer.range(0..8).unwrap();
    let keys = f
        .table
        .register(f.pd, range, all(), || proposals.next().unwrap())
        .unwrap();
    assert_eq!(keys.lkey, 0x7700, "an index neither 0 nor in use");
}
