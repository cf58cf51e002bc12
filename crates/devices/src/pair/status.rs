//! Status of a device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

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
