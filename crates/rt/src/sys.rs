//! The operating system: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub mod doorbell;
#[cfg(feature = "threads")]
pub(crate) mod memory;
pub mod scheduling;
#[cfg(feature = "threads")]
pub(crate) mod usage;

use std::time::Duration;

/// `duration` as the kernel takes it; saturates far beyond any machine's life.
pub fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    }
}
