//! A test from its parameters to its exit code, in stock's order: device,
//! control connection, negotiation, resources, header, dialogue, run, report.

use std::net::TcpStream;
use std::time::Duration;

use verbs_sys::cm::UDP_QKEY;

use crate::affinity;
use crate::device::{Devices, Provider};
use crate::exchange::{
    Channel, ConnectOptions, ExchangeError, Family, KeyRecord, ListenOptions, Listener, Presence,
    Session, TcpChannel, Timeouts, connect,
};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::line::Line;
use crate::manager::{self, Manager};
use crate::negotiation::{Terms, negotiate};
use crate::options::{Length, Machine, Output, Params, Sizes, device};
use crate::psn::Psns;
use crate::report::header::{CqePoll, Feature, HeaderInfo, Limit, Transport};
use crate::report::notes;
use crate::reporter::Reporter;
use crate::screen::Screen;
use crate::setup::{Adapter, Layout, Path, QKEY, Resources, RingLayout, join_group, to_init};
use crate::traffic::{Parts, Test};
use crate::words::Connection;

/// How long one attempt to connect may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The queue pair number of every multicast group (IBTA 10.5.2).
const MULTICAST_QPN: u32 = 0xff_ffff;

/// What a receive of a datagram begins with (IBTA 11.4.1.2).
const GRH_BYTES: usize = 40;

/// After so much idle time the system probes whether the peer's host still lives.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Runs one end of a test, shows what stock shows, and returns when both ends
/// are done.
///
/// # Errors
/// [`Failure`] says what to print and how to exit.
pub fn run(
    params: &Params,
    providers: &[&dyn Provider],
    screen: &mut Screen,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    affinity::pin(&params.device.pin_cores)?;
    let run = if params.loopback {
        crate::loopback::run
    } else {
        run_end
    };
    match run(params, providers, screen, interrupt) {
        // Whatever fails after an interrupt fails because of it.
        Err(_) if interrupt.requested() => Err(Failure::Interrupted),
        result => result,
    }
}

fn run_end(
    params: &Params,
    providers: &[&dyn Provider],
    screen: &mut Screen,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    run_connected(params, providers, screen, interrupt, None)
}

/// Runs one end, over a control connection that is there already or has to be made.
pub(crate) fn run_connected(
    params: &Params,
    providers: &[&dyn Provider],
    screen: &mut Screen,
    interrupt: &Interrupt,
    connection: Option<TcpStream>,
) -> Result<(), Failure> {
    let devices = Devices {
        providers,
        capture: params.device.capture.as_deref().map(std::path::Path::new),
    };
    let timeouts = timeouts(params);
    let (adapter, line) = if params.control.rdma_cm {
        manager::control_connection(params, &devices, screen, interrupt, &timeouts)?
    } else {
        over_tcp(params, &devices, screen, interrupt, connection, &timeouts)?
    };
    let fitted = fit_into_packet(params, &adapter, screen)?;
    let params = fitted.as_ref().unwrap_or(params);
    run_over(params, screen, interrupt, adapter, line, timeouts)
}

/// How long the peer may take.
fn timeouts(params: &Params) -> Timeouts {
    Timeouts {
        step: params.control.peer_timeout,
        run: match params.length {
            Length::Timed { duration, .. } => {
                Some(Duration::from_secs(duration.into()) + params.control.peer_timeout)
            }
            // As long as the connection lives: only the peer knows how fast it is.
            Length::Iterations(_) | Length::Infinite { .. } => None,
        },
        keep_alive: Some(KEEP_ALIVE),
    }
}

/// What a server says before it waits.
pub(crate) fn banner(params: &Params, screen: &mut Screen) -> Result<(), Failure> {
    if params.machine == Machine::Server && params.report.output == Output::Full {
        screen.out(notes::BANNER)?;
    }
    Ok(())
}

/// The control connection over TCP, which is there already or has to be made,
/// and the device that the user names or that belongs to it.
fn over_tcp(
    params: &Params,
    devices: &Devices<'_>,
    screen: &mut Screen,
    interrupt: &Interrupt,
    connection: Option<TcpStream>,
    timeouts: &Timeouts,
) -> Result<(Adapter, Line), Failure> {
    let named = params
        .device
        .name
        .as_deref()
        .map(|name| {
            let device = devices.named(params.tool, name)?;
            Adapter::open(&*device, params, screen)
        })
        .transpose()?;
    let named = match named {
        // Nobody to talk to: --connectionless has a device.
        Some(adapter) if params.connectionless => {
            return Ok((adapter, Line::none()));
        }
        named => named,
    };
    let stream = match connection {
        Some(stream) => stream,
        None => control_connection(params, screen, interrupt)?,
    };
    interrupt.attend(&stream)?;
    let adapter = match named {
        Some(adapter) => adapter,
        None => {
            let local = stream.local_addr()?.ip().to_canonical();
            let device = devices.for_connection(params.tool, local)?;
            screen.err(&format!(
                "{}: using {}, which has {local} (-d chooses another)\n",
                params.tool,
                device.name()
            ))?;
            Adapter::open(&*device, params, screen)?
        }
    };
    let presence = Presence::of_socket(&stream)?;
    let line = Line {
        channel: Some(Box::new(TcpChannel::new(stream, timeouts)?)),
        presence,
        manager: None,
    };
    Ok((adapter, line))
}

/// The parameters with messages cut to one packet, where UD needs that.
fn fit_into_packet(
    params: &Params,
    adapter: &Adapter,
    screen: &mut Screen,
) -> Result<Option<Params>, Failure> {
    let largest = device::largest_message(params, adapter.path_mtu(params).value);
    let Some(bytes) = largest.value else {
        return Err(Failure::TooLarge {
            bytes: params.sizes.largest(),
            mtu: adapter.path_mtu(params).value.bytes(),
            messages: largest.messages,
        });
    };
    screen.messages(&largest.messages)?;
    Ok((bytes != params.sizes.largest()).then(|| {
        let mut fitted = params.clone();
        fitted.sizes = match params.sizes {
            Sizes::One(_) => Sizes::One(bytes),
            Sizes::All { .. } => Sizes::All { largest: bytes },
        };
        fitted
    }))
}

/// Listens and waits for the client, or connects to the server.
fn control_connection(
    params: &Params,
    screen: &mut Screen,
    interrupt: &Interrupt,
) -> Result<TcpStream, Failure> {
    banner(params, screen)?;
    let side = params.side();
    let failed = |source| Failure::Exchange { side, source };
    let family = match params.control.ipv6 {
        true => Family::V6,
        false => Family::V4,
    };
    let source = params.control.bind_source_ip.clone();
    match &params.host {
        None => {
            let listener = Listener::bind(&ListenOptions {
                port: params.control.tcp_port,
                family,
                bind: source,
            })
            .map_err(failed)?;
            interrupt.attend(&listener)?;
            log::info!("waiting for a client on port {}", params.control.tcp_port);
            listener.accept(None).map_err(failed)
        }
        Some(host) => {
            let source = source
                .map(|address| {
                    address.parse().map_err(|_| ExchangeError::Source {
                        address,
                        reason: "it is not an IP address".to_owned(),
                    })
                })
                .transpose()
                .map_err(failed)?;
            connect(&ConnectOptions {
                host: host.clone(),
                port: params.control.tcp_port,
                family,
                source,
                attempt: CONNECT_TIME,
                retry: params.control.connect_retry,
            })
            .map_err(failed)
        }
    }
}

/// From the control connection to the end of the test.
fn run_over(
    params: &Params,
    screen: &mut Screen,
    interrupt: &Interrupt,
    adapter: Adapter,
    line: Line,
    timeouts: Timeouts,
) -> Result<(), Failure> {
    let own_mtu = adapter.path_mtu(params);
    screen.messages(&own_mtu.messages)?;
    let (session, terms) = match line.channel {
        Some(channel) => {
            let (session, terms) = negotiate(params, &adapter, channel, timeouts, screen)?;
            (Some(session), terms)
        }
        None => (None, Terms::own(params, &adapter)),
    };
    let peer = Peer {
        session,
        presence: line.presence,
        manager: line.manager.filter(|_| params.control.rdma_cm_qps),
    };
    run_test(params, screen, interrupt, adapter, &terms, peer)
}

/// The other end, after the negotiation.
struct Peer {
    session: Option<Session<Box<dyn Channel>>>,
    presence: Presence,
    manager: Option<Manager>,
}

/// Gets everything the test needs, and runs it.
fn run_test(
    params: &Params,
    screen: &mut Screen,
    interrupt: &Interrupt,
    mut adapter: Adapter,
    terms: &Terms,
    peer: Peer,
) -> Result<(), Failure> {
    let layout = Layout {
        page: terms.page_size as usize,
        line: terms.cache_line as usize,
        size: params.sizes.largest() as usize,
        qps: params.qps as usize,
        block_per_qp: params.mr_per_qp,
        header: match params.connection {
            Connection::Ud => GRH_BYTES,
            _ => 0,
        },
        ring: RingLayout::of(params),
    };
    let mut resources = Resources::new(&adapter, params, layout)?;
    let inline = device::granted_inline(adapter.inline, resources.queues.inline);
    resources.queues.inline = inline.value;
    let path = Path {
        source: adapter.source(params)?,
        mtu: terms.mtu,
        out_reads: terms.out_reads,
        pkey_index: adapter.pkey_index,
        qkey: match params.control.rdma_cm_qps {
            true => UDP_QKEY,
            false => QKEY,
        },
    };
    if !params.control.rdma_cm_qps {
        for qp in &mut resources.queues.qps {
            to_init(&mut **qp, params, &path)?;
            join_group(&mut **qp, params)?;
        }
    }
    screen.messages(&inline.messages)?;
    let records = key_records(params, &adapter, &resources, &path)?;
    let info = header_info(params, &adapter, &path, inline.value);
    let counters = std::mem::take(&mut adapter.counters);
    let reporter = Reporter::begin(screen, params, info, counters)?;
    let test = Test::new(Parts {
        params,
        adapter: &adapter,
        resources,
        path,
        records,
        credit: terms.credit,
        reporter,
        presence: peer.presence,
        manager: peer.manager,
        interrupt,
    });
    let result = match peer.session {
        Some(session) => test.run(session),
        None => test.run_alone(),
    };
    if !params.wait_destroy.is_zero() {
        let seconds = u32::try_from(params.wait_destroy.as_secs()).unwrap_or(u32::MAX);
        screen.out(&notes::waiting_to_destroy(seconds))?;
        std::thread::sleep(params.wait_destroy);
    }
    result
}

/// What we tell the peer about each queue pair.
fn key_records(
    params: &Params,
    adapter: &Adapter,
    resources: &Resources,
    path: &Path,
) -> Result<Vec<KeyRecord>, Failure> {
    let mut psns = Psns::new(params.seed);
    let memory = &resources.memory;
    resources
        .queues
        .qps
        .iter()
        .enumerate()
        .map(|(index, qp)| {
            let published = memory.layout.published(index);
            let (qpn, gid) = match params.multicast.filter(|_| params.is_in_group()) {
                Some(group) => (MULTICAST_QPN, group),
                None => (qp.qpn(), path.source.gid),
            };
            let (vaddr, rkey) = match &resources.credits {
                Some(credits) => credits.published(index),
                None => (memory.addr(published), memory.rkey(published)),
            };
            Ok(KeyRecord {
                lid: adapter.port.lid,
                out_reads: path.out_reads,
                qpn,
                psn: psns.next()?,
                rkey,
                vaddr,
                tail_markers: memory.layout.ring.map(|ring| {
                    memory.addr(published) - (published.offset as u64) + ring.marker(0, 0) as u64
                }),
                gid: Some(gid.0),
                srqn: match (params.connection, &resources.queues.srq) {
                    (Connection::Xrc, Some(srq)) => srq.number(),
                    _ => 0,
                },
                gid_index: Some(path.source.index),
            })
        })
        .collect()
}

fn header_info(params: &Params, adapter: &Adapter, path: &Path, inline: u32) -> HeaderInfo {
    let tool = params.wire_tool();
    let on_off = |on: bool| if on { Feature::On } else { Feature::Off };
    let bandwidth = params.tool.is_bandwidth();
    // Of a latency test stock shows what a one-way bandwidth test would do.
    let posts = params.machine == Machine::Client || params.bidirectional;
    let receives = params.has_receive_completions()
        && (params.machine == Machine::Server || params.bidirectional);
    HeaderInfo {
        verb: tool.verb,
        atomic: params.wire_atomic(),
        measurement: tool.measurement,
        duplex: params.bidirectional,
        multicast: params.multicast.is_some(),
        events: params.events,
        dual_port: false,
        device: adapter.context.device_name().to_owned(),
        qps: params.qps,
        transport: match adapter.is_iwarp() {
            true => Transport::Iwarp,
            false => Transport::Ib,
        },
        connection: params.connection,
        srq: params.use_srq,
        relaxed_ordering: on_off(params.relaxed_ordering),
        relaxed_ordering_warning: false,
        lock_free: on_off(params.no_lock),
        wr_api: adapter.class().has_extended_post() && !params.old_post_send,
        enhanced_reorder: false,
        tx_depth: posts.then_some(params.tx_depth),
        post_list: params.post_list,
        recv_post_list: params.recv_post_list,
        rx_depth: receives.then_some(params.rx_depth),
        cq_moderation: bandwidth.then_some(params.cq_mod),
        cqe_poll: bandwidth.then_some(match params.polling {
            crate::options::Polling::Dynamic => CqePoll::Dynamic,
            crate::options::Polling::Fixed(count) => CqePoll::Fixed(count),
        }),
        mtu: path.mtu.bytes(),
        link: adapter.link,
        gid_index: Some(path.source.index),
        gid_index2: None,
        limit: if tool.verb.is_round_trip() {
            Limit::OutstandingReads(path.out_reads)
        } else {
            Limit::Inline(inline)
        },
        cm_qps: params.control.rdma_cm_qps,
        cm_exchange: params.control.rdma_cm,
        tos: params.control.type_of_service.map(u32::from),
        awaits_cm_client: params.control.rdma_cm_qps && params.machine == Machine::Server,
        numa_node: None,
    }
}
