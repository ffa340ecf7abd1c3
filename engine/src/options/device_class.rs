//! Adapters as stock perftest tells them apart, by PCI vendor and part.

use verbs_sys::PathMtu;

use crate::words::Connection;
use crate::words::{Measurement, Tool, Verb};

/// A family of adapters with defaults of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceClass {
    /// Not on stock perftest's list, as rxe, siw and the userspace NIC are
    /// not: no inline data.
    Unknown,
    /// ConnectX-3 and ConnectX-3 Pro.
    ConnectX3,
    /// Connect-IB, ConnectX-4 to 10, BlueField, virtual functions.
    Mlx5,
    /// AWS EFA.
    Efa,
    /// HiSilicon hns.
    Hns,
    /// Alibaba eRDMA.
    Erdma,
    /// QLogic E4.
    QlogicE4,
    /// Broadcom NetXtreme.
    NetXtreme,
    /// Intel, first generation.
    IntelGen1,
    /// Intel, all later ones.
    IntelGen2,
    /// Yunsilicon Andes.
    YunsiliconAndes,
    /// Yunsilicon Diamond.
    YunsiliconDiamond,
    /// NBL Leonis.
    NblLeonis,
    /// NBL DF200, Draco, RNIC400.
    NblDraco,
    /// Known, with the general defaults.
    Other,
}

impl DeviceClass {
    /// The class of a device, by `vendor_id` and `vendor_part_id` of its
    /// attributes.
    pub const fn of(vendor: u32, part: u32) -> DeviceClass {
        match vendor {
            // Chelsio
            5157 => match part >> 12 {
                4..=6 | 10 | 11 => DeviceClass::Other,
                _ => DeviceClass::Unknown,
            },
            // Intel
            0x8086 => match part {
                14289 => DeviceClass::IntelGen1,
                _ => DeviceClass::IntelGen2,
            },
            0x209b => match part {
                0x1000 => DeviceClass::Other,
                _ => DeviceClass::Unknown,
            },
            // Yunsilicon
            0x1f67 => match part {
                0x1021 | 0x1023 => DeviceClass::YunsiliconDiamond,
                _ => DeviceClass::YunsiliconAndes,
            },
            // NBL
            0x1f0f => match part {
                0x1047 | 0x1226 | 0x1227 | 0x3500..=0x350a | 0x1610 => DeviceClass::NblDraco,
                _ => DeviceClass::NblLeonis,
            },
            // Pensando
            0x1dd8 => DeviceClass::Other,
            _ => DeviceClass::of_part(part),
        }
    }

    /// Stock perftest looks at the part alone for all other vendors.
    const fn of_part(part: u32) -> DeviceClass {
        match part {
            4099 | 4100 | 4103 | 4104 => DeviceClass::ConnectX3,
            4113 | 4115..=4127 | 4129 | 4131 | 4133 | 4135 => DeviceClass::Mlx5,
            41682 | 41683 | 41686 | 41692 | 41695 => DeviceClass::Mlx5,
            61344..=61348 => DeviceClass::Efa,
            41506..=41510 | 41512 | 41519 => DeviceClass::Hns,
            4223 => DeviceClass::Erdma,
            5684 | 5700 | 5716 | 5718 | 5734 => DeviceClass::QlogicE4,
            5638
            | 5652
            | 5824
            | 5825
            | 5827
            | 5839
            | 5846..=5849
            | 5855
            | 5858
            | 5859
            | 5861
            | 5867
            | 5869
            | 5871..=5873
            | 5968
            | 5984
            | 6169
            | 55296
            | 55298
            | 55300 => DeviceClass::NetXtreme,
            // Skyhawk; QLogic AH and AHP; ConnectX and ConnectX-2
            1824 | 32880..=32883 | 32912 | 33136 | 33168 => DeviceClass::Other,
            25408 | 25418 | 25428 | 25448 => DeviceClass::Other,
            26418 | 26428 | 26438 | 26448 | 26458 | 26468 | 26478 => DeviceClass::Other,
            _ => DeviceClass::Unknown,
        }
    }

    /// True where stock perftest posts by `ibv_wr_*` and the header says
    /// `ibv_wr* API     : ON`, unless `--use_old_post_send` is given.
    pub const fn has_extended_post(self) -> bool {
        matches!(
            self,
            DeviceClass::Mlx5
                | DeviceClass::Efa
                | DeviceClass::Hns
                | DeviceClass::YunsiliconAndes
                | DeviceClass::YunsiliconDiamond
        )
    }

    /// The path MTU without `-m`: the active one, except that ConnectX-3 is
    /// slow with 4096.
    pub const fn default_mtu(self, active: PathMtu) -> PathMtu {
        match (self, active) {
            (DeviceClass::ConnectX3, PathMtu::Mtu4096) => PathMtu::Mtu2048,
            _ => active,
        }
    }

    /// Inline bytes without `-I`.
    pub const fn default_inline(self, tool: Tool, connection: Connection) -> u32 {
        let datagram = matches!(connection, Connection::Ud);
        match (self, tool.measurement) {
            (DeviceClass::Unknown, _) | (_, Measurement::Bandwidth) => 0,
            (DeviceClass::NetXtreme | DeviceClass::Erdma, _) => 96,
            (DeviceClass::Efa | DeviceClass::Hns | DeviceClass::YunsiliconAndes, _) => 32,
            (DeviceClass::QlogicE4, _) => 128,
            (DeviceClass::IntelGen1, _) => 48,
            (DeviceClass::IntelGen2, _) => 101,
            (DeviceClass::YunsiliconDiamond, _) => 64,
            (DeviceClass::NblLeonis, _) if datagram => 0,
            (DeviceClass::NblLeonis, _) => 32,
            (DeviceClass::NblDraco, _) if datagram => 434,
            (DeviceClass::NblDraco, _) => 465,
            (DeviceClass::ConnectX3 | DeviceClass::Mlx5 | DeviceClass::Other, _) => {
                match (tool.verb, connection) {
                    (Verb::Read | Verb::Atomic, _) => 0,
                    (_, Connection::Dc) => 150,
                    (Verb::Write | Verb::WriteImm, _) => 220,
                    (Verb::Send | Verb::SendImm, Connection::Ud) => 188,
                    (Verb::Send | Verb::SendImm, _) => 236,
                }
            }
        }
    }
}
