//! Whether this host's clocks deserve trust: the clock source that all stamps
//! come from, and the frequency of the processor that takes them.

use std::fs;
use std::path::{Path, PathBuf};

/// Clock sources whose reading takes a microsecond or more, or that tick
/// coarsely. The kernel falls back to them when it finds the processor's
/// counter unstable.
const SLOW_SOURCES: &[&str] = &["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

/// A change of the frequency by more than this share is worth a note.
const TOLERANCE: f64 = 0.1;

/// Looks at the clocks before and after a measurement.
#[derive(Debug, Clone)]
pub struct Steadiness {
    /// `/sys/devices/system`.
    system: PathBuf,
    watch_frequency: bool,
    /// kHz before the measurement, and which processor's.
    before: Option<(usize, f64)>,
    told: bool,
}

impl Steadiness {
    /// For this host. `watch_frequency`: off with `-F`.
    pub fn of_host(watch_frequency: bool) -> Self {
        Self::below("/sys/devices/system".into(), watch_frequency)
    }

    fn below(system: PathBuf, watch_frequency: bool) -> Self {
        Self {
            system,
            watch_frequency,
            before: None,
            told: false,
        }
    }

    /// A measurement begins on this processor.
    pub fn begin(&mut self, cpu: Option<usize>) {
        let cpu = cpu.filter(|_| self.watch_frequency);
        self.before = cpu.and_then(|cpu| Some((cpu, self.frequency(cpu)?)));
    }

    /// It has ended: what is to be said about it, the first time.
    pub fn end(&mut self) -> Vec<String> {
        let after = self.before.and_then(|(cpu, _)| self.frequency(cpu));
        let notes = [
            slow_source(&self.system),
            moved(self.before, after).map(|(before, after)| {
                format!(
                    "the processor went from {before:.0} to {after:.0} MHz during the \
                     measurement, so runs differ; the governor 'performance' keeps it, \
                     -F silences this"
                )
            }),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        match self.told {
            true => Vec::new(),
            false => {
                self.told = !notes.is_empty();
                notes
            }
        }
    }

    /// kHz.
    fn frequency(&self, cpu: usize) -> Option<f64> {
        let file = format!("cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let text = fs::read_to_string(self.system.join(file)).ok()?;
        text.trim().parse().ok()
    }
}

fn slow_source(system: &Path) -> Option<String> {
    let file = system.join("clocksource/clocksource0/current_clocksource");
    let source = fs::read_to_string(file).ok()?;
    let source = source.trim();
    SLOW_SOURCES.contains(&source).then(|| {
        format!(
            "the kernel's clock source is {source}: a time stamp takes about a microsecond, and \
             is part of what is measured; see the kernel's log for why it gave up the \
             processor's counter"
        )
    })
}

/// From and to, in MHz.
fn moved(before: Option<(usize, f64)>, after: Option<f64>) -> Option<(f64, f64)> {
    let ((_, before), after) = before.zip(after)?;
    let change = (after - before).abs() / before.max(1.0);
    (change > TOLERANCE).then_some((before / 1000.0, after / 1000.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    /// A `/sys/devices/system` with this clock source and frequency.
    struct System(PathBuf);

    impl System {
        fn new(name: &str, source: &str) -> Self {
            let folder = format!("ironverbs-{name}-{}", std::process::id());
            let system = Self(std::env::temp_dir().join(folder));
            system.write("clocksource/clocksource0/current_clocksource", source);
            system
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn frequency(&self, khz: u32) {
            self.write("cpu/cpu3/cpufreq/scaling_cur_freq", &khz.to_string());
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_slow_clock_source_is_told_once() {
        let system = System::new("hpet", "hpet");
        let mut steadiness = Steadiness::below(system.0.clone(), true);
        steadiness.begin(Some(3));
        let notes = steadiness.end();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("hpet"), "{notes:?}");
        steadiness.begin(Some(3));
        assert!(steadiness.end().is_empty());
    }

    #[test]
    fn a_moving_frequency_is_told_unless_silenced() {
        let system = System::new("frequency", "tsc");
        for (watch, after, told) in [
            (true, 2_900_000, true),
            (true, 2_150_000, false),
            (false, 2_900_000, false),
        ] {
            let mut steadiness = Steadiness::below(system.0.clone(), watch);
            system.frequency(2_000_000);
            steadiness.begin(Some(3));
            system.frequency(after);
            let notes = steadiness.end();
            assert_eq!(notes.len(), usize::from(told), "{notes:?}");
            if told {
                assert!(notes[0].contains("from 2000 to 2900 MHz"), "{notes:?}");
            }
        }
    }

    #[test]
    fn a_host_that_tells_nothing_has_nothing_told_of() {
        let mut steadiness = Steadiness::below("/nonexistent".into(), true);
        steadiness.begin(Some(0));
        assert!(steadiness.end().is_empty());
        steadiness.begin(None);
        assert!(steadiness.end().is_empty());
    }
}
