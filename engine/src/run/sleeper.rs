//! What a loop does while there is nothing to do: it spins, or with `-e`
//! sleeps until a completion queue notifies.

use std::sync::Arc;
use std::time::Duration;

use verbs_sys::CompletionChannel;

use super::error::RunError;
use super::watchdog::Watchdog;

/// Longest sleep: the watchdog wants to look around now and then.
const NAP: Duration = Duration::from_millis(100);

/// Sleeps, if there is a channel to wake it.
pub(crate) struct Sleeper {
    channel: Option<Arc<dyn CompletionChannel>>,
    armed: bool,
}

impl Sleeper {
    /// Sleeps on this channel, or never.
    pub(crate) fn new(channel: Option<Arc<dyn CompletionChannel>>) -> Self {
        Self {
            channel,
            armed: false,
        }
    }

    /// The loop has found nothing to do in a turn. `arm` asks all its queues
    /// for a notification: the first time only that, since what completed
    /// before doesn't notify and the loop has to look once more.
    #[inline]
    pub(crate) fn idle(
        &mut self,
        watchdog: &mut Watchdog,
        arm: impl FnOnce(),
    ) -> Result<(), RunError> {
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.armed, true) {
            arm();
            return Ok(());
        }
        channel.wait(Some(NAP)).map_err(RunError::Wait)?;
        self.armed = false;
        watchdog.slept();
        Ok(())
    }
}
