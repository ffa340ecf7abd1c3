//! Which key a memory window has now. The kernel wants it when a window is
//! bound anew; the consumer names the window by any of its keys.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The upper 24 bits of a key name the window, the low 8 bits change with each
/// binding.
fn index(key: u32) -> u32 {
    key >> 8
}

/// The windows of a context.
#[derive(Debug, Default)]
pub(crate) struct Windows(Mutex<HashMap<u32, u32>>);

impl Windows {
    /// A new window with its first key.
    pub(crate) fn enter(&self, key: u32) {
        self.keys().insert(index(key), key);
    }

    /// The window of this key is gone.
    pub(crate) fn remove(&self, key: u32) {
        self.keys().remove(&index(key));
    }

    /// The window gets a new key; returns the one it had, or `None` when there
    /// is no such window.
    pub(crate) fn bind(&self, window: u32, new: u32) -> Option<u32> {
        let mut keys = self.keys();
        keys.get_mut(&index(window))
            .map(|key| std::mem::replace(key, new))
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<u32, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn a_window_is_named_by_any_of_its_keys() {
        let windows = Windows::default();
        windows.enter(0x0800_0104);
        assert_eq!(windows.bind(0x0800_01ff, 0x0800_0105).unwrap(), 0x0800_0104);
        assert_eq!(windows.bind(0x0800_0104, 0x0800_0106).unwrap(), 0x0800_0105);
        assert_eq!(windows.bind(0x0800_0204, 0x0800_0205), None);
        windows.remove(0x0800_0100);
        assert_eq!(windows.bind(0x0800_0104, 0x0800_0107), None);
    }
}
