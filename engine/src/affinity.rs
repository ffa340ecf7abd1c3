//! On which processors the test runs (`--pin_cores`), and on which it is now.

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

use crate::failure::Failure;

/// Restricts this thread, and all that it starts, to some processors; none
/// is no restriction.
pub(crate) fn pin(cores: &[u32]) -> Result<(), Failure> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for core in cores {
        let core = usize::try_from(*core).unwrap_or(usize::MAX);
        set.set(core)
            .map_err(|error| Failure::Affinity(error.into()))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| Failure::Affinity(error.into()))
}

/// The processor this thread runs on now.
pub(crate) fn current_cpu() -> Option<usize> {
    sched_getcpu().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use nix::sched::sched_getaffinity;

    #[test]
    fn pins_a_thread() {
        std::thread::spawn(|| {
            let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let core = (0..CpuSet::count()).find(|core| before.is_set(*core).unwrap());
            let core = core.unwrap();
            pin(&[]).unwrap();
            assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), before);
            pin(&[u32::try_from(core).unwrap()]).unwrap();
            assert_eq!(current_cpu(), Some(core));
            let after = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let pinned: Vec<usize> = (0..CpuSet::count())
                .filter(|core| after.is_set(*core).unwrap())
                .collect();
            assert_eq!(pinned, [core]);
            assert!(pin(&[u32::MAX]).is_err());
        })
        .join()
        .unwrap();
    }
}
