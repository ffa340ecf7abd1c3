//! The control connection, whatever it runs over.

use crate::exchange::{Channel, Presence};
use crate::manager::Manager;

/// The control connection.
pub(crate) struct Line {
    /// For the dialogue; without one there is no peer to talk to.
    pub(crate) channel: Option<Box<dyn Channel>>,
    /// For whoever has to notice its end.
    pub(crate) presence: Presence,
    /// Who made it, if it wasn't TCP.
    pub(crate) manager: Option<Manager>,
}

impl Line {
    /// No connection (`--connectionless`).
    pub(crate) fn none() -> Self {
        Self {
            channel: None,
            presence: Presence::Unneeded,
            manager: None,
        }
    }
}
