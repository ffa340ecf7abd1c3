//! How a run gets on, now and then (`--interval`). Lines go to stderr, where no
//! script takes them for rows. They come from the watchdog's looks, so that the
//! loops have nothing to do for them.

use std::time::Duration;

use crate::options::Params;
use crate::screen::{ErrorStream, ScreenError};
use crate::stats::{Moment, Volume};
use crate::words::Tool;

/// Shows the messages of the last interval.
pub(crate) struct Live {
    tool: Tool,
    stream: ErrorStream,
    every: Duration,
    gbits: bool,
    /// Bytes of a message.
    size: u64,
    began: Moment,
    /// When the last line was shown, and the messages until then.
    last: Moment,
    shown: u64,
}

impl Live {
    /// `None` unless the user wants such lines.
    pub(crate) fn new(params: &Params, stream: ErrorStream) -> Option<Self> {
        let every = params.report.interval?;
        let now = Moment::now();
        Some(Self {
            tool: params.tool,
            stream,
            every,
            gbits: params.report.gbits,
            size: 0,
            began: now,
            last: now,
            shown: 0,
        })
    }

    /// The next run has messages of so many bytes.
    pub(super) fn announce(&mut self, size: u32) {
        self.size = size.into();
    }

    /// The run begins.
    pub(super) fn start(&mut self, now: Moment) {
        (self.began, self.last, self.shown) = (now, now, 0);
    }

    /// So many messages have gone through since the run began.
    pub(super) fn look(&mut self, now: Moment, messages: u64) -> Result<(), ScreenError> {
        let passed = now - self.last;
        if passed < self.every {
            return Ok(());
        }
        let text = self.line(now - self.began, passed, messages);
        self.last = now;
        self.shown = messages;
        self.stream.write(&text)
    }

    fn line(&self, since_start: Duration, passed: Duration, messages: u64) -> String {
        let volume = Volume {
            size: self.size,
            messages: messages.saturating_sub(self.shown),
            elapsed: u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX),
        };
        let what = match (self.tool.is_bandwidth(), volume.messages) {
            (true, _) => format!(
                "{:.2} {}, {:.6} Mpps",
                volume.average(self.gbits),
                if self.gbits { "Gb/sec" } else { "MiB/sec" },
                volume.message_rate()
            ),
            (false, 0) => "none came".to_owned(),
            (false, _) => {
                let legs = if self.tool.verb.is_round_trip() {
                    1.0
                } else {
                    2.0
                };
                let average = 1.0 / volume.message_rate() / legs;
                format!("t_avg {average:.2} usec")
            }
        };
        format!(
            "{}: {:.1} s: {} messages of {} bytes: {what}\n",
            self.tool,
            since_start.as_secs_f64(),
            volume.messages,
            self.size
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::options::{READ_LAT, WRITE_BW, WRITE_LAT, from_command_line};

    fn live(tool: Tool, line: &str) -> Option<Live> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let resolved = from_command_line(tool, tool.name(), &args, 1);
        Live::new(resolved.params().unwrap(), ErrorStream::sink())
    }

    #[test]
    fn lines_are_of_the_interval_and_not_of_the_run() {
        let second = Duration::from_secs(1);
        let mut bandwidth = live(WRITE_BW, "--interval=1").unwrap();
        bandwidth.announce(1 << 20);
        bandwidth.shown = 1000;
        assert_eq!(
            bandwidth.line(2 * second, second, 1500),
            "ib_write_bw: 2.0 s: 500 messages of 1048576 bytes: 500.00 MiB/sec, 0.000500 Mpps\n"
        );
        for (tool, average) in [(WRITE_LAT, "1.00"), (READ_LAT, "2.00")] {
            let mut latency = live(tool, "--interval=0.5").unwrap();
            latency.announce(2);
            assert_eq!(
                latency.line(second, second, 500_000),
                format!("{tool}: 1.0 s: 500000 messages of 2 bytes: t_avg {average} usec\n")
            );
            assert!(latency.line(second, second, 0).ends_with("none came\n"));
        }
        assert!(live(WRITE_BW, "").is_none());
    }

    #[test]
    fn a_line_comes_when_its_time_has_come() {
        let mut live = live(WRITE_BW, "--interval=1").unwrap();
        let start = Moment::now();
        live.start(start);
        live.look(start + Duration::from_millis(900), 5).unwrap();
        assert_eq!(live.shown, 0);
        live.look(start + Duration::from_millis(1010), 9).unwrap();
        assert_eq!(live.shown, 9);
    }
}
