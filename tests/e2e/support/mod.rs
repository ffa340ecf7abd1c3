//! Starts commands, waits for them in bounded time, and looks at what they say.

pub(crate) mod payload;
pub(crate) mod screen;

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) const WRITE_BW: &str = "ib_write_bw";
pub(crate) const WRITE_LAT: &str = "ib_write_lat";
pub(crate) const SEND_BW: &str = "ib_send_bw";
pub(crate) const SEND_LAT: &str = "ib_send_lat";
pub(crate) const READ_BW: &str = "ib_read_bw";
pub(crate) const READ_LAT: &str = "ib_read_lat";
pub(crate) const ATOMIC_BW: &str = "ib_atomic_bw";
pub(crate) const ATOMIC_LAT: &str = "ib_atomic_lat";

/// The measuring commands.
pub(crate) const TOOLS: [&str; 8] = [
    WRITE_BW, WRITE_LAT, SEND_BW, SEND_LAT, READ_BW, READ_LAT, ATOMIC_BW, ATOMIC_LAT,
];

/// No test takes longer than this, whatever goes wrong.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Tests that send at a time: more would disturb each other on a small host,
/// and run out of addresses of `lo`.
const AT_A_TIME: u32 = 2;

static SENDING: Mutex<u32> = Mutex::new(0);
static SENT: Condvar = Condvar::new();

/// One of the few that may send.
pub(crate) struct Turn;

impl Turn {
    pub(crate) fn take() -> Self {
        let mut sending = lock();
        while *sending >= AT_A_TIME {
            sending = SENT.wait(sending).unwrap_or_else(PoisonError::into_inner);
        }
        *sending += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock() -= 1;
        SENT.notify_one();
    }
}

fn lock() -> MutexGuard<'static, u32> {
    SENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A TCP port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A running command. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    started: Instant,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
    line: String,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; `None` after death by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

/// The executable of a tool.
fn program(tool: &str) -> &'static str {
    match tool {
        WRITE_BW => env!("CARGO_BIN_EXE_ib_write_bw"),
        WRITE_LAT => env!("CARGO_BIN_EXE_ib_write_lat"),
        SEND_BW => env!("CARGO_BIN_EXE_ib_send_bw"),
        SEND_LAT => env!("CARGO_BIN_EXE_ib_send_lat"),
        READ_BW => env!("CARGO_BIN_EXE_ib_read_bw"),
        READ_LAT => env!("CARGO_BIN_EXE_ib_read_lat"),
        ATOMIC_BW => env!("CARGO_BIN_EXE_ib_atomic_bw"),
        ATOMIC_LAT => env!("CARGO_BIN_EXE_ib_atomic_lat"),
        _ => panic!("there is no command {tool}"),
    }
}

/// Starts a command with arguments as on a command line.
pub(crate) fn start(tool: &str, line: &str) -> Running {
    let mut child = Command::new(program(tool))
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().map(collect);
    let err = child.stderr.take().map(collect);
    Running {
        child,
        started: Instant::now(),
        out,
        err,
        line: format!("{tool} {line}"),
    }
}

/// Runs a command to its end.
pub(crate) fn run(tool: &str, line: &str) -> Ended {
    start(tool, line).wait()
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end; a command that hangs is a failed test.
    pub(crate) fn wait(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(self.started.elapsed() < LIMIT, "{} hangs", self.line);
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = self.started.elapsed();
        let text = |reader: &mut Option<JoinHandle<String>>| reader.take().unwrap().join().unwrap();
        Ended {
            code: status.code(),
            out: text(&mut self.out),
            err: text(&mut self.err),
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server and its client, just started, on a port of their own.
pub(crate) fn start_pair(tools: [&str; 2], lines: [&str; 2]) -> [Running; 2] {
    start_pair_at(tools, lines, "127.0.0.1")
}

/// As [`start_pair`], the server at this address.
pub(crate) fn start_pair_at(tools: [&str; 2], lines: [&str; 2], host: &str) -> [Running; 2] {
    let port = free_port();
    let server = start(tools[0], &format!("-p {port} {}", lines[0]));
    let client = start(
        tools[1],
        &format!("-p {port} --connect_retry 20 {} {host}", lines[1]),
    );
    [server, client]
}

/// A server and its client with the same arguments, run to their ends.
pub(crate) fn pair(tool: &str, line: &str) -> [Ended; 2] {
    let _turn = Turn::take();
    start_pair([tool; 2], [line; 2]).map(Running::wait)
}

/// As [`pair`]; both have to end well.
pub(crate) fn good_pair(tool: &str, line: &str) -> [Ended; 2] {
    let [server, client] = pair(tool, line);
    for (side, ended) in [("server", &server), ("client", &client)] {
        assert_eq!(ended.code, Some(0), "{side} of {tool} {line}: {ended:#?}");
    }
    [server, client]
}

impl Ended {
    /// The command failed with this exit code, said why in one message of our
    /// own, and was done within some seconds.
    #[track_caller]
    pub(crate) fn assert_failed(&self, code: i32, within: u64) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(self.took < Duration::from_secs(within), "{self:#?}");
        assert!(!self.err.contains("panicked"), "{self:#?}");
        assert_eq!(self.complaints().len(), 1, "{self:#?}");
    }

    /// Our own lines on stderr, without those about the device and the host.
    pub(crate) fn complaints(&self) -> Vec<&str> {
        self.err
            .lines()
            .filter(|line| line.starts_with("ib_"))
            .filter(|line| !line.contains(": using ") && !line.contains(": note: "))
            .collect()
    }

    /// The rows below the titles, by their fields.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        self.out
            .lines()
            .skip_while(|line| !line.starts_with(" #bytes"))
            .skip(1)
            .take_while(|line| !line.starts_with("---"))
            .map(|line| line.split_whitespace().collect())
            .collect()
    }
}
