//! A server and a client over `lo`, and what their screens say.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::udp::Result;
use crate::udp::peer::{end_with, pin_to};

/// The option that makes this program turn into a command.
pub(crate) const FLAG: &str = "--command";

/// No run takes longer, whatever goes wrong.
const LIMIT: Duration = Duration::from_secs(60);

/// How often the processes' memory is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// CPUs of the server and of the client, when they are pinned.
const CPUS: [usize; 2] = [1, 0];

/// A command to run on both ends.
pub(crate) struct Run {
    pub(crate) program: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// Bytes of a message.
    pub(crate) message: u64,
}

/// Both ends have run to their ends.
pub(crate) struct Ran {
    /// What the client said.
    screen: String,
    /// Peak resident memory of the larger process, without its messages, in bytes.
    pub(crate) memory: u64,
}

impl Run {
    /// Runs a server and its client, each on a CPU of its own if `pin`.
    pub(crate) fn pair(&self, pin: bool) -> Result<Ran> {
        let mut ends = self.start(pin)?;
        self.finish(&mut ends)?;
        let [_, client] = &mut ends;
        let screen = client.screen()?;
        let peak = ends.iter().map(|end| end.peak).max().unwrap_or(0);
        Ok(Ran {
            screen,
            memory: peak.saturating_sub(self.messages()),
        })
    }

    /// CPU time that the server takes in the time `watch`, some time after its
    /// start.
    pub(crate) fn server_cpu(&self, settle: Duration, watch: Duration) -> Result<Duration> {
        let mut ends = self.start(false)?;
        std::thread::sleep(settle);
        let before = ends[0].cpu_time()?;
        std::thread::sleep(watch);
        let after = ends[0].cpu_time()?;
        self.finish(&mut ends)?;
        Ok(after.saturating_sub(before))
    }

    /// The server and the client.
    fn start(&self, pin: bool) -> Result<[Running; 2]> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let port = listener.local_addr()?.port().to_string();
        drop(listener);
        let server = ["-p", &port];
        let client = ["-p", &port, "--connect_retry", "20", "127.0.0.1"];
        let [server_cpu, client_cpu] = CPUS;
        Ok([
            Running::start(self, &server, pin.then_some(server_cpu))?,
            Running::start(self, &client, pin.then_some(client_cpu))?,
        ])
    }

    /// Waits until both have ended.
    fn finish(&self, ends: &mut [Running; 2]) -> Result<()> {
        let started = Instant::now();
        let mut done = false;
        while !done {
            std::thread::sleep(LOOK);
            done = true;
            for end in ends.iter_mut() {
                done &= end.look()?;
            }
            if !done && started.elapsed() > LIMIT {
                return Err(format!("{} hangs", self.line()).into());
            }
        }
        Ok(())
    }

    /// Bytes of a process's message buffer, as stock perftest has it: two
    /// halves of at least a page, for what is sent and what comes.
    fn messages(&self) -> u64 {
        const PAGE: u64 = 4096;
        2 * self.message.max(PAGE)
    }

    /// As on a command line.
    fn line(&self) -> String {
        format!("{} {}", self.program, self.arguments.join(" "))
    }
}

impl Ran {
    /// Number `index` of the client's row, whose titles must include `title`.
    pub(crate) fn field(&self, title: &str, index: usize) -> Result<f64> {
        let mut lines = self
            .screen
            .lines()
            .skip_while(|line| !line.starts_with(" #bytes"));
        let titled = lines.next().is_some_and(|titles| titles.contains(title));
        let field = lines
            .next()
            .and_then(|row| row.split_whitespace().nth(index))
            .and_then(|field| field.parse().ok());
        match field {
            Some(field) if titled => Ok(field),
            _ => Err(format!("no {title} on the screen:\n{}", self.screen).into()),
        }
    }
}

/// A running command, killed when dropped. Nor does it outlive this process:
/// see [`become_command`].
struct Running {
    child: Child,
    line: String,
    ended: bool,
    /// Most memory that it was seen with, in bytes.
    peak: u64,
}

impl Running {
    fn start(run: &Run, more: &[&str], cpu: Option<usize>) -> Result<Self> {
        let parent = std::process::id().to_string();
        let cpu = cpu.map_or("-".to_owned(), |cpu| cpu.to_string());
        let child = Command::new(std::env::current_exe()?)
            .args([FLAG, &parent, &cpu, run.program])
            .args(run.arguments)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self {
            child,
            line: format!("{} {}", run.line(), more.join(" ")),
            ended: false,
            peak: 0,
        })
    }

    /// Whether it has ended, which has to be a good end. Notes its memory.
    fn look(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(true);
        }
        self.peak = self.peak.max(peak_memory(self.child.id()));
        let Some(status) = self.child.try_wait()? else {
            return Ok(false);
        };
        self.ended = true;
        if status.success() {
            return Ok(true);
        }
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said)?;
        }
        Err(format!("{} failed: {status}\n{said}", self.line).into())
    }

    /// Time that all its threads have had on a CPU.
    fn cpu_time(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // Time on the CPU, time that it waited for one, and turns.
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            let on_cpu = times.split_whitespace().next().unwrap_or_default();
            nanoseconds += on_cpu.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// What it said, once it has ended: it all fits the pipe.
    fn screen(&mut self) -> Result<String> {
        let mut screen = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut screen)?;
        }
        Ok(screen)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `VmHWM` of a process, in bytes; 0 when it has ended. `ru_maxrss` won't do:
/// it includes what this process had when it started the other.
fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024)
}

/// Turns into a command that ends when the parent does: parent, CPU or `-`,
/// program, and its arguments.
pub(crate) fn become_command(arguments: &mut impl Iterator<Item = String>) -> Result<()> {
    let mut next = || arguments.next().ok_or("the command needs more arguments");
    let (parent, cpu, program) = (next()?, next()?, next()?);
    end_with(parent.parse()?)?;
    if let Ok(cpu) = cpu.parse() {
        pin_to(cpu)?;
    }
    let error = Command::new(&program).args(arguments).exec();
    Err(format!("cannot run {program}: {error}").into())
}
