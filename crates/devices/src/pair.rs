//! Pair of a device's two tasks, joined by a channel.
//!
//! | module | contents |
//! |---|---|
//! | [`real_time`] | real-time task: works on numbers, never uses a driver, never waits |
//! | [`ordinary`] | ordinary task: owns the driver, waits for the device, retries |

pub mod ordinary;
pub mod real_time;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

pub use ordinary::{DeviceError, Driver, Remarks};
pub use real_time::{Moment, Work};

/// Status of a device as its ordinary task sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// Name of the peripheral.
    pub name: String,
    /// Connection: for example `/dev/i2c-1`, or that it is simulated.
    pub device: String,
    /// Current stage.
    pub stage: Stage,
    /// Description of the device found when it was opened.
    pub found: String,
    /// Last error; empty without one.
    pub last_error: String,
    /// Number of times it was opened.
    pub opened: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of failures.
    pub failures: u64,
    /// Samples dropped because the port of its real-time task was full.
    pub dropped: u64,
}

/// Stage of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not opened yet.
    #[default]
    Starting,
    /// Open and working.
    Working,
    /// Failed; it will be retried.
    Failed,
    /// Its task has ended.
    Ended,
}

/// Status shared between threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<DeviceStatus>>);

impl Shared {
    pub(crate) fn new(name: &str, device: String) -> Self {
        let status = DeviceStatus { name: name.into(), device, ..DeviceStatus::default() };
        Self(Arc::new(Mutex::new(status)))
    }

    /// Locks the status; only ordinary threads may call this.
    pub(crate) fn lock(&self) -> MutexGuard<'_, DeviceStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Message of a device's channel.
pub trait Datagram {
    /// Length of the longest message, bytes.
    const LARGEST: usize;

    /// Encodes the message at the front of `bytes`, [`Datagram::LARGEST`] long; returns its length.
    fn encode(&self, bytes: &mut [u8]) -> usize;

    /// Decodes a message in place; false if the bytes are none, in which case the value is
    /// unspecified.
    #[must_use]
    fn decode(&mut self, bytes: &[u8]) -> bool;
}

/// Writes consecutive numbers.
pub(crate) struct Put<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Put<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Appends bytes. If they do not fit they are omitted, which makes the message invalid.
    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        let end = self.length + value.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(value);
            self.length = end;
        }
        self
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn f64(self, value: f64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn length(self) -> usize {
        self.length
    }
}

/// Reads consecutive numbers; `None` once the bytes run out.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl Take<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (value, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*value)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.next().map(u64::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.next().map(u32::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.next().map(u16::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.next().map(f64::from_le_bytes)
    }

    /// `None` if bytes are left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Request without content: take the next sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poke;

impl Datagram for Poke {
    const LARGEST: usize = 1;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        Put::new(bytes).bytes(&[1]).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        bytes == [1]
    }
}
