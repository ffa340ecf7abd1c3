//! The control connection of `-z` and `-R`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use verbs_sys::cm::{
    CmDevice, CmError, CmId, CmOption, CmRequest, CmResult, ConnectParameters, ConnectionManager,
    PortSpace, Wait, accept_qp, connect_qp, qp_to_init,
};

use super::{MIN_RNR_TIMER, MOST_RETRIES, Manager, failed, retries, stock_tail};
use crate::device::Devices;
use crate::exchange::{
    CmConnection, ControlQueuePair, ExchangeError, Family, Presence, Timeouts, any, resolve,
};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::line::Line;
use crate::options::Params;
use crate::screen::Screen;
use crate::setup::Adapter;
use crate::tool::banner;
use crate::words::Side;

/// Pause between two attempts while nobody listens.
const RETRY_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

const NO_MANAGER: &str = "-R and -z: this comes with the connection manager of the userspace NIC; \
                          a kernel device does it now (-d)";

/// Makes the control connection, over the device that it leads to.
pub(crate) fn control_connection(
    params: &Params,
    devices: &Devices<'_>,
    screen: &mut Screen,
    interrupt: &Interrupt,
    timeouts: &Timeouts,
) -> Result<(Adapter, Line), Failure> {
    let side = params.side();
    let manager = manager(params, devices)?;
    let named = match &params.device.name {
        Some(name) => {
            let device = devices.named(params.tool, name)?;
            Some(Adapter::open(&*device, params, screen)?)
        }
        None => None,
    };
    banner(params, screen)?;
    interrupt.leave_to_waits();
    let address = meeting_point(params)?;
    let manager = Manager {
        manager,
        address,
        source: source(params, named.as_ref(), address)?,
        side,
        listener: None,
    };
    let mut choice = Choice {
        params,
        devices,
        screen,
        adapter: named,
    };
    let (queues, id) = match side {
        Side::Client => connect(&manager, &mut choice, interrupt, timeouts)?,
        Side::Server => listen(&manager, &mut choice, interrupt, timeouts)?,
    };
    let connection = Arc::new(CmConnection::new(id));
    let listened = side == Side::Server;
    let channel = queues.connected(Arc::clone(&connection), listened, timeouts, interrupt);
    let adapter = choice.adapter.ok_or(Failure::Unsupported(NO_MANAGER))?;
    Ok((
        adapter,
        Line {
            channel: Some(Box::new(channel)),
            presence: Presence::Manager(connection),
            manager: Some(manager),
        },
    ))
}

/// The manager of the device that the user names, or the first there is.
fn manager(params: &Params, devices: &Devices<'_>) -> Result<Arc<dyn ConnectionManager>, Failure> {
    let failed = |error| failed(params.side(), "opening the connection manager", error);
    let of_device = match &params.device.name {
        Some(name) => devices.provider_of(name)?,
        None => None,
    };
    let providers: Vec<_> = match (of_device, &params.device.name) {
        (Some(provider), _) => vec![provider],
        // It is refused as such when it is looked for.
        (None, Some(name)) => {
            devices.named(params.tool, name)?;
            Vec::new()
        }
        (None, None) => devices.providers.to_vec(),
    };
    for provider in providers {
        if let Some(manager) = provider.connection_manager().map_err(failed)? {
            return Ok(manager);
        }
    }
    Err(Failure::Unsupported(NO_MANAGER))
}

/// Where the ends meet: the server's address, or where this one listens.
fn meeting_point(params: &Params) -> Result<SocketAddr, Failure> {
    let family = match params.control.ipv6 {
        true => Family::V6,
        false => Family::V4,
    };
    let port = params.control.tcp_port;
    let host = params.host.as_deref();
    let Some(host) = host.or(params.control.bind_source_ip.as_deref()) else {
        return Ok(SocketAddr::new(any(family), port));
    };
    let found = resolve(host, port, family).map_err(|source| unresolved(params, source))?;
    // The resolver never returns an empty list without an error.
    found
        .first()
        .copied()
        .ok_or(Failure::Unsupported(NO_MANAGER))
}

/// Our own address as client: what the user says, or that of the device.
fn source(
    params: &Params,
    named: Option<&Adapter>,
    server: SocketAddr,
) -> Result<Option<SocketAddr>, Failure> {
    if params.side() == Side::Server {
        return Ok(None);
    }
    if let Some(address) = &params.control.bind_source_ip {
        let address: IpAddr = address.parse().map_err(|_| {
            let (address, reason) = (address.clone(), "it is not an IP address".to_owned());
            unresolved(params, ExchangeError::Source { address, reason })
        })?;
        return Ok(Some(SocketAddr::new(address, 0)));
    }
    // Without an IP address as GID (iWARP) the route decides.
    let gid = named.and_then(|adapter| adapter.source(params).ok());
    let ip = gid
        .filter(|source| !source.gid.is_link_local())
        .map(|source| source.gid.to_ip())
        .filter(|ip| ip.is_ipv4() == server.is_ipv4());
    Ok(ip.map(|ip| SocketAddr::new(ip, 0)))
}

fn unresolved(params: &Params, source: ExchangeError) -> Failure {
    // Stock's first lines are those of TCP, its last are not.
    let text = source.stock_text(params.wire_tool(), params.side());
    let reason: String = text
        .lines()
        .take_while(|line| !line.starts_with("Unable to open"))
        .map(|line| format!("{line}\n"))
        .collect();
    Failure::Meeting {
        stock: format!("{reason}{}", stock_tail(params.side())),
        source,
    }
}

/// The device of the test: named, or chosen by the manager.
struct Choice<'a> {
    params: &'a Params,
    devices: &'a Devices<'a>,
    screen: &'a mut Screen,
    adapter: Option<Adapter>,
}

impl Choice<'_> {
    /// A control queue pair in INIT on the device that `id` is bound to.
    fn queue_pair(&mut self, id: &dyn CmId) -> Result<ControlQueuePair, Failure> {
        let side = self.params.side();
        let failed = |error| failed(side, "preparing the control connection", error);
        let route = id.route().map_err(failed)?;
        let Some(chosen) = route.device else {
            return Err(failed(CmError::Unintelligible {
                seen: "no device of a connection".to_owned(),
                expected: "a device",
            }));
        };
        let adapter = match self.adapter.take() {
            Some(adapter) => self.agreed(adapter, &chosen)?,
            None => self.open(&chosen)?,
        };
        let adapter = self.adapter.insert(adapter);
        let made = ControlQueuePair::new(&*adapter.context);
        let mut queues = made.map_err(|error| failed(error.into()))?;
        qp_to_init(id, queues.qp()).map_err(failed)?;
        queues
            .post_receives()
            .map_err(|error| failed(error.into()))?;
        Ok(queues)
    }

    fn open(&mut self, chosen: &CmDevice) -> Result<Adapter, Failure> {
        let device = self.devices.chosen(self.params.tool, chosen)?;
        self.screen.err(&format!(
            "{}: using {}, which the connection manager has chosen (-d chooses another)\n",
            self.params.tool,
            device.name()
        ))?;
        Adapter::open(&*device, self.params, self.screen)
    }

    /// Whether the manager has chosen the device that the user named.
    fn agreed(&self, adapter: Adapter, chosen: &CmDevice) -> Result<Adapter, Failure> {
        let ours = adapter.context.device_name();
        match &chosen.name {
            Some(name) if name != ours => Err(Failure::OtherDevice {
                named: ours.to_owned(),
                chosen: chosen.to_string(),
            }),
            _ => Ok(adapter),
        }
    }
}

type Connected = (ControlQueuePair, Box<dyn CmId>);

/// Connects to the server; while nobody listens again and again, if the user
/// wants that (`--connect-retry`).
fn connect(
    manager: &Manager,
    choice: &mut Choice<'_>,
    interrupt: &Interrupt,
    timeouts: &Timeouts,
) -> Result<Connected, Failure> {
    let params = choice.params;
    let give_up = Instant::now() + params.control.connect_retry;
    let options = [CmOption::AckTimeout(params.path.qp_timeout)];
    loop {
        let resolved = manager.resolved(PortSpace::Tcp, &options, interrupt);
        let mut id = resolved
            .map_err(|error| failed(Side::Client, "looking for the way to the server", error))?;
        let mut queues = choice.queue_pair(&*id)?;
        let asked = || interrupt.requested();
        let wait = Wait::at_most(timeouts.step).or(&asked);
        let parameters = parameters(params);
        match connect_qp(&mut *id, queues.qp(), &parameters, MIN_RNR_TIMER, &wait) {
            Ok(_) => return Ok((queues, id)),
            Err(error) if error.nobody_listens() && Instant::now() + RETRY_PAUSE < give_up => {
                std::thread::sleep(RETRY_PAUSE);
            }
            Err(error) => return Err(failed(Side::Client, "connecting to the server", error)),
        }
    }
}

/// Waits for the client and accepts it.
fn listen(
    manager: &Manager,
    choice: &mut Choice<'_>,
    interrupt: &Interrupt,
    timeouts: &Timeouts,
) -> Result<Connected, Failure> {
    let failed = |error| failed(Side::Server, "waiting for a client", error);
    let asked = || interrupt.requested();
    let listener = manager.manager.listen(PortSpace::Tcp, manager.address, 1);
    let mut listener = listener.map_err(failed)?;
    log::info!("waiting for a client on {}", manager.address);
    let mut request = listener
        .next_request(&Wait::new(None).or(&asked))
        .map_err(failed)?;
    let mut queues = choice.queue_pair(&*request.id)?;
    let wait = Wait::at_most(timeouts.step).or(&asked);
    accept(&mut request, &mut queues, choice.params, &wait).map_err(failed)?;
    Ok((queues, request.id))
}

fn accept(
    request: &mut CmRequest,
    queues: &mut ControlQueuePair,
    params: &Params,
    wait: &Wait<'_>,
) -> CmResult<()> {
    accept_qp(
        request,
        queues.qp(),
        &parameters(params),
        MIN_RNR_TIMER,
        wait,
    )
}

/// The control connection reads nothing from the peer's memory.
fn parameters(params: &Params) -> ConnectParameters<'static> {
    ConnectParameters {
        retry_count: retries(params),
        rnr_retry_count: MOST_RETRIES,
        ..ConnectParameters::default()
    }
}
