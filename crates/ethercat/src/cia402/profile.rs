//! The MainDevice's side of the profile modes (IEC 61800-7-201, profile position, profile velocity
//! and profile torque mode): the drive plans its motion to a target.
//!
//! [`ProfilePosition`] is only the handshake of set-points. [`super::ProfileDrive`] takes a drive
//! through its states with a [`super::Drive`], and adds every way to hand set-points over; `Drive`
//! alone has the one way that axes need. Objects of the drive set speeds, ramps and limits: 0x6081
//! to 0x6084, 0x6087, 0x607D, 0x607F.

use super::drive::homing::ANSWER_CYCLES;
use super::mode::ModeOfOperation;
use super::word::{Controlword, Statusword};

/// Profile mode of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProfileMode {
    /// 1, pp: to set-points.
    Position,
    /// 3, pv: to a velocity.
    Velocity,
    /// 4, tq: to a torque.
    Torque,
}

impl From<ProfileMode> for ModeOfOperation {
    fn from(mode: ProfileMode) -> Self {
        match mode {
            ProfileMode::Position => Self::ProfilePosition,
            ProfileMode::Velocity => Self::ProfileVelocity,
            ProfileMode::Torque => Self::ProfileTorque,
        }
    }
}

/// Time at which a set-point replaces the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// After the running set-point is reached, at standstill.
    #[default]
    AfterReached,
    /// At once (bit 5 of the controlword).
    Immediately,
    /// In passing it, at profile velocity (bit 9).
    OnSetPoint,
}

/// Set-point of profile position mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetPoint {
    /// 0x607A, position units.
    pub position: i32,
    /// True if it counts from the set-point before (bit 6).
    pub relative: bool,
    /// Time at which it takes over.
    pub change: Change,
}

impl SetPoint {
    /// A set-point at `position`, after the previous one.
    #[must_use]
    pub const fn at(position: i32) -> Self {
        Self { position, relative: false, change: Change::AfterReached }
    }

    fn bits(self) -> u16 {
        let relative = if self.relative { Controlword::RELATIVE } else { 0 };
        relative
            | match self.change {
                Change::AfterReached => 0,
                Change::Immediately => Controlword::CHANGE_SET_IMMEDIATELY,
                Change::OnSetPoint => Controlword::CHANGE_ON_SET_POINT,
            }
    }
}

/// Progress of the last set-point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetPointProgress {
    /// None was handed over.
    #[default]
    NotAsked,
    /// The drive has not acknowledged it yet.
    HandingOver,
    /// The drive is moving to it or to the previous one.
    Moving,
    /// The drive shows Target reached, and none waits.
    Reached,
    /// The drive left Operation enabled or the mode, and with it the set-point.
    Interrupted,
}

/// Handshake of set-points: bits 4, 5, 6 and 9 of the controlword against bit 12 of the statusword,
/// one step a cycle.
///
/// ```
/// use onbeat_ethercat::cia402::{ProfilePosition, SetPoint, SetPointProgress, Statusword};
///
/// let acknowledged = Statusword(Statusword::SET_POINT_ACKNOWLEDGE);
/// let mut handshake = ProfilePosition::default();
/// assert!(handshake.hand_over(SetPoint::at(5_000)));
/// assert_eq!(handshake.step(Statusword(0)), 0x10, "bit 4 rises");
/// assert_eq!(handshake.step(acknowledged), 0, "and falls once the drive has acknowledged");
/// assert_eq!(handshake.progress(), SetPointProgress::Moving);
/// handshake.step(Statusword(Statusword::TARGET_REACHED));
/// assert_eq!(handshake.progress(), SetPointProgress::Reached);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfilePosition {
    set_point: SetPoint,
    stage: HandshakeStage,
    progress: SetPointProgress,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HandshakeStage {
    #[default]
    Idle,
    /// Bit 4 is low, until the drive has space for a set-point; `cycles` so far.
    Waiting { cycles: u32 },
    /// Bit 4 is high, until the drive acknowledges. `before`: it showed the acknowledgement of an
    /// earlier one.
    Handing { before: bool, cycles: u32 },
}

impl ProfilePosition {
    /// Takes a set-point to hand over. Returns `false` and does nothing while the drive has not
    /// acknowledged the previous one.
    pub fn hand_over(&mut self, set_point: SetPoint) -> bool {
        let free = self.stage == HandshakeStage::Idle;
        if free {
            self.set_point = set_point;
            self.stage = HandshakeStage::Waiting { cycles: 0 };
            self.progress = SetPointProgress::HandingOver;
        }
        free
    }

    /// One cycle of a drive in Operation enabled and in the mode: the bits to set in the
    /// controlword.
    pub fn step(&mut self, statusword: Statusword) -> u16 {
        let acknowledged = statusword.set_point_acknowledged();
        self.stage = match self.stage {
            HandshakeStage::Idle => {
                self.look(statusword);
                HandshakeStage::Idle
            }
            HandshakeStage::Waiting { cycles } => {
                // A set-point that replaces all others needs no free buffer, but a drive that has
                // seen bit 4 low.
                let replaces = self.set_point.change == Change::Immediately && cycles >= ANSWER_CYCLES;
                if !acknowledged || replaces {
                    HandshakeStage::Handing { before: acknowledged, cycles: 0 }
                } else {
                    HandshakeStage::Waiting { cycles: cycles.saturating_add(1) }
                }
            }
            HandshakeStage::Handing { before, cycles }
                if acknowledged && (!before || cycles >= ANSWER_CYCLES) =>
            {
                self.progress = SetPointProgress::Moving;
                HandshakeStage::Idle
            }
            HandshakeStage::Handing { before, cycles } => {
                HandshakeStage::Handing { before: before && acknowledged, cycles: cycles.saturating_add(1) }
            }
        };
        self.bits()
    }

    fn look(&mut self, statusword: Statusword) {
        let moves = matches!(self.progress, SetPointProgress::Moving | SetPointProgress::Reached);
        if moves {
            let reached = statusword.target_reached() && !statusword.set_point_acknowledged();
            self.progress = if reached { SetPointProgress::Reached } else { SetPointProgress::Moving };
        }
    }

    /// The drive has left Operation enabled or the mode: set-points are forgotten.
    pub fn interrupt(&mut self) {
        self.stage = HandshakeStage::Idle;
        if self.progress != SetPointProgress::NotAsked {
            self.progress = SetPointProgress::Interrupted;
        }
    }

    /// Value of 0x607A.
    #[must_use]
    pub const fn target(&self) -> i32 {
        self.set_point.position
    }

    /// Progress of the last set-point.
    #[must_use]
    pub const fn progress(&self) -> SetPointProgress {
        self.progress
    }

    fn bits(&self) -> u16 {
        match self.stage {
            // Bit 9 stays: the drive reads it when it passes the set-point.
            HandshakeStage::Idle => self.set_point.bits() & Controlword::CHANGE_ON_SET_POINT,
            HandshakeStage::Waiting { .. } => self.set_point.bits(),
            HandshakeStage::Handing { .. } => self.set_point.bits() | Controlword::NEW_SET_POINT,
        }
    }
}
