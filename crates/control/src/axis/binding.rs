//! One axis, bound to the process image.

mod position;

use std::sync::Arc;
use std::time::Duration;

use ethercat::cia402::object::{ERROR_CODE, of_axis};
use ethercat::cia402::{
    AxisMode, Drive, DriveCommand, DriveInput, ModeOfOperation, Phase, Request, State, Statusword,
};
use ethercat::main_device::{BringUpPhase, MainDevice, SubDevice};
use ethercat::pdo::PdoField;
use ipc::state::Refusal;
use motion::homing::Home;
use motion::supervision::{
    BLIND_CYCLES, DriveProfile, Ending, InterlockState, OtherAxis, STANDS, Seen, StopReason,
};
use motion::{
    AxisFeedback, AxisPhase, AxisScale, AxisSetpoint, Radians, RadiansPerSecond, RestartRule, Seconds,
};

use super::belief::{self, Belief, Plausibility};
use super::brake::BoundBrake;
use super::fields::{self, Fields, InputFields, Lacking, OutputFields};
use super::ignored::Ignored;
use super::memory::{MemoryGate, Place, PositionMemory};
use super::mode::{ModeChange, drive_profile};
use super::safety::AxisSafety;
use super::start::{StartStep, StartUp};
use super::torque_limit::TorqueLimit;
use super::{AxisConfiguration, AxisError, Manual};
use crate::controller::{AxisCommand, AxisReport, IgnoredSetpoint};
use crate::signal::{Moment, Signals};

use position::continued;
pub(super) use position::is_sensor_fault;

/// One axis, bound.
#[derive(Debug)]
pub(super) struct Axis {
    sub_device: usize,
    /// Place among the axes of its drive, from 0.
    drive_axis: u8,
    scale: AxisScale,
    inputs: InputFields,
    outputs: OutputFields,
    drive: Drive,
    /// Speeds and ramps of a drive that generates its own profile.
    profile: Option<DriveProfile>,
    /// Torque limit of its drive, where it is in the process data.
    torque_limit: Option<TorqueLimit>,
    mode: ModeChange,
    /// Feedback of the drive on this cycle, if it can be trusted.
    input: Option<DriveInput>,
    /// Position in counts that does not wrap: endless axes turn past 2^31.
    counts: Option<i64>,
    /// Positions that its drive may report; `None` without supervision.
    plausibility: Option<Plausibility>,
    stands: bool,
    home: Home,
    /// Number of times that its place was taken as its home.
    homed_by_hand: u32,
    /// No controller moves it before it is homed.
    needs_homing: bool,
    /// Rule for its position after a restart of its drive; `None` without position limits.
    restart_rule: Option<RestartRule>,
    /// Faults of before, and the wait for a start request.
    start: StartUp,
    /// The bus is in Op.
    in_op: bool,
    /// Error code of its drive, as far as known.
    error_code: u16,
    /// To the thread that writes its position memory, where it has one.
    memory: Option<Arc<MemoryGate>>,
    /// Positions at the end of the last run and at the start of this one, if they differ.
    moved: Option<[Radians; 2]>,
    /// It waits for that thread before its drive is enabled.
    held_back: bool,
    /// The turn that its drive counts from is still to be found.
    turn_is_open: bool,
    /// Its place before the restart of its drive, or of Onbeat, until the drive reports one again.
    restarted: Option<Restarted>,
    /// The larger of the speed it reported last and the speed its drive was sent then.
    speed: RadiansPerSecond,
    /// Time its drive has been looking for its home, while it does.
    searching: Option<Seconds>,
    safety: AxisSafety,
    /// Set-points that its mode does not take.
    ignored: Ignored,
    /// Command the drive is to be sent.
    command: AxisCommand,
    /// Report of the axis, before any change.
    feedback: AxisFeedback,
    /// Following error as its drive counts it, where it does.
    following_error: Option<Radians>,
    /// Consecutive cycles of an outage up to this one, as in [`motion::supervision::Seen`].
    missed: u64,
    /// It exchanged process data in this cycle.
    exchanged: bool,
    /// The statusword of this cycle's reply, whatever else it says.
    shows: Option<Statusword>,
    /// Consecutive replies with a fault of the drive.
    faults_shown: u32,
    /// Consecutive replies that show that its drive has left Operation enabled without a command.
    surprises: u64,
    /// Permission of the machine around it.
    interlock: InterlockState,
    /// Consecutive cycles in which the output of its brake was not taken, though its drive
    /// exchanged process data; `None` before it was taken for the first time.
    brake_missed: Option<u64>,
    /// It was not on the bus, and need not be, since it was stopped.
    stays_away: bool,
    /// Since its inputs came in last.
    since_input: Duration,
    /// Longest time between two positions that give a velocity: over a longer one it is no more
    /// than a mean.
    longest_step: Duration,
}

/// Place of an axis when its drive was last known to have power.
#[derive(Clone, Copy, Debug)]
struct Restarted {
    counts: i64,
    speed: RadiansPerSecond,
    /// It is of the run before.
    is_kept: bool,
}

impl Axis {
    pub(super) fn bind(
        configuration: &AxisConfiguration,
        main_device: &MainDevice,
        period: Seconds,
    ) -> Result<Self, AxisError> {
        let AxisConfiguration { name, sub_device: position, drive_axis, mode, scale, maximum_step, .. } =
            configuration;
        let sub_devices = main_device.sub_devices();
        let sub_device = sub_devices.get(*position).ok_or_else(|| AxisError::NoSubDevice {
            axis: name.clone(),
            position: *position,
            found: sub_devices.len(),
        })?;
        let (mapping, outputs) = (&sub_device.mapping, sub_device.output_bytes());
        let own = |index| of_axis(index, *drive_axis);
        let input = |index| fields::input(sub_device, *drive_axis, index);
        let output =
            |index, sub_index| mapping.output(own(index), sub_index).and_then(|it| it.within(32, outputs));
        let missing = |Lacking { object: (index, object), direction }| AxisError::NotMapped {
            axis: name.clone(),
            sub_device: sub_device.name.clone(),
            object,
            index: own(index),
            direction,
        };
        let fields = Fields::find(*mode, input, output).map_err(missing)?;
        let home = Home::new(configuration.homing);
        if home.timeout().is_some() {
            fields.changes_mode().map_err(missing)?;
            if configuration.supervision.is_none() {
                return Err(AxisError::UnsupervisedHoming { axis: name.clone() });
            }
        }
        configuration.modes.iter().try_for_each(|&it| fields.takes(it)).map_err(missing)?;
        let profile = drive_profile(configuration)?;
        let plausibility = configuration.supervision.map(|it| {
            let usual = it.limits.velocity * belief::MARGIN;
            Plausibility::new(configuration.feedback_velocity.unwrap_or(usual), scale)
        });
        let mut safety =
            AxisSafety::new(configuration, BoundBrake::bind(configuration, main_device)?, period)?;
        let torque_limits = fields.outputs.maximum_torque.zip(safety.torque_limits());
        let torque_limit =
            torque_limits.map(|(field, (limit, jog))| TorqueLimit::new(field, scale, limit, jog));
        torque_limit.iter().for_each(|it| safety.set_drive_torque(it.of_jog(scale)));
        let restart_rule = configuration
            .supervision
            .and_then(|it| RestartRule::of(configuration.position_sense, &it.limits, safety.engage_time()));
        let mut axis = Self {
            sub_device: *position,
            drive_axis: *drive_axis,
            scale: *scale,
            mode: ModeChange::of(configuration, &fields, period),
            inputs: fields.inputs,
            outputs: fields.outputs,
            drive: Drive::in_mode(*mode, step_in_counts(scale, *maximum_step)),
            profile,
            torque_limit,
            input: None,
            counts: None,
            plausibility,
            stands: true,
            home,
            needs_homing: configuration.needs_homing,
            restart_rule,
            start: StartUp::new(configuration.start),
            in_op: false,
            error_code: 0,
            memory: None,
            moved: None,
            held_back: false,
            homed_by_hand: 0,
            turn_is_open: true,
            restarted: None,
            speed: RadiansPerSecond::ZERO,
            searching: None,
            safety,
            ignored: Ignored::default(),
            command: AxisCommand::default(),
            feedback: AxisFeedback::default(),
            following_error: None,
            missed: 0,
            exchanged: true,
            shows: None,
            faults_shown: 0,
            surprises: 0,
            interlock: InterlockState::Clear,
            brake_missed: None,
            stays_away: false,
            since_input: Duration::ZERO,
            longest_step: Duration::from_secs_f64(period.0 * (BLIND_CYCLES as f64 + 1.5)),
        };
        configuration.memory.iter().for_each(|memory| axis.remember(memory));
        Ok(axis)
    }

    /// Its position is compared with the one of the run before.
    fn remember(&mut self, memory: &PositionMemory) {
        if self.restart_rule.is_none() {
            return;
        }
        self.memory = Some(Arc::clone(&memory.gate));
        match memory.last {
            Ok(counts) => {
                let (counts, speed) = (i64::from(counts), RadiansPerSecond::ZERO);
                self.restarted = Some(Restarted { counts, speed, is_kept: true });
            }
            Err(reason) => self.unreference(reason),
        }
    }

    /// The usual torque limit of its drive is the one that the robot file gives, if it gives one.
    pub(super) fn keep_torque_limit(&mut self, signals: &Signals) {
        let Some(limit) = &mut self.torque_limit else { return };
        if let Some(usual) = signals.fixed(self.sub_device, limit.field()) {
            limit.keep(usual as u16);
            self.safety.set_drive_torque(limit.of_jog(&self.scale));
        }
    }

    /// Shows the thread that writes its position memory where it is.
    fn show_place(&self) {
        let (Some(memory), Some(input)) = (&self.memory, self.input) else { return };
        let is_off = input.statusword.state().is_some_and(|it| !it.is_powered());
        let stands = !self.safety.is_faster_than(self.feedback.velocity, STANDS);
        let is_known = self.restarted.is_none() && self.safety.unreferenced().is_none();
        memory.show(Place { counts: input.position, rests: is_off && stands && is_known });
    }

    /// Waits with the enabling until the position memory on the disk says that the axis is in use.
    fn wait_for_memory(&mut self) {
        self.held_back = false;
        let Some(memory) = &self.memory else { return };
        let is_powered = self.state().is_some_and(State::is_powered);
        if self.command.request == Request::Enable || is_powered {
            if !memory.enter() && !is_powered {
                self.command.request = Request::Disable;
                self.safety.hold_back(true);
                self.held_back = true;
            }
        } else if self.input.is_some() {
            memory.leave();
        }
    }

    /// Its controller is lost: a drive that has no torque is not enabled. The last request stays,
    /// so that the return of the controller is no rising request, and does not lapse.
    pub(super) fn keep_off(&mut self) {
        self.keep_disabled(false);
    }

    /// A drive without torque does not get the request to enable it, which lapses or not.
    fn keep_disabled(&mut self, lapses: bool) {
        let has_torque = self.state().is_none_or(State::is_powered);
        if matches!(self.command.request, Request::Enable | Request::Halt) && !has_torque {
            self.command.request = Request::Disable;
            self.safety.hold_back(lapses);
        }
    }

    pub(super) fn read(&mut self, main_device: &MainDevice, moment: Moment, report: &mut AxisReport) {
        let sub_device = main_device.sub_devices().get(self.sub_device);
        report.absent = sub_device.is_some_and(SubDevice::is_absent)
            || main_device.waits_for_its_group(self.sub_device);
        report.measures_torque = self.inputs.torque.is_some();
        report.homed = self.home.is_homed();
        report.homed_by_hand = self.homed_by_hand;
        report.homing = self.drive.is_homing() || self.searching.is_some();
        self.since_input = self.since_input.saturating_add(moment.elapsed);
        let came = main_device.inputs_fresh(self.sub_device) && !moment.outdated;
        let fresh = self.believes(main_device, came, moment, report.homing);
        self.shows = came.then(|| {
            let word = self.inputs.statusword.read(main_device.inputs(self.sub_device));
            Statusword(word as u16)
        });
        self.count_faults();
        let fresh = fresh && !self.is_surprised();
        self.count_missed(moment, fresh && main_device.outputs_taken(self.sub_device));
        self.watch_brake(main_device);
        self.safety.read(main_device, moment);
        self.input = None;
        let mut knows_velocity = true;
        if fresh {
            let elapsed = std::mem::take(&mut self.since_input);
            knows_velocity = self.inputs.velocity.is_some() || elapsed <= self.longest_step;
            self.judge_restart(main_device.inputs(self.sub_device));
            self.take_input(main_device.inputs(self.sub_device), elapsed, report);
            self.judge_start();
        } else if let Some(word) = self.fault_shown(report.state) {
            self.note_state(main_device.inputs(self.sub_device), word, report);
        }
        self.feedback.fresh = self.exchanged && knows_velocity;
        self.note_speed(fresh && knows_velocity);
        self.watch_sensor(report);
        self.show_place();
        (self.in_op, self.error_code) = (main_device.phase() == BringUpPhase::Op, report.error_code);
        let holds_at = self.holds_at(self.counts.unwrap_or(0));
        let phase = self.safety.shown(self.feedback.phase, holds_at);
        report.missed = u32::try_from(self.missed).unwrap_or(u32::MAX);
        report.feedback = AxisFeedback { phase, ..self.feedback };
    }

    /// Counts the replies that show a fault.
    fn count_faults(&mut self) {
        let Some(shown) = self.shows else { return };
        let is_faulted = shown.state().is_some_and(State::is_faulted);
        self.faults_shown = if is_faulted { self.faults_shown.saturating_add(1) } else { 0 };
    }

    /// The statusword with a fault that its drive shows in several replies: it counts also while
    /// the positions in them are not plausible, as of a shaft that is pushed. So does the end of
    /// the fault that is `reported`.
    fn fault_shown(&self, reported: Option<State>) -> Option<Statusword> {
        let word = self.shows?;
        let counts = match word.state()?.is_faulted() {
            true => self.faults_shown >= FAULTS_SHOWN,
            false => reported.is_some_and(State::is_faulted),
        };
        counts.then_some(word)
    }

    /// Takes the state that its drive shows, and the error code.
    fn note_state(&self, image: &[u8], word: Statusword, report: &mut AxisReport) {
        (report.state, report.statusword) = (word.state(), word);
        if let Some(code) = self.inputs.error_code {
            report.error_code = code.read(image) as u16;
        } else if !report.state.is_some_and(State::is_faulted) {
            report.error_code = 0;
        }
    }

    /// True if inputs came in this cycle.
    pub(super) fn has_inputs(&self) -> bool {
        self.shows.is_some()
    }

    /// True if inputs `came` with a plausible position. While its drive homes, positions may jump,
    /// and before Op, when a drive may still be starting, any is taken.
    fn believes(&mut self, main_device: &MainDevice, came: bool, moment: Moment, homing: bool) -> bool {
        let Some(plausibility) = &mut self.plausibility else { return came };
        plausibility.pass(moment.elapsed);
        if !came {
            return false;
        }
        let reported = self.inputs.position.read_signed(main_device.inputs(self.sub_device)) as i32;
        // A drive that has just restarted may report any position before it has started up.
        let in_op = main_device.phase() == BringUpPhase::Op && self.restarted.is_none();
        let before = self.counts.filter(|_| in_op);
        match plausibility.judge(before, reported, self.since_input, homing) {
            Belief::Here => true,
            Belief::Nowhere => false,
            Belief::Elsewhere => {
                self.counts = None;
                match self.restart_rule {
                    Some(_) => self.unreference(StopReason::UnreferencedCount),
                    None => self.home.forget(),
                }
                self.safety.anchor();
                true
            }
        }
    }

    /// True if the reply is skipped: it shows that the drive has left Operation enabled without a
    /// command. The third consecutive one counts.
    fn is_surprised(&mut self) -> bool {
        let Some(state) = self.shows.and_then(Statusword::state) else { return false };
        let left = state != State::OperationEnabled && !state.is_faulted();
        self.surprises = match left && self.safety.expects_enabled() {
            true => self.surprises.saturating_add(1),
            false => 0,
        };
        let is_surprised = (1..=BLIND_CYCLES).contains(&self.surprises);
        self.shows = self.shows.filter(|_| !is_surprised);
        is_surprised
    }

    /// It exchanged if its inputs came in, could be, and its outputs were taken.
    fn count_missed(&mut self, moment: Moment, exchanged: bool) {
        if self.exchanged {
            self.missed = 0;
        }
        self.exchanged = exchanged;
        self.missed = self.missed.saturating_add(moment.stalled).saturating_add(u64::from(!exchanged));
    }

    /// The SubDevice of its brake may have fallen out of Op, which shuts the brake, while its drive
    /// has not.
    fn watch_brake(&mut self, main_device: &MainDevice) {
        let served = self.safety.brake_output().is_none_or(|(sub_device, _)| {
            sub_device == self.sub_device || main_device.outputs_taken(sub_device)
        });
        match &mut self.brake_missed {
            missed if served => *missed = Some(0),
            Some(missed) if self.exchanged => *missed = missed.saturating_add(1),
            _ => {}
        }
    }

    fn take_input(&mut self, image: &[u8], elapsed: Duration, report: &mut AxisReport) {
        let input = DriveInput {
            statusword: Statusword(self.inputs.statusword.read(image) as u16),
            position: self.inputs.position.read_signed(image) as i32,
            velocity: self.inputs.velocity.map_or(0, |field| field.read_signed(image) as i32),
            torque: self.inputs.torque.map_or(0, |field| field.read_signed(image) as i16),
            mode: self
                .inputs
                .mode
                .map(|field| ModeOfOperation::from_number(field.read_signed(image) as i8)),
        };
        let before = self.counts;
        let counts = before.map_or(i64::from(input.position), |before| continued(before, input.position));
        self.input = Some(input);
        self.counts = Some(counts);
        let position = self.position(counts);
        let velocity = match (self.inputs.velocity, before) {
            (Some(_), _) => self.scale.velocity(input.velocity),
            // While its drive homes, positions may jump.
            (None, Some(before)) if !elapsed.is_zero() && !report.homing => {
                RadiansPerSecond((position - self.position(before)).0 / elapsed.as_secs_f64())
            }
            (None, _) => RadiansPerSecond::ZERO,
        };
        let following_error = self.inputs.following_error.map(|field| field.read_signed(image));
        self.following_error = following_error.map(|counts| self.scale.position(counts));
        report.counts = Some((input.position, self.scale.counts_per_radian()));
        self.note_state(image, input.statusword, report);
        report.mode = Some(input.mode.unwrap_or(self.drive.mode_of_operation()));
        self.feedback = AxisFeedback {
            position,
            velocity,
            torque: self.scale.torque(input.torque),
            phase: match self.drive.phase() {
                Phase::NotEnabled => AxisPhase::NotEnabled,
                Phase::Holding => AxisPhase::HoldingAt(self.holds_at(counts)),
                Phase::Following => AxisPhase::Following,
            },
            fresh: true,
        };
    }

    /// Decides whether the axis is stopped or released, by the request of its controller; `stale`
    /// and `ending` as in [`motion::supervision::Seen`].
    pub(super) fn judge(
        &mut self,
        elapsed: Seconds,
        asked: &AxisCommand,
        stale: Option<Seconds>,
        ending: Ending,
        manual: Manual,
    ) {
        let asked = &self.begin_run(elapsed, *asked);
        self.watch_homing(elapsed);
        self.change_mode(asked.mode);
        let counts = self.counts.unwrap_or(0);
        let may = self.input.is_some() && (self.stands || self.feedback.phase == AxisPhase::NotEnabled);
        let may = may && (asked.home_again || !self.limits_would_move());
        if asked.home && may && self.home.timeout().is_some() {
            self.begin_homing(asked.request);
        } else if asked.home && may && self.may_take_home() && self.home.take(self.drive_position(counts)) {
            self.homed_by_hand = self.homed_by_hand.wrapping_add(1);
            self.feedback.position = self.position(counts);
            self.safety.anchor();
        }
        if self.brake_missed.is_some_and(|missed| missed > BLIND_CYCLES) {
            self.safety.stop_for(StopReason::Brake);
        }
        let is_known = self.brake_missed.is_some() && self.safety.knows_brake();
        let brake = if is_known { InterlockState::Clear } else { InterlockState::NotYet };
        let shown = self.shows.and_then(Statusword::state);
        let seen = Seen {
            feedback: self.feedback,
            following_error: self.following_error,
            stale,
            missed: self.missed,
            implausible: self.plausibility.map_or(0, |it| it.in_a_row()),
            leaps: match self.shows {
                Some(_) => self.plausibility.map_or(0, |it| it.leaps()),
                None => 0,
            },
            homing: self.drive.is_homing(),
            interlock: self.interlock.max(brake),
            ending,
            enabled: shown == Some(State::OperationEnabled),
            brakes: shown == Some(State::QuickStopActive),
            switched_on: shown.is_some_and(|it| it == State::SwitchedOn || it.is_powered()),
            has_power: self.shows.map(Statusword::voltage_enabled),
            not_homed: self.needs_homing && !self.home.is_homed(),
            set_up: manual.set_up,
            jog: manual.jog,
            ..Seen::default()
        };
        self.safety.judge(elapsed, asked, self.state(), self.holds_at(counts), seen);
    }

    /// Resets a fault of before, and has the axis wait for a start request. Returns the request.
    fn begin_run(&mut self, elapsed: Seconds, asked: AxisCommand) -> AxisCommand {
        let Some(input) = self.input.filter(|_| self.in_op && self.exchanged) else { return asked };
        match self.start.step(elapsed, input.statusword.state(), self.error_code, asked.request) {
            StartStep::Nothing => asked,
            StartStep::Reset => AxisCommand { request: Request::FaultReset, ..asked },
            StartStep::Wait => {
                self.safety.wait_for_start();
                asked
            }
        }
    }

    /// State of its drive, as its statusword says it in this cycle, else as it was last.
    fn state(&self) -> Option<State> {
        self.input.map_or(self.drive.state(), |input| input.statusword.state())
    }

    /// Its stop, for axes that are stopped with it. An axis that is not on the bus, and need not
    /// be, stops no other until it has joined and moved.
    pub(super) fn stop_for_others(&mut self, absent: bool) -> OtherAxis {
        let stop = self.safety.stop_for_others();
        self.stays_away = stop != OtherAxis::Free && (absent || self.stays_away);
        if self.stays_away { OtherAxis::Free } else { stop }
    }

    /// Stops it with another axis, as long as that is stopped. True if that has just begun.
    pub(super) fn stop_with(&mut self, other: OtherAxis) -> bool {
        self.safety.stop_with(other)
    }

    /// Holds it as long as another axis of its controller's chain is not ready.
    pub(super) fn hold_with_chain(&mut self, held: bool) {
        self.safety.hold_with_chain(held);
    }

    /// Reason that keeps a controller from moving it and the axes of its chain.
    pub(super) fn unready(&self) -> Option<StopReason> {
        self.safety.unready()
    }

    /// True while a jog has it.
    pub(super) fn is_jogged(&self) -> bool {
        self.safety.is_jogged()
    }

    /// Limit of a jog; 0 without supervision.
    pub(super) fn fastest_jog(&self) -> RadiansPerSecond {
        self.safety.fastest_jog()
    }

    /// True if a jog may move it, or the reason for which not.
    pub(super) fn may_jog(&self, report: &AxisReport) -> Result<(), Refusal> {
        if !self.safety.takes_jogs() {
            return Err(Refusal::JogMode);
        }
        let enabled = self.exchanged && self.state() == Some(State::OperationEnabled);
        let is_free = report.stop.is_none_or(|it| !it.is_latched());
        match self.safety.may_jog() {
            true if enabled && !self.is_homing() => Ok(()),
            false if enabled && is_free => Err(Refusal::JogMoving),
            _ => Err(Refusal::JogHeld),
        }
    }

    /// Command for the axis, made safe after [`Self::judge`].
    pub(super) fn supervise(&mut self, elapsed: Seconds, asked: &AxisCommand, report: &mut AxisReport) {
        let before = report.stop;
        (self.command, report.stop) = self.safety.step(elapsed);
        self.wait_for_memory();
        if !self.safety.has_shown_brake() {
            // A brake that is open at the start is a fault after its time to close.
            self.keep_disabled(true);
        }
        report.memory_error = match &self.memory {
            Some(memory) if self.held_back => memory.error(),
            // The request has lapsed because of it.
            Some(_) if report.stop == Some(StopReason::AwaitsStart) => report.memory_error,
            _ => 0,
        };
        report.moved = self.moved.filter(|_| report.stop == Some(StopReason::UnreferencedMoved));
        report.quick_stop = self.safety.quick_stop_step();
        report.overshoot = self.safety.overshoot();
        report.brake = self.safety.brake_cause();
        let held = report.stop.is_some() && self.missed == 0;
        report.held = if held { report.held.saturating_add(1) } else { 0 };
        let mode = self.mode.now();
        let elsewhere = asked.ignored.map(|given| IgnoredSetpoint { mode, given });
        report.ignored = self.ignored.look(mode, &report.feedback, asked).or(elsewhere);
        let state = self.state();
        let enabled = self.exchanged && state == Some(State::OperationEnabled);
        report.was_enabled |= enabled;
        let forbidden = report.stop == Some(StopReason::NotPermitted);
        let now_permitted = before == Some(StopReason::NotPermitted) && !forbidden;
        report.waits = match asked.request {
            Request::Enable if enabled || now_permitted || self.held_back => 0,
            // Supervision does not request what it holds back, and an outage says nothing about the
            // drive.
            Request::Enable if report.stop.is_some() && !forbidden => report.waits,
            Request::Enable => report.waits.saturating_add(u32::from(self.exchanged)),
            _ => 0,
        };
    }

    /// Requests another mode of its drive, and gives up one that it does not take.
    fn change_mode(&mut self, asked: Option<AxisMode>) {
        let enabled = self.exchanged && self.feedback.phase != AxisPhase::NotEnabled;
        let wanted = match asked.filter(|&mode| mode != self.mode.now()) {
            Some(mode) if self.may_become(mode) => Some(mode),
            _ => self.mode.gives_up(self.drive.is_changing_mode() && enabled),
        };
        let before = self.mode.now();
        if let Some(mode) = wanted.filter(|&mode| self.drive.change_mode(mode)) {
            self.mode.begin(mode);
            self.safety.change_mode(mode, &self.feedback);
            if enabled && (mode.is_profile() || before.is_profile()) {
                // The request belongs to the previous mode.
                self.safety.anchor();
            }
        } else if !self.drive.is_changing_mode() {
            self.safety.settle_mode();
        }
    }

    fn may_become(&self, mode: AxisMode) -> bool {
        let is_held = self.stands && !self.safety.is_fast(self.feedback.velocity);
        let rests = self.input.is_some() && (is_held || self.feedback.phase == AxisPhase::NotEnabled);
        (rests || self.safety.is_free()) && self.mode.may_become(mode, rests)
    }

    pub(super) fn write(&mut self, main_device: &mut MainDevice) {
        let last = self.drive.last_output();
        let AxisCommand { request, setpoint, .. } = self.command;
        let command = DriveCommand {
            request,
            target_position: self.target_counts(setpoint.position).unwrap_or(last.target_position),
            target_velocity: self
                .scale
                .velocity_counts(setpoint.velocity)
                .map_or(last.target_velocity, |counts| counts.value),
            target_torque: self
                .scale
                .torque_units(setpoint.torque)
                .map_or(last.target_torque, |units| units.value),
            help: self.safety.help(),
        };
        let output = self.drive.update(self.input, command);
        let makes_its_way = self.mode.now().is_profile() && self.safety.is_fast(self.feedback.velocity);
        self.stands = !makes_its_way
            && output.target_position == last.target_position
            && output.target_velocity == 0
            && output.target_torque == 0;
        let image = main_device.outputs_mut(self.sub_device);
        let mut write = |field: Option<PdoField>, value: u32| {
            if let Some(field) = field {
                field.write(image, value.into());
            }
        };
        write(Some(self.outputs.controlword), output.controlword.0.into());
        write(self.outputs.position, output.target_position as u32);
        write(self.outputs.interpolation, output.target_position as u32);
        write(self.outputs.velocity, output.target_velocity as u32);
        write(self.outputs.torque, output.target_torque as u16 as u32);
        write(self.outputs.mode, self.drive.mode_of_operation().number() as u8 as u32);
        if let Some(profile) = self.profile {
            write(self.outputs.profile_velocity, profile.velocity);
            write(self.outputs.profile_acceleration, profile.acceleration);
            write(self.outputs.profile_deceleration, profile.acceleration);
            write(self.outputs.torque_slope, profile.torque_slope);
        }
        if let Some(limit) = self.torque_limit {
            write(Some(limit.field()), limit.value(self.safety.has_low_torque()).into());
        }
        self.safety.write(main_device);
    }

    /// Command the drive was sent last.
    pub(super) fn sent(&self) -> AxisSetpoint {
        let output = self.drive.last_output();
        AxisSetpoint {
            position: self.holds_at(self.counts.unwrap_or(0)),
            velocity: self.scale.velocity(output.target_velocity),
            torque: self.scale.torque(output.target_torque),
        }
    }

    /// Output that holds its brake open: place of the SubDevice, and field.
    pub(super) fn brake_output(&self) -> Option<(usize, PdoField)> {
        self.safety.brake_output()
    }

    /// Time its brake takes to hold it.
    pub(super) fn engage_time(&self) -> Seconds {
        self.safety.engage_time()
    }

    /// Time in which the feedback of its brake shows whether that is closed without torque.
    pub(super) fn time_to_show(&self) -> Seconds {
        self.safety.time_to_show()
    }

    /// True while that feedback may still show that the brake does not close. A drive with an
    /// outage for long is not waited for.
    pub(super) fn is_pending(&self) -> bool {
        !self.safety.gives_up_after(self.missed) && self.safety.is_pending()
    }

    /// Numbers the inputs of its brake from `first`, and returns the number of the next.
    pub(super) fn number_brake_inputs(&mut self, first: usize) -> usize {
        self.safety.number_brake_inputs(first)
    }

    /// The end of the run hurries.
    pub(super) const fn hurry(&mut self) {
        self.safety.hurry();
    }

    /// True while other steps than its drive's quick stop bring it to rest.
    pub(super) fn stops_by_steps(&self) -> bool {
        self.quick_stop_time().0 > 0.0
    }

    /// Longest time that such steps take from here.
    pub(super) fn quick_stop_time(&self) -> Seconds {
        self.safety.quick_stop_time()
    }

    /// Time supervision takes from here to bring it to rest.
    pub(super) fn braking_time(&self) -> Seconds {
        self.safety.braking_time()
    }

    /// Clears its interlock.
    pub(super) fn clear_interlock(&mut self) {
        self.interlock = InterlockState::Clear;
    }

    /// The machine around it allows no more than this.
    pub(super) fn set_interlock(&mut self, interlock: InterlockState) {
        self.interlock = self.interlock.max(interlock);
    }

    /// Its drive's place on the bus.
    pub(super) fn sub_device(&self) -> usize {
        self.sub_device
    }

    /// Index of its error code in the object dictionary of its drive.
    pub(super) fn error_code(&self) -> u16 {
        of_axis(ERROR_CODE, self.drive_axis)
    }

    /// True if its error code is among the inputs.
    pub(super) fn maps_error_code(&self) -> bool {
        self.inputs.error_code.is_some()
    }

    /// Time it takes to ramp to zero.
    pub(super) fn ramp_time(&self) -> Seconds {
        self.safety.ramp_time()
    }

    /// True if its drive is still on its way down to Switch on disabled, or to a fault. One with an
    /// outage for long is not waited for.
    pub(super) fn is_powered(&self) -> bool {
        let off = [State::NotReadyToSwitchOn, State::SwitchOnDisabled, State::Fault];
        !self.safety.gives_up_after(self.missed)
            && self.drive.state().is_some_and(|state| !off.contains(&state))
    }

    /// True if it is enabled only to hold its load, or slows down to that. Cycles without a reply
    /// do not end it before its drive is given up.
    pub(super) fn keeps_load(&self) -> bool {
        !self.safety.gives_up_after(self.missed)
            && self.drive.state() == Some(State::OperationEnabled)
            && self.safety.keeps_load()
    }

    /// True if it moves, as far as its drive shows.
    pub(super) fn moves(&self) -> bool {
        let enabled = matches!(self.drive.state(), Some(State::OperationEnabled | State::QuickStopActive));
        enabled && (!self.stands || self.safety.is_fast(self.feedback.velocity))
    }

    /// True if its drive has it, to find its home.
    pub(super) fn is_homing(&self) -> bool {
        self.drive.is_homing()
    }

    /// True if its drive was sent no other target than on the cycle before, and no velocity or
    /// torque.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    fn position(&self, counts: i64) -> Radians {
        self.home.position(self.drive_position(counts))
    }

    /// As the drive counts it.
    fn drive_position(&self, counts: i64) -> Radians {
        self.scale.position(counts)
    }

    /// The target position the drive was last sent, next to `counts`.
    fn holds_at(&self, counts: i64) -> Radians {
        self.position(continued(counts, self.drive.holds_at()))
    }

    /// The target in the drive's counts, modulo 2^32 like positions; `None` for one that is not
    /// finite or half the range away from the axis.
    fn target_counts(&self, target: Radians) -> Option<i32> {
        let target = self.scale.position_counts(self.home.drive_position(target)).ok()?;
        let away = target.value.abs_diff(self.counts.unwrap_or(0));
        (!target.saturated && away < i32::MAX as u64).then_some(target.value as i32)
    }
}

/// Replies with a fault after which it counts, whatever position they show.
const FAULTS_SHOWN: u32 = 3;

/// At least one count; an endless step is no limit.
fn step_in_counts(scale: &AxisScale, step: Radians) -> u32 {
    let counts = scale.position_counts(step).map_or(0, |step| step.value.unsigned_abs());
    u32::try_from(counts).unwrap_or(u32::MAX).max(1)
}
