//! The real-time kit on Linux; it knows nothing of EtherCAT.
//!
//! | module | part |
//! |---|---|
//! | [`clock`] | the monotonic clock, and a virtual one |
//! | [`pacer`] | absolute releases on a fixed grid |
//! | [`scheduling`] | policy, CPU and timer slack of the calling thread |
//! | [`doorbell`] | sleep and wake between two threads |
//! | [`watch`] | the part of a thread's life in which it is watched |
//! | [`output`] | outputs that may hang, each on a thread of its own |
//! | [`mod@panic`] | panics of real-time threads, told by another thread |
#![deny(unsafe_code)]

pub mod clock;
pub mod output;
pub mod pacer;
pub mod panic;
mod sys;
pub mod watch;

pub use sys::{doorbell, scheduling};
