//! Text that people read.

pub(crate) mod axes;
pub(crate) mod bus_status;
pub(crate) mod diagnosis;
pub(crate) mod hex_dump;
pub(crate) mod latches;
pub(crate) mod lateness;
pub(crate) mod live_line;
pub(crate) mod moment;
pub(crate) mod signals;
pub(crate) mod sub_devices;
pub(crate) mod tree;

/// "1 SubDevice", "6 SubDevices".
#[must_use]
pub fn sub_device_count(count: usize) -> String {
    if count == 1 { "1 SubDevice".to_owned() } else { format!("{count} SubDevices") }
}

/// Width of this terminal in letters; without a terminal the value of `COLUMNS`, if it is set.
pub(crate) fn columns(terminal: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal);
    let of_terminal = size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
    of_terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0))
}

/// Width in letters without a terminal and without `COLUMNS`.
pub(crate) const USUAL_COLUMNS: usize = 80;
