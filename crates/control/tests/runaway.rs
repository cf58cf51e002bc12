//! Motors that turn against their commands, and torques too large to stop in time, in virtual time.
//! Checked by the true motion of the simulated drive.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use ethercat::cia402::object::{DIGITAL_OUTPUTS, PROFILE_DECELERATION};
use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::supervision::{RUNAWAY_TIME, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{Circumstances, Finding};
use rt::clock::VirtualClock;
use simulator::Segment;
use simulator::application::servo::{ServoDescription, ServoRecord, Taken};
use support::{PERIOD, cycle_of, sub_device, supervised};

/// Cycles after the first motion in which the motor is reversed, and to the end.
const REVERSED: u64 = 300;
const END: u64 = 1_500;

/// A drive with a motor that is reversed on demand, and with an internal brake that closes while it
/// has no torque.
struct Machine {
    segment: Segment,
    reversed: Arc<AtomicBool>,
}

impl Machine {
    fn work(&mut self) {
        let servo = self.segment.sub_device_mut(0).unwrap().servo_mut().unwrap();
        servo.set_reversed(0, self.reversed.load(Ordering::Relaxed));
        let enabled = matches!(servo.axes()[0].state(), State::OperationEnabled | State::QuickStopActive);
        let [outputs, mask] = [1, 2].map(|it| servo.dictionary().find(DIGITAL_OUTPUTS, it).unwrap());
        servo.dictionary_mut().set(mask, 1);
        servo.dictionary_mut().set(outputs, i64::from(!enabled));
    }
}

impl ethercat::link::Segment for Machine {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.work();
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.work();
        self.segment.advance(now);
    }
}

/// Commands a velocity and a torque, which begin softly, and resets the axis in one cycle; with
/// [`AGAIN_AND_AGAIN`] in every 20th cycle in which it is stopped.
struct Commands {
    velocity: f64,
    torque: f64,
    reset: u64,
    cycles: u64,
    reversed: Option<(u64, Arc<AtomicBool>)>,
    see: std::sync::mpsc::Sender<(u64, AxisReport)>,
}

impl Controller for Commands {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (reports[0], &mut commands[0]);
        self.cycles += u64::from(report.feedback.phase == AxisPhase::Following || self.cycles > 0);
        if let Some((cycle, reversed)) = &self.reversed {
            reversed.store((*cycle..self.reset).contains(&self.cycles), Ordering::Relaxed);
        }
        let ease = if info.stopping { 0.0 } else { (self.cycles as f64 / 100.0).min(1.0) };
        command.setpoint.velocity = RadiansPerSecond(self.velocity * ease);
        command.setpoint.torque.0 = self.torque * ease;
        let again = self.reset == AGAIN_AND_AGAIN && report.stop.is_some() && self.cycles % 20 == 0;
        let resets = self.cycles == self.reset || again;
        command.request = if resets { Request::FaultReset } else { Request::Enable };
        let _ = self.see.send((self.cycles, report));
    }
}

/// See [`Commands`].
const AGAIN_AND_AGAIN: u64 = u64::MAX - 1;

struct Outcome {
    taken: Vec<Taken>,
    seen: Vec<(u64, AxisReport)>,
    happenings: Vec<Happening>,
    findings: Vec<Finding>,
}

fn play(
    (segment, record): (Segment, ServoRecord),
    axis: AxisConfiguration,
    (velocity, torque, reset): (f64, f64, u64),
    // Cycle in which the motor is reversed.
    reversal: Option<u64>,
) -> Outcome {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let reversed = Arc::new(AtomicBool::new(false));
    let machine = Machine { segment, reversed: Arc::clone(&reversed) };
    let link = DirectLink::new(machine, clock.clone(), Duration::from_micros(60));
    let (see, seen) = channel();
    let reversed = reversal.map(|cycle| (cycle, reversed));
    let commands = Commands { velocity, torque, reset, cycles: 0, reversed, see };
    let configuration = CycleConfiguration { cycles: Some(END), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &[axis], commands, configuration);
    let ended = cycle.run(&StopHandle::new());
    let happenings = std::iter::from_fn(|| observer.next_event()).map(|it| it.what).collect();
    let findings = ended.findings(Circumstances { period: PERIOD, hurried: false, resumes: false });
    Outcome { taken: record.taken(), seen: seen.try_iter().collect(), happenings, findings }
}

/// A load with which the motor gets no faster than its positions are plausible in 50 ms.
fn heavy(description: &mut ServoDescription) {
    description.plant.inertia = 1e-2;
}

fn axis(mode: CyclicMode) -> AxisConfiguration {
    let mut axis = supervised(1).remove(0);
    axis.mode = mode.into();
    let settings = axis.supervision.as_mut().unwrap();
    settings.mode = mode.into();
    settings.limits.position = None;
    let times = BrakeTimes { release: Seconds(0.01), engage: Seconds(0.01) };
    axis.brake = Some(BrakeConfiguration { times, output: None, ..BrakeConfiguration::default() });
    axis
}

// feature(axes): a motor that turns against its command loses its torque, also when another stop comes first
#[test]
fn a_reversed_motor_is_braked_though_another_stop_comes_first() {
    // In cst it turns at less than its velocity limit when it is reversed.
    for (mode, torque, reversal) in [(CyclicMode::Velocity, 0.0, REVERSED), (CyclicMode::Torque, 0.1, 60)] {
        let (device, record) = sub_device(mode, |_| ());
        let axis = axis(mode);
        let velocity = axis.supervision.unwrap().limits.velocity.0 / 2.0;
        let scale = axis.scale.counts_per_radian();
        let out =
            play((Segment::new(vec![device]), record), axis, (velocity, torque, u64::MAX), Some(reversal));
        let stopped = out.seen.iter().find(|(_, it)| it.stop.is_some()).unwrap();
        let cut = out.taken.iter().find(|it| has_lost_torque(it, &out)).unwrap();
        let reversed = out.taken.iter().find(|it| it.state == State::OperationEnabled).unwrap().now;
        assert!(stopped.0 > reversal, "in cycle {}", stopped.0);
        // The stop comes within 100 ms, and the torque goes within as much again.
        let within = Duration::from_millis(300).as_millis() + u128::from(reversal);
        assert!(cut.now.since(reversed).as_millis() < within, "{mode:?}");
        let rests: Vec<_> = out.taken.iter().filter(|it| it.now.since(cut.now).as_millis() > 400).collect();
        assert!(!rests.is_empty() && rests.iter().all(|it| (it.velocity / scale).abs() < 0.05));
    }
}

// feature(axes): a motor that turns against its command loses its torque and is braked
#[test]
fn a_reversed_motor_in_csv_is_braked_at_once() {
    for reset in [1_200, u64::MAX] {
        let (device, record) = sub_device(CyclicMode::Velocity, heavy);
        let axis = axis(CyclicMode::Velocity);
        let limit = axis.supervision.unwrap().limits.velocity.0;
        let scale = axis.scale.counts_per_radian();
        let out =
            play((Segment::new(vec![device]), record), axis, (limit / 2.0, 0.0, reset), Some(REVERSED));
        let stopped = out.seen.iter().find(|(_, it)| it.stop.is_some()).unwrap();
        assert_eq!(stopped.1.stop, Some(StopReason::Runaway));
        // The drive needs a moment to run away, and its answer takes some cycles.
        let within = (RUNAWAY_TIME.0 / PERIOD.as_secs_f64()) as u64 + 40;
        assert!((REVERSED..REVERSED + within).contains(&stopped.0), "in cycle {}", stopped.0);
        let cut =
            out.taken.iter().find(|it| it.now > out.taken[0].now && has_lost_torque(it, &out)).unwrap();
        let since = |it: &&Taken| it.now.since(cut.now).as_millis();
        let rests: Vec<_> = out.taken.iter().filter(|it| (100..300).contains(&since(it))).collect();
        assert!(!rests.is_empty());
        for it in rests {
            assert_eq!(it.state, State::SwitchOnDisabled, "{it:?}");
            assert!((it.velocity / scale).abs() < 0.05, "{it:?}");
        }
        let events = out.happenings.iter().filter(
            |it| matches!(it, Happening::AxisStopped { reason, .. } if *reason == StopReason::Runaway),
        );
        assert_eq!(events.count(), 1);
        assert_eq!(out.findings.is_empty(), reset < END, "{:?}", out.findings);
    }
}

/// True once the drive has left Operation enabled after it was in it.
fn has_lost_torque(it: &Taken, out: &Outcome) -> bool {
    let enabled = out.taken.iter().find(|it| it.state == State::OperationEnabled).unwrap();
    it.now > enabled.now && it.state == State::SwitchOnDisabled
}

#[test]
fn a_reversed_motor_in_cst_is_braked_at_once() {
    let (device, record) = sub_device(CyclicMode::Torque, heavy);
    let mut axis = axis(CyclicMode::Torque);
    axis.velocity_error = Some(RadiansPerSecond(1.0));
    // It turns with 0.1 N m, and against them from then on.
    let out = play((Segment::new(vec![device]), record), axis, (0.0, 0.1, u64::MAX), Some(REVERSED));
    let reasons: Vec<_> = out.seen.iter().filter_map(|(_, it)| it.stop).collect();
    assert_eq!(reasons.first(), Some(&StopReason::Runaway));
    let first = out.seen.iter().find(|(_, it)| it.stop.is_some()).unwrap();
    assert!(first.0 > REVERSED);
    let fastest = out.taken.iter().map(|it| -it.velocity).fold(0.0, f64::max);
    assert!(fastest > 0.0 && out.taken.last().unwrap().velocity.abs() < 1.0);
}

#[test]
fn a_sound_motor_is_never_taken_for_a_runaway() {
    for (mode, velocity, torque) in [(CyclicMode::Velocity, 8.0, 0.0), (CyclicMode::Torque, 0.0, 0.025)] {
        let (device, record) = sub_device(mode, |_| ());
        let out =
            play((Segment::new(vec![device]), record), axis(mode), (velocity, torque, u64::MAX), None);
        let runaway = out.seen.iter().find(|(_, it)| it.stop == Some(StopReason::Runaway));
        assert!(runaway.is_none(), "{mode:?}: {runaway:?}");
    }
}

// feature(axes): in modes of torques an axis stops in time at its position limit, and an overshoot is reported
#[test]
fn an_overshoot_in_cst_is_an_event_with_its_size() {
    let play_with = |ramp: f64| {
        let (mut device, record) = sub_device(CyclicMode::Torque, |_| ());
        let servo = device.servo_mut().unwrap();
        let entry = servo.dictionary().find(PROFILE_DECELERATION, 0).unwrap();
        let mut axis = axis(CyclicMode::Torque);
        let scale = axis.scale.counts_per_radian();
        servo.dictionary_mut().set(entry, (ramp * scale) as i64);
        let limits = &mut axis.supervision.as_mut().unwrap().limits;
        limits.position = Some((Radians(-1.0), Radians(0.5)));
        (limits.acceleration, limits.deceleration) =
            (RadiansPerSecondSquared(50.0), RadiansPerSecondSquared(50.0));
        let out = play((Segment::new(vec![device]), record), axis, (0.0, 0.03, u64::MAX), None);
        let farthest = out.taken.iter().map(|it| f64::from(it.position) / scale).fold(f64::MIN, f64::max);
        let reported = out.happenings.iter().find_map(|it| match it {
            Happening::Overshoot { by, .. } => Some(by.0),
            _ => None,
        });
        let stop = out.seen.iter().find_map(|(_, it)| it.stop);
        (farthest - 0.5, reported, stop)
    };
    let (beyond, reported, stop) = play_with(100.0);
    assert_eq!((reported, stop), (None, Some(StopReason::PositionLimit)), "{beyond} rad");
    assert!(beyond <= 0.0 && beyond > -0.2, "it stops in time: {beyond} rad");
    let (beyond, reported, stop) = play_with(10.0);
    assert_eq!(stop, Some(StopReason::PositionLimit));
    let reported = reported.expect("a drive that brakes less than the file says");
    assert!(beyond > 0.01 && (reported - beyond).abs() < 0.01, "{beyond} rad, reported {reported}");
}

/// Outcome of an axis in cst with these position limits, and a controller that commands this torque
/// and resets every stop; the farthest and the last position of its drive in rad, and the sizes of
/// the overshoots.
fn pushed(limits: (f64, f64), torque: f64) -> (Outcome, [f64; 2], Vec<f64>) {
    let (mut device, record) = sub_device(CyclicMode::Torque, |_| ());
    let servo = device.servo_mut().unwrap();
    let entry = servo.dictionary().find(PROFILE_DECELERATION, 0).unwrap();
    let mut axis = axis(CyclicMode::Torque);
    let scale = axis.scale.counts_per_radian();
    servo.dictionary_mut().set(entry, (50.0 * scale) as i64);
    let settings = &mut axis.supervision.as_mut().unwrap().limits;
    settings.position = Some((Radians(limits.0), Radians(limits.1)));
    (settings.acceleration, settings.deceleration) =
        (RadiansPerSecondSquared(50.0), RadiansPerSecondSquared(50.0));
    let out = play((Segment::new(vec![device]), record), axis, (0.0, torque, AGAIN_AND_AGAIN), None);
    let places: Vec<_> = out.taken.iter().map(|it| f64::from(it.position) / scale).collect();
    let farthest = places.iter().copied().fold(f64::MIN, f64::max);
    let sizes = out.happenings.iter().filter_map(|it| match it {
        Happening::Overshoot { by, .. } => Some(by.0),
        _ => None,
    });
    let sizes = sizes.collect();
    (out, [farthest, *places.last().unwrap()], sizes)
}

fn is_outside(finding: &Finding) -> bool {
    matches!(finding, Finding::AxisStopped { reason: StopReason::InwardsOnly, .. })
        && finding.exit_code() == 3
}

// feature(axes): outside its position limits an axis gets no outward torque, and says that it is outside
#[test]
fn resets_and_outward_torque_push_no_axis_out_of_its_limits() {
    let (out, [farthest, last], sizes) = pushed((-1.0, 0.5), 0.3);
    assert!(farthest > 0.5 && farthest < 0.6, "{farthest} rad");
    assert!((last - farthest).abs() < 0.02, "it stays: {last} of {farthest} rad");
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    assert!(out.findings.iter().any(is_outside), "{:?}", out.findings);
}

// feature(axes): outside its position limits an axis gets no outward torque, and says that it is outside
#[test]
fn position_outside_the_limits_is_reported_and_left_in_cst() {
    for (torque, moves) in [(0.0, false), (-0.03, false), (0.03, true)] {
        let (out, [farthest, _], _) = pushed((1.0, 2.0), torque);
        assert_eq!(farthest > 0.1, moves, "{torque} Nm: {farthest} rad");
        assert_eq!(out.findings.iter().any(is_outside), !moves, "{torque} Nm: {:?}", out.findings);
        let events = out.happenings.iter().filter(
            |it| matches!(it, Happening::AxisStopped { reason, .. } if *reason == StopReason::InwardsOnly),
        );
        assert_eq!(events.count(), 1, "{torque} Nm");
        let lowest = out.seen.iter().map(|(_, it)| it.feedback.position.0).fold(f64::MAX, f64::min);
        assert!(lowest > -0.01, "{torque} Nm: {lowest} rad");
    }
}
