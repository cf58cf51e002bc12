//! Outcome of a cell, and the conditions that hold in every one.

use std::fmt::Write as _;
use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::cia402::State;
use ethercat::main_device::{BringUpPhase, ReceptionCounters};
use ethercat::time::Instant;
use ethercat_linux::bring_up::BringUpError;
use onbeat_control::cycle::Ended;
use onbeat_control::verdict::{COULD_NOT_RUN, Circumstances, Finding};
use simulator::application::servo::{ServoRecord, Taken};

use super::cell::{Cell, Fault, Phase};
use super::robot::{COUNTS_PER_RADIAN, Report};
use super::wire::Wire;
use super::{exchange, motion, stream};
use crate::support::PERIOD;

/// Limit of velocity of the axes, in rad/s.
const VELOCITY: f64 = 10.0;

/// Time limit of every run.
const LONGEST: Duration = Duration::from_secs(25);

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) ended: Ended<Wire>,
    pub(crate) records: Vec<ServoRecord>,
    pub(crate) reports: Vec<Report>,
    /// It reported another MainDevice.
    pub(crate) reported: bool,
    pub(crate) took: Duration,
}

pub(crate) struct Outcome {
    name: String,
    exit_code: u8,
    digest: String,
}

impl Outcome {
    /// The program's.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// All that was to be seen of it.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// A bus that did not come up.
    pub(crate) fn not_up(
        cell: Cell,
        error: &BringUpError,
        wire: &Wire,
        reported: bool,
        took: Duration,
    ) -> Self {
        assert!(took < LONGEST, "{took:?} {cell:?}");
        assert!(wire.went_wrong(), "nothing went wrong {cell:?}");
        let refused = matches!(error, BringUpError::OtherMainDevice { .. });
        check_that_others_are_told(cell, reported || refused);
        check_that_the_refused_change_nothing(cell, refused, wire);
        let name = format!("not up: {}{}", kind(error), others(reported, wire));
        Self { digest: format!("{error} {took:?}"), name, exit_code: COULD_NOT_RUN }
    }

    /// A cycle that has ended.
    pub(crate) fn of(cell: Cell, run: &Run) -> Self {
        let Run { ended, records, reports, reported, took } = run;
        assert!(*took < LONGEST, "{took:?} {cell:?}");
        assert!(ended.link.went_wrong(), "nothing went wrong {cell:?}");
        check_that_it_was_counted(cell, &ended.status.reception);
        let taken: Vec<_> = records.iter().map(ServoRecord::taken).collect();
        check_limits(cell, run, &taken);
        check_rest(cell, run, &taken);
        motion::check_sticking_brake(cell, &taken, reports);
        exchange::check(cell, reports);
        check_the_others(cell, &taken[0]);
        check_that_others_are_told(cell, *reported);
        check_that_the_refused_change_nothing(cell, false, &ended.link);
        let circumstances = Circumstances { period: PERIOD, hurried: false, resumes: false };
        let findings = ended.findings(circumstances);
        let exit_code = findings.iter().map(Finding::exit_code).max().unwrap_or(0);
        check_exit_code(cell, exit_code, run, &taken);
        let words: Vec<String> = findings.iter().map(word).collect();
        let name = if words.is_empty() { "all well".to_owned() } else { words.join(", ") };
        let mut digest = format!("{took:?} {exit_code} {findings:?} {:?}", ended.status);
        for report in reports {
            let _ = write!(digest, "{report:?}");
        }
        Self { name: name + &others(*reported, &ended.link), exit_code, digest }
    }
}

/// Words of the cell about another MainDevice, and the state that it reached, if it was a whole
/// one.
fn others(told: bool, wire: &Wire) -> String {
    let told = if told { "; another MainDevice is told of" } else { "" };
    let came = wire.second().map_or(String::new(), |it| format!("; the other came to {:?}", it.came_to()));
    told.to_owned() + &came
}

/// The exit code is 0 only if each drive was enabled, stayed so until the run was to stop, stopped
/// without a quick stop or a fault, and its SubDevice was brought to Init. Evaluated by the states
/// of drives and SubDevices.
fn check_exit_code(cell: Cell, exit_code: u8, run: &Run, taken: &[Vec<Taken>]) {
    let stop = run.reports.iter().find(|it| it.stopping).map(|it| it.now);
    let segment = run.ended.link.segment();
    let hurt: Vec<String> = (0..taken.len())
        .filter_map(|number| {
            let status = segment.sub_devices()[number].al_status();
            let down = segment.is_powered(number) && status == AlStatus::in_state(AlState::Init);
            let broken = broken(&taken[number], stop);
            (!down || broken.is_some()).then(|| format!("drive {number}: {status}, {broken:?}"))
        })
        .collect();
    assert!(exit_code != 0 || hurt.is_empty(), "exit code {exit_code}, {hurt:?} {cell:?}");
}

/// Faults of the cycle's replies are counted, even where nothing else comes of it. On the way up a
/// reply has the time to be late.
fn check_that_it_was_counted(cell: Cell, reception: &ReceptionCounters) {
    let ReceptionCounters { lost, late, duplicate, foreign, truncated, mismatched, .. } = *reception;
    let counted = match cell.fault {
        Fault::Loss | Fault::Corrupt => lost,
        fault if fault.has_no_quick_stop() => lost,
        Fault::Delay | Fault::Reorder => late,
        Fault::Duplicate => duplicate,
        Fault::Replay => late + duplicate,
        Fault::Foreign => foreign,
        Fault::Truncated => truncated,
        // Which of them depends on the bit.
        Fault::Altered => lost + foreign + truncated + mismatched,
        _ => return,
    };
    let in_the_cycle = cell.is_in_op() || cell.phase == Phase::Shutdown;
    assert!(counted > 0 || !in_the_cycle, "{reception:?} {cell:?}");
}

/// A drive that went to a place where it should not be.
fn broken(taken: &[Taken], stop: Option<Instant>) -> Option<State> {
    let enabled = |it: &Taken| it.state == State::OperationEnabled;
    let Some(first) = taken.iter().position(enabled) else {
        return Some(taken.last().map_or(State::NotReadyToSwitchOn, |it| it.state));
    };
    let wrong = |it: &&Taken| {
        let before = stop.is_none_or(|stop| it.now < stop);
        let out = matches!(it.state, State::QuickStopActive | State::FaultReactionActive | State::Fault);
        out || before && !enabled(it)
    };
    taken[first..].iter().find(wrong).map(|it| it.state)
}

/// Another MainDevice on the wire is reported; it is refused if it was there first, and not
/// reported if there is none.
fn check_that_others_are_told(cell: Cell, told: bool) {
    let others = matches!(cell.fault, Fault::Foreign | Fault::SecondMaster);
    assert_eq!(told, others, "{cell:?}");
}

/// A MainDevice that has the bus already keeps it, in Op.
fn check_that_the_refused_change_nothing(cell: Cell, refused: bool, wire: &Wire) {
    let was_first = cell.phase == Phase::Scan && cell.fault == Fault::SecondMaster;
    assert_eq!(refused, was_first, "{cell:?}");
    if refused {
        assert_eq!(wire.second().unwrap().phase(), BringUpPhase::Op);
        for it in wire.segment().sub_devices() {
            assert_eq!(it.al_status(), AlStatus::in_state(AlState::Op));
        }
    }
}

/// Checks that, with the others gone, the first drive stops and is disabled while it is still in
/// Op.
fn check_the_others(cell: Cell, taken: &[Taken]) {
    let gone = matches!(cell.fault, Fault::CableBreak | Fault::PowerLoss);
    if !gone || !(cell.is_in_op() || cell.phase == Phase::Shutdown) {
        return;
    }
    let last = taken.iter().rev().find(|it| it.operational).unwrap();
    let speed = last.velocity.abs() / COUNTS_PER_RADIAN;
    assert!(last.state == State::SwitchOnDisabled && speed < 0.1, "{last:?} {cell:?}");
    assert!(!last.controlword.enables_operation(), "{last:?} {cell:?}");
}

/// Checks the sent and the received set-points, and the true motion. Set-points begin where a drive
/// says it is: with an altered bit in that position, they begin elsewhere.
fn check_limits(cell: Cell, run: &Run, taken: &[Vec<Taken>]) {
    let altered = exchange::altered_at(&run.reports);
    let misled = |now: Instant| altered.iter().any(|&at| now >= at && now.since(at) < PERIOD * 4);
    check_own_ways(cell, taken);
    stream::check(cell, &run.ended.link.sent(), &run.reports, misled);
    motion::check_arrived(cell, taken, misled);
    motion::check_true_position(cell, taken, &run.reports);
}

/// Speeds of drives that generate their own profile, for a destination, or for a velocity that has
/// jumped.
fn check_own_ways(cell: Cell, taken: &[Vec<Taken>]) {
    for (drive, taken) in
        taken.iter().enumerate().filter(|(drive, _)| cell.phase.modes()[*drive].is_profile())
    {
        for it in taken.iter().filter(|it| it.follows() && it.controlword.enables_operation()) {
            let own = it.velocity.abs() / COUNTS_PER_RADIAN;
            assert!(own <= VELOCITY * 1.1, "drive {drive}: {own} rad/s {it:?} {cell:?}");
        }
    }
}

/// Checks that drives with a profile of their mode, or without quick stop, stop in the end if they
/// have power: no old destination, velocity or torque remains.
fn check_rest(cell: Cell, run: &Run, taken: &[Vec<Taken>]) {
    let segment = run.ended.link.segment();
    let stops = cell.phase == Phase::Profile || cell.fault.has_no_quick_stop();
    let judged = |drive: usize| stops && segment.is_powered(drive);
    for (drive, taken) in taken.iter().enumerate().filter(|(drive, _)| judged(*drive)) {
        let Some(last) = taken.last() else { panic!("drive {drive} never ran {cell:?}") };
        let speed = last.velocity.abs() / COUNTS_PER_RADIAN;
        assert!(speed < 0.1, "drive {drive}: {speed} rad/s {last:?} {cell:?}");
    }
}

/// Checks a run in which the cause of the fault goes away: no axis returns with a jump, and a drive
/// that had no power is not enabled again, though its controller requests it all the time.
pub(crate) fn check_the_way_back(cell: Cell, run: &Run) {
    let taken: Vec<_> = run.records.iter().map(ServoRecord::taken).collect();
    check_limits(cell, run, &taken);
    check_rest(cell, run, &taken);
    if cell.is_in_op() {
        let lost = run.ended.before_stop.sub_devices.iter().filter(|it| !it.exchanges).count();
        assert_eq!(lost, 0, "SubDevices without process data when the run ends: {cell:?}");
    }
    let healed = run.ended.link.healed();
    // On the way up a bus without power is waited for, and enabled once it is up.
    let loses_power = match cell.fault {
        Fault::PowerLoss => true,
        Fault::UnmarkedPower => cell.is_in_op(),
        _ => false,
    };
    let Some(healed) = healed.filter(|_| loses_power) else { return };
    let mut since = taken[2].iter().filter(|it| it.now > healed);
    let enabled =
        since.find(|it| it.controlword.enables_operation() || it.state == State::OperationEnabled);
    assert!(enabled.is_none(), "{enabled:?} {cell:?}");
}

/// The cause of a stall.
fn stall(cycles: u32) -> String {
    if cycles == 0 { String::new() } else { format!(" (stall of {cycles} cycles)") }
}

fn word(finding: &Finding) -> String {
    match finding {
        Finding::Overrun { cycle } => format!("overrun in cycle {cycle}"),
        Finding::BusFailed { error, .. } => format!("bus failed: {}", variant(error)),
        Finding::AxisInFault { axis, stalled, .. } => format!("axis {axis} in fault{}", stall(*stalled)),
        Finding::AxisStopped { axis, reason, because, .. } => {
            format!("axis {axis} stopped: {reason:?}{}", stall(because.stalled))
        }
        Finding::QuickStopIgnored { axis, step } => format!("axis {axis} without quick stop: {step:?}"),
        Finding::NotEnabled { axis, .. } => format!("axis {axis} not enabled"),
        Finding::NotDisabled { axis, .. } => format!("axis {axis} not disabled"),
        Finding::BusLost { lost, .. } if lost.interface_gone => "interface gone".to_owned(),
        Finding::BusLost { all_out: true, .. } => "bus lost: all out of Op".to_owned(),
        Finding::BusLost { .. } => "bus lost".to_owned(),
        Finding::Silent { position, .. } => format!("SubDevice {position} lost"),
        Finding::OutsideOp { position, status, .. } => format!("SubDevice {position} in {status}"),
        Finding::ControllerLost => "controller process lost".to_owned(),
        Finding::CommandLost => "command lost".to_owned(),
        Finding::LostInTheStop { position, .. } => format!("SubDevice {position} lost in the stop"),
    }
}

fn kind(error: &BringUpError) -> String {
    match error {
        BringUpError::Bus(error) => variant(error),
        BringUpError::OtherMainDevice { .. } => "OtherMainDevice".to_owned(),
        BringUpError::Link(_) => "Link".to_owned(),
        BringUpError::TimedOut { .. } => "TimedOut".to_owned(),
        error => error.to_string(),
    }
}

/// The names of an error and of what is in it, without its numbers.
fn variant(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let word = |text: &str| text.chars().take_while(|it| it.is_alphanumeric()).collect::<String>();
    let outer = word(&text);
    let position = text.split("position: ").nth(1).map(word);
    let inner = text.split("error: ").nth(1).map(word);
    match (outer.as_str(), position, inner) {
        ("SubDevice", Some(position), Some(inner)) => format!("SubDevice {position}: {inner}"),
        _ => outer,
    }
}
