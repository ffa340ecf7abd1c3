//! Facts about this host that the ends of a test tell each other.

use std::fs;

/// Where neither the system nor the processor says otherwise.
const PAGE_SIZE: u32 = 4096;

/// Of nearly all processors.
const CACHE_LINE: u32 = 64;

/// Size of a memory page in bytes.
pub(crate) fn page_size() -> u32 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|size| u32::try_from(size).ok())
        .filter(|size| size.is_power_of_two())
        .unwrap_or(PAGE_SIZE)
}

/// Length of a line of the first-level data cache in bytes.
pub(crate) fn cache_line() -> u32 {
    const FIRST_LEVEL_DATA: &str = "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size";
    fs::read_to_string(FIRST_LEVEL_DATA)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .filter(|length: &u32| length.is_power_of_two())
        .unwrap_or(CACHE_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_plausible() {
        assert!(page_size().is_power_of_two() && page_size() >= 4096);
        assert!(cache_line().is_power_of_two() && (16..=1024).contains(&cache_line()));
    }
}
