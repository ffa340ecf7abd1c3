//! The banner, the lines, and the sentences on stdout.

use crate::words::Verb;

/// The line between the parts of the screen.
pub const LINE: &str =
    "---------------------------------------------------------------------------------------\n";

/// The line with `--report-per-port`.
pub const LINE_PER_PORT: &str = "-------------------------------------------------------------------------------------------------------------------------------------------------------------------\n";

/// What the serving end shows before it listens.
pub const BANNER: &str = "\n************************************\n\
                          * Waiting for client to connect... *\n\
                          ************************************\n";

/// The peak is not measured.
pub const NO_PEAK: &str = " WARNING: BW peak won't be measured in this run.\n";

/// The polling batch is fixed.
pub const NO_DYNAMIC_POLLING: &str = "Disabling dynamic polling\n";

/// The polling batch was raised.
pub const POLL_BATCH_RAISED: &str = "Increasing CQE polling batch to 64\n";

/// The post list decides the CQ moderation.
pub const POST_LIST_MODERATION: &str =
    "Post List requested - CQ moderation will be the size of the post list\n";

/// On stderr, in red: the sender limits the rate, because the queue pair can't.
pub const SOFTWARE_RATE_LIMIT: &str =
    "\x1b[31mThe QP failed to accept HW rate limit, providing SW rate limit \x1b[0m\n";

/// Instead of a row, on the passive end of an endless run that was stopped.
pub const CLIENT_CLOSED: &str = " Client closed connection\n";

/// The user stopped an endless run.
pub const USER_STOPPED: &str = "\n User stopped traffic\n";

/// On stderr: the bandwidth limit (`-w`) was not reached.
pub const BELOW_BANDWIDTH_LIMIT: &str = "Error: BW result is below bw limit\n";

/// On stderr: the message rate limit (`-y`) was not reached.
pub const BELOW_RATE_LIMIT: &str = "Error: Msg rate  is below msg_rate limit\n";

/// On stderr: the message rate was below `-y`, and nobody asked for `-w`.
pub const RATE_LIMIT_ALONE: &str = "the message rate is below the limit of -y, which fails the \
                                    test only together with -w, as in stock perftest: give -w 0, too";

/// On stderr: warm-up messages would consume the receives of the test. `None`
/// for verbs that can be warmed up.
pub const fn no_warm_up(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::WriteImm => Some("Warm up not supported for WRITE_IMM verb.\nSkipping\n"),
        Verb::SendImm => Some("Warm up not supported for SEND_IMM verb.\nSkipping\n"),
        Verb::Send => Some("Warm up not supported for SEND verb.\nSkipping\n"),
        Verb::Write | Verb::Read | Verb::Atomic => None,
    }
}

/// Before the pause of `--wait_destroy`.
pub fn waiting_to_destroy(seconds: u32) -> String {
    format!(" Waiting {seconds} seconds before releasing resources...\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_lengths() {
        assert_eq!(LINE, format!("{}\n", "-".repeat(87)));
        assert_eq!(LINE_PER_PORT, format!("{}\n", "-".repeat(163)));
        assert_eq!(
            waiting_to_destroy(3),
            " Waiting 3 seconds before releasing resources...\n"
        );
    }
}
