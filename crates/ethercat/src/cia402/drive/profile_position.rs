//! A [`Drive`] in profile position mode: destinations are handed over, and the drive makes its own
//! way to them.

use super::super::mode::ModeOfOperation;
use super::super::profile::{Change, SetPoint};
use super::super::word::Controlword;
use super::{Drive, DriveCommand, DriveInput, Phase, Request};

impl Drive {
    pub(super) fn makes_its_own_way(&self) -> bool {
        self.own_mode == ModeOfOperation::ProfilePosition
    }

    /// A cycle in Operation enabled.
    pub(super) fn update_profile_position(&mut self, input: DriveInput, command: DriveCommand) {
        let is_shown = input.mode.is_none_or(|mode| mode == self.own_mode);
        self.just_enabled = self.phase == Phase::NotEnabled;
        self.halted |= command.request != Request::Enable;
        if self.just_enabled || command.request != Request::Enable || !is_shown {
            return self.stand(Phase::Holding, input.position);
        }
        self.phase = Phase::Following;
        let set_point = SetPoint { change: Change::Immediately, ..SetPoint::at(command.target_position) };
        if self.destination != Some(set_point.position) && self.set_points.hand_over(set_point) {
            self.destination = Some(set_point.position);
        }
        let bits = self.set_points.step(input.statusword);
        self.output.controlword.0 |= bits;
        self.output.target_position = self.set_points.target();
        self.halted &= bits & Controlword::NEW_SET_POINT == 0;
        if self.halted {
            self.output.controlword = self.output.controlword.with_halt();
        }
    }

    /// Without an input no set-point is handed over, and the drive continues its motion unless it
    /// is halted.
    pub(super) fn go_on_its_way_blind(&mut self, request: Request) {
        if request != Request::Enable {
            self.halted = true;
            self.forget_destination();
        }
    }

    /// The next target is handed over, wherever it lies.
    pub(super) fn forget_destination(&mut self) {
        self.destination = None;
        self.set_points.interrupt();
    }
}
