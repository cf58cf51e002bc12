//! What a servo drive took, step by step: the judge of what a MainDevice made an axis do.

use std::sync::{Arc, Mutex, PoisonError};

use ethercat::cia402::{Controlword, ModeOfOperation, State};
use ethercat::time::Instant;

/// What a drive took at one application step: in Op from its outputs, in other states what its objects hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// The step: every [`STEP`](crate::sub_device::STEP), or each SYNC0 where it runs.
    pub now: Instant,
    /// In Op: the rest came from process data.
    pub operational: bool,
    /// The controlword it obeys; 0 outside Op.
    pub controlword: Controlword,
    /// The mode it is in.
    pub mode: ModeOfOperation,
    /// 0x607A, in counts.
    pub target_position: i32,
    /// 0x60FF, in counts per second.
    pub target_velocity: i32,
    /// 0x6071, in thousandths of the rated torque.
    pub target_torque: i16,
    /// The state of its own state machine by then.
    pub state: State,
    /// Where the shaft is, as 0x6064 shows it, in counts.
    pub position: i32,
    /// How fast the shaft turns, in counts per second.
    pub velocity: f64,
}

impl Taken {
    /// True if the drive follows the set-points it took.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.operational && self.state == State::OperationEnabled && !self.controlword.halt()
    }
}

/// All that one drive took since recording began; clones are the same record, whichever thread the drive runs on.
#[derive(Clone, Debug, Default)]
pub struct ServoRecord {
    steps: Arc<Mutex<Vec<Taken>>>,
}

impl ServoRecord {
    /// The steps so far, oldest first.
    #[must_use]
    pub fn taken(&self) -> Vec<Taken> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest step.
    #[must_use]
    pub fn last(&self) -> Option<Taken> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).last().copied()
    }

    pub(super) fn add(&self, taken: Taken) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
    }
}
