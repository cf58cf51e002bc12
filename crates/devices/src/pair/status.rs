//! How a device stands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// How a device stands, as its ordinary task sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// Name of the peripheral.
    pub name: String,
    /// What it is told by: `/dev/i2c-1`, or that it is simulated.
    pub device: String,
    /// Where it is.
    pub stage: Stage,
    /// What was found behind the device when it was opened.
    pub found: String,
    /// Why it last failed; empty if it never did.
    pub last_error: String,
    /// Times it was opened.
    pub opened: u64,
    /// Samples it gave.
    pub samples: u64,
    /// Times it failed.
    pub failures: u64,
    /// Samples its real-time task had no room for.
    pub dropped: u64,
}

/// Where a device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nobody has tried it yet.
    #[default]
    Starting,
    /// It is open.
    Working,
    /// It failed, and is tried again later.
    Failed,
    /// Its task has ended.
    Ended,
}

/// The same, shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<DeviceStatus>>);

impl Shared {
    pub(crate) fn new(name: &str, device: String) -> Self {
        let status = DeviceStatus { name: name.into(), device, ..DeviceStatus::default() };
        Self(Arc::new(Mutex::new(status)))
    }

    /// Only ordinary threads come here.
    pub(crate) fn lock(&self) -> MutexGuard<'_, DeviceStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
