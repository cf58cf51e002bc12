//! Operating system interface: every unsafe block of this crate, each with its argument.
//!
//! | module | system calls for |
//! |---|---|
//! | [`ethtool`] | settings of a network interface's driver |
//! | [`scheduling`] | scheduling of any thread |
#![allow(unsafe_code)]

pub(crate) mod ethtool;
pub(crate) mod scheduling;
