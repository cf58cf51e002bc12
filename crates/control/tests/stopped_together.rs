//! Axes that are stopped with others, down to simulated drives, in virtual time: checked by the
//! data that the drives take.
use crate::support;

use std::f64::consts::TAU;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use motion::supervision::{AfterOutage, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond};
use onbeat_control::axis::{AxisConfiguration, AxisError};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::{Cause, Happening};
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{Circumstances, Finding};
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, ServoRecord, Taken, default_mapping_of};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, supervised};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / TAU;

/// Speed at which every axis moves, rad/s.
const SPEED: f64 = 2.0;

/// Torque in cst, N m: little more than friction takes.
const TORQUE: f64 = 0.025;

/// Deceleration of the axes' supervision, rad/s^2.
const DECELERATION: f64 = 50.0;

/// SubDevice of each axis and its place there: `ALONE`, `ELBOW`, and both axes of the last drive.
const DRIVES: [(usize, u8); 4] = [(0, 0), (1, 0), (2, 0), (2, 1)];
const ALONE: usize = 0;
const ELBOW: usize = 1;
const X: usize = 2;
const Y: usize = 3;

/// Two drives, the second in this mode, and behind them one with two axes.
fn segment(mode: CyclicMode) -> Segment {
    let drive = |axes: u8, mode| {
        let mapping = default_mapping_of(axes);
        let sii = with_coe(IDENTITY, "Servo", mapping.clone()).image().emit();
        let usual = ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"));
        let drive = ServoDrive::new(&ServoDescription { axes, mapping, mode, ..usual }).unwrap();
        SubDevice::new(EscDescription::default(), sii, Box::new(drive))
    };
    Segment::new(vec![drive(1, CyclicMode::Position), drive(1, mode), drive(2, CyclicMode::Position)])
}

/// X stops Y, and Y the elbow; none stops the one that is alone.
fn axes(mode: CyclicMode, after: AfterOutage) -> Vec<AxisConfiguration> {
    let mut axes = supervised(DRIVES.len());
    for (axis, (sub_device, drive_axis)) in axes.iter_mut().zip(DRIVES) {
        (axis.sub_device, axis.drive_axis) = (sub_device, drive_axis);
        axis.supervision.as_mut().unwrap().outage.after = after;
    }
    axes[ELBOW].mode = mode.into();
    axes[X].stops = vec![Y];
    axes[Y].stops = vec![ELBOW];
    axes
}

/// Act at a cycle.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// This axis of the last drive has a fault.
    Fault(usize),
    /// The controller asks this axis for what is no number, until it is reset.
    Nonsense(usize),
    /// The cable to the last drive is out.
    Cut,
    /// It is in again.
    Plug,
    /// The controller resets this axis.
    Reset(usize),
}

struct Wired {
    segment: Segment,
    acts: Receiver<Act>,
}

impl ethercat::link::Segment for Wired {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        for act in self.acts.try_iter() {
            match act {
                Act::Fault(axis) => {
                    self.segment.sub_device_mut(2).unwrap().servo_mut().unwrap().raise_fault(axis, 0x2310);
                }
                Act::Cut => assert!(self.segment.disconnect(1, 1)),
                Act::Plug => assert!(self.segment.connect(1, 1)),
                Act::Nonsense(_) | Act::Reset(_) => {}
            }
        }
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// All axes on one cycle.
type Seen = [AxisReport; DRIVES.len()];

/// Moves all axes steadily and wants them enabled, whatever happens.
struct Steady {
    mode: CyclicMode,
    acts: Vec<(u64, Act)>,
    wire: Sender<Act>,
    see: Sender<Seen>,
    cycles: u64,
    reset_for: [u32; DRIVES.len()],
    nonsense: [bool; DRIVES.len()],
}

impl Controller for Steady {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let all = reports.iter().all(|report| report.state == Some(State::OperationEnabled));
        self.cycles += u64::from(all || self.cycles > 0);
        for &(_, act) in self.acts.iter().filter(|(at, _)| *at == self.cycles) {
            match act {
                Act::Nonsense(axis) => self.nonsense[axis] = true,
                Act::Reset(axis) => (self.reset_for[axis], self.nonsense[axis]) = (3, false),
                act => self.wire.send(act).unwrap(),
            }
        }
        for (axis, (report, command)) in reports.iter().zip(commands).enumerate() {
            command.request = if self.reset_for[axis] > 0 { Request::FaultReset } else { Request::Enable };
            self.reset_for[axis] = self.reset_for[axis].saturating_sub(1);
            let setpoint = &mut command.setpoint;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                setpoint.position = position;
            }
            let moves = !info.stopping;
            setpoint.velocity = RadiansPerSecond(if moves { SPEED } else { 0.0 });
            setpoint.torque.0 = if moves && self.mode == CyclicMode::Torque { TORQUE } else { 0.0 };
            if self.nonsense[axis] && moves {
                setpoint.position = Radians(f64::NAN);
            } else if moves {
                setpoint.position += Radians(SPEED * PERIOD.as_secs_f64());
            }
        }
        if self.cycles > 0 && !info.stopping {
            let _ = self.see.send([0, 1, 2, 3].map(|axis| reports[axis]));
        }
    }
}

struct Ran {
    seen: Vec<Seen>,
    events: Vec<Happening>,
    findings: Vec<Finding>,
    /// Set-points that the drives of the elbow and of Y took.
    taken: [Vec<Taken>; 2],
}

impl Ran {
    /// First cycle in which this axis was stopped, and why.
    fn stopped(&self, axis: usize) -> Option<(usize, StopReason, Option<usize>)> {
        let at = |cycle: usize| self.seen[cycle][axis];
        let found = (0..self.seen.len()).find(|&cycle| at(cycle).stop.is_some())?;
        Some((found, at(found).stop?, at(found).stopped_with))
    }

    /// The axis is held in all these cycles because another one is stopped.
    fn is_held(&self, axis: usize, cycles: std::ops::Range<usize>) -> bool {
        self.seen[cycles].iter().all(|it| it[axis].stop == Some(StopReason::OtherAxis))
    }
}

fn run(mode: CyclicMode, after: AfterOutage, cycles: u64, acts: &[(u64, Act)]) -> Ran {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (wire, heard) = channel();
    let mut segment = segment(mode);
    let mut record = |position: usize, axis: usize| -> ServoRecord {
        segment.sub_device_mut(position).unwrap().servo_mut().unwrap().record_axis(axis).unwrap()
    };
    let records = [record(1, 0), record(2, 1)];
    let wired = Wired { segment, acts: heard };
    let link = DirectLink::new(wired, clock.clone(), Duration::from_micros(60));
    let (see, seen) = channel();
    let (reset_for, nonsense) = ([0; DRIVES.len()], [false; DRIVES.len()]);
    let steady = Steady { mode, acts: acts.to_vec(), wire, see, cycles: 0, reset_for, nonsense };
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &axes(mode, after), steady, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let resumes = after == AfterOutage::Resume;
    let findings = ended.findings(Circumstances { period: PERIOD, hurried: false, resumes });
    let events = std::iter::from_fn(|| observer.next_event()).map(|event| event.what).collect();
    Ran { seen: seen.try_iter().collect(), events, findings, taken: records.map(|record| record.taken()) }
}

/// True if the axis moves as it is asked.
fn moves(report: &AxisReport) -> bool {
    report.state == Some(State::OperationEnabled) && (report.feedback.velocity.0 - SPEED).abs() < 0.3
}

/// Every position that a drive took is reached from the one before within the limits of its axis.
fn brakes_within_its_limits(taken: &[Taken]) {
    let mut targets: Vec<i32> =
        taken.iter().filter(|it| it.follows()).map(|it| it.target_position).collect();
    targets.dedup();
    let speeds: Vec<f64> =
        targets.windows(2).map(|pair| f64::from(pair[1].wrapping_sub(pair[0]))).collect();
    let change = DECELERATION * PERIOD.as_secs_f64().powi(2) * COUNTS_PER_RADIAN;
    let full = SPEED * PERIOD.as_secs_f64() * COUNTS_PER_RADIAN;
    assert!(speeds.iter().all(|speed| (-1.0..=full + 1.0).contains(speed)), "{speeds:?}");
    // Braking, each step is shorter by no more than the limit; starting is the controller's.
    let harder = speeds.windows(2).find(|pair| pair[0] - pair[1] > change + 2.0);
    assert_eq!(harder, None, "at most {change} counts a cycle");
    let slowest = speeds.iter().copied().fold(full, f64::min);
    assert!(slowest < 2.0 * change, "it came to rest: {slowest}");
}

// feature(axes): `stops`: an axis that is stopped takes others along, in the same cycle, each within its own limits
#[test]
fn fault_stops_the_named_axes_in_the_same_cycle() {
    let ran = run(CyclicMode::Position, AfterOutage::Stay, 900, &[(300, Act::Fault(0))]);
    let (at, reason, with) = ran.stopped(X).unwrap();
    assert_eq!((reason, with), (StopReason::Fault, None));
    // The elbow is stopped by the stop of Y.
    for axis in [Y, ELBOW] {
        assert_eq!(ran.stopped(axis), Some((at, StopReason::OtherAxis, Some(X))), "axis {axis}");
        assert!(ran.is_held(axis, at..ran.seen.len()));
        let last = ran.seen.last().unwrap()[axis];
        assert_eq!(last.state, Some(State::OperationEnabled), "it keeps its torque");
        assert!(last.feedback.velocity.0.abs() < 0.01, "{last:?}");
        let way = last.feedback.position.0 - ran.seen[at][axis].feedback.position.0;
        // 2 rad/s at 50 rad/s^2: 0.04 rad, and what the drive is behind.
        assert!((0.03..0.06).contains(&way), "axis {axis}: {way}");
    }
    ran.taken.iter().for_each(|taken| brakes_within_its_limits(taken));
    assert!(ran.seen[200..].iter().all(|it| moves(&it[ALONE]) && it[ALONE].stop.is_none()));
    let is_told = |wanted| {
        let tells = |what: &Happening| matches!(what, Happening::AxisStopped { axis, reason: StopReason::OtherAxis, with: Some(X), .. } if *axis == wanted);
        ran.events.iter().any(tells)
    };
    assert!(is_told(Y) && is_told(ELBOW), "{:?}", ran.events);
    let found = |axis| Finding::AxisStopped {
        axis,
        reason: StopReason::OtherAxis,
        with: Some(X),
        because: Cause::default(),
    };
    assert!(ran.findings.contains(&found(Y)) && ran.findings.contains(&found(ELBOW)), "{:?}", ran.findings);
}

/// A stop by supervision also stops the axes that the stopped axis names, not the axis that names
/// it.
#[test]
fn supervision_stop_includes_only_the_named_axes() {
    let ran = run(CyclicMode::Position, AfterOutage::Stay, 900, &[(300, Act::Nonsense(Y))]);
    let (at, reason, _) = ran.stopped(Y).unwrap();
    assert_eq!(reason, StopReason::NotFinite);
    assert_eq!(ran.stopped(ELBOW), Some((at, StopReason::OtherAxis, Some(Y))));
    ran.taken.iter().for_each(|taken| brakes_within_its_limits(taken));
    assert!([ALONE, X].iter().all(|&axis| ran.seen[200..].iter().all(|it| moves(&it[axis]))));
}

// feature(axes): an axis stopped with another is released after both have been reset, in any order
#[test]
fn axis_stopped_with_another_is_released_after_both_resets() {
    let acts = [(300, Act::Fault(0)), (500, Act::Reset(ELBOW)), (700, Act::Reset(X)), (900, Act::Reset(Y))];
    let ran = run(CyclicMode::Position, AfterOutage::Stay, 1_400, &acts);
    let (at, ..) = ran.stopped(X).unwrap();
    assert!(ran.is_held(ELBOW, at..698), "its own reset does not end the stop of X");
    let is_free = |axis: usize, at: usize| ran.seen[at][axis].stop.is_none();
    // Reset before: it is released with X, and resumes.
    assert!(is_free(X, 720) && is_free(ELBOW, 720) && ran.is_held(Y, at..898));
    assert!(is_free(Y, 910));
    assert!([ALONE, ELBOW, X, Y].iter().all(|&axis| moves(&ran.seen.last().unwrap()[axis])));
    assert!(ran.findings.is_empty(), "{:?}", ran.findings);
}

// feature(axes): `stops`: an axis whose SubDevice is lost stops others from the cycle of its own stop
#[test]
fn lost_sub_device_stops_others_until_after_outage() {
    for after in [AfterOutage::Stay, AfterOutage::Resume] {
        let acts = [(300, Act::Cut), (310, Act::Plug)];
        let ran = run(CyclicMode::Position, after, 1_500, &acts);
        let (at, reason, _) = ran.stopped(X).unwrap();
        assert_eq!((reason, ran.stopped(Y)), (StopReason::Outage, Some((at, StopReason::Outage, None))));
        assert_eq!(ran.stopped(ELBOW), Some((at, StopReason::OtherAxis, Some(X))), "{after:?}");
        brakes_within_its_limits(&ran.taken[0]);
        let last = ran.seen.last().unwrap();
        match after {
            AfterOutage::Resume => {
                assert!(moves(&last[ELBOW]) && moves(&last[X]), "{last:?}");
                assert!(ran.findings.is_empty(), "{:?}", ran.findings);
            }
            AfterOutage::Stay => assert!(ran.is_held(ELBOW, at..ran.seen.len())),
        }
        assert!(ran.seen[200..].iter().all(|it| it[ALONE].stop.is_none()));
    }
}

/// In csv it brakes at its acceleration limit, in cst its drive halts.
#[test]
fn an_axis_of_another_mode_is_brought_to_rest_too() {
    for mode in [CyclicMode::Velocity, CyclicMode::Torque] {
        let ran = run(mode, AfterOutage::Stay, 1_500, &[(600, Act::Fault(0))]);
        let (at, ..) = ran.stopped(X).unwrap();
        let before = ran.seen[at][ELBOW].feedback.velocity.0;
        assert!(before > 0.2, "{mode:?}: it moved at {before}");
        assert_eq!(ran.stopped(ELBOW), Some((at, StopReason::OtherAxis, Some(X))), "{mode:?}");
        let last = ran.seen.last().unwrap()[ELBOW];
        assert_eq!(last.state, Some(State::OperationEnabled), "{mode:?}");
        assert!(last.feedback.velocity.0.abs() < 0.05, "{mode:?}: {last:?}");
    }
}

#[test]
fn stops_of_missing_or_unsupervised_axes_are_refused() {
    let refused = |change: &dyn Fn(&mut Vec<AxisConfiguration>)| {
        let clock = VirtualClock::default();
        clock.advance(Duration::from_secs(1000));
        let mut link =
            DirectLink::new(segment(CyclicMode::Position), clock.clone(), Duration::from_micros(60));
        let mut main_device = support::main_device(PERIOD);
        let stop = std::sync::atomic::AtomicBool::new(false);
        ethercat_linux::bring_up::Pump {
            main_device: &mut main_device,
            link: &mut link,
            clock: &clock,
            stop: &stop,
        }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
        let mut axes = axes(CyclicMode::Position, AfterOutage::Stay);
        change(&mut axes);
        onbeat_control::axis::check(&axes, &main_device)
    };
    assert_eq!(refused(&|_| ()), Ok(()));
    // Axes may stop each other.
    assert_eq!(refused(&|axes| axes[ELBOW].stops = vec![X, ELBOW]), Ok(()));
    let found = refused(&|axes| axes[ALONE].stops = vec![4]).unwrap_err();
    assert!(matches!(found, AxisError::StopsNobody { place: 4, found: 4, .. }), "{found}");
    let found = refused(&|axes| axes[ELBOW].supervision = None).unwrap_err();
    assert!(matches!(&found, AxisError::UnsupervisedStop { axis } if axis == "axis-1"), "{found}");
}
