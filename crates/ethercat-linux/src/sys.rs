//! The operating system: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

pub(crate) mod bpf;
pub(crate) mod packet_ring;
pub(crate) mod packet_socket;
pub(crate) mod peer;
pub(crate) mod poll;
mod xdp_memory;
mod xdp_ring;
pub(crate) mod xdp_socket;
