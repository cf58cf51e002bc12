//! The MainDevice's side of homing (IEC 61800-7-201, homing mode): the drive finds its home in mode
//! of operation 6, and counts its positions from there.
//!
//! 0x6060 requests mode 6 and 0x6061 shows it; bit 4 of the controlword starts homing; bits 10, 12
//! and 13 of the statusword show its progress; then 0x6060 requests the cyclic mode again. Both
//! mode objects have to be in the process data: nothing here waits for a mailbox.

use super::super::mode::ModeOfOperation;
use super::super::word::{Controlword, Statusword};
use super::{DriveInput, REST_CYCLES, Request};

/// State of a drive's homing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HomingProgress {
    /// Not requested.
    #[default]
    NotAsked,
    /// The drive controls the axis, or is about to take or to return it.
    Running,
    /// The drive counts from its home, and works in its cyclic mode again.
    Attained,
    /// Another request was made of the drive, or it left Operation enabled.
    Interrupted,
    /// The drive showed a homing error, or homing was aborted ([`super::Drive::abort_homing`]).
    Failed,
}

/// The homing of one drive, one step a cycle while it is in Operation enabled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Homing {
    stage: HomingStage,
    progress: HomingProgress,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HomingStage {
    #[default]
    Idle,
    /// Mode 6 is requested and not shown yet.
    Entering,
    /// Bit 4 is set. `before`: the statusword at that moment, until it changes.
    Searching { before: Option<u16>, cycles: u32 },
    /// Given up: halted, still in mode 6; cycles at standstill.
    Stopping { cycles: u32 },
    /// The cyclic mode is requested and not shown yet.
    Leaving,
}

/// Cycles after which an unchanged statusword counts as the answer to the start: an earlier homing
/// may have left the same bits, and the drive may sample the controlword more slowly than the bus.
pub const ANSWER_CYCLES: u32 = 32;

/// The bits of the statusword that homing gives a meaning.
const BITS: u16 = Statusword::TARGET_REACHED | Statusword::HOMING_ATTAINED | Statusword::HOMING_ERROR;

/// Bits shown once the home is found and the axis rests.
const COMPLETED: u16 = Statusword::TARGET_REACHED | Statusword::HOMING_ATTAINED;

impl Homing {
    pub(super) fn begin(&mut self) {
        *self = Self { stage: HomingStage::Entering, progress: HomingProgress::Running };
    }

    /// True if the drive controls the axis, or is about to take or to return it.
    pub(super) fn is_active(&self) -> bool {
        self.stage != HomingStage::Idle
    }

    pub(super) const fn progress(&self) -> HomingProgress {
        self.progress
    }

    /// Value of 0x6060.
    pub(super) fn mode(&self, cyclic: ModeOfOperation) -> ModeOfOperation {
        match self.stage {
            HomingStage::Idle | HomingStage::Leaving => cyclic,
            HomingStage::Entering | HomingStage::Searching { .. } | HomingStage::Stopping { .. } => {
                ModeOfOperation::Homing
            }
        }
    }

    /// Stops the search. A drive that does not return to its cyclic mode either is not asked again.
    pub(super) fn give_up(&mut self, why: HomingProgress) {
        if self.progress == HomingProgress::Running {
            self.progress = why;
            self.stage = match self.stage {
                HomingStage::Idle | HomingStage::Leaving => HomingStage::Idle,
                _ => HomingStage::Stopping { cycles: 0 },
            };
        }
    }

    /// The drive has left Operation enabled, which ends homing.
    pub(super) fn end(&mut self) {
        self.give_up(HomingProgress::Interrupted);
        self.stage = HomingStage::Idle;
    }

    /// One cycle in Operation enabled: the bits to set in the controlword, in addition to the bits
    /// of `request`. `rests`: the axis has not moved since the last cycle.
    pub(super) fn step(
        &mut self,
        input: &DriveInput,
        request: Request,
        cyclic: ModeOfOperation,
        rests: bool,
    ) -> u16 {
        if request != Request::Enable {
            self.give_up(HomingProgress::Interrupted);
        }
        let shown = input.statusword.0 & BITS;
        self.stage = match self.stage {
            HomingStage::Entering if input.mode == Some(ModeOfOperation::Homing) => {
                HomingStage::Searching { before: Some(shown), cycles: 0 }
            }
            HomingStage::Searching { before, cycles } => self.search(input, shown, before, cycles),
            HomingStage::Stopping { cycles } => {
                let rests = rests || input.statusword.target_reached();
                let cycles = if rests { cycles + 1 } else { 0 };
                if cycles < REST_CYCLES { HomingStage::Stopping { cycles } } else { HomingStage::Leaving }
            }
            HomingStage::Leaving if input.mode == Some(cyclic) => {
                if self.progress == HomingProgress::Running {
                    self.progress = HomingProgress::Attained;
                }
                HomingStage::Idle
            }
            stage => stage,
        };
        match self.stage {
            HomingStage::Searching { .. } => Controlword::HOMING_OPERATION_START,
            HomingStage::Stopping { .. } if request == Request::Enable => Controlword::HALT_BIT,
            _ => 0,
        }
    }

    fn search(&mut self, input: &DriveInput, shown: u16, before: Option<u16>, cycles: u32) -> HomingStage {
        if input.mode != Some(ModeOfOperation::Homing) {
            // Its bits mean something else now.
            self.progress = HomingProgress::Failed;
            return HomingStage::Stopping { cycles: 0 };
        }
        let cycles = cycles.saturating_add(1);
        let before = before.filter(|&before| before == shown && cycles < ANSWER_CYCLES);
        let answered = before.is_none();
        if answered && shown & Statusword::HOMING_ERROR != 0 {
            self.progress = HomingProgress::Failed;
            HomingStage::Stopping { cycles: 0 }
        } else if answered && shown == COMPLETED {
            HomingStage::Leaving
        } else {
            HomingStage::Searching { before, cycles }
        }
    }
}
