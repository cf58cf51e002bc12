//! The MainDevice's side of one drive: from statuswords and requests to controlwords and safe
//! targets.

mod blind;
pub mod homing;
mod profile_position;

use homing::{Homing, HomingProgress};
pub use types::cycle::BLIND_CYCLES;
pub use types::state::{DrivePhase as Phase, DriveRequest as Request};
use types::{AxisMode, CyclicMode};

use super::mode::ModeOfOperation;
use super::profile::ProfilePosition;
use super::state::State;
use super::word::{Controlword, Statusword};

/// Feedback of a drive, in its own units; fields that are not mapped stay 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveInput {
    /// 0x6041.
    pub statusword: Statusword,
    /// Position actual value 0x6064, counts. CSP needs it mapped.
    pub position: i32,
    /// Velocity actual value 0x606C, velocity units.
    pub velocity: i32,
    /// Torque actual value 0x6077, 0.1 % of the rated torque.
    pub torque: i16,
    /// Modes of operation display 0x6061; `None` where it is not mapped. Homing needs it.
    pub mode: Option<ModeOfOperation>,
}

/// Command of the controller for a drive. Only the target of the drive's mode counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCommand {
    /// Request to the drive.
    pub request: Request,
    /// CSP: counts.
    pub target_position: i32,
    /// CSV: velocity units.
    pub target_velocity: i32,
    /// CST: 0.1 % of the rated torque.
    pub target_torque: i16,
    /// Help for a drive that may not carry out a quick stop.
    pub help: QuickStopHelp,
}

/// Addition to a request, for a drive that may not carry out a quick stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuickStopHelp {
    /// None: under [`Request::QuickStop`] the position is constant, and velocity and torque are 0.
    #[default]
    None,
    /// The targets lead to rest: under [`Request::QuickStop`] a drive that follows targets gets
    /// them.
    LeadsToRest,
    /// The halt bit is set under [`Request::QuickStop`], too: it counts in Operation enabled only.
    Halts,
    /// [`Request::Disable`] is Disable voltage at once, from any state.
    CutsOff,
}

impl DriveCommand {
    /// True where a drive under Quick stop gets targets.
    fn leads_to_rest(&self) -> bool {
        self.request == Request::QuickStop && self.help == QuickStopHelp::LeadsToRest
    }
}

/// Output to send to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveOutput {
    /// 0x6040.
    pub controlword: Controlword,
    /// 0x607A, counts; outside CSP the actual position.
    pub target_position: i32,
    /// 0x60FF, velocity units; 0 outside CSV.
    pub target_velocity: i32,
    /// 0x6071, 0.1 % of the rated torque; 0 outside CST.
    pub target_torque: i16,
}

/// One drive, as the MainDevice guides it: called once a cycle, no I/O, no allocation.
///
/// **No jump.** Until the statusword shows Operation enabled, a CSP target is the actual position
/// of the same cycle. In the first cycle that shows Operation enabled ([`Drive::just_enabled`]) the
/// actual position is latched once more and the controller's target is ignored; the drive holds
/// [`Drive::holds_at`]. From the next cycle on, a target within the maximum step of the last one
/// sent is taken. Any other target is refused and counted ([`Drive::refused_targets`]), and the
/// drive holds. So a controller needs one rule: begin the motion at `holds_at` whenever the phase
/// is [`Phase::Holding`]. Distances are taken modulo 2^32: endless axes may wrap.
///
/// **Missing input** (`None`, the working counter was wrong): the drive may still receive its
/// outputs. For [`BLIND_CYCLES`] consecutive cycles targets continue, each within the maximum step
/// of the last one sent. From then on the position is held, and velocities and torques only fall.
/// Stop requests are sent without a statusword: Quick stop, halt, and Disable voltage for
/// [`Request::Disable`]. Nothing is ever enabled.
///
/// A statusword that shows no state ends Operation enabled: targets latch again, the controlword
/// stays.
///
/// **Homing** ([`Drive::home`]) gives the axis to the drive. Until 0x6061 shows the cyclic mode
/// again, the targets are the actual position and zero, and the phase is [`Phase::Holding`]. Then
/// it holds the actual position, which homing may have renumbered. Any request but
/// [`Request::Enable`] interrupts homing.
///
/// **Profile modes** ([`Drive::in_mode`]). Velocities and torques are commanded as in CSV and CST;
/// the drive reaches them along its ramps. A position is a destination: once the mode is shown, and
/// only in a cycle with an input, it is handed over as a new set-point that replaces the previous
/// one, wherever it lies. Any request but [`Request::Enable`] ends the motion to it. A halt is
/// cleared together with the next set-point, so that the drive does not resume an old one. Objects
/// 0x6081, 0x6083 and 0x6084 of the drive set the speed and the ramps.
///
/// **Mode change** ([`Drive::change_mode`]) is allowed while the axis moves. Until 0x6061 shows the
/// new mode, the drive may work in either, so it is sent the controller's targets of both. A
/// position has to lie within the maximum step of the actual one if the old mode was no position
/// mode. A change from or to a profile mode needs standstill: the axis is halted until 0x6061 shows
/// the mode, and set-points begin at the position where it stopped.
#[derive(Clone, Debug)]
pub struct Drive {
    mode: CyclicMode,
    /// Mode it takes set-points in.
    own_mode: ModeOfOperation,
    /// Handshake of set-points, and the one handed over last, in profile position mode.
    set_points: ProfilePosition,
    destination: Option<i32>,
    /// Previous mode, until the drive shows the new one.
    before: Option<CyclicMode>,
    /// One of the two is a profile mode.
    rests: bool,
    maximum_step: u32,
    output: DriveOutput,
    last_input: Option<DriveInput>,
    state: Option<State>,
    phase: Phase,
    homing: Homing,
    just_enabled: bool,
    halted: bool,
    reset_cycles_left: u32,
    missed_in_a_row: u32,
    /// Cycles in a row with the same position.
    standing: u32,
    refused_targets: u64,
    missing_inputs: u64,
}

/// Consecutive cycles with an unchanged position that count as standstill.
pub(super) const REST_CYCLES: u32 = 8;

/// Cycles for which each level of the fault reset bit is held, so that a drive sampling the
/// controlword more slowly than the bus, or one answering a cycle late, sees the edge.
pub const FAULT_RESET_CYCLES: u32 = 8;

impl Drive {
    /// A drive in `mode`. `maximum_step` is the largest change of a CSP target in one cycle, in
    /// counts; other modes do not use it.
    #[must_use]
    pub fn new(mode: CyclicMode, maximum_step: u32) -> Self {
        Self {
            mode,
            own_mode: mode.into(),
            set_points: ProfilePosition::default(),
            destination: None,
            before: None,
            rests: false,
            maximum_step,
            output: DriveOutput::default(),
            last_input: None,
            state: None,
            phase: Phase::NotEnabled,
            homing: Homing::default(),
            just_enabled: false,
            halted: false,
            reset_cycles_left: 0,
            missed_in_a_row: 0,
            standing: 0,
            refused_targets: 0,
            missing_inputs: 0,
        }
    }

    /// A drive in interpolated position mode (7): [`DriveOutput::target_position`] goes to
    /// 0x60C1:1, and everything else is as in CSP.
    #[must_use]
    pub fn interpolated(maximum_step: u32) -> Self {
        Self::in_mode(AxisMode::InterpolatedPosition, maximum_step)
    }

    /// A drive in any mode that moves an axis. In [`AxisMode::ProfilePosition`] `maximum_step` is
    /// not used.
    #[must_use]
    pub fn in_mode(mode: AxisMode, maximum_step: u32) -> Self {
        Self { own_mode: mode.into(), ..Self::new(mode.cyclic(), maximum_step) }
    }

    /// Changes the mode of operation, also while the drive is enabled and, unless a profile mode is
    /// involved, while it moves. The caller sends [`Drive::mode_of_operation`] to 0x6060 and maps
    /// 0x6061; without 0x6061 the requested mode counts as shown. During homing it changes nothing
    /// and returns `false`.
    pub fn change_mode(&mut self, mode: impl Into<AxisMode>) -> bool {
        let mode = mode.into();
        if self.homing.is_active() {
            return false;
        }
        if ModeOfOperation::from(mode) == self.own_mode {
            return true;
        }
        self.rests |= mode.is_profile() || self.own_mode.axis().is_some_and(AxisMode::is_profile);
        self.before.get_or_insert(self.mode);
        (self.mode, self.own_mode) = (mode.cyclic(), mode.into());
        if let (true, Some(input)) = (self.rests && self.phase != Phase::NotEnabled, self.last_input) {
            self.stand(Phase::Holding, input.position);
        }
        true
    }

    /// True until the drive shows the mode that was requested last.
    #[must_use]
    pub const fn is_changing_mode(&self) -> bool {
        self.before.is_some()
    }

    /// One cycle: the drive's inputs (`None` if they are not valid), the command, the outputs to
    /// send.
    pub fn update(&mut self, input: Option<DriveInput>, command: DriveCommand) -> DriveOutput {
        self.just_enabled = false;
        let Some(input) = input else {
            self.go_on_blind(command);
            return self.output;
        };
        self.state = input.statusword.state();
        let stands = self.last_input.is_some_and(|last| last.position == input.position);
        self.standing = if stands { self.standing.saturating_add(1) } else { 0 };
        self.output.controlword = self.controlword(input, command);
        if input.mode.is_none_or(|mode| mode == self.own_mode) {
            (self.before, self.rests) = (None, false);
        }
        if self.state == Some(State::OperationEnabled) {
            if self.homing.is_active() {
                self.update_homing(input, command.request);
            } else {
                self.update_enabled(input, command);
            }
        } else {
            let is_homing = self.homing.is_active();
            self.stand(Phase::NotEnabled, if is_homing { input.position } else { self.place(input) });
            self.halted = false;
            self.homing.end();
        }
        self.last_input = Some(input);
        self.missed_in_a_row = 0;
        self.output
    }

    /// The mode it works in, or the cyclic one that takes the same set-points.
    #[must_use]
    pub const fn mode(&self) -> CyclicMode {
        self.mode
    }

    /// Value of 0x6060.
    #[must_use]
    pub fn mode_of_operation(&self) -> ModeOfOperation {
        self.homing.mode(self.own_mode)
    }

    fn interpolates(&self) -> bool {
        self.own_mode == ModeOfOperation::InterpolatedPosition
    }

    /// Starts the drive's homing, as its objects 0x6098 ff. configure it. Taken only in Operation
    /// enabled, and not during homing or a mode change; `false` if it is ignored.
    pub fn home(&mut self) -> bool {
        let heard = self.phase != Phase::NotEnabled && !self.homing.is_active() && self.before.is_none();
        if heard {
            self.homing.begin();
        }
        heard
    }

    /// Takes that back: it has failed. The axis is halted; then the drive gets set-points again.
    pub fn abort_homing(&mut self) {
        self.homing.give_up(HomingProgress::Failed);
    }

    /// State of its homing, or of the last one.
    #[must_use]
    pub const fn homing(&self) -> HomingProgress {
        self.homing.progress()
    }

    /// True while homing keeps set-points from the drive: also after it was given up, until the
    /// axis is at standstill in its cyclic mode.
    #[must_use]
    pub fn is_homing(&self) -> bool {
        self.homing.is_active()
    }

    /// The state last seen, or `None` before the first input or where the statusword shows none.
    #[must_use]
    pub const fn state(&self) -> Option<State> {
        self.state
    }

    /// The last input that was there.
    #[must_use]
    pub const fn last_input(&self) -> Option<DriveInput> {
        self.last_input
    }

    /// Output sent last.
    #[must_use]
    pub const fn last_output(&self) -> DriveOutput {
        self.output
    }

    /// Sender of the last target.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// This cycle was the first to show Operation enabled.
    #[must_use]
    pub const fn just_enabled(&self) -> bool {
        self.just_enabled
    }

    /// The target position last sent, counts: where set-points begin while the phase is
    /// [`Phase::Holding`].
    #[must_use]
    pub const fn holds_at(&self) -> i32 {
        self.output.target_position
    }

    /// Targets further from the last one than the maximum step, so far.
    #[must_use]
    pub const fn refused_targets(&self) -> u64 {
        self.refused_targets
    }

    /// Cycles without input, so far.
    #[must_use]
    pub const fn missing_inputs(&self) -> u64 {
        self.missing_inputs
    }

    fn update_enabled(&mut self, input: DriveInput, command: DriveCommand) {
        if self.rests {
            return self.rest_to_change(input);
        }
        if self.makes_its_own_way() {
            return self.update_profile_position(input, command);
        }
        let follows = command.request == Request::Enable || command.leads_to_rest();
        if self.interpolates() && follows {
            self.output.controlword.0 |= Controlword::ENABLE_INTERPOLATION;
        }
        if self.phase == Phase::NotEnabled {
            self.just_enabled = true;
            self.stand(Phase::Holding, self.place(input));
        } else if command.leads_to_rest() && self.phase == Phase::Following && self.before.is_none() {
            self.follow(input, command);
        } else if command.request == Request::Enable {
            let resumes = core::mem::take(&mut self.halted);
            if let Some(before) = self.before {
                self.follow_both(before, input, command);
            } else if resumes && self.mode == CyclicMode::Position && self.is_too_far(input.position) {
                // The drive stopped along its ramp, away from the held target: begin at its
                // position once two inputs agree.
                if self.last_input.is_some_and(|last| self.is_a_step(last.position, input.position)) {
                    self.stand(Phase::Holding, input.position);
                } else {
                    self.output.controlword = self.output.controlword.with_halt();
                    self.halted = true;
                }
            } else {
                self.follow(input, command);
            }
        } else {
            let held = if self.mode == CyclicMode::Position { self.holds_at() } else { input.position };
            self.stand(Phase::Holding, held);
        }
        self.halted |= command.request == Request::Halt;
    }

    /// Halts the drive until it shows the requested mode: it continues to no earlier destination,
    /// nor to one that it was not handed.
    fn rest_to_change(&mut self, input: DriveInput) {
        self.just_enabled = self.phase == Phase::NotEnabled;
        self.stand(Phase::Holding, input.position);
        self.halted = true;
        if self.output.controlword.enables_operation() {
            self.output.controlword = self.output.controlword.with_halt();
        }
    }

    fn update_homing(&mut self, input: DriveInput, request: Request) {
        let rests = self.last_input.is_some_and(|last| last.position == input.position);
        let bits = self.homing.step(&input, request, self.own_mode, rests);
        self.output.controlword.0 |= bits;
        self.halted = false;
        self.stand(Phase::Holding, input.position);
    }

    /// Sends the targets of the requested mode and of the previous one: the drive may work in
    /// either.
    fn follow_both(&mut self, before: CyclicMode, input: DriveInput, command: DriveCommand) {
        let position = self.may_work_in(CyclicMode::Position);
        let (velocity, torque) =
            (self.may_work_in(CyclicMode::Velocity), self.may_work_in(CyclicMode::Torque));
        self.phase = Phase::Following;
        if before != CyclicMode::Position {
            // No position was followed: the target begins where the axis is.
            self.output.target_position = input.position;
        }
        if position && self.is_too_far(command.target_position) {
            self.refused_targets += 1;
            self.phase = Phase::Holding;
        } else if position {
            self.output.target_position = command.target_position;
        }
        self.output.target_velocity = if velocity { command.target_velocity } else { 0 };
        self.output.target_torque = if torque { command.target_torque } else { 0 };
    }

    fn follow(&mut self, input: DriveInput, command: DriveCommand) {
        self.phase = Phase::Following;
        match self.mode {
            CyclicMode::Position if self.is_too_far(command.target_position) => {
                self.refused_targets += 1;
                self.phase = Phase::Holding;
            }
            CyclicMode::Position => self.output.target_position = command.target_position,
            CyclicMode::Velocity => self.output.target_velocity = command.target_velocity,
            CyclicMode::Torque => self.output.target_torque = command.target_torque,
        }
        if self.mode != CyclicMode::Position {
            self.output.target_position = input.position;
        }
        if self.mode != CyclicMode::Velocity {
            self.output.target_velocity = 0;
        }
        if self.mode != CyclicMode::Torque {
            self.output.target_torque = 0;
        }
    }

    fn stand(&mut self, phase: Phase, position: i32) {
        self.phase = phase;
        self.output.target_position = position;
        self.output.target_velocity = 0;
        self.output.target_torque = 0;
        self.forget_destination();
    }

    fn may_work_in(&self, mode: CyclicMode) -> bool {
        self.mode == mode || self.before == Some(mode)
    }

    /// Position of a drive that does not follow set-points. One reply may be wrong despite a right
    /// working counter. A position out of reach within one cycle is replaced by the median of the
    /// target, the previous position and the reported one, so that a second reply has to confirm
    /// it.
    fn place(&self, input: DriveInput) -> i32 {
        let (told, held) = (input.position, self.holds_at());
        match self.last_input {
            Some(before) if !self.is_a_step(before.position, told) => {
                let mut ways = [0, before.position.wrapping_sub(held), told.wrapping_sub(held)];
                ways.sort_unstable();
                held.wrapping_add(ways[1])
            }
            _ => told,
        }
    }

    fn is_too_far(&self, position: i32) -> bool {
        !self.is_a_step(self.holds_at(), position)
    }

    /// True for two positions that a cycle may lie between.
    fn is_a_step(&self, from: i32, to: i32) -> bool {
        to.wrapping_sub(from).unsigned_abs() <= self.maximum_step
    }

    fn controlword(&mut self, input: DriveInput, command: DriveCommand) -> Controlword {
        let DriveCommand { request, help, .. } = command;
        let Some(state) = self.state else {
            return self.output.controlword;
        };
        if state == State::Fault && request == Request::FaultReset {
            return self.fault_reset_controlword();
        }
        self.reset_cycles_left = 0;
        match (request, state) {
            (_, State::NotReadyToSwitchOn | State::FaultReactionActive | State::Fault) => {
                Controlword::DISABLE_VOLTAGE
            }
            (Request::Enable, State::QuickStopActive) => self.leave_quick_stop(input),
            (Request::Enable, State::SwitchOnDisabled) => Controlword::SHUTDOWN,
            (Request::Enable, State::ReadyToSwitchOn) => Controlword::SWITCH_ON,
            (Request::Enable, State::SwitchedOn | State::OperationEnabled) => Controlword::ENABLE_OPERATION,
            (Request::QuickStop, State::SwitchOnDisabled) => Controlword::DISABLE_VOLTAGE,
            (Request::QuickStop, State::OperationEnabled) if help == QuickStopHelp::Halts => {
                Controlword::QUICK_STOP.with_halt()
            }
            (Request::QuickStop, _) => Controlword::QUICK_STOP,
            (Request::Halt, State::OperationEnabled) => Controlword::ENABLE_OPERATION.with_halt(),
            (Request::Halt, State::QuickStopActive) => Controlword::QUICK_STOP,
            (Request::Halt, State::SwitchedOn) => Controlword::SWITCH_ON.with_halt(),
            (Request::Halt, State::ReadyToSwitchOn) => Controlword::SHUTDOWN.with_halt(),
            (Request::Halt, State::SwitchOnDisabled) => Controlword::DISABLE_VOLTAGE.with_halt(),
            (Request::Disable, _) if help == QuickStopHelp::CutsOff => Controlword::DISABLE_VOLTAGE,
            (Request::Disable | Request::FaultReset, State::OperationEnabled) => {
                Controlword::DISABLE_OPERATION
            }
            (Request::Disable | Request::FaultReset, State::SwitchedOn) => Controlword::SHUTDOWN,
            (Request::Disable | Request::FaultReset, _) => Controlword::DISABLE_VOLTAGE,
        }
    }

    /// Bit 7 toggles every [`FAULT_RESET_CYCLES`] while the fault stays; every other word sent has
    /// it low, so the first one here is always an edge.
    fn fault_reset_controlword(&mut self) -> Controlword {
        let high = self.output.controlword.fault_reset();
        if self.reset_cycles_left > 0 {
            self.reset_cycles_left -= 1;
            return if high { Controlword::FAULT_RESET } else { Controlword::DISABLE_VOLTAGE };
        }
        self.reset_cycles_left = FAULT_RESET_CYCLES - 1;
        if high { Controlword::DISABLE_VOLTAGE } else { Controlword::FAULT_RESET }
    }

    /// The axis brakes to standstill before Disable voltage. Standstill is Target reached, or an
    /// unchanged encoder position for drives that do not set that bit.
    fn leave_quick_stop(&self, input: DriveInput) -> Controlword {
        // A drive that samples more slowly than the bus repeats its position.
        let was =
            self.last_input.is_some_and(|last| last.statusword.state() == Some(State::QuickStopActive));
        if (was && self.standing >= REST_CYCLES) || input.statusword.target_reached() {
            Controlword::DISABLE_VOLTAGE
        } else {
            Controlword::QUICK_STOP
        }
    }
}

/// `asked`, if it lies between `last` and 0; else `last`, or 0.
pub(super) fn fallen(last: i32, asked: i32) -> i32 {
    asked.clamp(last.min(0), last.max(0))
}

#[cfg(test)]
mod tests;
