//! Cycles of a [`Drive`] without input.

use types::CyclicMode;

use super::super::word::Controlword;
use super::{BLIND_CYCLES, Drive, DriveCommand, Phase, Request, fallen};

impl Drive {
    /// A cycle without input: continues only with outputs that are safe without one.
    pub(super) fn go_on_blind(&mut self, command: DriveCommand) {
        self.missing_inputs += 1;
        self.missed_in_a_row = self.missed_in_a_row.saturating_add(1);
        self.output.controlword = self.blind_controlword(command.request);
        if self.makes_its_own_way() {
            return self.go_on_its_way_blind(command.request);
        }
        let follows = command.request == Request::Enable || command.leads_to_rest();
        if self.phase != Phase::Following || !follows {
            // A drive that is held, homes, or is stopped gets no targets.
            self.output.target_velocity = 0;
            self.output.target_torque = 0;
            return;
        }
        let goes_on = u64::from(self.missed_in_a_row) <= BLIND_CYCLES;
        let DriveCommand { target_position, target_velocity, target_torque, .. } = command;
        if self.may_work_in(CyclicMode::Position) && goes_on && !self.is_too_far(target_position) {
            self.output.target_position = target_position;
        }
        if self.may_work_in(CyclicMode::Velocity) {
            let fallen = fallen(self.output.target_velocity, target_velocity);
            self.output.target_velocity = if goes_on { target_velocity } else { fallen };
        }
        if self.may_work_in(CyclicMode::Torque) {
            let fallen = fallen(self.output.target_torque.into(), target_torque.into()) as i16;
            self.output.target_torque = if goes_on { target_torque } else { fallen };
        }
    }

    /// Passes on requests that take away motion or torque; the others wait for an input.
    fn blind_controlword(&self, request: Request) -> Controlword {
        let last = self.output.controlword;
        match request {
            Request::Enable => Controlword(last.0 & !Controlword::FAULT_RESET_BIT),
            Request::Halt if last.enables_operation() => last.with_halt(),
            Request::QuickStop if last.enables_voltage() => Controlword::QUICK_STOP,
            Request::Halt | Request::QuickStop => Controlword(last.0 & !Controlword::FAULT_RESET_BIT),
            Request::Disable | Request::FaultReset => Controlword::DISABLE_VOLTAGE,
        }
    }
}
