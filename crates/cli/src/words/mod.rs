//! What people read.

pub(crate) mod hex_dump;
pub(crate) mod live_line;
pub(crate) mod owner;
pub(crate) mod sub_devices;
pub(crate) mod tree;

/// How many letters a line of this terminal holds; 80 where there is none.
pub(crate) fn columns(terminal: &impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal);
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(80)
}
