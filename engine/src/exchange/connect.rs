//! Setting up the control connection.

use std::io;
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, ToSocketAddrs,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, sockopt,
};

use super::error::{ExchangeError, Family, system_text};

/// Where a server listens.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Port (`-p`); 0 lets the system choose.
    pub port: u16,
    /// IPv4, or IPv6 with `--ipv6-addr`.
    pub family: Family,
    /// Local address or name (`--bind_source_ip`); `None` for any.
    pub bind: Option<String>,
}

/// A listening server, for one client.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
}

impl Listener {
    /// Binds and listens for one client.
    ///
    /// # Errors
    /// [`ExchangeError::Resolve`] for the bind address, [`ExchangeError::Listen`].
    pub fn bind(options: &ListenOptions) -> Result<Self, ExchangeError> {
        let addresses = match &options.bind {
            Some(host) => resolve(host, options.port, options.family)?,
            None => vec![SocketAddr::new(any(options.family), options.port)],
        };
        let mut reason = "no address to listen on".to_owned();
        for address in addresses {
            match listen(address) {
                Ok(listener) => return Ok(Self { listener }),
                Err(error) => reason = system_text(&error),
            }
        }
        Err(ExchangeError::Listen {
            port: options.port,
            reason,
        })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for the client and stops listening. `deadline`: how long to
    /// wait; `None` for ever, as stock does.
    ///
    /// # Errors
    /// [`ExchangeError::NoClient`], [`ExchangeError::Accept`].
    pub fn accept(self, deadline: Option<Duration>) -> Result<TcpStream, ExchangeError> {
        if let Some(limit) = deadline
            && !poll_until(&self.listener, PollFlags::POLLIN, Instant::now() + limit)
                .map_err(ExchangeError::Accept)?
        {
            return Err(ExchangeError::NoClient(limit));
        }
        let (stream, _) = self.listener.accept().map_err(ExchangeError::Accept)?;
        Ok(stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Where a client connects to.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Address or name of the server.
    pub host: String,
    /// Port (`-p`).
    pub port: u16,
    /// IPv4, or IPv6 with `--ipv6-addr`.
    pub family: Family,
    /// Our own address (`--bind_source_ip`).
    pub source: Option<IpAddr>,
    /// How long one attempt may take.
    pub attempt: Duration,
    /// For how long to try again while nobody listens; zero: one pass over
    /// the addresses, as stock does.
    pub retry: Duration,
}

/// Pause between two passes over the addresses.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Connects to a server.
///
/// # Errors
/// [`ExchangeError::Resolve`], [`ExchangeError::Source`], [`ExchangeError::Connect`].
pub fn connect(options: &ConnectOptions) -> Result<TcpStream, ExchangeError> {
    if let Some(source) = options.source
        && source.is_ipv4() != (options.family == Family::V4)
    {
        return Err(ExchangeError::Source {
            address: source.to_string(),
            reason: format!("the connection is {}", options.family),
        });
    }
    let addresses = resolve(&options.host, options.port, options.family)?;
    let give_up = Instant::now() + options.retry;
    let mut reason = "no address to connect to".to_owned();
    loop {
        for address in &addresses {
            match connect_once(*address, options) {
                Ok(stream) => return Ok(stream),
                Err(ConnectFailure::Source(error)) => {
                    return Err(ExchangeError::Source {
                        address: options
                            .source
                            .map_or_else(String::new, |source| source.to_string()),
                        reason: system_text(&error),
                    });
                }
                Err(ConnectFailure::Connect(error)) => reason = system_text(&error),
            }
        }
        if Instant::now() + RETRY_PAUSE > give_up {
            return Err(ExchangeError::Connect {
                host: options.host.clone(),
                port: options.port,
                reason,
            });
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Numeric addresses do not need the resolver; names go to the system's.
/// The resolver's own time limits apply.
pub(crate) fn resolve(
    host: &str,
    port: u16,
    family: Family,
) -> Result<Vec<SocketAddr>, ExchangeError> {
    let failed = |reason: String| ExchangeError::Resolve {
        host: host.to_owned(),
        port,
        family,
        reason,
    };
    let fits = |address: &IpAddr| address.is_ipv4() == (family == Family::V4);
    if let (Family::V6, Some(address)) = (family, with_scope(host, port)) {
        return Ok(vec![address]);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        if fits(&address) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        return Err(failed(
            "Address family for hostname not supported".to_owned(),
        ));
    }
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| failed(resolver_text(&error)))?
        .filter(|address| fits(&address.ip()))
        .collect();
    if addresses.is_empty() {
        return Err(failed("No address associated with hostname".to_owned()));
    }
    Ok(addresses)
}

/// An IPv6 address with its scope (RFC 4007, 11): `fe80::1%eth0`, `fe80::1%2`.
/// `None` when it is something else, or there is no such interface.
fn with_scope(host: &str, port: u16) -> Option<SocketAddr> {
    let (address, zone) = host.split_once('%')?;
    let address: Ipv6Addr = address.parse().ok()?;
    let scope = match zone.parse() {
        Ok(index) => index,
        Err(_) => if_nametoindex(zone).ok()?,
    };
    Some(SocketAddrV6::new(address, port, 0, scope).into())
}

/// The resolver's own text, without what the standard library puts in front.
fn resolver_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ")
        .map_or(text.clone(), str::to_owned)
}

/// The wildcard.
pub(crate) fn any(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
        Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn stream_socket(address: &SocketAddr, flags: SockFlag) -> nix::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    socket::socket(
        family,
        SockType::Stream,
        flags | SockFlag::SOCK_CLOEXEC,
        None,
    )
}

/// The standard library's listener has a long backlog; stock's has room for
/// one client, so that a second one is not left hanging in a queue.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let fd = stream_socket(&address, SockFlag::empty())?;
    socket::setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    socket::bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    socket::listen(&fd, Backlog::new(1)?)?;
    Ok(TcpListener::from(fd))
}

enum ConnectFailure {
    /// Our own address cannot be used.
    Source(io::Error),
    /// The server cannot be reached.
    Connect(io::Error),
}

fn connect_once(
    address: SocketAddr,
    options: &ConnectOptions,
) -> Result<TcpStream, ConnectFailure> {
    let failed = |error: Errno| ConnectFailure::Connect(error.into());
    let fd = stream_socket(&address, SockFlag::SOCK_NONBLOCK).map_err(failed)?;
    if let Some(source) = options.source {
        let source = SockaddrStorage::from(SocketAddr::new(source, 0));
        socket::bind(fd.as_raw_fd(), &source)
            .map_err(|error| ConnectFailure::Source(error.into()))?;
    }
    match socket::connect(fd.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) => {}
        Err(Errno::EINPROGRESS) => {
            let deadline = Instant::now() + options.attempt;
            if !poll_until(&fd, PollFlags::POLLOUT, deadline).map_err(ConnectFailure::Connect)? {
                return Err(failed(Errno::ETIMEDOUT));
            }
            match socket::getsockopt(&fd, sockopt::SocketError).map_err(failed)? {
                0 => {}
                code => return Err(failed(Errno::from_raw(code))),
            }
        }
        Err(error) => return Err(failed(error)),
    }
    let stream = TcpStream::from(fd);
    stream
        .set_nonblocking(false)
        .map_err(ConnectFailure::Connect)?;
    Ok(stream)
}

/// Waits for the events; `false` when the time is over.
fn poll_until(fd: &impl AsFd, events: PollFlags, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, so that it does not return early and spin.
        let millis = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(fd.as_fd(), events)], timeout) {
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
