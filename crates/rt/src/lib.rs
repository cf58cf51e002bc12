//! The real-time kit on Linux; it knows nothing of EtherCAT.
//!
//! A thread that works every 2 ms, and measures how late it starts:
//!
//! ```
//! use std::time::Duration;
//!
//! use onbeat_rt::clock::{Clock, MonotonicClock};
//! use onbeat_rt::pacer::Pacer;
//! use onbeat_rt::scheduling::{Scheduling, schedule};
//!
//! // Without the right to a real-time priority the thread runs as an ordinary one.
//! if let Err(error) = schedule(Scheduling::Fifo { priority: 80 }) {
//!     eprintln!("no real-time priority: {error}");
//! }
//! let mut pacer = Pacer::new(MonotonicClock, Duration::from_millis(2));
//! let mut worst = Duration::ZERO;
//! for _ in 0..10 {
//!     let release = pacer.wait(); // absolute releases: an overrun does not shift them
//!     worst = worst.max(MonotonicClock.now().since(release.instant));
//!     // The work of a cycle: no allocation, no lock, no log.
//! }
//! println!("at most {worst:?} late, {} overruns", pacer.overruns().count);
//! ```
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
