//! The other process: this program once more.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

use super::link::LinkPort;
use super::plain::Plain;
use super::port::SMALL;
use super::{Options, Result, pingpong, stream};

/// The option that makes this program the peer of another.
pub(crate) const FLAG: &str = "--peer";

/// A way to send packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Link,
}

/// What the peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Takes a stream of packets with so many bytes.
    Stream(usize),
    /// Sends each packet back.
    Pingpong,
}

impl Role {
    /// Bytes in a packet of payload.
    pub(crate) fn payload(self) -> usize {
        match self {
            Self::Stream(payload) => payload,
            Self::Pingpong => SMALL,
        }
    }
}

/// The running process, killed when dropped. Nor does it outlive this process:
/// see [`end_with`].
struct Peer {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Peer {
    fn spawn(way: Way, role: Role, address: &str, options: Options) -> Result<Self> {
        let way = match way {
            Way::Plain => "plain",
            Way::Link => "link",
        };
        let size = match role {
            Role::Stream(payload) => payload.to_string(),
            Role::Pingpong => "pingpong".to_owned(),
        };
        let pin = if options.pin { "pin" } else { "-" };
        let parent = std::process::id().to_string();
        let child = Command::new(std::env::current_exe()?)
            .args([FLAG, &parent, way, &size, address, pin])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut peer = Self {
            child,
            output: None,
        };
        peer.output = peer.child.stdout.take().map(BufReader::new);
        if options.pin {
            pin_to(0)?;
        }
        Ok(peer)
    }

    /// The next line that the peer says.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let output = self.output.as_mut().ok_or("the peer has no output")?;
        if output.read_line(&mut line)? == 0 {
            return Err("the peer has ended before it was ready".into());
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have gone by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A measurement that works with any kind of port.
pub(crate) trait Measurement {
    type Report;

    fn run<P: super::port::Port>(&self, port: P) -> Result<Self::Report>;
}

/// Starts a peer, and runs a measurement with it.
pub(crate) fn with<M: Measurement>(
    way: Way,
    role: Role,
    options: Options,
    measurement: &M,
) -> Result<M::Report> {
    match way {
        Way::Plain => {
            let mut port = Plain::new(role.payload())?;
            let mut peer = Peer::spawn(way, role, &port.port()?.to_string(), options)?;
            port.connect(peer.line()?.parse()?);
            measurement.run(port)
        }
        Way::Link => {
            let pid = std::process::id();
            let port = LinkPort::new(pid, true, role.payload())?;
            let mut peer = Peer::spawn(way, role, &pid.to_string(), options)?;
            peer.line()?;
            measurement.run(port)
        }
    }
}

/// Is the peer: parent, way, role, address, and whether to stay on CPU 1.
pub(crate) fn run(arguments: &mut impl Iterator<Item = String>) -> Result<()> {
    let mut next = || arguments.next().ok_or("the peer needs more arguments");
    end_with(next()?.parse()?)?;
    let (way, size, address, pin) = (next()?, next()?, next()?, next()?);
    let role = match size.as_str() {
        "pingpong" => Role::Pingpong,
        size => Role::Stream(size.parse()?),
    };
    if pin == "pin" {
        pin_to(1)?;
    }
    if way == "plain" {
        let mut port = Plain::new(role.payload())?;
        port.connect(address.parse()?);
        ready(&port.port()?.to_string())?;
        serve(role, port)
    } else {
        let port = LinkPort::new(address.parse()?, false, role.payload())?;
        ready("ready")?;
        serve(role, port)
    }
}

fn ready(line: &str) -> Result<()> {
    println!("{line}");
    Ok(std::io::stdout().flush()?)
}

fn serve<P: super::port::Port>(role: Role, port: P) -> Result<()> {
    match role {
        Role::Stream(payload) => stream::serve(port, payload),
        Role::Pingpong => pingpong::serve(port),
    }
}

/// Makes the kernel kill this process when its parent ends, however it does: a
/// process that spins would otherwise take a CPU for ever.
pub(crate) fn end_with(parent: i32) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // It may have ended before.
    if getppid().as_raw() == parent {
        return Ok(());
    }
    Err("the parent has ended".into())
}

/// Keeps this process on one CPU.
pub(crate) fn pin_to(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
