//! The real-time kit on Linux; it knows nothing of EtherCAT.
//!
//! | module | part |
//! |---|---|
//! | [`clock`] | the monotonic clock, and a virtual one |
//! | [`pacer`] | absolute releases on a fixed grid |
//! | [`scheduling`] | policy, CPU and timer slack of the calling thread |
//! | [`doorbell`] | sleep and wake between two threads |
//! | [`watch`] | the part of a thread's life in which it is watched |
//! | [`newest`] | the newest value of a thread, for any number of readers |
//! | [`output`] | outputs that may hang, each with its own thread |
//! | [`mod@panic`] | panics of real-time threads, reported by another thread |
//!
//! With the feature `threads`:
//!
//! | module | part |
//! |---|---|
//! | [`profile`] | requests of a real-time thread to the system, and its grants |
//! | [`always_on`] | settings that every real-time thread needs |
//! | [`task`] | real-time tasks, each with its own period |
//! | [`probe`] | wake-up latency of this computer without any work |
#![deny(unsafe_code)]

#[cfg(feature = "threads")]
pub mod always_on;
pub mod clock;
pub mod newest;
pub mod output;
pub mod pacer;
pub mod panic;
#[cfg(feature = "threads")]
pub mod probe;
#[cfg(feature = "threads")]
pub mod profile;
mod sys;
#[cfg(feature = "threads")]
pub mod task;
pub mod watch;

pub use sys::{doorbell, scheduling};
