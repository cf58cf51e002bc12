//! The operating system: every unsafe block of this crate, each with its argument.
//!
//! | module | what it asks Linux for |
//! |---|---|
//! | [`ethtool`] | what the driver of a network interface says |
#![allow(unsafe_code)]

pub(crate) mod ethtool;
