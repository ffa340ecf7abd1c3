//! `-z` and `-R` from end to end, over the userspace NIC and a connection
//! manager made for this test: its own comes later.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod tcp_manager;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use engine::device::Provider;
use engine::failure::Failure;
use engine::interrupt::Interrupt;
use engine::options::{
    self, ATOMIC_BW, ATOMIC_LAT, READ_BW, READ_LAT, SEND_BW, SEND_LAT, Tool, WRITE_BW, WRITE_LAT,
};
use engine::screen::Screen;
use engine::tool;
use rxe_user::device::{self, Options, UserDevice};
use tcp_manager::{Opened, TcpManager, remember};
use verbs_sys::cm::{CmResult, ConnectionManager};
use verbs_sys::{Context, Device, Result};

/// The devices of one end, with a connection manager or without.
struct End {
    opened: Opened,
    managed: bool,
}

/// A device whose context the connection manager shall know.
struct Remembered {
    device: UserDevice,
    opened: Opened,
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.device.fmt(f)
    }
}

impl Device for Remembered {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn node_guid(&self) -> u64 {
        self.device.node_guid()
    }

    fn open(&self) -> Result<Arc<dyn Context>> {
        remember(&self.opened, self.device.open())
    }
}

impl Provider for End {
    fn devices(&self, _: Option<&Path>) -> Result<Vec<Box<dyn Device>>> {
        let devices = device::devices(&Options::default())?.into_iter();
        Ok(devices
            .map(|device| {
                let opened = Arc::clone(&self.opened);
                Box::new(Remembered { device, opened }) as Box<dyn Device>
            })
            .collect())
    }

    fn device_for(&self, _: IpAddr, _: Option<&Path>) -> Result<Option<Box<dyn Device>>> {
        Ok(None)
    }

    fn connection_manager(&self) -> CmResult<Option<Arc<dyn ConnectionManager>>> {
        let opened = Arc::clone(&self.opened);
        let manager = || Arc::new(TcpManager { opened }) as Arc<dyn ConnectionManager>;
        Ok(self.managed.then(manager))
    }
}

/// A screen whose text can be read afterwards.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// How an end ended, and its screen.
type Ended = (std::result::Result<(), Failure>, String);

fn run_end(tool: Tool, line: &str, managed: bool, interrupt: &Interrupt) -> Ended {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let resolved = options::from_command_line(tool, tool.name(), &arguments, 2);
    let params = resolved.params().unwrap_or_else(|| panic!("{line}"));
    let end = End {
        opened: Opened::default(),
        managed,
    };
    let paper = Paper::default();
    let mut screen = Screen::new(Box::new(paper.clone()), Box::new(paper.clone()));
    let ran = tool::run(params, &[&end], &mut screen, interrupt);
    (ran, paper.text())
}

/// A port of our own: the ports of a listener that is gone aren't given out
/// again soon.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Runs both ends; the client waits for the server.
fn run_pair(tool: Tool, line: &str) -> [Ended; 2] {
    let line = format!("{line} -p {} -F", free_port());
    let interrupt = Interrupt::new();
    thread::scope(|scope| {
        let server = scope.spawn(|| run_end(tool, &line, true, &interrupt));
        let client = format!("{line} --connect-retry=10 127.0.0.1");
        let client = run_end(tool, &client, true, &interrupt);
        [server.join().unwrap(), client]
    })
}

fn passes(tool: Tool, line: &str) -> [String; 2] {
    let [server, client] = run_pair(tool, line);
    for (ran, screen) in [&server, &client] {
        assert!(ran.is_ok(), "{tool} {line}: {ran:?}\n{screen}");
        assert!(screen.contains(" Data ex. method : rdma_cm"), "{screen}");
        assert!(screen.contains(" remote address: LID 0000"), "{screen}");
        // Stock's control connection has the address lines of SEND.
        assert!(!screen.contains("RKey"), "{screen}");
    }
    [server.1, client.1]
}

#[test]
fn parameters_are_exchanged_over_a_queue_pair() {
    for tool in [WRITE_BW, WRITE_LAT, READ_BW, SEND_LAT] {
        for screen in passes(tool, "-z -n 20 -d urxe_lo") {
            assert!(screen.contains(" rdma_cm QPs\t : OFF\n"), "{screen}");
        }
    }
}

#[test]
fn all_tools_are_connected_by_the_manager() {
    for tool in [
        WRITE_BW, WRITE_LAT, READ_BW, READ_LAT, SEND_BW, SEND_LAT, ATOMIC_BW, ATOMIC_LAT,
    ] {
        let [server, client] = passes(tool, "-R -n 20");
        for screen in [&server, &client] {
            assert!(screen.contains(" rdma_cm QPs\t : ON\n"), "{screen}");
            assert!(screen.contains("using urxe_lo"), "{screen}");
        }
        let hint = " Waiting for client rdma_cm QP to connect\n \
                    Please run the same command with the IB/RoCE interface IP\n";
        assert!(server.contains(hint), "{server}");
        assert!(!client.contains(hint), "{client}");
    }
}

#[test]
fn more_queue_pairs_directions_and_sizes_are_connected() {
    passes(WRITE_BW, "-R -q 4 -n 20");
    passes(WRITE_BW, "-R -b -n 20");
    passes(SEND_BW, "-R -a -n 5");
    passes(READ_BW, "-R -q 2 -o 4 -n 20 -e");
    let screens = passes(WRITE_BW, "-R -T 16 -n 20");
    for screen in screens {
        assert!(screen.contains("rdma_cm \tTOS    : 16"), "{screen}");
    }
}

#[test]
fn datagrams_find_their_way() {
    passes(SEND_BW, "-R -c UD -n 50 -s 64");
    passes(SEND_BW, "-R -c UD -n 50 -s 64 -b");
    passes(SEND_LAT, "-R -c UD -n 50 -s 64");
}

#[test]
fn without_a_server_the_client_says_so() {
    let line = format!("-R -F -p {} 127.0.0.1", free_port());
    let (ran, _) = run_end(WRITE_BW, &line, true, &Interrupt::new());
    let failure = ran.unwrap_err();
    assert_eq!(
        failure.stock_text(WRITE_BW),
        "Unexpected CM event bl blka 8\n \
         Unable to perform rdma_client function\n \
         Unable to init the socket connection\n"
    );
    let text = failure.to_string();
    assert!(text.contains("start the server first"), "{text}");
    assert_eq!(failure.exit_code(WRITE_BW), 1);
}

#[test]
fn an_unknown_server_is_named_as_stock_does() {
    let line = "-R -F -d urxe_lo no-such-host.invalid";
    let (ran, _) = run_end(WRITE_BW, line, true, &Interrupt::new());
    let text = ran.unwrap_err().stock_text(WRITE_BW);
    let end = "Problem in resolving basic address and port\n \
               Unable to perform rdma_client function\n \
               Unable to init the socket connection\n";
    assert!(
        text.contains("no-such-host.invalid") && text.ends_with(end),
        "{text}"
    );
}

#[test]
fn a_device_without_a_manager_refuses() {
    for line in ["-R -F", "-z -F -d urxe_lo", "-R -F 127.0.0.1"] {
        let (ran, screen) = run_end(WRITE_BW, line, false, &Interrupt::new());
        let text = ran.unwrap_err().to_string();
        assert!(
            text.contains("comes with the connection manager of the userspace NIC"),
            "{text}"
        );
        assert!(!screen.contains("Waiting for client"), "{screen}");
    }
}

/// Interrupts an end after a while and says how it ended, and how soon.
fn interrupted(tool: Tool, line: &str) -> (Ended, bool, Duration) {
    let interrupt = Interrupt::new();
    thread::scope(|scope| {
        let end = scope.spawn(|| run_end(tool, line, true, &interrupt));
        thread::sleep(Duration::from_millis(300));
        let noticed = interrupt.request();
        let start = Instant::now();
        (end.join().unwrap(), noticed, start.elapsed())
    })
}

#[test]
fn an_interrupt_ends_waiting_for_a_client() {
    let line = format!("-R -F -d urxe_lo -p {}", free_port());
    let ((ran, _), noticed, took) = interrupted(WRITE_BW, &line);
    assert!(matches!(ran, Err(Failure::Interrupted)), "{ran:?}");
    assert!(noticed && took < Duration::from_secs(2), "{took:?}");
}

/// The client goes in the middle of a run; the server hears of it.
#[test]
fn a_peer_that_goes_is_noticed() {
    let port = free_port();
    let server_line = format!("-R -F -d urxe_lo -D 60 -p {port}");
    let never = Interrupt::new();
    thread::scope(|scope| {
        let server = scope.spawn(|| run_end(WRITE_BW, &server_line, true, &never));
        let client_line = format!("{server_line} --connect-retry=10 127.0.0.1");
        let interrupt = Interrupt::new();
        let client = {
            let interrupt = interrupt.clone();
            scope.spawn(move || run_end(WRITE_BW, &client_line, true, &interrupt))
        };
        thread::sleep(Duration::from_secs(2));
        interrupt.request();
        let (ran, _) = client.join().unwrap();
        assert!(matches!(ran, Err(Failure::Interrupted)), "{ran:?}");
        let start = Instant::now();
        let (ran, screen) = server.join().unwrap();
        assert!(ran.unwrap_err().is_loss_of_peer(), "{screen}");
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}
