//! What a device, its ports and their GID tables say about themselves.

use std::io;

use zerocopy::IntoBytes;

use super::command::{Attribute, Value, Write};
use super::{Uverbs, failed, is_missing, odd};
use crate::uapi::ioctl::{GidEntry as RawGidEntry, Method, QueryPortRespEx, gid_type};
use crate::uapi::user_verbs::{
    AnswerOnly, ExQueryDevice, ExQueryDeviceResp, QueryDeviceResp, QueryPort, command as number,
};
use crate::{
    AtomicCapability, DeviceAttributes, ExtendedAttributes, Gid, GidEntry, GidType, LinkLayer,
    OdpCapabilities, PathMtu, PortAttributes, PortState, Result, RssCapabilities,
    TagMatchingCapabilities, VerbsError,
};

/// GIDs can be had from sysfs alone.
const NO_GID_COMMANDS: VerbsError = VerbsError::Unsupported {
    what: "reading the GID table by command",
};

impl Uverbs {
    /// Identity and limits of the device.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    pub(crate) fn query_device(&self) -> Result<DeviceAttributes> {
        let request = ExQueryDevice::default();
        let mut answer = ExQueryDeviceResp::default();
        let extended = self.by_write(Write::new(
            number::EX_QUERY_DEVICE,
            request.as_bytes(),
            answer.as_mut_bytes(),
        ));
        let queried = match extended {
            Err(error) if is_missing(&error) => self.by_write(Write::new(
                number::QUERY_DEVICE,
                AnswerOnly::default().as_bytes(),
                answer.base.as_mut_bytes(),
            )),
            Ok(()) if (answer.response_length as usize) < size_of::<QueryDeviceResp>() => {
                let least = size_of::<QueryDeviceResp>();
                Err(odd("a length of", answer.response_length, least))
            }
            queried => queried,
        };
        queried
            .and_then(|()| {
                Ok(DeviceAttributes {
                    extended: ExtendedAttributes {
                        num_comp_vectors: self.comp_vectors,
                        ..extended_attributes(&answer)
                    },
                    ..device_attributes(&answer.base)?
                })
            })
            .map_err(|error| failed("query the device", error))
    }

    /// Limits of the device in the words of a message.
    pub(super) fn limits(&self, words: impl FnOnce(&DeviceAttributes) -> String) -> String {
        match self.query_device() {
            Ok(device) => words(&device),
            Err(error) => format!("what the device allows ({error})"),
        }
    }

    /// State and limits of a port.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such port.
    pub(crate) fn query_port(&self, port: u8) -> Result<PortAttributes> {
        let mut answer = QueryPortRespEx::default();
        let queried = self.by_attributes(
            Method::QUERY_PORT,
            &mut [
                Attribute::new(0, Value::Constant(port.into())),
                Attribute::output(1, answer.as_mut_bytes()),
            ],
        );
        let queried = match queried {
            Err(error) if is_missing(&error) => {
                let request = QueryPort {
                    port_num: port,
                    ..QueryPort::default()
                };
                self.by_write(Write::new(
                    number::QUERY_PORT,
                    request.as_bytes(),
                    answer.legacy.as_mut_bytes(),
                ))
            }
            queried => queried,
        };
        match queried.and_then(|()| port_attributes(&answer)) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Err(VerbsError::InvalidArgument {
                    what: "port",
                    seen: port.to_string(),
                    expected: "one of the device's, which count from 1".to_owned(),
                })
            }
            queried => queried.map_err(|error| failed(format!("query port {port}"), error)),
        }
    }

    /// One entry of a port's GID table.
    ///
    /// # Errors
    /// `NoEntry` for an empty entry, `InvalidArgument` beyond the table,
    /// `Unsupported` when the kernel has no such command.
    pub(crate) fn query_gid(&self, port: u8, index: u32) -> Result<GidEntry> {
        let mut entry = RawGidEntry::default();
        let queried = self.by_attributes(
            Method::QUERY_GID_ENTRY,
            &mut [
                Attribute::new(0, Value::Constant(port.into())),
                Attribute::new(1, Value::Constant(index.into())),
                Attribute::new(2, Value::Number32(0)),
                Attribute::output(3, entry.as_mut_bytes()),
            ],
        );
        match queried.and_then(|()| gid_entry(&entry)) {
            Err(error) if is_missing(&error) => Err(NO_GID_COMMANDS),
            Err(error) if error.raw_os_error() == Some(libc::ENODATA) => {
                Err(VerbsError::NoEntry { what: "GID", index })
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Err(VerbsError::InvalidArgument {
                    what: "GID index",
                    seen: index.to_string(),
                    expected: format!("one inside the table of port {port}"),
                })
            }
            queried => queried.map_err(|error| failed(format!("query GID {index}"), error)),
        }
    }

    /// The valid entries of all GID tables, which have room for `capacity` in all.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly; `Unsupported` when it has no
    /// such command.
    pub(crate) fn query_gid_table(&self, capacity: usize) -> Result<Vec<GidEntry>> {
        if capacity == 0 {
            return Ok(Vec::new());
        }
        let mut entries = vec![RawGidEntry::default(); capacity];
        let mut count = 0_u64;
        let queried = self.by_attributes(
            Method::QUERY_GID_TABLE,
            &mut [
                Attribute::new(0, Value::Constant(size_of::<RawGidEntry>() as u64)),
                Attribute::new(1, Value::Number32(0)),
                Attribute::output(2, entries.as_mut_bytes()),
                Attribute::output(3, count.as_mut_bytes()),
            ],
        );
        if queried.as_ref().is_err_and(is_missing) {
            return Err(NO_GID_COMMANDS);
        }
        let valid = queried.and_then(|()| {
            usize::try_from(count)
                .ok()
                .and_then(|count| entries.get(..count))
                .ok_or_else(|| odd("a number of GIDs of", count, format!("at most {capacity}")))?
                .iter()
                .map(gid_entry)
                .collect()
        });
        valid.map_err(|error| failed("query the GID table", error))
    }
}

fn device_attributes(raw: &QueryDeviceResp) -> io::Result<DeviceAttributes> {
    let atomic_cap = match raw.atomic_cap {
        0 => AtomicCapability::None,
        1 => AtomicCapability::Hca,
        2 => AtomicCapability::Global,
        other => return Err(odd("atomic capability", other, "0 to 2")),
    };
    // As the providers of the software drivers print it.
    let version = raw.fw_ver;
    let fw_ver = format!(
        "{}.{}.{}",
        version >> 32 & 0xffff,
        version >> 16 & 0xffff,
        version & 0xffff
    );
    Ok(DeviceAttributes {
        fw_ver,
        node_guid: u64::from_be_bytes(raw.node_guid),
        sys_image_guid: u64::from_be_bytes(raw.sys_image_guid),
        max_mr_size: raw.max_mr_size,
        page_size_cap: raw.page_size_cap,
        vendor_id: raw.vendor_id,
        vendor_part_id: raw.vendor_part_id,
        hw_ver: raw.hw_ver,
        max_qp: raw.max_qp,
        max_qp_wr: raw.max_qp_wr,
        device_cap_flags: raw.device_cap_flags,
        max_sge: raw.max_sge,
        max_sge_rd: raw.max_sge_rd,
        max_cq: raw.max_cq,
        max_cqe: raw.max_cqe,
        max_mr: raw.max_mr,
        max_pd: raw.max_pd,
        max_qp_rd_atom: raw.max_qp_rd_atom,
        max_res_rd_atom: raw.max_res_rd_atom,
        max_qp_init_rd_atom: raw.max_qp_init_rd_atom,
        atomic_cap,
        max_mw: raw.max_mw,
        max_mcast_grp: raw.max_mcast_grp,
        max_mcast_qp_attach: raw.max_mcast_qp_attach,
        max_total_mcast_qp_attach: raw.max_total_mcast_qp_attach,
        max_ah: raw.max_ah,
        max_srq: raw.max_srq,
        max_srq_wr: raw.max_srq_wr,
        max_srq_sge: raw.max_srq_sge,
        max_pkeys: raw.max_pkeys,
        local_ca_ack_delay: raw.local_ca_ack_delay,
        phys_port_cnt: raw.phys_port_cnt,
        max_ee_rd_atom: raw.max_ee_rd_atom,
        max_ee_init_rd_atom: raw.max_ee_init_rd_atom,
        max_ee: raw.max_ee,
        max_rdd: raw.max_rdd,
        max_raw_ipv6_qp: raw.max_raw_ipv6_qp,
        max_raw_ethy_qp: raw.max_raw_ethy_qp,
        max_fmr: raw.max_fmr,
        max_map_per_fmr: raw.max_map_per_fmr,
        extended: ExtendedAttributes::default(),
    })
}

/// What an older kernel doesn't answer stays zero.
fn extended_attributes(raw: &ExQueryDeviceResp) -> ExtendedAttributes {
    let [qp_types, tables, table_size, _] = raw.rss_caps;
    let [max_rndv_hdr_size, max_num_tags, flags, max_ops, max_sge, _] = raw.tm_caps;
    let [moderation, _] = raw.cq_moderation;
    // Two fields of 16 bits.
    let [count, period] = zerocopy::transmute!(moderation);
    ExtendedAttributes {
        odp: OdpCapabilities {
            general: raw.odp_general_caps,
            rc: raw.odp_rc,
            uc: raw.odp_uc,
            ud: raw.odp_ud,
            xrc: raw.odp_xrc,
        },
        completion_timestamp_mask: raw.timestamp_mask,
        hca_core_clock: raw.hca_core_clock,
        device_cap_flags_ex: raw.device_cap_flags_ex,
        rss: RssCapabilities {
            qp_types,
            max_rwq_indirection_tables: tables,
            max_rwq_indirection_table_size: table_size,
            ..RssCapabilities::default()
        },
        max_wq_type_rq: raw.max_wq_type_rq,
        raw_packet_caps: raw.raw_packet_caps,
        tag_matching: TagMatchingCapabilities {
            max_rndv_hdr_size,
            max_num_tags,
            flags,
            max_ops,
            max_sge,
        },
        max_cq_moderation_count: count,
        max_cq_moderation_period: period,
        max_dm_size: raw.max_dm_size,
        ..ExtendedAttributes::default()
    }
}

fn port_attributes(answer: &QueryPortRespEx) -> io::Result<PortAttributes> {
    let raw = &answer.legacy;
    let mtu = |what, code| PathMtu::from_code(code).ok_or_else(|| odd(what, code, "1 to 5"));
    Ok(PortAttributes {
        state: match raw.state {
            0 => PortState::Nop,
            1 => PortState::Down,
            2 => PortState::Init,
            3 => PortState::Armed,
            4 => PortState::Active,
            5 => PortState::ActiveDefer,
            other => return Err(odd("port state", other, "0 to 5")),
        },
        max_mtu: mtu("largest MTU", raw.max_mtu)?,
        active_mtu: mtu("active MTU", raw.active_mtu)?,
        gid_tbl_len: raw.gid_tbl_len,
        pkey_tbl_len: raw.pkey_tbl_len,
        port_cap_flags: raw.port_cap_flags,
        max_msg_sz: raw.max_msg_sz,
        bad_pkey_cntr: raw.bad_pkey_cntr,
        qkey_viol_cntr: raw.qkey_viol_cntr,
        lid: raw.lid,
        phys_state: raw.phys_state,
        link_layer: match raw.link_layer {
            1 => LinkLayer::InfiniBand,
            2 => LinkLayer::Ethernet,
            _ => LinkLayer::Unspecified,
        },
        sm_lid: raw.sm_lid,
        sm_sl: raw.sm_sl,
        lmc: raw.lmc,
        max_vl_num: raw.max_vl_num,
        subnet_timeout: raw.subnet_timeout,
        init_type_reply: raw.init_type_reply,
        active_width: raw.active_width,
        active_speed: raw.active_speed,
        port_cap_flags2: answer.port_cap_flags2,
    })
}

fn gid_entry(raw: &RawGidEntry) -> io::Result<GidEntry> {
    Ok(GidEntry {
        gid: Gid(raw.gid),
        index: raw.gid_index,
        port: u8::try_from(raw.port_num).map_err(|_| odd("port", raw.port_num, "at most 255"))?,
        gid_type: match raw.gid_type {
            gid_type::IB => GidType::Ib,
            gid_type::ROCE_V1 => GidType::RoceV1,
            gid_type::ROCE_V2 => GidType::RoceV2,
            other => return Err(odd("GID type", other, "0 to 2")),
        },
        netdev_index: raw.netdev_ifindex,
    })
}
