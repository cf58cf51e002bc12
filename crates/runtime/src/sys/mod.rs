//! The operating system: every unsafe block of this crate, each with its argument.
//!
//! | module | what it asks Linux for |
//! |---|---|
//! | [`clock`] | the monotonic clock and absolute sleep |
//! | [`scheduling`] | priority, CPU affinity, timer slack |
//! | [`memory`] | memory lock and pre-faulting |
//! | [`packet_socket`] | Ethernet frames of one interface |
//! | [`peer`] | the process at the other end of a Unix socket |
//! | [`futex`] | sleep and wake between two threads |
//! | [`perf`] | what the kernel tells of a thread |
//! | [`usage`] | what it has counted of this one |
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod futex;
pub(crate) mod memory;
pub(crate) mod packet_socket;
pub(crate) mod peer;
pub(crate) mod perf;
pub(crate) mod scheduling;
pub(crate) mod usage;

use std::time::Duration;

/// `duration` as the kernel wants it; saturates far beyond any machine's life.
fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    }
}
