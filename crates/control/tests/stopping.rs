//! A stop is kept by supervision, whatever the controller does: checked by the data that the
//! simulated drive took, in virtual time.
//!
//! Cause of a stop: the first one stays, whatever happens to the computer afterwards.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::main_device::BringUpPhase;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::link::{DirectLink, Link};
use motion::supervision::{AfterOutage, Outage, StopReason};
use motion::{AxisPhase, NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondSquared};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{Circumstances, Finding};
use rt::clock::{Clock, VirtualClock};
use simulator::application::servo::{ServoDescription, ServoDrive, Taken, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, Sway, cycle_of, segment, supervised};

use crate::support;

const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;

/// The acceleration limit of [`supervised`], rad/s^2.
const DECELERATION: f64 = 50.0;

/// The torque that a shaft of the simulation takes to turn at all, N m.
const FRICTION: f64 = 0.02;

/// Cycle of the set-point that the controller is asked to ignore.
const STOP_AT: u64 = 400;

/// Conduct of a controller at a stop.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Ignores,
    Heeds,
    /// Asks for none: it panics in its place.
    Panics,
}

/// Moves at a steady speed, asked to stop or not.
struct Deaf {
    velocity: f64,
    way: Way,
    stop: StopHandle,
    hurry_after: Option<u64>,
    clock: VirtualClock,
    asked: std::sync::mpsc::Sender<Instant>,
    cycles: u64,
    /// Time of the host that a cycle takes once the stop is hurried.
    lasts: Duration,
}

impl Controller for Deaf {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (&reports[0], &mut commands[0]);
        if self.way == Way::Heeds && info.stopping {
            self.velocity = (self.velocity - 0.03).max(0.0);
        }
        self.cycles += u64::from(report.state == Some(State::OperationEnabled) || self.cycles > 0);
        command.request = Request::Enable;
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            command.setpoint.position = position;
        }
        command.setpoint.position += Radians(self.velocity * 1e-3);
        command.setpoint.velocity = RadiansPerSecond(self.velocity);
        // Torque continues as long as the shaft is slower: the same steady speed.
        let lacks = self.velocity - report.feedback.velocity.0;
        let friction = if self.velocity > 0.0 { FRICTION } else { 0.0 };
        command.setpoint.torque = NewtonMetres((0.05 * lacks).clamp(0.0, 0.1) + friction);
        if self.cycles == STOP_AT {
            self.asked.send(self.clock.now()).unwrap();
            match self.way {
                Way::Panics => std::panic::resume_unwind(Box::new("out of its depth")),
                Way::Ignores | Way::Heeds => self.stop.stop(),
            }
        }
        if self.hurry_after.is_some_and(|after| self.cycles == STOP_AT + after) {
            self.stop.hurry();
        }
        if self.hurry_after.is_some_and(|after| self.cycles >= STOP_AT + after) {
            std::thread::sleep(self.lasts);
        }
    }
}

struct Ran {
    taken: Vec<Taken>,
    asked: Instant,
    ended: Instant,
    ending: bool,
    /// Exit code of what went wrong.
    exit_code: u8,
}

/// A run with cycles that do not wait, as with `--time fast`, on a host that needs `lasts` for
/// each.
#[derive(Clone, Copy, Default)]
struct Patient {
    lasts: Duration,
    deceleration: Option<f64>,
}

fn run(mode: CyclicMode, velocity: f64, hurry_after: Option<u64>) -> Ran {
    run_with(mode, velocity, hurry_after, Way::Ignores)
}

fn run_with(mode: CyclicMode, velocity: f64, hurry_after: Option<u64>, way: Way) -> Ran {
    play(mode, velocity, hurry_after, way, Patient::default())
}

fn play(
    mode: CyclicMode,
    velocity: f64,
    hurry_after: Option<u64>,
    way: Way,
    Patient { lasts, deceleration }: Patient,
) -> Ran {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let description =
        ServoDescription { mode, ..ServoDescription::new(DeviceDescription::new(identity, "Servo")) };
    let mut drive = ServoDrive::new(&description).unwrap();
    let record = drive.record();
    let sii = with_coe(identity, "Servo", default_mapping()).image().emit();
    let segment = Segment::new(vec![SubDevice::new(EscDescription::default(), sii, Box::new(drive))]);
    let link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let stop = StopHandle::new();
    let (asked, was_asked) = std::sync::mpsc::channel();
    let controller = Deaf {
        velocity,
        way,
        stop: stop.clone(),
        hurry_after,
        clock: clock.clone(),
        asked,
        cycles: 0,
        lasts,
    };
    let mut axis: AxisConfiguration = supervised(1).remove(0);
    axis.mode = mode.into();
    let settings = axis.supervision.as_mut().unwrap();
    settings.mode = mode.into();
    if let Some(deceleration) = deceleration {
        settings.limits.deceleration = RadiansPerSecondSquared(deceleration);
        settings.limits.acceleration = RadiansPerSecondSquared(deceleration);
    }
    let (mut cycle, mut observer) =
        cycle_of(link, clock.clone(), &[axis], controller, CycleConfiguration::every(PERIOD));
    if deceleration.is_some() {
        cycle = cycle.with_patience();
    }
    let over = cycle.run(&stop);
    let hurried = hurry_after.is_some();
    let findings = over.findings(Circumstances { period: PERIOD, hurried, resumes: false });
    let exit_code = findings.iter().map(Finding::exit_code).max().unwrap_or(0);
    assert_eq!(over.failure, None);
    assert_eq!(over.main_device.phase(), BringUpPhase::Down);
    assert_eq!(over.controller_panic.as_deref(), (way == Way::Panics).then_some("out of its depth"));
    let events = std::iter::from_fn(|| observer.next_event());
    let ending = events
        .map(|it| it.what)
        .any(|what| matches!(what, Happening::AxisStopped { axis: 0, reason: StopReason::Ending, .. }));
    Ran { taken: record.taken(), asked: was_asked.recv().unwrap(), ended: clock.now(), ending, exit_code }
}

/// Speed of the shaft at the last step of which the drive followed its set-points, rad/s.
fn speed_when_let_go(ran: &Ran) -> f64 {
    let last = ran.taken.iter().rev().find(|it| it.state == State::OperationEnabled).unwrap();
    last.velocity.abs() / COUNTS_PER_RADIAN
}

/// The hardest braking between cycles from the stop on, rad/s^2.
fn hardest(ran: &Ran, mode: CyclicMode) -> f64 {
    let targets: Vec<(Instant, f64)> = ran
        .taken
        .iter()
        .filter(|it| it.follows() && it.now > ran.asked)
        .map(|it| match mode {
            CyclicMode::Position => (it.now, f64::from(it.target_position) / COUNTS_PER_RADIAN),
            _ => (it.now, f64::from(it.target_velocity) / COUNTS_PER_RADIAN),
        })
        .collect();
    // A line for each cycle: the drive's steps are shorter.
    let cycles: Vec<f64> = targets.chunks_exact(4).map(|chunk| chunk[0].1).collect();
    let speeds: Vec<f64> = match mode {
        CyclicMode::Position => cycles.windows(2).map(|pair| (pair[1] - pair[0]) * 1e3).collect(),
        _ => cycles,
    };
    speeds.windows(2).map(|pair| (pair[0] - pair[1]).abs() * 1e3).fold(0.0, f64::max)
}

// feature(axes): a stop is kept by supervision, in time and within the limits; hurried within two seconds
#[test]
fn axis_of_a_controller_that_ignores_a_stop_is_braked() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        let ran = run(mode, 3.0, None);
        assert!(ran.ending, "{mode:?}: supervision took it");
        assert!(speed_when_let_go(&ran) < 0.1, "{mode:?}: let go at {} rad/s", speed_when_let_go(&ran));
        assert!(hardest(&ran, mode) < DECELERATION * 1.2, "{mode:?}: {} rad/s^2", hardest(&ran, mode));
        let took = ran.ended.since(ran.asked);
        assert!(took > Duration::from_secs(1) && took < Duration::from_secs(2), "{mode:?}: {took:?}");
    }
}

// feature(axes): a stop is kept by supervision, in time and within the limits; hurried within two seconds
#[test]
fn hurried_stop_brakes_at_once_and_ends_in_two_seconds() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        let ran = run(mode, 3.0, Some(20));
        assert!(speed_when_let_go(&ran) < 0.1, "{mode:?}: let go at {} rad/s", speed_when_let_go(&ran));
        assert!(hardest(&ran, mode) < DECELERATION * 1.2, "{mode:?}: {} rad/s^2", hardest(&ran, mode));
        let took = ran.ended.since(ran.asked);
        assert!(took < Duration::from_millis(600), "{mode:?}: {took:?}");
    }
}

// feature(axes): a stop is kept by supervision, in time and within the limits; hurried within two seconds
#[test]
fn hurried_stop_in_bus_time_ends_in_two_host_seconds() {
    // At this deceleration, the way to standstill takes 10 s of bus time, and a hurried stop 1.2 s.
    let lasts = Duration::from_millis(5);
    let slow = Patient { lasts, deceleration: Some(0.1) };
    let ran = play(CyclicMode::Position, 1.0, Some(20), Way::Ignores, slow);
    let cycles = ran.ended.since(ran.asked).as_nanos() / PERIOD.as_nanos();
    // A busy computer passes fewer cycles in that time.
    assert!(cycles <= 20 + 2_000 / 5, "{cycles} cycles of 5 ms or more");
    assert_eq!(ran.exit_code, 0, "it was requested, and its drive is off");
    assert_eq!(ran.taken.last().unwrap().state, State::SwitchOnDisabled);
}

// feature(axes): a controller that panics loses its axes: they are braked within their limits, then the bus goes to Init
#[test]
fn axis_of_a_panicked_controller_is_braked() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque] {
        let ran = run_with(mode, 3.0, None, Way::Panics);
        assert!(speed_when_let_go(&ran) < 0.1, "{mode:?}: let go at {} rad/s", speed_when_let_go(&ran));
        let took = ran.ended.since(ran.asked);
        assert!(took < Duration::from_secs(2), "{mode:?}: {took:?}");
        match mode {
            CyclicMode::Torque => {
                let torques: Vec<i16> = torques(&ran).iter().map(|it| it.0).collect();
                assert!(torques.is_sorted_by(|before, after| before >= after), "{torques:?}");
                assert_eq!(torques.last(), Some(&0));
            }
            _ => assert!(
                hardest(&ran, mode) < DECELERATION * 1.2,
                "{mode:?}: {} rad/s^2",
                hardest(&ran, mode)
            ),
        }
    }
}

/// Torque set-points after the stop, and how fast the shaft turned with them, rad/s; a line for
/// each cycle.
fn torques(ran: &Ran) -> Vec<(i16, f64)> {
    let after = ran.taken.iter().filter(|it| it.now > ran.asked && it.state == State::OperationEnabled);
    after.map(|it| (it.target_torque, it.velocity / COUNTS_PER_RADIAN)).step_by(4).collect()
}

// feature(program): signals: a second one within 2 s; an axis in torque mode too
#[test]
fn low_torque_axis_is_halted_before_its_release() {
    // First after the time its controller has, then at once.
    for (hurry_after, longest) in [(None, Duration::from_secs(2)), (Some(20), Duration::from_millis(600))] {
        let ran = run(CyclicMode::Torque, 3.0, hurry_after);
        assert!(ran.ending, "{hurry_after:?}: supervision took it");
        let torques = torques(&ran);
        assert!(torques[0].0 > 0 && torques[0].1 > 2.5, "{hurry_after:?}: {:?}", torques[0]);
        let taken = torques.iter().position(|it| it.0 == 0).expect("no torque is asked for any more");
        assert!(torques[taken..].iter().all(|it| it.0 == 0), "{hurry_after:?}: {:?}", &torques[taken..]);
        // The drive has it by Halt, with its torque, until standstill.
        let halted =
            ran.taken.iter().filter(|it| it.controlword.halt() && it.state == State::OperationEnabled);
        assert!(halted.count() > 100, "{hurry_after:?}");
        assert!(speed_when_let_go(&ran) < 0.1, "{hurry_after:?}: {} rad/s", speed_when_let_go(&ran));
        let took = ran.ended.since(ran.asked);
        assert!(took < longest, "{hurry_after:?}: {took:?}");
    }
}

// feature(program): signals: a second one within 2 s; an axis in torque mode too
#[test]
fn controller_may_reduce_its_torque_in_a_stop() {
    let ran = run_with(CyclicMode::Torque, 3.0, None, Way::Heeds);
    assert!(!ran.ending, "supervision took it");
    let torques = torques(&ran);
    let taken = torques.iter().position(|it| it.0 == 0).expect("no torque is asked for any more");
    assert!((20..400).contains(&taken), "{taken}");
    assert!(torques[..taken].windows(2).all(|pair| (pair[0].0 - pair[1].0).abs() <= 2), "{torques:?}");
    assert!(!ran.taken.iter().any(|it| it.controlword.halt()));
}

/// A link without replies while it is cut.
struct Cut<L>(L, Arc<AtomicBool>);

impl<L: Link> Link for Cut<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Ok(()) } else { self.0.transmit(frame) }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.0.receive(buffer, timeout)
    }
}

/// Cuts the link for 50 cycles, and stalls the computer before or in the outage.
struct Cutting {
    sway: Sway,
    clock: VirtualClock,
    is_cut: Arc<AtomicBool>,
    stall_at: u64,
}

impl Controller for Cutting {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        self.is_cut.store((CUT..CUT + 50).contains(&info.cycle), Ordering::Relaxed);
        if info.cycle == self.stall_at {
            self.clock.advance(PERIOD * 10);
        }
    }
}

/// Cycle in which the link is cut.
const CUT: u64 = 2_000;

/// Cycles of the stall by which the stop of the axis is explained at the end; 0 for another cause.
fn stalled(stall_at: u64) -> u32 {
    let (clock, is_cut) = (VirtualClock::default(), Arc::new(AtomicBool::new(false)));
    let direct = DirectLink::new(segment(1), clock.clone(), Duration::from_micros(50));
    let link = Cut(direct, Arc::clone(&is_cut));
    let controller = Cutting { sway: Sway::new(1), clock: clock.clone(), is_cut, stall_at };
    let configuration = CycleConfiguration { cycles: Some(3_000), ..CycleConfiguration::every(PERIOD) };
    let mut axes = supervised(1);
    axes[0].supervision.as_mut().unwrap().outage = Outage { time: None, after: AfterOutage::Stay };
    let (cycle, _observer) = cycle_of(link, clock, &axes, controller, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert!(ended.before_stop.cycle > CUT + 100, "{}", ended.before_stop.cycle);
    let axis = &ended.before_stop.axes[0];
    assert_eq!(axis.stop, Some(StopReason::Outage), "{axis:?}");
    axis.stalled
}

#[test]
fn a_stall_is_the_cause_of_an_outage_only_if_it_was_first() {
    assert_eq!(stalled(CUT + 30), 0, "the cable was out before");
    assert!(stalled(CUT - 1) >= 9);
}
