//! Operating system interface: every unsafe block of this crate, each with its argument.
//!
//! | module | system calls for |
//! |---|---|
//! | [`ethtool`] | settings of a network interface's driver |
#![allow(unsafe_code)]

pub(crate) mod ethtool;
