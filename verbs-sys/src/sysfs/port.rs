//! A port: state, link, GID table.

use std::path::{Path, PathBuf};

use super::attribute::{self, hex_groups};
use super::{SysfsError, entries};
use crate::{Gid, GidType, LinkLayer, PortState};

/// A port of a device.
#[derive(Debug, Clone)]
pub struct Port {
    number: u8,
    dir: PathBuf,
}

/// A used slot of a port's GID table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GidSlot {
    /// Index in the table.
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// Protocol; `IB/RoCE v1` of a port with Ethernet is [`GidType::RoceV1`],
    /// of another one [`GidType::Ib`].
    pub gid_type: GidType,
    /// Network interface that holds the address.
    pub netdev: Option<String>,
}

impl Port {
    pub(super) fn new(number: u8, dir: PathBuf) -> Self {
        Self { number, dir }
    }

    /// Its number, counted from 1.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Logical state.
    ///
    /// # Errors
    /// When `state` can't be read or doesn't hold one.
    pub fn state(&self) -> Result<PortState, SysfsError> {
        const EXPECTED: &str = "a port state such as \"4: ACTIVE\"";
        attribute::parsed(&self.dir.join("state"), EXPECTED, |text| {
            Some(match text.split_once(": ")?.0 {
                "0" => PortState::Nop,
                "1" => PortState::Down,
                "2" => PortState::Init,
                "3" => PortState::Armed,
                "4" => PortState::Active,
                "5" => PortState::ActiveDefer,
                _ => return None,
            })
        })
    }

    /// Physical state: 5 is link up, 3 disabled.
    ///
    /// # Errors
    /// When `phys_state` can't be read or doesn't begin with a number.
    pub fn phys_state(&self) -> Result<u8, SysfsError> {
        let path = self.dir.join("phys_state");
        attribute::numbered_word(&path, "a physical state such as \"5: LinkUp\"")
    }

    /// Link layer.
    ///
    /// # Errors
    /// When `link_layer` can't be read.
    pub fn link_layer(&self) -> Result<LinkLayer, SysfsError> {
        Ok(
            match attribute::text(&self.dir.join("link_layer"))?.as_str() {
                "InfiniBand" => LinkLayer::InfiniBand,
                "Ethernet" => LinkLayer::Ethernet,
                _ => LinkLayer::Unspecified,
            },
        )
    }

    /// The used slots of the GID table by index. The table is sparse: 1024
    /// slots with three in use are usual.
    ///
    /// # Errors
    /// When the table or a slot of it can't be read, or holds no GID.
    pub fn gids(&self) -> Result<Vec<GidSlot>, SysfsError> {
        let dir = self.dir.join("gids");
        let link_layer = self.link_layer()?;
        let mut gids = Vec::new();
        for name in entries(&dir)? {
            let Some(index) = name.to_str().and_then(|name| name.parse().ok()) else {
                return Err(SysfsError::Unexpected {
                    path: dir,
                    seen: name.to_string_lossy().into_owned(),
                    expected: "entries named by their index",
                });
            };
            gids.extend(self.slot(index, link_layer)?);
        }
        Ok(gids)
    }

    /// One slot of the GID table, `None` when it is empty.
    ///
    /// # Errors
    /// When it can't be read, or holds no GID.
    pub fn gid(&self, index: u32) -> Result<Option<GidSlot>, SysfsError> {
        self.slot(index, self.link_layer()?)
    }

    /// One entry of the P_Key table; `None` beyond its end.
    ///
    /// # Errors
    /// When it can't be read, or holds no P_Key.
    pub fn pkey(&self, index: u16) -> Result<Option<u16>, SysfsError> {
        let path = self.dir.join("pkeys").join(index.to_string());
        let pkey = attribute::parsed(&path, "a P_Key such as 0xffff", |text| {
            u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        });
        attribute::optional(pkey)
    }

    fn slot(&self, index: u32, link_layer: LinkLayer) -> Result<Option<GidSlot>, SysfsError> {
        let path = self.dir.join("gids").join(index.to_string());
        let gid = attribute::parsed(
            &path,
            "a GID: eight groups of four hexadecimal digits",
            |text| hex_groups(text).map(Gid),
        );
        let Some(gid) = unless_empty(gid)?.filter(|gid| *gid != Gid::ZERO) else {
            return Ok(None);
        };
        // The address may go away after its GID has been read.
        let Some(gid_type) = unless_empty(self.gid_type(index, link_layer))? else {
            return Ok(None);
        };
        let netdev = self.attrs("ndevs", index);
        Ok(Some(GidSlot {
            index,
            gid,
            gid_type,
            netdev: unless_empty(attribute::text(&netdev))?.filter(|name| !name.is_empty()),
        }))
    }

    fn gid_type(&self, index: u32, link_layer: LinkLayer) -> Result<GidType, SysfsError> {
        const EXPECTED: &str = "\"IB/RoCE v1\" or \"RoCE v2\"";
        attribute::parsed(&self.attrs("types", index), EXPECTED, |text| match text {
            "IB/RoCE v1" | "RoCE v1" if link_layer == LinkLayer::Ethernet => Some(GidType::RoceV1),
            "IB/RoCE v1" | "IB" => Some(GidType::Ib),
            "RoCE v2" => Some(GidType::RoceV2),
            _ => None,
        })
    }

    fn attrs(&self, kind: &str, index: u32) -> PathBuf {
        self.dir
            .join("gid_attrs")
            .join(kind)
            .join(index.to_string())
    }

    /// Name of the interface of the first slot that has one. Slot 0 is the
    /// default GID of RoCE; only when it is gone are the others looked at.
    pub(super) fn netdev(&self) -> Result<Option<String>, SysfsError> {
        if let Some(slot) = self.gid(0)? {
            return Ok(slot.netdev);
        }
        Ok(self.gids()?.into_iter().find_map(|slot| slot.netdev))
    }
}

/// `None` for an empty slot, or one that isn't there.
fn unless_empty<T>(read: Result<T, SysfsError>) -> Result<Option<T>, SysfsError> {
    match read {
        Err(error) if error.is_empty_slot() => Ok(None),
        other => attribute::optional(other),
    }
}
