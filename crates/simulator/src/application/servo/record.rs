//! Record of a servo drive's inputs and motion, step by step, for the judgement of a MainDevice.

use std::sync::{Arc, Mutex, PoisonError};

use ethercat::cia402::{Controlword, ModeOfOperation, State};
use ethercat::time::Instant;

/// Values of a drive at one application step: in Op from its outputs, in other states from its
/// objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// Instant of the step: every [`STEP`](crate::sub_device::STEP), or each SYNC0 where it runs.
    pub now: Instant,
    /// True in Op: the set-points came from process data.
    pub operational: bool,
    /// Controlword in effect; 0 outside Op.
    pub controlword: Controlword,
    /// Mode of operation in effect.
    pub mode: ModeOfOperation,
    /// 0x607A, in counts.
    pub target_position: i32,
    /// 0x60FF, in counts per second.
    pub target_velocity: i32,
    /// 0x6071, in thousandths of the rated torque.
    pub target_torque: i16,
    /// Torque limit 0x6072, in thousandths of the rated torque.
    pub maximum_torque: u16,
    /// State of the CiA 402 state machine after the step.
    pub state: State,
    /// Position of the shaft, as in 0x6064, in counts.
    pub position: i32,
    /// True angle of the shaft, in rad, independent of the drive's count.
    pub angle: f64,
    /// Speed of the shaft, in counts per second.
    pub velocity: f64,
}

impl Taken {
    /// True if the drive follows the set-points it took.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.operational && self.state == State::OperationEnabled && !self.controlword.halt()
    }
}

/// Record of one drive since recording began; clones share it, on any thread.
#[derive(Clone, Debug, Default)]
pub struct ServoRecord {
    steps: Arc<Mutex<Vec<Taken>>>,
}

impl ServoRecord {
    /// Steps so far, oldest first.
    #[must_use]
    pub fn taken(&self) -> Vec<Taken> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Newest step.
    #[must_use]
    pub fn last(&self) -> Option<Taken> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).last().copied()
    }

    pub(super) fn add(&self, taken: Taken) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
    }
}
