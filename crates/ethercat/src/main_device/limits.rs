//! Limits of bring-up and shutdown: time, tries and pauses. `docs/run.md`, "Time-outs", lists them
//! for users.

use core::time::Duration;

use super::configuration::Configuration;
use super::retry::RetryBudget;

/// Additional time after the time-out of a change of state, so that this one is reported first.
const BEYOND_STATE: Duration = Duration::from_millis(500);

/// Time that each byte adds to that of a mailbox transfer.
pub(super) const TRANSFER_PER_BYTE: Duration = Duration::from_millis(2);

/// Broadcasts in a row that may be lost before the bus counts as empty.
pub(super) const LOST_BROADCASTS: RetryBudget = RetryBudget { tries: 25, time: Duration::from_secs(1) };

/// The same during shutdown, when the bus may be empty.
pub(super) const LOST_BROADCASTS_DOWN: RetryBudget =
    RetryBudget { tries: 5, time: Duration::from_millis(250) };

/// Consecutive frames that may be lost during bring-up. Shorter than the default mailbox time-out,
/// so that a dead cable is reported as one.
pub(super) const LOSSES: RetryBudget = RetryBudget { tries: 50, time: Duration::from_millis(1500) };

/// Attempts at a register that does not answer, a pause apart, before it is reported in Op.
pub(super) const ATTEMPTS: u32 = 20;

/// The same during bring-up, which it ends.
pub(super) const UNANSWERED: RetryBudget =
    RetryBudget { tries: ATTEMPTS - 1, time: Duration::from_millis(500) };

/// Pause before a repeated read of a value that is not ready yet.
pub(super) const PAUSE: Duration = Duration::from_micros(500);

/// Replies in a row without the reference clock's time after which it is given up.
pub(super) const REFERENCE_SILENT: u32 = 3;

/// Pause between two checks for workers that take too long.
pub(super) const EXPIRY_PAUSE: Duration = Duration::from_millis(1);

/// Time after which a new reference clock is chosen: by then it is known which SubDevices are gone.
pub(super) const REFERENCE_PAUSE: Duration = Duration::from_millis(100);

/// Pause between two reads of SubDevices that left their state.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// SYNC0 starts that arrived too late, or were not taken, after which SYNC0 is given up.
pub(super) const SYNC_STARTS: u32 = 8;

/// Looks, a pause apart, at an error that was acknowledged and does not go.
pub(super) const ACKNOWLEDGE_LOOKS: u32 = 20;

/// Missing acknowledges of an EEPROM in a row: one may be a passing fault.
pub(super) const SII_ATTEMPTS: u8 = 3;

/// Time an EEPROM may be busy with one read, which takes well below a millisecond.
pub(super) const SII_BUSY: Duration = Duration::from_secs(1);

/// Time it may be busy with all of them.
pub(super) const SII_BUSY_IN_ALL: Duration = Duration::from_secs(5);

/// Rounds in a row that must open no further port.
pub(super) const ROUNDS_WITHOUT_MORE: u32 = 2;

/// Difference from the reference clock, in ns, below which clocks agree before the cycle begins: a
/// power of two, so that one datagram checks all.
pub(super) const SETTLED_NANOSECONDS: u32 = 1 << 10;

/// Looks in a row, a pause apart, by which they do.
pub(super) const SETTLED_LOOKS: u32 = 5;

/// Pause between two looks.
pub(super) const SETTLED_LOOK_PAUSE: Duration = Duration::from_millis(2);

/// Frames that distribute the reference clock's time until clocks that do not agree are reported:
/// after so many the usual filter of an ESC, 4096 writes, has settled to a fortieth.
pub(super) const SETTLING_WRITES: u32 = 15_000;

/// Time for it.
pub(super) const SETTLING: Duration = Duration::from_secs(1);

/// Consecutive complete cycles before Op is requested.
pub(super) const WHOLE_CYCLES: u32 = 10;

/// Limits a worker keeps to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) state: Duration,
    pub(super) mailbox: Duration,
    pub(super) transfer: Duration,
    /// The time between two cycles, of which each sends one datagram of a worker.
    pub(super) period: Duration,
    /// SubDevices that share these datagrams.
    pub(super) sub_devices: u16,
}

impl Limits {
    pub(super) fn of(configuration: &Configuration) -> Self {
        Self {
            state: configuration.state_timeout,
            mailbox: configuration.mailbox_timeout,
            transfer: configuration.transfer_timeout,
            period: configuration.period,
            sub_devices: 0,
        }
    }

    /// Time without progress, of each SubDevice and of all, after which bring-up or shutdown is
    /// given up.
    pub(super) fn stuck(&self) -> Duration {
        self.state + BEYOND_STATE
    }
}
