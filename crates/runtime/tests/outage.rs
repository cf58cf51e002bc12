//! Frames that are lost, and a host that stands still, judged by what the simulated drive took.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::io;
use std::time::Duration;

use ethercat::cia402::{Controlword, CyclicMode, Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use motion::supervision::{AfterOutage, Mode, Outage, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond, Seconds};
use onbeat_runtime::axis::AxisConfiguration;
use onbeat_runtime::clock::{Clock, VirtualClock};
use onbeat_runtime::controller::{AxisCommand, AxisReport, Beat, Controller};
use onbeat_runtime::cycle::{CycleConfiguration, FrameOrder};
use onbeat_runtime::link::DirectLink;
use onbeat_runtime::link::Link;
use onbeat_runtime::stop::StopHandle;
use proptest::prelude::*;
use simulator::application::servo::{ServoDescription, ServoDrive, ServoRecord, Taken, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, axes, cycle_of, supervised};

const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;
/// The limits of [`supervised`].
const VELOCITY: f64 = 10.0;
const STEP: f64 = 0.05;
const DECELERATION: f64 = 50.0;

/// Which way frames are lost, or that none is while the host stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Out,
    Back,
    Both,
    Stall,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    mode: CyclicMode,
    fault: Fault,
    /// Cycles.
    outage: u64,
    order: FrameOrder,
    after: AfterOutage,
    /// The key `outage_time`; `None` is its default.
    time: Option<Seconds>,
}

/// What came of it.
struct Outcome {
    taken: Vec<Taken>,
    reports: Vec<(Instant, AxisReport)>,
    begin: Instant,
    end: Instant,
}

/// Cycles in Op before the outage: the axis moves at speed.
const BEFORE: u64 = 900;
/// Cycles after it.
const AFTER: u64 = 1_500;
/// Cycles after it until somebody resets the axis.
const UNTIL_RESET: u64 = 900;

fn play(case: Case) -> Outcome {
    let Begun { clock, record, link, axes, mover, seen } = begin(case, None);
    let beats = BEFORE + AFTER + if case.fault == Fault::Stall { 0 } else { case.outage } + 200;
    let configuration = CycleConfiguration {
        beats: Some(beats),
        order: case.order,
        loss: None,
        ..CycleConfiguration::every(PERIOD)
    };
    let (cycle, _observer) = cycle_of(link, clock, &axes, mover, configuration);
    let ended = cycle.run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let mut reports = Vec::new();
    let mut window = None;
    for (now, report, seen_window) in seen.try_iter() {
        window = window.or(seen_window);
        reports.push((now, report));
    }
    let (begin, end) = window.unwrap();
    Outcome { taken: record.taken(), reports, begin, end }
}

/// One axis before its cycle, with all that watches it.
struct Begun {
    clock: VirtualClock,
    record: ServoRecord,
    link: Lossy,
    axes: Vec<AxisConfiguration>,
    mover: Mover,
    seen: std::sync::mpsc::Receiver<Seen>,
}

fn begin(case: Case, stops: Option<(StopHandle, u32)>) -> Begun {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (segment, record) = segment(case.mode);
    let direct = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let (tell, told) = std::sync::mpsc::channel();
    let link = Lossy { direct, clock: clock.clone(), fault: case.fault, lost: None, window: told, stops };
    let mut axes = supervised(1);
    prepare(&mut axes[0], case);
    let (see, seen) = std::sync::mpsc::channel();
    let mover = Mover {
        case,
        clock: clock.clone(),
        tell,
        see,
        cycles: 0,
        origin: None,
        elapsed: 0.0,
        window: None,
    };
    Begun { clock, record, link, axes, mover, seen }
}

fn prepare(axis: &mut AxisConfiguration, case: Case) {
    axis.mode = case.mode;
    let settings = axis.supervision.as_mut().unwrap();
    settings.mode = match case.mode {
        CyclicMode::Position => Mode::Position,
        CyclicMode::Velocity => Mode::Velocity,
        CyclicMode::Torque => Mode::Torque,
    };
    if case.mode == CyclicMode::Torque {
        settings.limits.velocity = RadiansPerSecond(1_000.0);
    }
    settings.outage = Outage { time: case.time, after: case.after };
    axis.maximum_step = Radians(STEP + 2.0 / COUNTS_PER_RADIAN);
}

fn segment(mode: CyclicMode) -> (Segment, ServoRecord) {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let sii = with_coe(identity, "Servo", default_mapping()).image().emit();
    let description =
        ServoDescription { mode, ..ServoDescription::new(DeviceDescription::new(identity, "Servo")) };
    let mut drive = ServoDrive::new(&description).unwrap();
    let record = drive.record();
    (Segment::new(vec![SubDevice::new(EscDescription::default(), sii, Box::new(drive))]), record)
}

/// Loses frames within a window of time.
struct Lossy {
    direct: DirectLink<Segment, VirtualClock>,
    clock: VirtualClock,
    fault: Fault,
    lost: Option<(Instant, Instant)>,
    window: std::sync::mpsc::Receiver<(Instant, Instant)>,
    /// Asks for a stop after so many frames of the outage.
    stops: Option<(StopHandle, u32)>,
}

impl Lossy {
    fn is_out(&mut self) -> bool {
        self.lost = self.lost.or_else(|| self.window.try_iter().next());
        let now = self.clock.now();
        self.lost.is_some_and(|(begin, end)| begin <= now && now < end)
    }
}

impl Link for Lossy {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.is_out() {
            if let Some((stop, frames)) = &mut self.stops {
                *frames = frames.saturating_sub(1);
                if *frames == 0 {
                    stop.stop();
                }
            }
        }
        let lost = matches!(self.fault, Fault::Out | Fault::Both) && self.is_out();
        if lost { Ok(()) } else { self.direct.transmit(frame) }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let received = self.direct.receive(buffer, timeout)?;
        let lost = matches!(self.fault, Fault::Back | Fault::Both) && self.is_out();
        Ok(received.filter(|_| !lost))
    }
}

/// One cycle: its instant, what the axis reported, and the outage once it has begun.
type Seen = (Instant, AxisReport, Option<(Instant, Instant)>);

/// Swings the axis 1 rad about where it stood, at 0.5 Hz; a velocity or a torque likewise. Begins anew wherever it is shown to hold.
struct Mover {
    case: Case,
    clock: VirtualClock,
    tell: std::sync::mpsc::Sender<(Instant, Instant)>,
    see: std::sync::mpsc::Sender<Seen>,
    cycles: u64,
    origin: Option<f64>,
    elapsed: f64,
    window: Option<(Instant, Instant)>,
}

impl Mover {
    fn begin_outage(&mut self) {
        // In the middle of a period: neither frames nor releases are on its edges.
        let begin = self.clock.now() + PERIOD / 2;
        let end = begin + PERIOD * self.case.outage as u32;
        self.window = Some((begin, end));
        self.tell.send((begin, end)).unwrap();
        if self.case.fault == Fault::Stall {
            self.clock.advance(PERIOD * self.case.outage as u32);
        }
    }
}

impl Controller for Mover {
    fn update(&mut self, beat: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        let (report, command) = (reports[0], &mut commands[0]);
        self.cycles += u64::from(report.state == Some(State::OperationEnabled) || self.cycles > 0);
        if self.cycles == BEFORE {
            self.begin_outage();
        }
        let now = self.clock.now();
        let reset = self.window.is_some_and(|(_, end)| {
            let since = now.since(end);
            now > end && since > PERIOD * UNTIL_RESET as u32 && since < PERIOD * (UNTIL_RESET as u32 + 3)
        });
        command.request = if reset { Request::FaultReset } else { Request::Enable };
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            (self.origin, self.elapsed) = (Some(position.0), 0.0);
        }
        let (sin, cos) = (std::f64::consts::PI * self.elapsed).sin_cos();
        if let Some(origin) = self.origin.filter(|_| !beat.stopping) {
            self.elapsed += beat.period.as_secs_f64() * beat.periods as f64;
            // Eased in for a quarter of a second.
            let ease = (self.elapsed / 0.25).min(1.0);
            command.setpoint.position = Radians(origin + ease * sin);
            command.setpoint.velocity = RadiansPerSecond(ease * 3.0 * cos);
            command.setpoint.torque.0 = 0.05 * cos;
        } else if beat.stopping {
            command.setpoint.velocity = RadiansPerSecond::ZERO;
            command.setpoint.torque.0 = 0.0;
        }
        let _ = self.see.send((now, report, self.window));
    }
}

/// The targets that the drive took while it followed them, a line for each one that differs in time by a cycle or more.
fn followed(outcome: &Outcome) -> Vec<Taken> {
    outcome
        .taken
        .iter()
        .filter(|taken| taken.follows() && taken.controlword.enables_operation())
        .copied()
        .collect()
}

fn check(case: Case) {
    let outcome = play(case);
    let followed = followed(&outcome);
    assert!(followed.len() > 100, "it never moved: {case:?}");
    match case.mode {
        CyclicMode::Position => check_positions(case, &outcome, &followed),
        CyclicMode::Velocity => check_velocities(case, &outcome, &followed),
        CyclicMode::Torque => check_torques(case, &outcome, &followed),
    }
    check_stop(case, &outcome);
}

/// Steps within the limit of velocity in each cycle, and three largest steps after an outage.
fn check_positions(case: Case, outcome: &Outcome, followed: &[Taken]) {
    let mut last: Option<Taken> = None;
    let mut firsts = 0;
    for taken in followed {
        let Some(before) = last else {
            last = Some(*taken);
            continue;
        };
        let step =
            f64::from(taken.target_position.wrapping_sub(before.target_position)).abs() / COUNTS_PER_RADIAN;
        if step == 0.0 {
            last = Some(*taken);
            continue;
        }
        let apart = taken.now.since(before.now);
        let within = if taken.now >= outcome.begin && firsts == 0 && taken.now >= outcome.end {
            firsts += 1;
            3.0 * STEP
        } else {
            VELOCITY * 1e-3
        };
        assert!(
            step <= within + 4.0 / COUNTS_PER_RADIAN,
            "{step} rad after {apart:?}: {before:?} {taken:?} {case:?}"
        );
        last = Some(*taken);
    }
    if case.fault == Fault::Stall {
        return;
    }
    // Three cycles into the outage nothing moves any more.
    let still = outcome.begin + PERIOD * 4;
    let during = followed.iter().filter(|taken| taken.now > still && taken.now < outcome.end);
    let targets: std::collections::BTreeSet<i32> = during.map(|taken| taken.target_position).collect();
    assert!(targets.len() <= 1, "it moved during the outage: {targets:?} {case:?}");
}

fn check_velocities(case: Case, outcome: &Outcome, followed: &[Taken]) {
    let radians = |taken: &Taken| f64::from(taken.target_velocity) / COUNTS_PER_RADIAN;
    for pair in followed.windows(2) {
        let (before, after) = (radians(&pair[0]), radians(&pair[1]));
        assert!(after.abs() <= VELOCITY * 1.001, "{after} {case:?}");
        let in_outage = pair[1].now > outcome.begin + PERIOD * 4 && pair[1].now < outcome.end;
        assert!(
            !in_outage || after.abs() <= before.abs() + 1e-9,
            "faster during the outage {before} {after} {case:?}"
        );
        let slowed = before.abs() - after.abs();
        if in_outage {
            assert!(slowed <= DECELERATION * 1.1e-3, "{slowed} rad/s in a cycle {case:?}");
        }
    }
}

fn check_torques(case: Case, outcome: &Outcome, followed: &[Taken]) {
    for pair in followed.windows(2) {
        let in_outage = pair[1].now > outcome.begin + PERIOD * 4 && pair[1].now < outcome.end;
        let (before, after) = (pair[0].target_torque.abs(), pair[1].target_torque.abs());
        assert!(!in_outage || after <= before, "more torque during the outage {before} {after} {case:?}");
    }
}

/// The reason is shown, and the axis stays where it is until it is reset, or goes on by itself.
fn check_stop(case: Case, outcome: &Outcome) {
    let at = |from: Instant, to: Instant| {
        outcome.reports.iter().filter(move |(now, _)| *now >= from && *now < to).map(|(_, report)| report)
    };
    let reset = outcome.end + PERIOD * UNTIL_RESET as u32;
    let stopped = at(outcome.begin, reset).any(|report| report.stop == Some(StopReason::Outage));
    // Where both ways are out, the last reply before the outage is lost as well, if it is taken a cycle later.
    let both = case.fault == Fault::Both && case.order == FrameOrder::ReplyOfLastBeat;
    let missed = case.outage + u64::from(both);
    // An axis in torque mode that is slow enough to count as standing goes on in the cycle in which it is heard of again.
    let at_once = case.mode == CyclicMode::Torque && case.after == AfterOutage::Resume;
    assert!(stopped == (missed > 2) || (at_once && !stopped), "{case:?}");
    if missed <= 2 {
        return;
    }
    if case.after == AfterOutage::Stay {
        // Some time to come to rest in; then nothing moves until somebody says so.
        let rests = outcome.end + Duration::from_millis(600);
        let speeds = at(rests, reset).map(|report| report.feedback.velocity.0.abs());
        let fastest = speeds.fold(0.0, f64::max);
        let allowed = if case.mode == CyclicMode::Torque { 2.0 } else { 0.02 };
        assert!(fastest < allowed, "it moved at {fastest} rad/s before somebody asked {case:?}");
    }
    // A drive that was without outputs for longer than its watchdog waits has left Op.
    let watched = matches!(case.fault, Fault::Back) || case.outage < 90;
    if watched {
        let later = reset + Duration::from_millis(250);
        let moves = at(later, later + Duration::from_secs(1)).any(|report| {
            report.stop.is_none()
                && report.state == Some(State::OperationEnabled)
                && report.feedback.velocity.0.abs() > 0.05
        });
        assert!(moves, "it never moved again {case:?}");
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    let mode = prop::sample::select(vec![CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque]);
    let fault = prop::sample::select(vec![Fault::Out, Fault::Back, Fault::Both, Fault::Stall]);
    let outage = prop_oneof![4 => 1..40_u64, 2 => 40..300_u64, 1 => 300..=10_000_u64];
    let order = prop::sample::select(vec![FrameOrder::ReplyOfLastBeat, FrameOrder::WaitForReply]);
    let after = prop::sample::select(vec![AfterOutage::Stay, AfterOutage::Resume]);
    (mode, fault, outage, order, after).prop_map(|(mode, fault, outage, order, after)| Case {
        mode,
        fault,
        outage,
        order,
        after,
        time: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]
    #[test]
    fn no_outage_makes_an_axis_jump(case in any_case()) {
        check(case);
    }
}

#[test]
fn the_cable_out_for_half_a_second_in_a_swing_of_1_rad() {
    for fault in [Fault::Out, Fault::Back, Fault::Both, Fault::Stall] {
        for order in [FrameOrder::ReplyOfLastBeat, FrameOrder::WaitForReply] {
            check(Case {
                mode: CyclicMode::Position,
                fault,
                outage: 500,
                order,
                after: AfterOutage::Stay,
                time: None,
            });
        }
    }
}

#[test]
fn two_lost_cycles_do_not_stop_a_motion() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque] {
        for outage in [1, 2] {
            for fault in [Fault::Out, Fault::Back, Fault::Both] {
                check(Case {
                    mode,
                    fault,
                    outage,
                    order: FrameOrder::ReplyOfLastBeat,
                    after: AfterOutage::Stay,
                    time: None,
                });
            }
        }
    }
}

#[test]
fn an_axis_without_supervision_stands_too() {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (segment, record) = segment(CyclicMode::Position);
    let case = Case {
        mode: CyclicMode::Position,
        fault: Fault::Back,
        outage: 10,
        order: FrameOrder::ReplyOfLastBeat,
        after: AfterOutage::Stay,
        time: None,
    };
    let direct = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let (tell, told) = std::sync::mpsc::channel();
    let link =
        Lossy { direct, clock: clock.clone(), fault: case.fault, lost: None, window: told, stops: None };
    let (see, seen) = std::sync::mpsc::channel();
    let mover = Mover {
        case,
        clock: clock.clone(),
        tell,
        see,
        cycles: 0,
        origin: None,
        elapsed: 0.0,
        window: None,
    };
    let configuration =
        CycleConfiguration { beats: Some(BEFORE + 600), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _observer) = cycle_of(link, clock, &axes(1), mover, configuration);
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    let (begin, end) = seen.try_iter().find_map(|(.., window)| window).unwrap();
    let during = record.taken().into_iter().filter(|it| it.now > begin + PERIOD * 4 && it.now < end);
    let targets: std::collections::BTreeSet<i32> = during.map(|it| it.target_position).collect();
    assert_eq!(targets.len(), 1, "{targets:?}");
}

/// The key's default is 20 cycles; two of them the cable takes.
#[test]
fn a_drive_that_hears_us_is_asked_for_a_quick_stop_after_the_outage_time_and_not_before() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque] {
        for (time, cycles) in [(None, 20), (Some(Seconds(0.1)), 100)] {
            let case = Case {
                mode,
                fault: Fault::Back,
                outage: 150,
                order: FrameOrder::ReplyOfLastBeat,
                after: AfterOutage::Stay,
                time,
            };
            let outcome = play(case);
            let quick_stop = |it: &&Taken| it.operational && it.controlword == Controlword::QUICK_STOP;
            let first = outcome.taken.iter().filter(|it| it.now > outcome.begin).find(quick_stop).unwrap();
            let after = first.now.since(outcome.begin);
            assert!(after > PERIOD * cycles && after < PERIOD * (cycles + 4), "{after:?} {case:?}");
        }
    }
}

#[test]
fn a_velocity_and_a_torque_fall_to_zero_while_nothing_is_heard() {
    for mode in [CyclicMode::Velocity, CyclicMode::Torque] {
        let case = Case {
            mode,
            fault: Fault::Back,
            outage: 500,
            order: FrameOrder::ReplyOfLastBeat,
            after: AfterOutage::Stay,
            time: Some(Seconds(1.0)),
        };
        let outcome = play(case);
        let during = |it: &&Taken| it.now > outcome.begin + PERIOD * 4 && it.now < outcome.end;
        let targets = outcome.taken.iter().filter(during);
        let targets: Vec<f64> = targets
            .map(|it| f64::from(it.target_velocity) / COUNTS_PER_RADIAN + f64::from(it.target_torque))
            .collect();
        assert!(targets[0].abs() > 0.5, "{case:?}: it was not moving, {}", targets[0]);
        assert_eq!(*targets.last().unwrap(), 0.0, "{case:?}");
        // From about 3 rad/s at 50 rad/s^2, or from less than full torque in 250 ms.
        let fell = targets.iter().position(|&target| target == 0.0).unwrap();
        assert!(fell < targets.len() * 6 / 10, "{case:?}: it took {fell} of {} steps", targets.len());
    }
}

/// A stop that is asked for in an outage does not cut short the quick stop of a drive that still hears us.
#[test]
fn a_drive_that_hears_us_has_time_for_its_quick_stop_before_the_bus_goes_down() {
    let case = Case {
        mode: CyclicMode::Velocity,
        fault: Fault::Back,
        outage: 5_000,
        order: FrameOrder::ReplyOfLastBeat,
        after: AfterOutage::Stay,
        time: None,
    };
    let stop = StopHandle::new();
    let Begun { clock, record, link, axes, mover, .. } = begin(case, Some((stop.clone(), 7)));
    let (cycle, _observer) = cycle_of(link, clock, &axes, mover, CycleConfiguration::every(PERIOD));
    assert_eq!(cycle.run(&stop).failure, None);
    let taken = record.taken();
    let asked = taken.iter().position(|it| it.operational && it.controlword == Controlword::QUICK_STOP);
    let asked = asked.expect("it is asked for a quick stop");
    let left = taken[asked..]
        .iter()
        .find(|it| !it.operational)
        .map_or(Duration::MAX, |it| it.now.since(taken[asked].now));
    let rested = taken[asked..].iter().position(|it| it.velocity.abs() < 0.05 * COUNTS_PER_RADIAN);
    let rested = taken[asked + rested.expect("it comes to rest")].now.since(taken[asked].now);
    assert!(rested < left, "rest after {rested:?}, out of Op after {left:?}");
}
