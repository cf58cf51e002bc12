//! Capabilities of a thread (capabilities(7)).

/// Locks memory without limit; its number of linux/capability.h.
pub const CAP_IPC_LOCK: u32 = 14;

/// Changes policies of any thread, whatever limits it has.
pub const CAP_SYS_NICE: u32 = 23;

/// True if a capability is among the effective ones of a `/proc/PID/status`.
#[must_use]
pub fn is_effective(status: &str, capability: u32) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    effective.is_some_and(|mask| mask >> capability & 1 == 1)
}
