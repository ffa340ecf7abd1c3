//! Recorded screens of `ibv_devices` and `ibv_devinfo`. What the screens say
//! about a device is put into one, which has to be printed as recorded.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use ironverbs::inventory::{Report, System, ibv_devices, ibv_devinfo};
use verbs_sys::nldev::attribute::{DEV_INDEX, DEV_NAME, DEV_NODE_TYPE, NODE_GUID, PORT_INDEX};
use verbs_sys::{
    AtomicCapability, Context, DeviceAttributes, ExtendedAttributes, Gid, GidEntry, GidType,
    LinkLayer, PathMtu, PortAttributes, PortState, VerbsError,
};

use crate::host::Host;
use crate::netlink::{Answer, Kernel, Node};
use crate::record::{Record, records};
use crate::verbs::Told;

fn assert_printed(record: &Record, report: &Report) {
    assert_eq!(report.stdout, record.stdout, "{} stdout", record.file);
    assert_eq!(report.stderr, record.stderr, "{} stderr", record.file);
    assert_eq!(report.code, record.code, "{} exit code", record.file);
}

#[test]
fn golden_ibv_devices_lists_as_recorded() {
    for record in records("ibv_devices") {
        let devices: Vec<(String, u64)> = record
            .stdout
            .lines()
            .skip(2)
            .map(|line| {
                let (name, guid) = line.split_once('\t').unwrap();
                let guid = u64::from_str_radix(guid, 16).unwrap();
                (name.trim().to_owned(), guid)
            })
            .collect();
        assert!(!devices.is_empty(), "{}", record.file);
        let host = Host::new();
        for (index, (name, guid)) in devices.iter().enumerate() {
            host.add_device(index, name, *guid, "1: CA");
        }
        let system = system(&host, devices, HashMap::new());
        let report = ibv_devices(record.program(), record.arguments(), &system);
        assert_printed(&record, &report);
    }
}

#[test]
fn golden_ibv_devinfo_prints_as_recorded() {
    let records = records("ibv_devinfo");
    let mut devices: Vec<(String, u64)> = Vec::new();
    let mut told: HashMap<String, (usize, Told)> = HashMap::new();
    let host = Host::new();
    for text in records
        .iter()
        .flat_map(|record| record.stdout.split("hca_id:\t").skip(1))
    {
        let device = read(text);
        let (name, guid) = (device.name.clone(), device.device.node_guid);
        if devices.iter().all(|(known, _)| *known != name) {
            let is_iwarp = text.contains("iWARP (1)");
            let node_type = if is_iwarp { "4: RNIC" } else { "1: CA" };
            host.add_device(devices.len(), &name, guid, node_type);
            devices.push((name.clone(), guid));
        }
        // The longest text tells most.
        if told
            .get(&name)
            .is_none_or(|(length, _)| *length < text.len())
        {
            told.insert(name, (text.len(), device));
        }
    }
    assert!(records.is_empty() || !devices.is_empty());
    let told: HashMap<String, Told> = told
        .into_iter()
        .map(|(name, (_, device))| (name, device))
        .collect();
    let system = system(&host, devices, told);
    for record in &records {
        let report = ibv_devinfo(record.program(), record.arguments(), &system);
        assert_printed(record, &report);
    }
}

/// A host with these devices, in this order.
fn system(
    host: &Host,
    devices: Vec<(String, u64)>,
    told: HashMap<String, Told>,
) -> System<'static> {
    let sysfs = host.sysfs();
    let node_types: Vec<u8> = devices
        .iter()
        .map(|(name, _)| {
            let node_type = sysfs.device(name).unwrap().node_type().unwrap();
            if node_type == verbs_sys::sysfs::NodeType::Rnic {
                4
            } else {
                1
            }
        })
        .collect();
    let kernel = Kernel::new(move |_| {
        let all = devices.iter().zip(&node_types).zip(0..);
        let objects = all.map(|(((name, guid), node_type), index)| {
            vec![
                Node::u32(DEV_INDEX, index),
                Node::text(DEV_NAME, name),
                Node::u32(PORT_INDEX, 1),
                Node::u64(NODE_GUID, *guid),
                Node::u8(DEV_NODE_TYPE, *node_type),
            ]
        });
        Answer::Objects(objects.collect())
    });
    System {
        sysfs: host.sysfs(),
        proc: host.proc(),
        netlink: Box::new(move || Ok(Box::new(kernel.clone()))),
        open: Box::new(move |name| match told.get(name) {
            Some(device) => Ok(Arc::new(device.clone()) as Arc<dyn Context>),
            None => Err(VerbsError::Unsupported { what: "opening" }),
        }),
        userspace: Ok(Vec::new()),
    }
}

/// A device from what stands behind `hca_id:`.
fn read(text: &str) -> Told {
    let mut values: HashMap<&str, &str> = HashMap::new();
    for line in text.lines().skip(1) {
        if let Some((key, value)) = line.split_once(':') {
            values.entry(key.trim()).or_insert(value.trim());
        }
    }
    let word = |key: &str| values.get(key).copied().unwrap_or("0");
    // `PORT_ACTIVE (4)`: the number in brackets; else the number itself.
    let number = |key: &str| {
        let word = word(key);
        let inner = word
            .split_once('(')
            .map(|(_, inner)| inner.trim_end_matches(')'));
        let digits = inner.unwrap_or(word).trim_end_matches("kbps");
        match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => digits.parse().unwrap(),
        }
    };
    let guid = |key: &str| u64::from_str_radix(&word(key).replace(':', ""), 16).unwrap();
    let small = |key: &str| number(key) as u32;
    let device = DeviceAttributes {
        fw_ver: word("fw_ver").to_owned(),
        node_guid: guid("node_guid"),
        sys_image_guid: guid("sys_image_guid"),
        max_mr_size: number("max_mr_size"),
        page_size_cap: number("page_size_cap"),
        vendor_id: small("vendor_id"),
        vendor_part_id: small("vendor_part_id"),
        hw_ver: small("hw_ver"),
        max_qp: small("max_qp"),
        max_qp_wr: small("max_qp_wr"),
        device_cap_flags: small("device_cap_flags"),
        max_sge: small("max_sge"),
        max_sge_rd: small("max_sge_rd"),
        max_cq: small("max_cq"),
        max_cqe: small("max_cqe"),
        max_mr: small("max_mr"),
        max_pd: small("max_pd"),
        max_qp_rd_atom: small("max_qp_rd_atom"),
        max_res_rd_atom: small("max_res_rd_atom"),
        max_qp_init_rd_atom: small("max_qp_init_rd_atom"),
        atomic_cap: match number("atomic_cap") {
            0 => AtomicCapability::None,
            1 => AtomicCapability::Hca,
            _ => AtomicCapability::Global,
        },
        max_mw: small("max_mw"),
        max_mcast_grp: small("max_mcast_grp"),
        max_mcast_qp_attach: small("max_mcast_qp_attach"),
        max_total_mcast_qp_attach: small("max_total_mcast_qp_attach"),
        max_ah: small("max_ah"),
        max_srq: small("max_srq"),
        max_srq_wr: small("max_srq_wr"),
        max_srq_sge: small("max_srq_sge"),
        max_pkeys: number("max_pkeys") as u16,
        local_ca_ack_delay: number("local_ca_ack_delay") as u8,
        phys_port_cnt: number("phys_port_cnt") as u8,
        extended: ExtendedAttributes {
            device_cap_flags_ex: number("device_cap_flags_ex"),
            num_comp_vectors: small("num_comp_vectors"),
            ..ExtendedAttributes::default()
        },
        ..DeviceAttributes::default()
    };
    let mtu = |key: &str| PathMtu::from_code(number(key) as u8).unwrap();
    let port = PortAttributes {
        state: match number("state") {
            1 => PortState::Down,
            4 => PortState::Active,
            other => panic!("port state {other}"),
        },
        max_mtu: mtu("max_mtu"),
        active_mtu: mtu("active_mtu"),
        gid_tbl_len: small("gid_tbl_len"),
        pkey_tbl_len: number("pkey_tbl_len") as u16,
        port_cap_flags: small("port_cap_flags"),
        max_msg_sz: small("max_msg_sz"),
        bad_pkey_cntr: small("bad_pkey_cntr"),
        qkey_viol_cntr: small("qkey_viol_cntr"),
        lid: number("port_lid") as u16,
        phys_state: number("phys_state") as u8,
        link_layer: match word("link_layer") {
            "Ethernet" => LinkLayer::Ethernet,
            other => panic!("link layer {other}"),
        },
        sm_lid: number("sm_lid") as u16,
        sm_sl: number("sm_sl") as u8,
        lmc: number("port_lmc") as u8,
        max_vl_num: number("max_vl_num") as u8,
        subnet_timeout: number("subnet_timeout") as u8,
        init_type_reply: number("init_type_reply") as u8,
        active_width: number("active_width") as u8,
        active_speed: number("active_speed") as u8,
        port_cap_flags2: number("port_cap_flags2") as u16,
    };
    Told {
        name: text.lines().next().unwrap().to_owned(),
        device,
        port,
        gids: gids(text),
    }
}

fn gids(text: &str) -> Vec<GidEntry> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("GID["));
    lines
        .map(|line| {
            let (index, rest) = line.split_once("]:").unwrap();
            let (address, protocol) = rest.trim().split_once(", ").unwrap();
            GidEntry {
                gid: Gid::from(address.parse::<Ipv6Addr>().unwrap()),
                index: index.trim().parse().unwrap(),
                port: 1,
                gid_type: match protocol {
                    "RoCE v2" => GidType::RoceV2,
                    _ => GidType::RoceV1,
                },
                netdev_index: 1,
            }
        })
        .collect()
}
