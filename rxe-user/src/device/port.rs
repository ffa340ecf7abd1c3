//! One NIC on its sockets.
//!
//! A [`Port`] is the NIC, its link and its thread. Contexts of one process
//! that open the same interface share it, since an address has only one port
//! 4791; on `lo` there are addresses enough for everybody.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rustix::rand::{GetRandomFlags, getrandom};
use verbs_sys::{AsyncEvent, EventSource, Gid, PathMtu, Result, VerbsError};

use super::channel::Mailbox;
use super::progress::{Progress, Worker};
use super::{UserDevice, list_error, path_mtu};
use crate::link::capture::Capture;
use crate::link::udp::{BindError, UdpLink, UdpOptions};
use crate::link::{Link, PacketSink, ROCE_PORT, RxPacket, TxQueue};
use crate::time::Time;
use crate::transport::{Acks, CqId, Nic, NicConfig, NicLimits};

/// Addresses of `lo` that contexts take, one each: 127.0.0.1 and up.
const LOOPBACK_ADDRESSES: u8 = 64;

/// Bytes of packets written between two sends; fits the second-level cache.
const TX_ARENA: usize = 256 << 10;

/// Packets written between two sends.
const TX_PACKETS: usize = 512;

/// Unacknowledged packets of a queue pair, if the receive buffer allows: what
/// rxe has in flight at most.
const MAX_WINDOW: usize = 128;

/// Least number of packets in flight, however small the receive buffer is.
const MIN_WINDOW: usize = 8;

/// Of so many idle polls one looks at the timers.
const TIMER_POLLS: u32 = 16;

/// Polls in a row without a packet, some 15 µs, after which a poller yields: a
/// few round trips of `lo`. With more spinning threads than CPUs, or two of them
/// on one CPU, the peer would otherwise wait for the scheduler to take this one
/// off, which is milliseconds.
const IDLE_POLLS: u32 = 32;

/// Ports of real interfaces that this process has open, by interface index.
static PORTS: Mutex<Vec<(u32, Weak<Port>)>> = Mutex::new(Vec::new());

/// A NIC, its link, and who is interested in what it does.
pub(crate) struct Engine {
    pub(crate) nic: Nic,
    link: Box<dyn Link>,
    tx: TxQueue,
    start: Instant,
    channels: HashMap<CqId, Arc<Mailbox<u32>>>,
    owners: HashMap<EventSource, Arc<Mailbox<AsyncEvent>>>,
    /// Requests were posted and not transmitted yet.
    pub(crate) posted: bool,
    /// The link has failed; said once.
    failed: bool,
    /// Polls in a row that found nothing to do.
    idle_polls: u32,
}

impl Engine {
    pub(crate) fn now(&self) -> Time {
        time_since(self.start)
    }

    /// Receives, answers, sends again, and announces. Returns how many packets
    /// came.
    ///
    /// An acknowledgement waits for one more call when packets keep coming: a
    /// consumer that answers a message at once then sends both together.
    pub(crate) fn progress(&mut self, acks: Acks) -> usize {
        let overdue = self.nic.owes_acks();
        let mut arrivals = Arrivals {
            nic: &mut self.nic,
            start: self.start,
            now: None,
        };
        let received = self.link.receive(&mut arrivals);
        let now = arrivals.now;
        let received = self.check(received).unwrap_or(0);
        if received == 0 && !overdue && !self.nic.has_work() && self.tx.is_empty() {
            // Reading the clock costs a tenth of an idle poll, and no timer is
            // as fine as some polls are long.
            self.idle_polls = self.idle_polls.wrapping_add(1);
            if !self.idle_polls.is_multiple_of(TIMER_POLLS) {
                return 0;
            }
        }
        if received > 0 {
            self.idle_polls = 0;
        }
        let now = now.unwrap_or_else(|| self.now());
        if self
            .nic
            .next_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.nic.handle_timers(now);
        }
        let acks = if overdue || received == 0 {
            Acks::All
        } else {
            acks
        };
        self.transmit_at(now, acks);
        received
    }

    /// Sends what is ready.
    pub(crate) fn transmit(&mut self, acks: Acks) {
        let now = self.now();
        self.transmit_at(now, acks);
    }

    fn transmit_at(&mut self, now: Time, acks: Acks) {
        self.posted = false;
        loop {
            let more = self.nic.transmit(now, &mut self.tx, acks);
            if !self.tx.is_empty() {
                let sent = self.link.send(&mut self.tx);
                if self.check(sent).is_none() {
                    self.tx.consume(usize::MAX);
                }
            }
            if !more || !self.tx.is_empty() {
                break;
            }
        }
        self.announce();
    }

    /// Whether nothing has come for so long that whoever polls should let
    /// others run: perhaps the peer is one of them.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_polls >= IDLE_POLLS
    }

    /// Packets that wait because the socket takes no more.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.tx.is_empty()
    }

    /// Tells of completions and events that have come up.
    pub(crate) fn announce(&mut self) {
        while let Some(cq) = self.nic.next_notified() {
            if let Some(channel) = self.channels.get(&cq) {
                channel.post(cq.handle());
            }
        }
        while let Some(event) = self.nic.next_event() {
            if let Some(owner) = self.owners.get(&event.source) {
                owner.post(event);
            }
        }
    }

    fn check<T>(&mut self, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if !self.failed {
                    self.failed = true;
                    log::error!("the RoCE socket has failed: {error}");
                }
                None
            }
        }
    }

    pub(crate) fn set_channel(&mut self, cq: CqId, channel: Arc<Mailbox<u32>>) {
        self.channels.insert(cq, channel);
    }

    pub(crate) fn remove_channel(&mut self, cq: CqId) {
        if let Some(channel) = self.channels.remove(&cq) {
            channel.forget(|handle| *handle == cq.handle());
        }
    }

    pub(crate) fn set_owner(&mut self, source: EventSource, owner: Arc<Mailbox<AsyncEvent>>) {
        self.owners.insert(source, owner);
    }

    pub(crate) fn remove_owner(&mut self, source: EventSource) {
        if let Some(owner) = self.owners.remove(&source) {
            owner.forget(|event| event.source == source);
        }
    }

    /// Copies of the sockets to wait for.
    pub(crate) fn sockets(&self) -> Result<Vec<OwnedFd>> {
        self.link.wait_fds().map_err(|source| VerbsError::Io {
            action: "duplicate a socket".into(),
            source,
        })
    }

    /// Attaches a queue pair to a multicast group. Says whether the sockets
    /// have changed.
    pub(crate) fn attach_multicast(&mut self, qpn: u32, mgid: Gid) -> Result<bool> {
        let joins = self.nic.attach_multicast(qpn, mgid)?;
        let mut joined = Ok(());
        for group in &joins {
            joined = joined.and_then(|()| {
                self.link.join(*group).map_err(|source| VerbsError::Io {
                    action: format!("join the multicast group {group}"),
                    source,
                })
            });
        }
        if joined.is_err() {
            let left = self.nic.detach_multicast(qpn, mgid)?;
            self.leave(&left);
        }
        joined.map(|()| !joins.is_empty())
    }

    /// Leaves multicast groups that nobody is attached to any more. Says
    /// whether the sockets have changed.
    pub(crate) fn leave(&mut self, groups: &[IpAddr]) -> bool {
        for group in groups {
            self.link.leave(*group);
        }
        !groups.is_empty()
    }

    pub(crate) fn want_ip_fields(&mut self) -> Result<()> {
        self.link
            .want_ip_fields(true)
            .map_err(|source| VerbsError::Io {
                action: "ask for the IP header fields of received packets".into(),
                source,
            })
    }
}

/// A NIC on its sockets, with the thread that serves it when nobody polls.
pub(crate) struct Port {
    pub(crate) progress: Arc<Progress>,
    /// Stops the thread when dropped.
    _worker: Worker,
}

impl Port {
    /// Opens the port of a device, or joins one that this process has.
    pub(crate) fn open(device: &UserDevice) -> Result<Arc<Self>> {
        // Held throughout, so that the threads of this process don't race for
        // an address.
        let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
        if device.netdev.loopback {
            return Self::open_loopback(device);
        }
        ports.retain(|(_, port)| port.strong_count() > 0);
        let index = device.netdev.index;
        if let Some(port) = ports
            .iter()
            .find(|(other, _)| *other == index)
            .and_then(|(_, port)| port.upgrade())
        {
            return Ok(port);
        }
        let addresses = bindable(device)?;
        let link = UdpLink::bind(&addresses, &link_options(device))?;
        let port = Self::start(device, link, &addresses)?;
        ports.push((index, Arc::downgrade(&port)));
        Ok(port)
    }

    /// Takes the first address of `lo` that is free, and `::1` if it is.
    fn open_loopback(device: &UserDevice) -> Result<Arc<Self>> {
        let options = link_options(device);
        let has_v6 = device
            .netdev
            .ipv6_global()
            .any(|address| address == Ipv6Addr::LOCALHOST);
        let mut last_error = None;
        for host in 1..=LOOPBACK_ADDRESSES {
            let v4 = IpAddr::from(Ipv4Addr::new(127, 0, 0, host));
            // To find out who holds an address takes a look at every process;
            // that is for the last one.
            if host < LOOPBACK_ADDRESSES && !is_free(v4) {
                continue;
            }
            let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
            let mut addresses = vec![v4];
            if has_v6 && is_free(v6) {
                addresses.push(v6);
            }
            match UdpLink::bind(&addresses, &options) {
                Ok(link) => return Self::start(device, link, &addresses),
                Err(error @ BindError::PortHeld { .. }) => last_error = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(last_error.map_or_else(no_address, Into::into))
    }

    fn start(device: &UserDevice, link: UdpLink, addresses: &[IpAddr]) -> Result<Arc<Self>> {
        let port_mtu = path_mtu(&device.netdev).unwrap_or(PathMtu::Mtu256);
        let fits = link.receive_window_packets(port_mtu.bytes() as usize);
        let fits = fits.map_err(|source| VerbsError::Io {
            action: "ask for the size of the receive buffer".into(),
            source,
        })?;
        let window = fits.clamp(MIN_WINDOW, MAX_WINDOW);
        log::debug!(
            "{}: {} on {addresses:?}, path MTU {port_mtu}, receive buffer for {fits} packets, window {window}",
            device.name,
            "UDP port 4791",
        );
        let config = NicConfig {
            gids: addresses.iter().copied().map(Gid::from_ip).collect(),
            port_mtu,
            window: window as u32,
            limits: NicLimits::default(),
        };
        let link: Box<dyn Link> = match &device.options.capture {
            Some(path) => {
                Box::new(Capture::create(link, path).map_err(|error| VerbsError::Io {
                    action: format!("create the capture file {}", error.path.display()),
                    source: error.source,
                })?)
            }
            None => Box::new(link),
        };
        let engine = Engine {
            nic: Nic::new(config, os_random()?),
            link,
            tx: TxQueue::new(TX_ARENA, TX_PACKETS),
            start: Instant::now(),
            channels: HashMap::new(),
            owners: HashMap::new(),
            posted: false,
            failed: false,
            idle_polls: 0,
        };
        let progress = Arc::new(Progress::new(engine)?);
        let worker = Worker::start(Arc::clone(&progress), &device.name)?;
        Ok(Arc::new(Self {
            progress,
            _worker: worker,
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.progress.lock()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        log::debug!("in the end: {:?}", self.lock().nic.counters());
    }
}

/// The addresses of a real interface, IPv4 first, then IPv6, then link-local:
/// the order of the GID table. One that can't be bound yet (an IPv6 address
/// under duplicate address detection) is left out.
fn bindable(device: &UserDevice) -> Result<Vec<IpAddr>> {
    let netdev = &device.netdev;
    let v4 = netdev.ipv4().map(IpAddr::from);
    let v6 = netdev.ipv6_global().map(IpAddr::from);
    let link_local = netdev.ipv6_link_local().map(IpAddr::from);
    let (usable, not_yet): (Vec<_>, Vec<_>) = v4
        .chain(v6)
        .chain(link_local)
        .partition(|address| is_usable(*address, netdev.index));
    if !not_yet.is_empty() {
        log::debug!("{}: {not_yet:?} can't be used yet", device.name);
    }
    if usable.is_empty() {
        return Err(no_address());
    }
    Ok(usable)
}

/// Whether a socket can have an address, whoever holds which of its ports.
fn is_usable(address: IpAddr, interface: u32) -> bool {
    let name = match address {
        IpAddr::V4(v4) => SocketAddr::from((v4, 0)),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, 0, 0, interface).into(),
    };
    !UdpSocket::bind(name).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Whether nobody holds the port of RoCE on an address right now.
fn is_free(address: IpAddr) -> bool {
    UdpSocket::bind((address, ROCE_PORT)).is_ok()
}

fn link_options(device: &UserDevice) -> UdpOptions {
    UdpOptions {
        interface: device.netdev.index,
        ..UdpOptions::default()
    }
}

fn no_address() -> VerbsError {
    list_error(io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        "the interface has no usable address",
    ))
}

/// Random numbers for keys and QPNs, a block at a time.
fn os_random() -> Result<crate::transport::Random> {
    const BLOCK: usize = 64;
    let fill = || {
        // Up to 256 bytes come at once or not at all (getrandom(2)).
        let mut bytes = [0; 4 * BLOCK];
        getrandom(&mut bytes, GetRandomFlags::empty()).map(|_| bytes)
    };
    // The first block tells whether there is a source at all.
    let mut bytes = fill().map_err(|error| VerbsError::Io {
        action: "get random numbers from the kernel".into(),
        source: error.into(),
    })?;
    let mut used = 0;
    Ok(Box::new(move || {
        if used == BLOCK {
            if let Ok(fresh) = fill() {
                bytes = fresh;
            }
            used = 0;
        }
        let start = 4 * used;
        used += 1;
        bytes
            .get(start..start + 4)
            .and_then(|word| word.try_into().ok())
            .map_or(0, u32::from_ne_bytes)
    }))
}

/// Hands what arrives to the NIC; reads the clock when something does.
struct Arrivals<'a> {
    nic: &'a mut Nic,
    start: Instant,
    now: Option<Time>,
}

impl PacketSink for Arrivals<'_> {
    #[inline]
    fn packet(&mut self, packet: &RxPacket<'_>) {
        let now = *self.now.get_or_insert_with(|| time_since(self.start));
        self.nic.receive(now, packet);
    }
}

fn time_since(start: Instant) -> Time {
    Time::from_nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
