//! Processor use of the whole host, for `--cpu_util`.

use std::path::Path;

/// What the host's processors did since boot, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user mode (field 1 of the `cpu` line of /proc/stat).
    pub user: u64,
    /// Idle (field 4).
    pub idle: u64,
}

/// /proc/stat cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CpuTimesError {
    /// The kernel refused.
    #[error("cannot read /proc/stat: {0}; --cpu_util needs a mounted /proc")]
    Read(#[from] std::io::Error),
    /// There is no line as the kernel writes it.
    #[error("/proc/stat has no readable \"cpu\" line; --cpu_util needs the kernel's own /proc")]
    Parse,
}

impl CpuTimes {
    /// The times now.
    ///
    /// # Errors
    /// [`CpuTimesError`] when /proc/stat is missing or strange.
    pub fn now() -> Result<Self, CpuTimesError> {
        let text = std::fs::read_to_string(Path::new("/proc/stat"))?;
        Self::parse(&text).ok_or(CpuTimesError::Parse)
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let mut fields = line.split_ascii_whitespace();
        let user = fields.next()?.parse().ok()?;
        let idle = fields.nth(2)?.parse().ok()?;
        Some(Self { user, idle })
    }

    /// Stock's utilisation in percent since `earlier`: user / (user + idle),
    /// 0 when no tick passed. System time does not count.
    pub fn utilisation_since(&self, earlier: &Self) -> f32 {
        let user = self.user.saturating_sub(earlier.user);
        let idle = self.idle.saturating_sub(earlier.idle);
        if user + idle == 0 {
            return 0.0;
        }
        user as f32 / (user + idle) as f32 * 100.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn takes_user_and_idle_from_the_summary_line() {
        let stat = "cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0\n\
                    cpu0 1393280 32966 572056 13343292 6130 0 17875 0 23933 0\n";
        assert_eq!(
            CpuTimes::parse(stat),
            Some(CpuTimes {
                user: 10_132_153,
                idle: 46_828_483
            })
        );
        assert_eq!(CpuTimes::parse("cpu0 1 2 3 4\n"), None);
        assert_eq!(CpuTimes::parse("cpu  1 2 3\n"), None);
        assert!(CpuTimes::now().unwrap().idle > 0);
    }

    #[test]
    fn computes_the_share_of_user_time() {
        let start = CpuTimes {
            user: 100,
            idle: 1000,
        };
        let quarter = CpuTimes {
            user: 150,
            idle: 1150,
        };
        assert_eq!(quarter.utilisation_since(&start), 25.0);
        assert_eq!(start.utilisation_since(&start), 0.0);
    }
}
