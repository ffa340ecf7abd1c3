//! The device and its port, and what they allow.

use std::sync::Arc;

use verbs_sys::{
    Context, Device, DeviceAttributes, Gid, GidEntry, LinkLayer, PathMtu, PortAttributes,
    PortState, Transport, VerbsError,
};

use crate::counters::Counters;
use crate::failure::Failure;
use crate::options::device::{self, Adjusted, DeviceProblem, refuse};
use crate::options::{DeviceClass, Params, Resolved, gid};
use crate::screen::Screen;

/// An opened device and the port of the test.
pub(crate) struct Adapter {
    pub(crate) context: Arc<dyn Context>,
    /// Those of the port that the user wants to see (`-W`).
    pub(crate) counters: Counters,
    pub(crate) attributes: DeviceAttributes,
    pub(crate) port: PortAttributes,
    /// The link layer, as the port has it or the user insists on it.
    pub(crate) link: LinkLayer,
    /// Inline bytes to ask the queue pairs for.
    pub(crate) inline: u32,
    /// Reads and atomics in flight.
    pub(crate) out_reads: u32,
    pub(crate) pkey_index: u16,
}

/// The address we use on the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) index: u32,
    pub(crate) gid: Gid,
}

impl Adapter {
    /// Opens the device and looks at the port; says on the screen which values
    /// had to be changed.
    pub(crate) fn open(
        device: &dyn Device,
        params: &Params,
        screen: &mut Screen,
    ) -> Result<Self, Failure> {
        let failed = |doing, source| Failure::Verbs {
            stock: " Couldn't get context for the device\n".to_owned(),
            doing,
            source,
        };
        let context = device
            .open()
            .map_err(|error| failed("opening the device", error))?;
        let attributes = context
            .query_device()
            .map_err(|error| failed("asking the device for its limits", error))?;
        let port = usable_port(&*context, params)?;
        let link = params.device.force_link.unwrap_or(port.link_layer);
        if link == LinkLayer::Unspecified {
            let problem = DeviceProblem::UnknownLink(params.device.port);
            return Err(refused(
                refuse(params.tool, &problem),
                "the port is neither InfiniBand nor Ethernet; choose another (-d, -i)".to_owned(),
            ));
        }
        if link == LinkLayer::InfiniBand && params.device.gid_index.is_none() {
            return Err(Failure::Unsupported(
                "an InfiniBand link is only supported with a GID: choose one with -x at both ends",
            ));
        }
        let class = DeviceClass::of(attributes.vendor_id, attributes.vendor_part_id);
        let inline = device::inline_size(params, class);
        screen.messages(&inline.messages)?;
        let out_reads = device::outstanding_reads(
            params.asks_peer_memory(),
            params.outstanding_reads,
            attributes.max_qp_rd_atom,
        );
        screen.messages(&out_reads.messages)?;
        let pkey_index = device::pkey_index(params.device.pkey_index, attributes.max_pkeys.into());
        screen.messages(&pkey_index.messages)?;
        let counters = Counters::open(
            &params.report.counters,
            context.device_name(),
            params.device.port,
        )?;
        Ok(Self {
            context,
            counters,
            attributes,
            port,
            link,
            inline: inline.value,
            out_reads: out_reads.value,
            pkey_index: pkey_index.value,
        })
    }

    /// Whether messages travel over TCP.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.context.transport() == Transport::Iwarp
    }

    /// Stock's class of the device.
    pub(crate) fn class(&self) -> DeviceClass {
        DeviceClass::of(self.attributes.vendor_id, self.attributes.vendor_part_id)
    }

    /// Our address: what `-x` says, or the best of the port's table.
    pub(crate) fn source(&self, params: &Params) -> Result<Source, Failure> {
        let failed = |doing, source| Failure::Verbs {
            stock: " Unable to set up socket connection\n".to_owned(),
            doing,
            source,
        };
        let port = params.device.port;
        let index = match params.device.gid_index {
            Some(index) => index.into(),
            None => self
                .choose(params)
                .map_err(|error| failed("reading the GID table", error))?,
        };
        let gid = match self.context.query_gid(port, index) {
            Ok(entry) => entry.gid,
            Err(source) => {
                return Err(Failure::Gid {
                    source,
                    table: self.table(params).unwrap_or_default(),
                });
            }
        };
        Ok(Source { index, gid })
    }

    fn choose(&self, params: &Params) -> Result<u32, VerbsError> {
        gid::choose(&self.table(params)?, params.device.prefer_ipv6_gid).ok_or(
            VerbsError::NoEntry {
                what: "every entry of the GID table; the first is",
                index: 0,
            },
        )
    }

    /// The GIDs of the port.
    fn table(&self, params: &Params) -> Result<Vec<GidEntry>, VerbsError> {
        let mut table = self.context.query_gid_table()?;
        table.retain(|entry| entry.port == params.device.port);
        Ok(table)
    }

    /// The path MTU to announce, and what there is to say about it.
    pub(crate) fn path_mtu(&self, params: &Params) -> Adjusted<PathMtu> {
        device::path_mtu(params.path.mtu, self.port.active_mtu, self.class())
    }
}

fn usable_port(context: &dyn Context, params: &Params) -> Result<PortAttributes, Failure> {
    let number = params.device.port;
    let port = context.query_port(number).map_err(|error| {
        refused(
            refuse(params.tool, &DeviceProblem::UnreadablePort(number)),
            format!("asking the device for its port: {error}; choose a port with -i"),
        )
    })?;
    if port.state != PortState::Active {
        let problem = DeviceProblem::PortNotActive(number, port.state as u8);
        return Err(refused(
            refuse(params.tool, &problem),
            context.trouble().unwrap_or_else(|| {
                format!(
                    "port {number} of {} is {:?}, it has to be active; bring the link up",
                    context.device_name(),
                    port.state
                )
            }),
        ));
    }
    Ok(port)
}

fn refused(resolved: Resolved, advice: String) -> Failure {
    Failure::Refused { resolved, advice }
}
