//! Axes: process image to feedback in SI units, and set-points back into the process image.
//!
//! Between the two, each axis has its reference position ([`motion::homing`]), its supervision
//! ([`motion::supervision`]) and its brake ([`motion::brake`]).

mod belief;
mod binding;
mod brake;
mod error;
mod fault;
mod fields;
mod given;
pub(crate) mod ignored;
mod manual;
pub mod memory;
mod mode;
mod safety;
pub mod start;
mod together;
mod torque_limit;

use std::time::Duration;

use ethercat::cia402::{AxisMode, Request, State};
use ethercat::main_device::MainDevice;
use ipc::reference::{Given, Outcome, Refusal};
use motion::brake::BrakeConfiguration;
use motion::homing::Homing;
use motion::supervision::{BLIND_CYCLES, Ending, InterlockState, Jog, JogLimits, StopReason};
use motion::{AxisScale, AxisSetpoint, PositionSense, Radians, RadiansPerSecond, Seconds, supervision};
pub use types::{BrakeFeedback, DigitalOutput, FeedbackInput};

use crate::controller::{AxisCommand, AxisReport, InterlockCause};
use crate::signal::{Moment, OwnedOutputs, Signals};
use binding::{Axis, is_sensor_fault};
use manual::ManualMotion;
use memory::PositionMemory;
use start::AxisStart;
use together::Together;

pub use error::AxisError;
pub(crate) use fault::{FaultCodes, Named};
pub(crate) use manual::{Gates, JogRequest};

/// Description of one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisConfiguration {
    /// Display name.
    pub name: String,
    /// Place of its drive in the segment, from 0.
    pub sub_device: usize,
    /// Index among the axes of that drive, from 0: its objects are offset from the objects of the
    /// first axis by so many times 0x800.
    pub drive_axis: u8,
    /// The mode its drive works in.
    pub mode: AxisMode,
    /// Further modes that it may be brought to while the cycle runs ([`AxisCommand::mode`]): its
    /// drive has their objects in the process data, and knows speed and ramps of profile modes from
    /// its start-up or by process data. Cyclic modes need not be among them.
    pub modes: Vec<AxisMode>,
    /// From the drive's numbers to SI units and back.
    pub scale: AxisScale,
    /// Largest change of the target position from one cycle to the next; a larger one is refused.
    pub maximum_step: Radians,
    /// Supervision between controller and drive; its mode is that of the axis. `None`: nothing but
    /// the drive.
    pub supervision: Option<supervision::Settings>,
    /// Speed beyond which positions of its drive fail the plausibility check, however the axis is
    /// moved; above 0. `None`: ten times the limit of velocity of its supervision. Without
    /// supervision all positions pass.
    pub feedback_velocity: Option<RadiansPerSecond>,
    /// Speed by which the axis may differ from its command in csv and cst; above 0. `None`: a
    /// quarter of its limit of velocity.
    pub velocity_error: Option<RadiansPerSecond>,
    /// Limits of a jog; `None`: [`JogLimits::usual`].
    pub jog: Option<JogLimits>,
    /// Way in which it learns its absolute position.
    pub homing: Homing,
    /// No controller moves it before it is homed.
    pub needs_homing: bool,
    /// Position knowledge of its encoder while its drive is off; counts for axes with position
    /// limits.
    pub position_sense: PositionSense,
    /// Its position in the run before, to be compared with the one of this run; counts for axes
    /// with position limits.
    pub memory: Option<PositionMemory>,
    /// Its behaviour at the start of the run.
    pub start: AxisStart,
    /// Its brake, if the cycle has to wait for one.
    pub brake: Option<BrakeConfiguration>,
    /// It holds a load that falls without torque or brake. Without a brake it stays enabled at
    /// standstill if its drive does not carry out a quick stop.
    pub holds_load: bool,
    /// Its drive's halt brakes it and keeps the torque: 0x605D is 1 or 2.
    pub halts: bool,
    /// Its drive's quick stop brakes it: 0x605A is not 0.
    pub quick_stops: bool,
    /// Places of the axes that are stopped with it: brought to rest within their own limits in the
    /// cycle in which it is stopped. Both have supervision.
    pub stops: Vec<usize>,
}

impl AxisConfiguration {
    /// An axis at the drive at this place, with nothing but the drive's own care.
    #[must_use]
    pub fn new(
        name: &str,
        sub_device: usize,
        mode: impl Into<AxisMode>,
        scale: AxisScale,
        step: Radians,
    ) -> Self {
        Self {
            name: name.to_owned(),
            sub_device,
            drive_axis: 0,
            mode: mode.into(),
            modes: Vec::new(),
            scale,
            maximum_step: step,
            supervision: None,
            feedback_velocity: None,
            velocity_error: None,
            jog: None,
            homing: Homing::Never,
            needs_homing: false,
            position_sense: PositionSense::default(),
            memory: None,
            start: AxisStart::default(),
            brake: None,
            holds_load: false,
            halts: true,
            quick_stops: true,
            stops: Vec::new(),
        }
    }
}

/// Checks that every axis finds its objects in the process data of its drive, and that no two are
/// the same one. [`crate::cycle::Cycle::new`] asks the same; ask here first to still have the bus
/// in hand if the answer is no.
///
/// # Errors
/// The first axis with missing objects, and the missing objects.
pub fn check(configurations: &[AxisConfiguration], main_device: &MainDevice) -> Result<(), AxisError> {
    Axes::bind(configurations, main_device, Duration::from_millis(1)).map(drop)
}

/// True for each axis with the torque (0x6077) in the process data of its drive.
#[must_use]
pub fn measure_torque(configurations: &[AxisConfiguration], main_device: &MainDevice) -> Vec<bool> {
    let drive = |it: &AxisConfiguration| main_device.sub_devices().get(it.sub_device);
    let measures = |it| drive(it).is_some_and(|drive| fields::measures_torque(drive, it.drive_axis));
    configurations.iter().map(measures).collect()
}

/// All axes of a robot, bound to the process image.
#[derive(Debug)]
pub(crate) struct Axes {
    axes: Vec<Axis>,
    reports: Vec<AxisReport>,
    commands: Vec<AxisCommand>,
    together: Together,
    /// Interlock that allows each axis least in this cycle, if an interlock does not permit it.
    forbidding: Vec<Option<(InterlockState, InterlockCause)>>,
    manual: ManualMotion,
}

/// Conditions of a cycle for all axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Time since the last cycle.
    pub(crate) elapsed: Seconds,
    /// The command that the controller follows has expired.
    pub(crate) stale: bool,
    /// All axes were at standstill then.
    pub(crate) at_rest: bool,
    pub(crate) ending: Ending,
    /// Place of the active controller.
    pub(crate) active: usize,
    /// A request brings all axes to rest.
    pub(crate) rests: bool,
    /// The process that is their controller is lost.
    pub(crate) lost: bool,
}

/// Manual motion as supervision sees it in this cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Manual {
    jog: Option<Jog>,
    set_up: bool,
}

impl Axes {
    /// Finds each axis's objects in the process data of its drive.
    pub(crate) fn bind(
        configurations: &[AxisConfiguration],
        main_device: &MainDevice,
        period: Duration,
    ) -> Result<Self, AxisError> {
        for (number, it) in configurations.iter().enumerate() {
            let same = |other: &&AxisConfiguration| {
                (other.sub_device, other.drive_axis) == (it.sub_device, it.drive_axis)
            };
            if let Some(other) = configurations[..number].iter().find(same) {
                let (axis, other) = (it.name.clone(), other.name.clone());
                return Err(AxisError::Taken {
                    axis,
                    other,
                    position: it.sub_device,
                    drive_axis: it.drive_axis,
                });
            }
        }
        let period = Seconds(period.as_secs_f64());
        let bind = |configuration| Axis::bind(configuration, main_device, period);
        let mut axes: Vec<_> = configurations.iter().map(bind).collect::<Result<_, _>>()?;
        axes.iter_mut().fold(0, |first, axis| axis.number_brake_inputs(first));
        let reports = vec![AxisReport::default(); axes.len()];
        let commands = vec![AxisCommand::default(); axes.len()];
        let (together, forbidding) = (Together::of(configurations)?, vec![None; axes.len()]);
        let manual = ManualMotion::of(axes.len());
        Ok(Self { axes, reports, commands, together, forbidding, manual })
    }

    /// Image to feedback.
    pub(crate) fn read(&mut self, main_device: &MainDevice, moment: Moment) {
        for (axis, report) in self.axes.iter_mut().zip(&mut self.reports) {
            axis.read(main_device, moment, report);
            // Of an axis that an outage or a fault has stopped before, the cause is another one.
            if moment.stalled > BLIND_CYCLES && !ends_process_data(report.stop) {
                report.stalled = u32::try_from(moment.stalled).unwrap_or(u32::MAX);
            }
        }
    }

    /// Clears all interlocks around the axes, before this cycle's interlocks are set.
    pub(crate) fn clear_interlocks(&mut self) {
        self.axes.iter_mut().for_each(Axis::clear_interlock);
        self.forbidding.fill(None);
        self.manual.clear();
    }

    /// Axes that each controller moves together, in the order of the controllers.
    pub(crate) fn set_chains(&mut self, chains: Vec<Vec<usize>>) {
        self.manual.set_chains(chains);
    }

    /// An interlock does not permit jogs of an axis.
    pub(crate) fn forbid_jog(&mut self, place: usize) {
        self.manual.forbid_jog(place);
    }

    /// An interlock does not permit automatic motion of an axis.
    pub(crate) fn set_up(&mut self, place: usize, cause: InterlockCause) {
        self.manual.set_up(place, cause);
    }

    /// Jog that the command of this cycle asks for.
    pub(crate) fn request_jog(&mut self, request: Option<JogRequest>) {
        self.manual.request(request);
    }

    /// Requests that a command may make of the axes.
    pub(crate) const fn gates(&self) -> &Gates {
        self.manual.gates()
    }

    /// Permission of a part around an axis; the most restrictive one counts.
    pub(crate) fn set_interlock(&mut self, place: usize, state: InterlockState, cause: InterlockCause) {
        let (Some(axis), Some(forbidding)) = (self.axes.get_mut(place), self.forbidding.get_mut(place))
        else {
            return;
        };
        // The first interlock of the least permission is named.
        if state > forbidding.map_or(InterlockState::Clear, |(state, _)| state) {
            *forbidding = Some((state, cause));
        }
        axis.set_interlock(state);
    }

    /// Commands of the controller, made safe.
    pub(crate) fn supervise(&mut self, conditions: Conditions) {
        let Conditions { elapsed, stale, at_rest, ending, active, rests, lost } = conditions;
        // Axes that ramp to zero take the same time.
        let longest = |longest: Seconds, axis: &Axis| Seconds(longest.0.max(axis.ramp_time().0));
        let stale = stale.then(|| self.axes.iter().fold(Seconds::ZERO, longest));
        let jogged = self.axes.iter().position(Axis::is_jogged);
        for (place, (axis, command)) in self.axes.iter_mut().zip(&self.commands).enumerate() {
            let manual = self.manual.of_axis(place, jogged, rests);
            axis.judge(elapsed, command, stale, ending, manual);
        }
        self.together.stop(&mut self.axes, &mut self.reports);
        self.manual.hold_chain(active, &mut self.axes);
        let forbidding = self.forbidding.iter().map(|it| it.map(|(_, cause)| cause));
        let axes = self.axes.iter_mut().zip(forbidding).enumerate();
        for (((place, (axis, cause)), report), command) in
            axes.zip(&mut self.reports).zip(&mut self.commands)
        {
            axis.supervise(elapsed, command, report);
            if lost {
                axis.keep_off();
            }
            report.stopped_with = match report.stop {
                Some(StopReason::OtherAxis) => report.stopped_with,
                Some(StopReason::Chain) => self.manual.chained_to(),
                _ => None,
            };
            report.interlock = match report.stop {
                Some(StopReason::Interlock | StopReason::NotPermitted) => {
                    // A stop stays after its cause, which is still named.
                    let before = || Some(InterlockCause { permits: true, ..report.interlock? });
                    cause.or_else(before)
                }
                Some(StopReason::SetUp) => self.manual.set_up_by(place),
                Some(StopReason::AfterSetUp | StopReason::AwaitsStart) => {
                    report.interlock.map(|it| InterlockCause { permits: true, ..it })
                }
                _ => None,
            };
            report.ended = at_rest && report.stop == Some(StopReason::Stale);
            if !ends_process_data(report.stop) {
                report.stalled = 0;
            }
            (command.home, command.home_again) = (false, false);
            (command.mode, command.ignored) = (None, None);
        }
        self.manual.note(&self.axes, &self.reports);
    }

    /// Torque limits of drives in the process data are the values that the robot file gives, where
    /// it gives one.
    pub(crate) fn keep_torque_limits(&mut self, signals: &Signals) {
        for axis in &mut self.axes {
            axis.keep_torque_limit(signals);
        }
    }

    /// Set-points to image.
    pub(crate) fn write(&mut self, main_device: &mut MainDevice) {
        for axis in &mut self.axes {
            axis.write(main_device);
        }
    }

    /// Set-points the axes' drives were sent last, in SI units.
    pub(crate) fn sent(&self) -> impl Iterator<Item = AxisSetpoint> + '_ {
        self.axes.iter().map(Axis::sent)
    }

    /// Reports of the axes, and commands for them.
    pub(crate) fn exchange(&mut self) -> (&[AxisReport], &mut [AxisCommand]) {
        (&self.reports, &mut self.commands)
    }

    pub(crate) fn reports(&self) -> &[AxisReport] {
        &self.reports
    }

    /// Requests no torque for all axes, whatever the controller requested; `quickly`: a quick stop
    /// first for axes that still move.
    pub(crate) fn disable(&mut self, quickly: bool) {
        for (axis, command) in self.axes.iter().zip(&mut self.commands) {
            let stops = (quickly || axis.stops_by_steps()) && axis.moves();
            command.request = if stops { Request::QuickStop } else { Request::Disable };
        }
    }

    /// The end of the run hurries: no axis keeps its torque for a brake that does not close.
    pub(crate) fn hurry(&mut self) {
        self.axes.iter_mut().for_each(Axis::hurry);
    }

    /// Time supervision takes from here to bring the slowest axis to rest.
    pub(crate) fn braking_time(&self) -> Duration {
        let longest = self.axes.iter().fold(0.0, |longest: f64, axis| longest.max(axis.braking_time().0));
        Duration::try_from_secs_f64(longest).unwrap_or(Duration::MAX)
    }

    /// Outputs that no signal may write.
    pub(crate) fn owned_outputs(&self) -> OwnedOutputs {
        OwnedOutputs {
            drives: self.axes.iter().map(Axis::sub_device).collect(),
            brakes: self.axes.iter().filter_map(Axis::brake_output).collect(),
        }
    }

    /// Place of an axis's drive, from 0.
    pub(crate) fn sub_device(&self, axis: usize) -> usize {
        self.axes.get(axis).map_or(usize::MAX, Axis::sub_device)
    }

    /// The error code of an axis was read.
    pub(crate) fn note_error_code(&mut self, named: Named) {
        let places = (self.axes.get_mut(named.axis), self.reports.get_mut(named.axis));
        if let (Some(axis), Some(report)) = places {
            if named.is_present {
                report.error_code = named.code;
            }
            axis.note_error(named.code);
        }
    }

    /// The drive at this place has sent an error code. It belongs to the drive's only axis, or to
    /// its axes that are in fault without a code. A fault of a position sensor that no axis shows
    /// any more may belong to any of them.
    pub(crate) fn note_emergency(&mut self, sub_device: usize, code: u16) {
        let of_drive = |(axis, _): &(&Axis, &AxisReport)| axis.sub_device() == sub_device;
        let mut seen = self.axes.iter().zip(&self.reports).filter(of_drive);
        let alone = seen.clone().count() == 1;
        let is_open = is_sensor_fault(code)
            && !seen
                .any(|(_, it)| it.state.is_some_and(State::is_faulted) || is_sensor_fault(it.error_code));
        for (axis, report) in self.axes.iter_mut().zip(&mut self.reports) {
            if axis.sub_device() != sub_device {
                continue;
            }
            let untold = report.state.is_some_and(State::is_faulted) && report.error_code == 0;
            if !axis.maps_error_code() && (alone || untold) {
                report.error_code = code;
            }
            if alone || untold || is_open {
                axis.note_error(code);
            }
        }
    }

    /// Accepts or sets the position of an axis, as a person gave it.
    pub(crate) fn give_position(&mut self, given: Given) -> Outcome {
        self.axes.get_mut(given.axis).ok_or(Refusal::NoSuchAxis)?.give_position(given)
    }

    /// The drive at this place may have been without power: its axes are where they were when it
    /// was switched on, as far as it knows.
    pub(crate) fn forget_place(&mut self, sub_device: usize) {
        self.axes.iter_mut().filter(|axis| axis.sub_device() == sub_device).for_each(Axis::forget_place);
    }

    /// The drive at this place is absent.
    pub(crate) fn lose_power(&mut self, sub_device: usize) {
        self.axes.iter_mut().filter(|axis| axis.sub_device() == sub_device).for_each(Axis::lose_power);
    }

    /// The drive at this place has left Op.
    pub(crate) fn lose_drive(&mut self, sub_device: usize) {
        self.axes.iter_mut().filter(|axis| axis.sub_device() == sub_device).for_each(Axis::lose_drive);
    }

    /// Ends homing by drives, and takes the axes back to stop them.
    pub(crate) fn interrupt_homing(&mut self) {
        for (axis, command) in self.axes.iter().zip(&mut self.commands) {
            if axis.is_homing() && command.request == Request::Enable {
                command.request = Request::Halt;
            }
        }
    }

    /// True if a drive is still on its way down to Switch on disabled, or to a fault.
    pub(crate) fn any_powered(&self) -> bool {
        self.axes.iter().any(Axis::is_powered)
    }

    /// True if a load falls once its drive is disabled, which is enabled only to hold it.
    pub(crate) fn any_keeps_load(&self) -> bool {
        self.axes.iter().any(Axis::keeps_load)
    }

    /// Time the slowest brake takes to hold its axis, after the steps that stop it where its drive
    /// does not carry out a quick stop.
    pub(crate) fn longest_engage_time(&self) -> Duration {
        self.longest(|axis| axis.engage_time().0 + axis.quick_stop_time().0)
    }

    /// True while the feedback of a brake may still show that it does not close without torque.
    pub(crate) fn any_pending(&self) -> bool {
        self.axes.iter().any(Axis::is_pending)
    }

    /// Time in which the feedback of all brakes shows whether they are closed without torque.
    pub(crate) fn longest_time_to_show(&self) -> Duration {
        self.longest(|axis| axis.time_to_show().0)
    }

    /// Longest of these times in s, which are finite and not negative; one that is too long for a
    /// duration counts as infinite.
    fn longest(&self, time: impl Fn(&Axis) -> f64) -> Duration {
        let longest = self.axes.iter().map(time).fold(0.0, f64::max);
        Duration::try_from_secs_f64(longest).unwrap_or(Duration::MAX)
    }

    /// True if no drive was sent another target than on the cycle before, and none a velocity or
    /// torque.
    pub(crate) fn all_stand(&self) -> bool {
        self.axes.iter().all(Axis::stands)
    }
}

/// True of a stop that a host stall makes: an outage, or the fault of a drive that got no process
/// data.
fn ends_process_data(stop: Option<StopReason>) -> bool {
    matches!(stop, Some(StopReason::Outage | StopReason::Fault))
}
