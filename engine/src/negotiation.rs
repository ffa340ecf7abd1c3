//! What the ends agree on before a test, and what of it is ours alone.

use verbs_sys::PathMtu;

use crate::exchange::{
    Channel, Host, OUT_READS_LOWERED, Session, TestParameters, Timeouts, Version,
};
use crate::failure::Failure;
use crate::host;
use crate::options::{Length, Params};
use crate::reporter::announced_duration;
use crate::run::Credit;
use crate::screen::Screen;
use crate::setup::{Adapter, RingLayout};

/// What the ends have agreed on.
pub(crate) struct Terms {
    /// The page size that small messages cycle through.
    pub(crate) page_size: u32,
    /// Messages begin on a cache line of this size.
    pub(crate) cache_line: u32,
    pub(crate) mtu: PathMtu,
    /// Reads and atomics in flight.
    pub(crate) out_reads: u32,
    /// Under `--data_validation`.
    pub(crate) credit: Option<Credit>,
}

impl Terms {
    /// Those of an end that talks to nobody (`--connectionless`).
    pub(crate) fn own(params: &Params, adapter: &Adapter) -> Self {
        Self {
            page_size: host::page_size(),
            cache_line: host::cache_line(),
            mtu: adapter.path_mtu(params).value,
            out_reads: adapter.out_reads,
            credit: None,
        }
    }
}

/// The first part of the dialogue: versions, hosts, and test parameters.
pub(crate) fn negotiate(
    params: &Params,
    adapter: &Adapter,
    channel: Box<dyn Channel>,
    timeouts: Timeouts,
    screen: &mut Screen,
) -> Result<(Session<Box<dyn Channel>>, Terms), Failure> {
    let side = params.side();
    let failed = |source| Failure::Exchange { side, source };
    let own = Terms::own(params, adapter);
    let ring = RingLayout::of(params);
    let host = Host {
        version: match &ring {
            Some(ring) => Version::with_chunks(ring.chunk),
            None => Version::repeating(params.repeat),
        },
        page_size: own.page_size,
        cache_line: own.cache_line,
        mtu: own.mtu as u8,
    };
    let started = Session::start(channel, side, timeouts, &host);
    let (mut session, agreement) = started.map_err(failed)?;
    log::info!(
        "the peer announces {}; page size {}, cache line {}, MTU code {}",
        session.peer_version(),
        agreement.page_size,
        agreement.cache_line,
        agreement.mtu
    );
    let repeats = session.peer_version().repeats();
    if params.repeats_with_peer() && repeats != params.repeat {
        return Err(Failure::Repeat {
            ours: params.repeat,
            theirs: repeats,
        });
    }
    let negotiation = session
        .negotiate(&wire_parameters(params, adapter))
        .map_err(failed)?;
    let credit = ring
        .map(|ring| ring_credit(&ring, session.peer_version()))
        .transpose()?;
    let (out_reads, lowered) = negotiation.limit_out_reads(own.out_reads);
    if lowered {
        screen.out(OUT_READS_LOWERED)?;
    }
    let terms = Terms {
        page_size: agreement.page_size,
        cache_line: agreement.cache_line,
        // Session::start takes nothing but 1 to 5 from the peer.
        mtu: PathMtu::from_code(agreement.mtu).unwrap_or(own.mtu),
        out_reads,
        credit,
    };
    Ok((session, terms))
}

/// How the sender learns how far validated data have been looked at.
fn ring_credit(ring: &RingLayout, peer: &Version) -> Result<Credit, Failure> {
    match peer.chunk() {
        Some(theirs) if theirs != ring.chunk => Err(Failure::Chunks {
            ours: ring.chunk,
            theirs,
        }),
        _ if ring.reads => Ok(Credit::Here),
        Some(_) => Ok(Credit::AtPeer),
        None => Ok(Credit::Unknown),
    }
}

fn wire_parameters(params: &Params, adapter: &Adapter) -> TestParameters {
    let tool = params.wire_tool();
    TestParameters {
        method: params.method(),
        connection: params.connection,
        verb: tool.verb,
        measurement: tool.measurement,
        atomic: params.wire_atomic(),
        ending: params.ending(),
        units: params.units(),
        size: params.sizes.largest().into(),
        iterations: match params.length {
            Length::Iterations(count) => count,
            _ => 0,
        },
        aes_xts: false,
        qps: params.qps,
        duration: announced_duration(params.length),
        // By -z as well as by -R.
        rdma_cm: params.control.rdma_cm,
        no_enhanced_reorder: false,
        sig_offload: false,
        data_validation: params.data_validation,
        device: (&adapter.attributes).into(),
        mlx5_comp_mask: 0,
    }
}
