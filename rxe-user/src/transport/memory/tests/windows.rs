use super::super::windows::BindDenied;
use super::*;
use verbs_sys::WindowBinding;

const WRITE: AccessFlags = AccessFlags::REMOTE_WRITE;

fn bindable() -> Fixture {
    fixture(AccessFlags::LOCAL_WRITE | AccessFlags::MW_BIND)
}

/// A window on bytes 16 to 32 of the region, with all rights.
fn binding(f: &mut Fixture) -> WindowBinding {
    WindowBinding {
        window: f.table.alloc_window(f.pd, || 0x00ab_cdef),
        tag: 3,
        lkey: f.keys.lkey,
        addr: f.buffer.addr() + 64 + 16,
        length: 16,
        access: AccessFlags::REMOTE,
    }
}

#[test]
fn a_window_gives_what_its_binding_says() {
    let mut f = bindable();
    let wanted = binding(&mut f);
    assert_eq!(wanted.window, 0x00ab_cd00);
    let (by, start, rkey) = (f.by(), wanted.addr, wanted.rkey());
    assert_eq!(rkey, 0x00ab_cd03);
    let denied = Err(AccessDenied);
    let nothing_yet = f.table.check_remote(by, rkey, start, 1, WRITE);
    assert_eq!(nothing_yet, denied, "free");
    f.table.bind(by, &wanted).unwrap();
    f.table.write_remote(by, rkey, start + 8, &[9; 8]).unwrap();
    assert_eq!(f.buffer.load_u8(64 + 16 + 15), Ok(9));
    let check = |by, rkey, va, len| f.table.check_remote(by, rkey, va, len, WRITE);
    assert_eq!(check(by, rkey, start, 16), Ok(()));
    let elsewhere = Accessor { qpn: 8, ..by };
    for (name, by, rkey, va, len) in [
        ("other queue pair", elsewhere, rkey, start, 1),
        ("other tag", by, rkey ^ 1, start, 1),
        ("one before", by, rkey, start - 1, 1),
        ("one too long", by, rkey, start, 17),
        ("one behind", by, rkey, start + 16, 1),
        ("overflow", by, rkey, start, u64::MAX),
        ("region without the right", by, f.keys.lkey, start, 1),
    ] {
        assert_eq!(check(by, rkey, va, len), denied, "{name}");
    }
    f.table.invalidate(by, rkey).unwrap();
    let gone = f.table.check_remote(by, rkey, start, 1, WRITE);
    assert_eq!(gone, denied, "invalidated");
}

#[test]
fn a_zero_based_window_counts_from_zero() {
    let mut f = bindable();
    let wanted = WindowBinding {
        access: AccessFlags::REMOTE_READ | AccessFlags::ZERO_BASED,
        ..binding(&mut f)
    };
    f.table.bind(f.by(), &wanted).unwrap();
    f.buffer.store_u8(64 + 16 + 15, 5).unwrap();
    let mut byte = [0];
    let (by, rkey) = (f.by(), wanted.rkey());
    f.table.read_remote(by, rkey, 15, &mut byte).unwrap();
    assert_eq!(byte, [5]);
    let behind = f.table.read_remote(by, rkey, 16, &mut byte);
    assert_eq!(behind, Err(AccessDenied));
    let written = f.table.write_remote(by, rkey, 0, &byte);
    assert_eq!(written, Err(AccessDenied), "no right");
}

#[test]
fn bad_bindings_are_refused_and_change_nothing() {
    type Change = fn(&mut Fixture, &mut WindowBinding, &mut Accessor);
    let mw_bind = AccessFlags::MW_BIND;
    let changes: [(&str, AccessFlags, Change); 10] = [
        ("unknown window", mw_bind, |_, wanted, _| {
            wanted.window ^= 0x100;
        }),
        ("unknown region", mw_bind, |_, wanted, _| {
            wanted.lkey ^= 0x100;
        }),
        ("wrong tag of the region", mw_bind, |_, wanted, _| {
            wanted.lkey ^= 1;
        }),
        ("empty", mw_bind, |_, wanted, _| wanted.length = 0),
        ("one before", mw_bind, |_, wanted, _| wanted.addr -= 17),
        ("too long", mw_bind, |_, wanted, _| wanted.length = 113),
        ("other domain", mw_bind, |f, _, by| {
            by.pd = f.table.alloc_pd()
        }),
        ("no right to bind", AccessFlags::empty(), |_, _, _| {}),
        (
            "zero-based region",
            mw_bind.union(AccessFlags::ZERO_BASED),
            |_, wanted, _| wanted.addr = 0,
        ),
        ("no local write", mw_bind, |_, wanted, _| {
            wanted.access = AccessFlags::REMOTE_ATOMIC;
        }),
    ];
    for (name, access, change) in changes {
        let local_write = match name {
            "no local write" => AccessFlags::empty(),
            _ => AccessFlags::LOCAL_WRITE,
        };
        let mut f = fixture(access | local_write);
        let (mut wanted, mut by) = (binding(&mut f), f.by());
        change(&mut f, &mut wanted, &mut by);
        assert_eq!(f.table.bind(by, &wanted), Err(BindDenied), "{name}");
        assert_eq!(f.table.invalidate(by, wanted.rkey()), Err(BindDenied));
        f.table.deregister(f.keys.lkey).unwrap();
    }
}

#[test]
fn a_bound_window_is_neither_bound_again_nor_invalidated_by_others() {
    let mut f = bindable();
    let (wanted, by) = (binding(&mut f), f.by());
    f.table.bind(by, &wanted).unwrap();
    let again = WindowBinding { tag: 4, ..wanted };
    assert_eq!(f.table.bind(by, &again), Err(BindDenied));
    let elsewhere = Accessor { qpn: 8, ..by };
    let rkey = wanted.rkey();
    for (by, key) in [(elsewhere, rkey), (by, again.rkey()), (by, f.keys.lkey)] {
        assert_eq!(f.table.invalidate(by, key), Err(BindDenied));
    }
    f.table.invalidate(by, rkey).unwrap();
    assert_eq!(f.table.invalidate(by, rkey), Err(BindDenied), "free");
    f.table.bind(by, &again).unwrap();
    let start = wanted.addr;
    let check = |rkey| f.table.check_remote(by, rkey, start, 1, WRITE);
    assert_eq!(check(rkey), Err(AccessDenied), "former tag");
    assert_eq!(check(again.rkey()), Ok(()));
}

#[test]
fn a_region_stays_until_its_last_window_is_free() {
    let free: [fn(&mut Fixture, &WindowBinding); 4] = [
        |f, wanted| f.table.invalidate(f.by(), wanted.rkey()).unwrap(),
        |f, wanted| f.table.dealloc_window(wanted.window).unwrap(),
        |f, _| f.table.unbind_queue_pair(f.by().qpn),
        |f, _| f.table.unbind_region(f.keys.lkey),
    ];
    for free in free {
        let mut f = bindable();
        let wanted = binding(&mut f);
        f.table.bind(f.by(), &wanted).unwrap();
        let error = f.table.deregister(f.keys.lkey).unwrap_err();
        assert_eq!(error.errno(), libc::EBUSY);
        // Others' ends don't matter.
        f.table.unbind_queue_pair(f.by().qpn + 1);
        f.table.unbind_region(f.keys.lkey ^ 0x100);
        assert!(f.table.deregister(f.keys.lkey).is_err());
        free(&mut f, &wanted);
        f.table.deregister(f.keys.lkey).unwrap();
    }
}

#[test]
fn windows_hold_their_domain_and_have_indices_of_their_own() {
    let mut f = bindable();
    let mut proposals = [0x42, f.keys.lkey ^ 0xff, 0x0900_0001].into_iter();
    let window = f.table.alloc_window(f.pd, || proposals.next().unwrap());
    assert_eq!(window, 0x0900_0000);
    let mut proposals = [0x0900_0002, 0x0a00_0000].into_iter();
    let range = f.buffer.range(0..8).unwrap();
    let keys = f
        .table
        .register(f.pd, range, all(), || proposals.next().unwrap())
        .unwrap();
    assert_eq!(keys.lkey, 0x0a00_0000, "windows may take any tag");
    for lkey in [keys.lkey, f.keys.lkey] {
        f.table.deregister(lkey).unwrap();
    }
    assert!(f.table.dealloc_pd(f.pd).is_err());
    assert_eq!(f.table.windows(), 1);
    f.table.dealloc_window(window).unwrap();
    assert!(f.table.dealloc_window(window).is_err());
    f.table.dealloc_pd(f.pd).unwrap();
}
