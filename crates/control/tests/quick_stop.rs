//! Drives that do not carry out a quick stop, with and without brake and load, in virtual time. The
//! tests evaluate the true motion of the simulated drive.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use ethercat::cia402::object::{DIGITAL_OUTPUTS, HALT_OPTION_CODE, QUICK_STOP_OPTION_CODE};
use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::link::DirectLink;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::supervision::{AfterOutage, Outage, QuickStopStep, StopReason};
use motion::{AxisPhase, RadiansPerSecond, Seconds};
use onbeat_control::axis::{AxisConfiguration, DigitalOutput};
use onbeat_control::controller::{AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{AXIS, Circumstances, Finding};
use rt::clock::VirtualClock;
use simulator::application::digital::{DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, Taken, default_mapping};
use simulator::application::sii::{digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{IpcFolder, PERIOD, cycle_of, ipc, rules, supervised};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;
/// mN m, on a motor of 2400: without torque it speeds up by 1 rad/s in a millisecond.
const LOAD: i32 = 500;
/// rad/s.
const SPEED: f64 = 3.0;
/// rad/s^2, of [`supervised`].
const DECELERATION: f64 = 50.0;
const BRAKE: BrakeTimes = BrakeTimes { release: Seconds(0.03), engage: Seconds(0.05) };
/// Cycles from the first motion to the quick stop, to the reset, and to the end.
const ASKED: u64 = 400;
const RESET: u64 = 2_000;
const END: u64 = 2_600;
/// Cycle of the second stop.
const HURRIED: u64 = 3_600;

/// Cause of the quick stop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// No frame passes for 60 cycles.
    Outage,
    /// The controller asks for it, until the reset.
    Request,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    mode: CyclicMode,
    cause: Cause,
    brake: bool,
    load: bool,
    /// `holds_load` of the axis.
    holds_load: bool,
    /// The axis is reset at last.
    reset: bool,
    /// The drive has a quick stop, by which it coasts (0x605A = 0); else it has none.
    coasts: bool,
    /// Cycle of a disturbance.
    disturbed: Option<(u64, Disturbance)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    LostFrame,
    /// A cycle begins a period late.
    LateCycle,
    /// The first stop of the run.
    Stop,
}

/// The terminal that powers the brake's coil, and the drive; the brake acts on its shaft.
struct Machine {
    segment: Segment,
    wires: Wires,
    brake: bool,
    /// Power on the coil, and since when.
    coil: (bool, Option<Instant>),
    loaded: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
}

impl Machine {
    fn work(&mut self, now: Instant) {
        let power = self.wires.levels() & 1 != 0;
        if power != self.coil.0 {
            self.coil = (power, Some(now));
        }
        let takes = if power { BRAKE.release } else { BRAKE.engage };
        let done = self.coil.1.is_none_or(|at| now.since(at).as_secs_f64() >= takes.0);
        let closed = self.brake && power != done;
        let loaded = self.loaded.load(Ordering::Relaxed);
        let servo = self.segment.sub_device_mut(1).unwrap().servo_mut().unwrap();
        let [outputs, mask] = [1, 2].map(|it| servo.dictionary().find(DIGITAL_OUTPUTS, it).unwrap());
        servo.dictionary_mut().set(mask, 1);
        servo.dictionary_mut().set(outputs, i64::from(closed));
        servo.set_load(0, if loaded { LOAD } else { 0 });
    }
}

impl ethercat::link::Segment for Machine {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.work(now);
        !self.lost.load(Ordering::Relaxed) && self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.work(now);
        self.segment.advance(now);
    }
}

/// Moves the axis, with the load on it from cycle 100 on; holds the load in cst.
struct MovingController {
    case: Case,
    loaded: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
    cycles: u64,
    position: f64,
    stop: StopHandle,
    /// State for other processes.
    state: ipc::state::Reader,
    clock: VirtualClock,
    see: std::sync::mpsc::Sender<(u64, Instant, AxisReport)>,
    /// Step that the state names, in each cycle.
    shown: std::sync::mpsc::Sender<u8>,
}

impl Controller for MovingController {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (reports[0], &mut commands[0]);
        let case = self.case;
        self.cycles += u64::from(report.state == Some(State::OperationEnabled) || self.cycles > 0);
        self.loaded.store(case.load && self.cycles > 100, Ordering::Relaxed);
        let lost = case.cause == Cause::Outage && (ASKED..ASKED + 60).contains(&self.cycles);
        let disturbance = case.disturbed.filter(|it| it.0 == self.cycles).map(|it| it.1);
        self.lost.store(lost || disturbance == Some(Disturbance::LostFrame), Ordering::Relaxed);
        match disturbance {
            Some(Disturbance::LateCycle) => self.clock.advance(PERIOD * 3 / 2),
            Some(Disturbance::Stop) => self.stop.stop(),
            _ => {}
        }
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            self.position = position.0;
        }
        let ease = (self.cycles.saturating_sub(200) as f64 / 100.0).min(1.0);
        let speed = if info.stopping || self.cycles > RESET + 100 { 0.0 } else { ease * SPEED };
        if report.feedback.phase == AxisPhase::Following {
            self.position += speed * PERIOD.as_secs_f64();
        }
        command.setpoint.position.0 = self.position;
        command.setpoint.velocity = RadiansPerSecond(speed);
        // Without a load it turns slowly; a load is held.
        let torque = if case.load { f64::from(LOAD) / 1000.0 } else { 0.03 };
        let idle = info.stopping || self.cycles <= 100 || self.cycles > RESET;
        command.setpoint.torque.0 = if idle { 0.0 } else { torque };
        let asks = case.cause == Cause::Request && (ASKED..RESET).contains(&self.cycles);
        command.request = match self.cycles {
            _ if asks => Request::QuickStop,
            _ if !case.reset && self.cycles >= ASKED => {
                if case.cause == Cause::Request {
                    Request::QuickStop
                } else {
                    Request::Enable
                }
            }
            RESET..=2_002 => Request::FaultReset,
            _ => Request::Enable,
        };
        if self.cycles == HURRIED {
            self.stop.hurry();
        }
        let _ = self.see.send((self.cycles, info.release, report));
        let _ = self.shown.send(self.state.read().map_or(0, |it| it.axes[0].quick_stop));
    }
}

struct Outcome {
    taken: Vec<Taken>,
    seen: Vec<(u64, Instant, AxisReport)>,
    shown: Vec<u8>,
    steps: Vec<QuickStopStep>,
    findings: Vec<Finding>,
}

fn segment(case: Case, wires: &Wires) -> (Segment, simulator::application::servo::ServoRecord) {
    let outputs = DigitalOutputs::new(4, wires.clone()).unwrap();
    let sii = digital_outputs(IDENTITY, "Outputs", 4).image().emit();
    let terminal = SubDevice::new(EscDescription::default(), sii, Box::new(outputs));
    let usual = ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"));
    let description = ServoDescription { quick_stop: case.coasts, mode: case.mode, ..usual };
    let mut drive = ServoDrive::new(&description).unwrap();
    let halt = drive.dictionary().find(HALT_OPTION_CODE, 0).unwrap();
    drive.dictionary_mut().set(halt, 1);
    if case.coasts {
        let quick_stop = drive.dictionary().find(QUICK_STOP_OPTION_CODE, 0).unwrap();
        drive.dictionary_mut().set(quick_stop, 0);
    }
    let record = drive.record();
    let sii = with_coe(IDENTITY, "Servo", default_mapping()).image().emit();
    let drive = SubDevice::new(EscDescription::default(), sii, Box::new(drive));
    (Segment::new(vec![terminal, drive]), record)
}

fn axis(case: Case) -> AxisConfiguration {
    let mut axis = supervised(1).remove(0);
    (axis.sub_device, axis.mode, axis.holds_load) = (1, case.mode.into(), case.holds_load);
    axis.quick_stops = !case.coasts;
    let settings = axis.supervision.as_mut().unwrap();
    settings.mode = case.mode.into();
    settings.outage = Outage { time: None, after: AfterOutage::Stay };
    let output = Some(DigitalOutput { sub_device: 0, channel: 1 });
    axis.brake =
        case.brake.then_some(BrakeConfiguration { times: BRAKE, output, ..BrakeConfiguration::default() });
    axis
}

fn play(case: Case) -> Outcome {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let wires = Wires::new();
    let (segment, record) = segment(case, &wires);
    let [loaded, lost] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let machine = Machine {
        segment,
        wires,
        brake: case.brake,
        coil: (false, None),
        loaded: Arc::clone(&loaded),
        lost: Arc::clone(&lost),
    };
    let link = DirectLink::new(machine, clock.clone(), Duration::from_micros(60));
    let ((see, seen), (show, shown)) = (channel(), channel());
    let stop = StopHandle::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = IpcFolder::new(&format!("quick-stop-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let (ipc, _server, client) = ipc(&folder, rules(1));
    let (state, position) = (client.state(), 0.0);
    let mover = MovingController {
        case,
        loaded,
        lost,
        cycles: 0,
        position,
        stop: stop.clone(),
        state,
        clock: clock.clone(),
        see,
        shown: show,
    };
    let configuration = CycleConfiguration { cycles: Some(END), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &[axis(case)], mover, configuration);
    let ended = cycle.with_ipc(ipc).run(&stop);
    let step = |what| match what {
        Happening::QuickStopIgnored { step, .. } => Some(step),
        _ => None,
    };
    let steps = std::iter::from_fn(|| observer.next_event()).filter_map(|it| step(it.what)).collect();
    let circumstances = Circumstances { period: PERIOD, hurried: false, resumes: false };
    let findings = ended.findings(circumstances);
    let (seen, shown) = (seen.try_iter().collect(), shown.try_iter().collect());
    Outcome { taken: record.taken(), seen, shown, steps, findings }
}

/// The quick stop is requested in this cycle. The axis is at standstill after twice the time of its
/// deceleration, half a second, the outage, and the time of detection.
fn check(case: Case) {
    let Outcome { taken, seen, shown, steps, findings } = play(case);
    let at = |cycle: u64| seen.iter().find(|it| it.0 == cycle).unwrap().1;
    let (asked, reset) = (at(ASKED), at(RESET));
    let speed = |it: &Taken| it.velocity.abs() / COUNTS_PER_RADIAN;
    let position = |it: &Taken| f64::from(it.position) / COUNTS_PER_RADIAN;
    let before = taken.iter().rfind(|it| it.now < asked).unwrap();
    let held = case.mode == CyclicMode::Torque && case.load;
    assert!(speed(before) > 1.0 || held, "it never moved: {before:?} {case:?}");
    let rests = asked + Duration::from_secs_f64(2.0 * SPEED / DECELERATION + 0.5 + 0.06 + 0.1);
    let stopped: Vec<_> = taken.iter().filter(|it| it.now >= asked && it.now < reset).collect();
    // An outage leaves the drive up to three set-points behind: it catches up at the return.
    let outage = Duration::from_millis(if case.cause == Cause::Outage { 80 } else { 0 });
    for it in stopped.iter().filter(|it| it.now >= asked + outage) {
        // A load that falls gets fast at once.
        assert!(speed(it) <= speed(before) * 1.1 + 0.5, "{it:?} {case:?}");
        assert!(it.now < rests || speed(it) < 0.05, "{it:?} {case:?}");
    }
    let rested: Vec<_> = stopped.iter().filter(|it| it.now >= rests).map(|it| position(it)).collect();
    let (lowest, highest) =
        (rested.iter().copied().fold(f64::MAX, f64::min), rested.iter().copied().fold(f64::MIN, f64::max));
    assert!(highest - lowest < 0.01, "it moved by {} rad at standstill {case:?}", highest - lowest);
    if case.mode != CyclicMode::Torque {
        for pair in stopped.windows(11).filter(|it| it[0].now >= asked + outage) {
            let time = pair[10].now.since(pair[0].now).as_secs_f64();
            let braked = (speed(pair[0]) - speed(pair[10])) / time;
            assert!(braked < DECELERATION * 1.5, "{braked} rad/s^2 {:?} {case:?}", pair[0]);
        }
    }
    let kept = case.holds_load && !case.brake;
    let last = stopped.last().unwrap().state;
    let wanted = if kept { State::OperationEnabled } else { State::SwitchOnDisabled };
    assert_eq!(last, wanted, "{case:?}");
    // A first stop takes no torque from a load, a second does.
    let waits = kept && !case.reset;
    assert_eq!(seen.last().unwrap().0 > HURRIED, waits, "{case:?}");
    if waits {
        let begins = at(HURRIED);
        let until = taken.iter().filter(|it| it.now >= reset && it.now < begins);
        assert!(until.clone().all(|it| it.state == State::OperationEnabled), "{case:?}");
        let fastest = until.map(speed).fold(0.0, f64::max);
        assert!(fastest < 0.05, "{fastest} rad/s {case:?}");
        assert_eq!(taken.last().unwrap().state, State::SwitchOnDisabled, "{case:?}");
    }
    let step = match case.mode {
        CyclicMode::Torque => QuickStopStep::Halt,
        _ => QuickStopStep::SetPoints,
    };
    assert_eq!(steps, [step], "{case:?}");
    // Other processes see the step up to the reset.
    let before = seen.iter().position(|it| it.0 == RESET).unwrap();
    assert_eq!(shown[before], step as u8, "{case:?}");
    assert_eq!(shown[before + 400], if case.reset { 0 } else { step as u8 }, "{case:?}");
    let exit_code = findings.iter().map(Finding::exit_code).max().unwrap_or(0);
    if case.reset {
        let since: Vec<_> = taken.iter().filter(|it| it.now > reset).collect();
        assert!(since.iter().any(|it| it.state == State::OperationEnabled), "enabled again {case:?}");
        assert!(
            since.iter().any(|it| speed(it) > 1.0) || held || case.mode == CyclicMode::Torque,
            "it moves again {case:?}"
        );
        assert_eq!((exit_code, &findings[..]), (0, &[][..]), "{case:?}");
    } else {
        let stop = Finding::AxisStopped {
            axis: 0,
            reason: StopReason::Outage,
            with: None,
            because: onbeat_control::observer::Cause::default(),
        };
        let ignored = Finding::QuickStopIgnored { axis: 0, step };
        assert_eq!(findings, [if case.cause == Cause::Outage { stop } else { ignored }], "{case:?}");
        assert_eq!(exit_code, AXIS);
    }
}

// feature(axes): a drive that does not carry out a quick stop is stopped by other steps, without dropping a load
#[test]
fn drives_without_quick_stop_are_stopped_in_every_mode() {
    for mode in CyclicMode::ALL {
        for cause in [Cause::Request, Cause::Outage] {
            for (brake, load, holds_load) in
                [(false, false, false), (true, false, false), (true, true, true), (false, true, true)]
            {
                if mode == CyclicMode::Torque && load {
                    continue;
                }
                for reset in [false, true] {
                    let (coasts, disturbed) = (false, None);
                    check(Case { mode, cause, brake, load, holds_load, reset, coasts, disturbed });
                }
            }
        }
    }
}

// feature(axes): a drive whose quick stop coasts (0x605A = 0) is stopped by set-points or a halt instead
#[test]
fn a_quick_stop_that_coasts_is_not_used() {
    for mode in CyclicMode::ALL {
        for (brake, holds_load) in [(true, false), (false, true)] {
            let (cause, load, reset, coasts) = (Cause::Request, false, true, true);
            let disturbed = None;
            check(Case { mode, cause, brake, load, holds_load, reset, coasts, disturbed });
        }
    }
}

// feature(axes): neither a lost frame nor a late cycle drops a load that is held after the first Ctrl-C
#[test]
fn a_load_is_held_in_the_first_stop_whatever_is_lost() {
    let late = END + 400;
    let disturbances = [(late, Disturbance::LostFrame), (late, Disturbance::LateCycle)];
    // Before the request, while the axis slows down, and while its standstill is not certain yet.
    let stops = [0, 1, 30, 60, 90, 105, 120].map(|after| (ASKED + after, Disturbance::Stop));
    for cause in [Cause::Request, Cause::Outage] {
        for disturbed in disturbances.into_iter().chain(stops) {
            if cause == Cause::Outage && disturbed.1 == Disturbance::Stop && disturbed.0 < ASKED + 30 {
                // The stop is at standstill before the quick stop begins.
                continue;
            }
            let (brake, load, holds_load, reset, coasts) = (false, true, true, false, false);
            let disturbed = Some(disturbed);
            let mode = CyclicMode::Position;
            check(Case { mode, cause, brake, load, holds_load, reset, coasts, disturbed });
        }
    }
}
