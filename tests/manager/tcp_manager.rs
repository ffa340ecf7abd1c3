//! A connection manager for the userspace NIC of two ends in this process:
//! what the IB connection manager's messages say travels over a TCP
//! connection for each pair of queue pairs.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use verbs_sys::cm::{
    CmDevice, CmError, CmEvent, CmEventKind, CmId, CmListener, CmOption, CmParameters, CmRequest,
    CmResult, CmRoute, CmStatus, ConnectParameters, ConnectionManager, DatagramPeer, PortSpace,
    UDP_QKEY, Wait,
};
use verbs_sys::{
    AccessFlags, AddressVector, Context, Gid, GidEntry, QpAttributes, QpState, Result,
};

/// The context that an end has opened.
pub(crate) type Opened = Arc<Mutex<Option<Arc<dyn Context>>>>;

const READY: u8 = b'R';
const FAREWELL: u8 = b'D';

/// What the ends tell each other: queue pair, PSN, GID, reads.
const HELLO: usize = 4 + 4 + 16 + 2;

pub(crate) struct TcpManager {
    pub(crate) opened: Opened,
}

impl ConnectionManager for TcpManager {
    fn create_id(&self, space: PortSpace) -> CmResult<Box<dyn CmId>> {
        Ok(Box::new(Id::new(space, &self.opened)))
    }

    fn listen(&self, space: PortSpace, local: SocketAddr, _: u32) -> CmResult<Box<dyn CmListener>> {
        let bound = TcpListener::bind(local);
        let listener = bound.map_err(|_| CmError::AddressInUse { address: local })?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Box::new(Listener {
            space,
            listener,
            opened: Arc::clone(&self.opened),
        }))
    }
}

struct Listener {
    space: PortSpace,
    listener: TcpListener,
    opened: Opened,
}

impl CmListener for Listener {
    fn local_addr(&self) -> CmResult<SocketAddr> {
        self.listener.local_addr().map_err(refused)
    }

    fn next_request(&mut self, wait: &Wait<'_>) -> CmResult<CmRequest> {
        let stream = until(wait, || match self.listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(refused(error)),
        })?;
        let mut id = Id::new(self.space, &self.opened);
        id.take(stream)?;
        let parameters = id.hear(wait)?;
        Ok(CmRequest {
            id: Box::new(id),
            event: event(CmEventKind::ConnectRequest, parameters),
        })
    }
}

struct Id {
    space: PortSpace,
    opened: Opened,
    destination: Option<SocketAddr>,
    stream: Option<TcpStream>,
    /// It has asked and waits for the answer.
    asks: bool,
    psn: u32,
    peer: CmParameters,
    peer_psn: u32,
    peer_gid: Gid,
}

impl Id {
    fn new(space: PortSpace, opened: &Opened) -> Self {
        Self {
            space,
            opened: Arc::clone(opened),
            destination: None,
            stream: None,
            asks: false,
            psn: 0x00ab_cdef,
            peer: CmParameters::default(),
            peer_psn: 0,
            peer_gid: Gid::ZERO,
        }
    }

    fn take(&mut self, stream: TcpStream) -> CmResult<()> {
        stream.set_nonblocking(true).map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        self.stream = Some(stream);
        Ok(())
    }

    fn context(&self) -> CmResult<Arc<dyn Context>> {
        let opened = self.opened.lock().unwrap().clone();
        opened.ok_or(CmError::Unsupported("connecting before a device is open"))
    }

    fn own_gid(&self) -> CmResult<GidEntry> {
        let table = self.context()?.query_gid_table()?;
        let found = table.into_iter().find(|entry| entry.gid.is_v4_mapped());
        found.ok_or(CmError::Unsupported("devices without an IPv4 address"))
    }

    fn say(&mut self, message: &[u8]) -> CmResult<()> {
        match &mut self.stream {
            Some(stream) => stream.write_all(message).map_err(refused),
            None => Err(CmError::Disconnected),
        }
    }

    fn tell(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        let mut hello = Vec::with_capacity(HELLO);
        hello.extend(parameters.qpn.to_be_bytes());
        hello.extend(self.psn.to_be_bytes());
        hello.extend(self.own_gid()?.gid.0);
        hello.push(parameters.initiator_depth);
        hello.push(parameters.responder_resources);
        self.say(&hello)
    }

    fn hear(&mut self, wait: &Wait<'_>) -> CmResult<CmParameters> {
        let hello: [u8; HELLO] = self.read(wait)?.ok_or(CmError::Disconnected)?;
        let number = |at: usize| u32::from_be_bytes(hello[at..at + 4].try_into().unwrap());
        self.peer_psn = number(4);
        self.peer_gid = Gid(hello[8..24].try_into().unwrap());
        self.peer = CmParameters {
            qpn: number(0),
            responder_resources: hello[24],
            initiator_depth: hello[25],
            ..CmParameters::default()
        };
        Ok(self.peer)
    }

    /// `None` when the peer is gone.
    fn read<const N: usize>(&mut self, wait: &Wait<'_>) -> CmResult<Option<[u8; N]>> {
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let mut bytes = [0; N];
        let mut seen = 0;
        until(wait, || {
            while seen < N {
                match stream.read(&mut bytes[seen..]) {
                    Ok(0) => return Ok(Some(None)),
                    Ok(count) => seen += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(_) => return Ok(Some(None)),
                }
            }
            Ok(Some(Some(bytes)))
        })
    }

    fn way(&self) -> CmResult<AddressVector> {
        Ok(AddressVector {
            dgid: self.peer_gid,
            sgid_index: self.own_gid()?.index,
            flow_label: 0,
            hop_limit: 64,
            traffic_class: 0,
            sl: 0,
            port: 1,
        })
    }
}

impl CmId for Id {
    fn port_space(&self) -> PortSpace {
        self.space
    }

    fn resolve_addr(
        &mut self,
        _: Option<SocketAddr>,
        destination: SocketAddr,
        _: &Wait<'_>,
    ) -> CmResult<()> {
        self.destination = Some(destination);
        Ok(())
    }

    fn resolve_route(&mut self, _: &Wait<'_>) -> CmResult<()> {
        Ok(())
    }

    fn set_option(&mut self, _: CmOption) -> CmResult<()> {
        Ok(())
    }

    fn route(&self) -> CmResult<CmRoute> {
        Ok(CmRoute {
            device: Some(CmDevice {
                name: Some("urxe_lo".to_owned()),
                node_guid: 0,
            }),
            port: 1,
            pkey: 0xffff,
            local: None,
            peer: self.destination,
            local_gid: Gid::ZERO,
            peer_gid: self.peer_gid,
        })
    }

    fn qp_attributes(&self, state: QpState) -> CmResult<QpAttributes> {
        let reliable = self.space == PortSpace::Tcp;
        let attributes = QpAttributes::to_state(state);
        Ok(match state {
            QpState::Init => QpAttributes {
                pkey_index: Some(0),
                port: Some(1),
                access_flags: reliable.then_some(AccessFlags::REMOTE),
                qkey: (!reliable).then_some(UDP_QKEY),
                ..attributes
            },
            QpState::Rtr => QpAttributes {
                av: Some(self.way()?),
                path_mtu: Some(self.context()?.query_port(1)?.active_mtu),
                dest_qpn: Some(self.peer.qpn),
                rq_psn: Some(self.peer_psn),
                max_dest_rd_atomic: Some(self.peer.responder_resources),
                min_rnr_timer: Some(0),
                ..attributes
            },
            _ => QpAttributes {
                sq_psn: Some(self.psn),
                timeout: Some(14),
                retry_cnt: Some(7),
                rnr_retry: Some(7),
                max_qp_rd_atomic: Some(self.peer.initiator_depth),
                ..attributes
            },
        })
    }

    fn connect(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        let destination = self.destination.ok_or(CmError::Disconnected)?;
        let connected = TcpStream::connect(destination);
        let stream = connected.map_err(|error| CmError::Rejected {
            status: CmStatus::Errno(error.raw_os_error().unwrap_or(0)),
            private_data: Vec::new(),
        })?;
        self.take(stream)?;
        self.asks = true;
        self.tell(parameters)
    }

    fn accept(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        self.tell(parameters)
    }

    fn establish(&mut self) -> CmResult<()> {
        self.say(&[READY])
    }

    fn reject(&mut self, _: &[u8]) -> CmResult<()> {
        self.stream = None;
        Ok(())
    }

    fn disconnect(&mut self) -> CmResult<()> {
        self.say(&[FAREWELL])
    }

    fn next_event(&mut self, wait: &Wait<'_>) -> CmResult<CmEvent> {
        if self.asks {
            let parameters = self.hear(wait)?;
            self.asks = false;
            if self.space == PortSpace::Tcp {
                return Ok(event(CmEventKind::ConnectResponse, parameters));
            }
            let mut established = event(CmEventKind::Established, parameters);
            established.datagram = Some(DatagramPeer {
                qpn: parameters.qpn,
                qkey: UDP_QKEY,
                av: self.way()?,
            });
            return Ok(established);
        }
        let kind = match self.read(wait)? {
            Some([READY]) => CmEventKind::Established,
            _ => CmEventKind::Disconnected,
        };
        Ok(event(kind, self.peer))
    }

    fn join_multicast(&mut self, _: SocketAddr, _: &Wait<'_>) -> CmResult<DatagramPeer> {
        Err(CmError::Unsupported("multicast"))
    }
}

fn event(kind: CmEventKind, parameters: CmParameters) -> CmEvent {
    CmEvent {
        kind,
        status: CmStatus::Success,
        private_data: Vec::new(),
        parameters,
        datagram: None,
    }
}

fn refused(source: std::io::Error) -> CmError {
    CmError::Command {
        command: "TCP",
        source,
    }
}

/// Tries until there is something, or the wait is over.
fn until<T>(wait: &Wait<'_>, mut attempt: impl FnMut() -> CmResult<Option<T>>) -> CmResult<T> {
    loop {
        if let Some(found) = attempt()? {
            return Ok(found);
        }
        if wait.interrupted() {
            return Err(CmError::Interrupted);
        }
        if wait.slice().is_none() {
            return Err(CmError::TimedOut {
                waited_for: "the peer",
                waited: wait.limit().unwrap_or_default(),
            });
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Opens a device and remembers the context.
pub(crate) fn remember(
    opened: &Opened,
    context: Result<Arc<dyn Context>>,
) -> Result<Arc<dyn Context>> {
    let context = context?;
    *opened.lock().unwrap() = Some(Arc::clone(&context));
    Ok(context)
}
