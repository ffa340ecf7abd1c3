//! Messages allocate nothing: a test of ten times as many messages allocates
//! no more often, both ends and the NIC taken together.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::device::Provider;
use engine::interrupt::Interrupt;
use engine::options::{self, Tool, WRITE_BW, WRITE_LAT};
use engine::screen::Screen;
use engine::tool;
use rxe_user::device::{self, Options};
use verbs_sys::{Device, Result};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// One test at a time: the counter is the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Userspace;

impl Provider for Userspace {
    fn devices(&self, _: Option<&Path>) -> Result<Vec<Box<dyn Device>>> {
        let boxed = |device| Box::new(device) as Box<dyn Device>;
        let devices = device::devices(&Options::default())?;
        Ok(devices.into_iter().map(boxed).collect())
    }

    fn device_for(&self, local: IpAddr, _: Option<&Path>) -> Result<Option<Box<dyn Device>>> {
        let device = device::device_for(local, &Options::default())?;
        Ok(device.map(|device| Box::new(device) as Box<dyn Device>))
    }
}

/// Allocations of a whole test.
fn allocations(tool: Tool, line: &str) -> u64 {
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let resolved = options::from_command_line(tool, tool.name(), &args, 1);
    let params = resolved.params().unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    tool::run(
        params,
        &[&Userspace],
        &mut Screen::dark(),
        &Interrupt::new(),
    )
    .unwrap();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// Some slack is for what depends on time and on chance, such as which address
/// is free.
fn assert_free_of_charge(tool: Tool, few: &str, many: &str, more: u64) {
    let _one = ONE_AT_A_TIME.lock();
    // The first test sets up what stays.
    allocations(tool, few);
    let few = allocations(tool, few);
    let many = allocations(tool, many);
    let grown = many.saturating_sub(few);
    assert!(
        grown < more / 10,
        "{grown} allocations for {more} more messages ({few}, {many})"
    );
}

#[test]
fn bandwidth_messages_allocate_nothing() {
    for line in [
        "-s 64",
        "-s 64 -l 10",
        "-s 4096 -q 2 -b",
        "-s 64 -c UC",
        "-s 64 --write_with_imm",
        "-s 4096 -q 2 -b --write_with_imm",
    ] {
        let few = format!("--loopback -N {line} -n 2000");
        let many = format!("--loopback -N {line} -n 20000");
        assert_free_of_charge(WRITE_BW, &few, &many, 18_000);
    }
}

#[test]
fn latency_messages_allocate_nothing() {
    for line in ["", " --write_with_imm"] {
        let few = format!("--loopback -n 1000{line}");
        let many = format!("--loopback -n 10000{line}");
        assert_free_of_charge(WRITE_LAT, &few, &many, 9_000);
    }
}
