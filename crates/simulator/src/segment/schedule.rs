//! Due times of SubDevices, side by side: at most frames none is due.

use ethercat::time::Instant;

/// Due times, by SubDevice.
#[derive(Debug)]
pub(super) struct Schedule {
    due: Vec<Instant>,
    /// Earliest time at which a SubDevice is due.
    next: Instant,
}

impl Schedule {
    /// All are due at once.
    pub(super) fn new(count: usize) -> Self {
        Self { due: vec![Instant::EPOCH; count], next: Instant::EPOCH }
    }

    /// True if one may be due by `now`.
    pub(super) fn has_come(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// True if this SubDevice is due by `now`.
    pub(super) fn is_due(&self, device: usize, now: Instant) -> bool {
        self.due[device] <= now
    }

    /// Sets when this SubDevice is due; `None` is never.
    pub(super) fn set(&mut self, device: usize, due: Option<Instant>) {
        let due = due.unwrap_or(NEVER);
        self.due[device] = due;
        self.next = self.next.min(due);
    }

    /// Finds the next due SubDevice, after all due ones were served.
    pub(super) fn settle(&mut self) {
        self.next = self.due.iter().copied().min().unwrap_or(NEVER);
    }
}

/// Behind the end of simulated time.
const NEVER: Instant = Instant::from_nanos(u64::MAX);
