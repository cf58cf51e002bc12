//! Text that people read.

pub(crate) mod bus_event;
pub(crate) mod bus_status;
pub(crate) mod hex_dump;
pub(crate) mod live_line;
pub(crate) mod moment;
pub(crate) mod owner;
pub(crate) mod signals;
pub(crate) mod sub_devices;
pub(crate) mod tree;

/// "1 SubDevice", "6 SubDevices".
pub(crate) fn sub_device_count(count: usize) -> String {
    if count == 1 { "1 SubDevice".to_owned() } else { format!("{count} SubDevices") }
}

/// Number of letters a line of this terminal holds; 80 where there is none.
pub(crate) fn columns(terminal: &impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal);
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(80)
}
