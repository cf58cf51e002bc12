//! Whose the bus is: words on others who use it.

use ethercat::wire::MacAddress;
use runtime::link::Owner;

/// Another MainDevice is heard; said once.
pub(crate) fn other_main_device(source: MacAddress, frames: u64) -> String {
    format!(
        "another MainDevice, source {source}, is on this wire: {frames} frames that are not ours; end one of the two"
    )
}

/// What it came to at the end; `None` if there was none.
pub(crate) fn frames_of_others(frames: u64) -> Option<String> {
    (frames > 0).then(|| format!("frames of others        {frames} (of another MainDevice on this wire)"))
}

/// The lock's name is taken by one who does not use the interface.
pub(crate) fn squatted(interface: &str, squatter: &Owner) -> String {
    format!(
        "interface {interface}: {squatter} keeps the name of its lock without using the interface: end that process"
    )
}
