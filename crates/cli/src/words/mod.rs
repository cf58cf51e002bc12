//! What people read.

pub(crate) mod hex_dump;
pub(crate) mod live_line;
pub(crate) mod sub_devices;
pub(crate) mod tree;
