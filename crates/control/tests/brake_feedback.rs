//! Feedback of a brake that contradicts its command, in virtual time. The tests evaluate the true
//! motion of the simulated drive, with a load on its shaft.
use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::object::DIGITAL_OUTPUTS;
use ethercat::cia402::{Request, State};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::DirectLink;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::supervision::{AfterOutage, Outage, StopReason};
use motion::{AxisPhase, RadiansPerSecond, Seconds};
use onbeat_control::axis::{
    AxisConfiguration, AxisError, BrakeFeedback, DigitalOutput, FeedbackInput, check,
};
use onbeat_control::bus::{PartNames, event};
use onbeat_control::controller::{AxisReport, BrakeInputCause, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use onbeat_control::verdict::{AXIS, BUS, Circumstances, Finding};
use rt::clock::VirtualClock;
use simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, ServoRecord, Taken, default_mapping};
use simulator::application::sii::{digital_inputs, digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::{PERIOD, cycle_of, main_device, supervised};
use types::state::{BrakeInput, InputLevel};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;
/// mN m, on a motor of 2400: without torque it speeds up by 1 rad/s in a millisecond.
const LOAD: i32 = 500;
const SPEED: f64 = 3.0;
const TIMES: BrakeTimes = BrakeTimes { release: Seconds(0.03), engage: Seconds(0.05) };
/// Places of the SubDevices.
const OUTPUTS: usize = 0;
const DRIVE: usize = 1;
const INPUTS: usize = 2;
/// Cycles since the axis was enabled: of the trouble, of a first and a second reset, and of the
/// end.
const TROUBLE: u64 = 400;
const RESET: u64 = 1_000;
const SECOND_RESET: u64 = 1_600;
const END: u64 = 2_200;
/// Cycle of the second request to stop.
const HURRIED: u64 = 3_600;

/// Trouble of the brake.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Trouble {
    None,
    StuckClosed,
    StuckOpen,
    /// The inputs disagree with each other.
    BothOn,
    BothOff,
    /// The terminal of the inputs has no power.
    Lost,
    /// It sticks open, and the drive has a fault.
    DriveFault,
}

const TROUBLES: [Trouble; 7] = [
    Trouble::None,
    Trouble::StuckClosed,
    Trouble::StuckOpen,
    Trouble::BothOn,
    Trouble::BothOff,
    Trouble::Lost,
    Trouble::DriveFault,
];

/// The terminals and the drive; the brake acts on its shaft, and on the inputs.
struct Machine {
    segment: Segment,
    coil: Wires,
    inputs: Wires,
    /// Power on the coil, and since when.
    power: (bool, Option<Instant>),
    trouble: Arc<AtomicU8>,
    before: Trouble,
    is_closed: bool,
}

impl Machine {
    fn work(&mut self, now: Instant) {
        let power = self.coil.levels() & 1 != 0;
        if power != self.power.0 {
            self.power = (power, Some(now));
        }
        let takes = if power { TIMES.release } else { TIMES.engage };
        // A little faster than the file says.
        let done = self.power.1.is_none_or(|at| now.since(at).as_secs_f64() >= takes.0 * 0.8);
        let trouble = TROUBLES[usize::from(self.trouble.load(Ordering::Relaxed))];
        self.is_closed = match trouble {
            Trouble::StuckClosed => true,
            Trouble::StuckOpen | Trouble::DriveFault => false,
            _ => power != done,
        };
        self.inputs.set_levels(match trouble {
            Trouble::BothOn => 0b11,
            Trouble::BothOff => 0b00,
            _ if self.is_closed => 0b10,
            _ => 0b01,
        });
        let before = std::mem::replace(&mut self.before, trouble);
        if trouble == Trouble::Lost && before != trouble {
            assert!(self.segment.power_off(INPUTS));
        } else if before == Trouble::Lost && before != trouble {
            assert!(self.segment.power_on(INPUTS));
        }
        let servo = self.segment.sub_device_mut(DRIVE).unwrap().servo_mut().unwrap();
        if trouble == Trouble::DriveFault && before != trouble {
            servo.raise_fault(0, 0x2310);
        }
        let [outputs, mask] = [1, 2].map(|it| servo.dictionary().find(DIGITAL_OUTPUTS, it).unwrap());
        servo.dictionary_mut().set(mask, 1);
        servo.dictionary_mut().set(outputs, i64::from(self.is_closed));
        servo.set_load(0, LOAD);
    }
}

impl ethercat::link::Segment for Machine {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.work(now);
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.work(now);
        self.segment.advance(now);
    }
}

/// A play: the behaviour of the brake from a cycle on, and the requests of the controller.
#[derive(Clone)]
struct Play {
    troubles: Vec<(u64, Trouble)>,
    /// Cycles from the first to the second in which the controller disables the axis.
    disabled: (u64, u64),
    holds_load: bool,
    with_closed: bool,
}

impl Play {
    fn of(trouble: Trouble) -> Self {
        Self {
            troubles: vec![(TROUBLE, trouble)],
            disabled: (u64::MAX, u64::MAX),
            holds_load: true,
            with_closed: true,
        }
    }

    fn then(mut self, cycle: u64, trouble: Trouble) -> Self {
        self.troubles.push((cycle, trouble));
        self
    }

    fn disabled(self, from: u64, to: u64) -> Self {
        Self { disabled: (from, to), ..self }
    }
}

struct Lift {
    play: Play,
    trouble: Arc<AtomicU8>,
    cycles: u64,
    position: f64,
    stop: StopHandle,
    see: Sender<(u64, Instant, AxisReport)>,
}

impl Controller for Lift {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (reports[0], &mut commands[0]);
        self.cycles += u64::from(report.was_enabled);
        if let Some((_, trouble)) = self.play.troubles.iter().rfind(|it| it.0 <= self.cycles) {
            self.trouble.store(*trouble as u8, Ordering::Relaxed);
        }
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            self.position = position.0;
        }
        if report.feedback.phase == AxisPhase::Following && !info.stopping {
            let ease = (self.cycles.saturating_sub(100) as f64 / 100.0).min(1.0);
            self.position += ease * SPEED * PERIOD.as_secs_f64();
        }
        command.setpoint.position.0 = self.position;
        command.setpoint.velocity = RadiansPerSecond::ZERO;
        let (from, to) = self.play.disabled;
        command.request = match self.cycles {
            it if [RESET, SECOND_RESET].iter().any(|at| (*at..at + 3).contains(&it)) => Request::FaultReset,
            it if (from..to).contains(&it) => Request::Disable,
            _ => Request::Enable,
        };
        if self.cycles == HURRIED {
            self.stop.hurry();
        }
        let _ = self.see.send((self.cycles, info.release, report));
    }
}

struct Outcome {
    taken: Vec<Taken>,
    seen: Vec<(u64, Instant, AxisReport)>,
    stops: Vec<String>,
    findings: Vec<Finding>,
}

impl Outcome {
    /// Reports of some cycles of the play.
    fn reports(&self, from: u64, to: u64) -> impl Iterator<Item = &AxisReport> + Clone {
        self.seen.iter().filter(move |it| (from..to).contains(&it.0)).map(|it| &it.2)
    }

    /// The first stop from this cycle on.
    fn stop(&self, from: u64) -> &(u64, Instant, AxisReport) {
        self.seen.iter().find(|it| it.0 >= from && it.2.stop.is_some()).unwrap()
    }

    /// Values of the drive in these cycles.
    fn drive(&self, from: u64, to: u64) -> Vec<&Taken> {
        let time = |cycle| self.seen.iter().find(|it| it.0 == cycle).map(|it| it.1);
        let (from, to) = (time(from).unwrap(), time(to));
        let within = |it: &&Taken| it.now >= from && to.is_none_or(|to| it.now < to);
        self.taken.iter().filter(within).collect()
    }

    fn way(&self, from: u64, to: u64) -> f64 {
        let positions = self.drive(from, to).into_iter().map(|it| f64::from(it.position));
        let (low, high) = positions.fold((f64::MAX, f64::MIN), |it, at| (it.0.min(at), it.1.max(at)));
        (high - low) / COUNTS_PER_RADIAN
    }

    fn exit_code(&self) -> u8 {
        self.findings.iter().map(Finding::exit_code).max().unwrap_or(0)
    }
}

fn segment(coil: &Wires, inputs: &Wires) -> (Segment, ServoRecord) {
    let terminal = |sii, application| SubDevice::new(EscDescription::default(), sii, application);
    let outputs = DigitalOutputs::new(4, coil.clone()).unwrap();
    let outputs = terminal(digital_outputs(IDENTITY, "Outputs", 4).image().emit(), Box::new(outputs));
    let inputs = DigitalInputs::new(4, inputs.clone()).unwrap();
    let inputs = terminal(digital_inputs(IDENTITY, "Inputs", 4).image().emit(), Box::new(inputs));
    let description = ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"));
    let mut drive = ServoDrive::new(&description).unwrap();
    let record = drive.record();
    let sii = with_coe(IDENTITY, "Servo", default_mapping()).image().emit();
    let drive = SubDevice::new(EscDescription::default(), sii, Box::new(drive));
    (Segment::new(vec![outputs, drive, inputs]), record)
}

fn input(channel: usize) -> Option<FeedbackInput> {
    Some(FeedbackInput { sub_device: INPUTS, channel, inverted: false })
}

fn axis(holds_load: bool, with_closed: bool) -> AxisConfiguration {
    let mut axis = supervised(1).remove(0);
    (axis.sub_device, axis.holds_load) = (DRIVE, holds_load);
    axis.supervision.as_mut().unwrap().outage = Outage { time: None, after: AfterOutage::Stay };
    let closed = input(2).filter(|_| with_closed);
    axis.brake = Some(BrakeConfiguration {
        times: TIMES,
        output: Some(DigitalOutput { sub_device: OUTPUTS, channel: 1 }),
        feedback: BrakeFeedback { released: input(1), closed },
    });
    axis
}

fn play(play: Play) -> Outcome {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (coil, inputs) = (Wires::new(), Wires::new());
    let (segment, record) = segment(&coil, &inputs);
    let trouble = Arc::new(AtomicU8::new(0));
    let machine = Machine {
        segment,
        coil,
        inputs,
        power: (false, None),
        trouble: Arc::clone(&trouble),
        before: Trouble::None,
        is_closed: true,
    };
    let link = DirectLink::new(machine, clock.clone(), Duration::from_micros(60));
    let (see, seen) = channel();
    let stop = StopHandle::new();
    let axes = [axis(play.holds_load, play.with_closed)];
    let mover = Lift { play, trouble, cycles: 0, position: 0.0, stop: stop.clone(), see };
    let configuration = CycleConfiguration { cycles: Some(END), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &axes, mover, configuration);
    let ended = cycle.run(&stop);
    let names = PartNames {
        sub_devices: ["outputs", "drive", "inputs"].map(str::to_owned).to_vec(),
        axes: vec!["lift".to_owned()],
        brake_inputs: axes[0].brake.unwrap().feedback.inputs().collect(),
        period: PERIOD,
        ..PartNames::default()
    };
    let events = std::iter::from_fn(|| observer.next_event()).filter_map(|it| event(&it, &names));
    let stops = events.map(|it| it.sentence).filter(|it| it.starts_with("axis \"lift\"")).collect();
    let findings = ended.findings(Circumstances { period: PERIOD, hurried: false, resumes: false });
    Outcome { taken: record.taken(), seen: seen.try_iter().collect(), stops, findings }
}

/// The load falls by 0.5 m rad while the brake closes and the drive gives way, and by 5 rad/s^2 or
/// more later.
const STANDS: f64 = 0.02;

#[test]
fn a_sound_brake_stops_nothing() {
    let out = play(Play::of(Trouble::None).disabled(TROUBLE, TROUBLE + 200));
    assert_eq!((&out.stops[..], &out.findings[..]), (&[][..], &[][..]));
    assert!(out.way(200, TROUBLE) > 0.3 && out.way(TROUBLE + 400, RESET) > 0.3, "it moves");
    assert!(out.way(TROUBLE + 80, TROUBLE + 200) < STANDS, "the brake holds its load");
}

// feature(axes): a brake that does not open, or closes by itself, stops its axis (brake.feedback)
#[test]
fn an_axis_is_never_moved_against_a_brake_that_stays_closed() {
    for with_closed in [true, false] {
        let mut stuck = Play::of(Trouble::StuckClosed);
        (stuck.troubles[0].0, stuck.with_closed) = (0, with_closed);
        let out = play(stuck);
        assert!(out.reports(0, END).all(|it| it.feedback.phase != AxisPhase::Following));
        assert!(out.way(1, END) < STANDS, "{}", out.way(1, END));
        let stopped = out.reports(200, RESET - 1).map(|it| (it.stop, it.state));
        let wanted = (Some(StopReason::BrakeNotOpen), Some(State::SwitchOnDisabled));
        assert!(stopped.clone().all(|it| it == wanted), "{:?}", stopped.last());
        let cause = BrakeInputCause { place: 0, level: InputLevel::Low };
        assert!(out.reports(200, RESET - 1).all(|it| it.brake == Some(cause)));
        let expected = "axis \"lift\" is held: its brake is not open, as its feedback shows: input \"released\" \
                        (inputs, channel 1) is low; check the brake, its power and this input, then `onbeat \
                        control reset`";
        assert_eq!(out.stops[0], expected);
        // It should be closed then: a reset may try again.
        assert!(out.reports(RESET + 10, RESET + 60).any(|it| it.stop.is_none()));
        assert_eq!(out.exit_code(), AXIS, "{:?}", out.findings);
    }
}

#[test]
fn a_brake_that_closes_by_itself_stops_the_axis() {
    let out = play(Play::of(Trouble::StuckClosed));
    assert!(out.way(200, TROUBLE) > 0.3, "it moved before");
    let stop = out.stop(TROUBLE);
    assert_eq!(stop.2.stop, Some(StopReason::BrakeNotOpen));
    assert!((TROUBLE + 20..TROUBLE + 40).contains(&stop.0), "in cycle {}", stop.0);
    assert!(out.way(TROUBLE + 250, RESET) < STANDS);
    let last = out.reports(RESET - 10, RESET).last().unwrap();
    assert_eq!(last.state, Some(State::SwitchOnDisabled));
    assert_eq!(out.exit_code(), AXIS);
}

// feature(axes): a drive keeps its torque while the feedback does not show a closed brake (brake.feedback)
#[test]
fn a_load_is_held_by_its_drive_while_the_brake_stays_open() {
    let out = play(Play::of(Trouble::StuckOpen).disabled(TROUBLE + 50, u64::MAX));
    let kept = out.reports(TROUBLE + 200, END);
    let wanted = (Some(StopReason::BrakeNotClosed), Some(State::OperationEnabled));
    assert!(kept.clone().all(|it| (it.stop, it.state) == wanted), "{:?}", kept.last());
    assert!(out.way(TROUBLE + 200, HURRIED) < STANDS, "{}", out.way(TROUBLE + 200, HURRIED));
    let expected = "axis \"lift\" is held: its brake is not closed, as its feedback shows: input \"closed\" \
                    (inputs, channel 2) is low; an enabled drive keeps its torque; secure the load, and check \
                    the brake and this input, then `onbeat control reset`";
    assert_eq!(out.stops, [expected]);
    // The end of the run holds it, too, until a second request to stop.
    assert!(out.seen.last().unwrap().0 > HURRIED);
    assert!(out.reports(END, HURRIED).all(|it| it.state == Some(State::OperationEnabled)));
    assert_eq!(out.taken.last().unwrap().state, State::SwitchOnDisabled);
    assert_eq!(out.exit_code(), AXIS, "{:?}", out.findings);
}

#[test]
fn a_brake_that_closes_late_ends_the_hold_and_a_reset_the_stop() {
    let late = Play::of(Trouble::StuckOpen).then(RESET + 300, Trouble::None);
    let out = play(late.disabled(TROUBLE + 50, SECOND_RESET + 10));
    let reset = out.reports(RESET + 20, RESET + 300);
    let wanted = (Some(StopReason::BrakeNotClosed), Some(State::OperationEnabled));
    assert!(
        reset.clone().all(|it| (it.stop, it.state) == wanted),
        "a reset is refused: {:?}",
        reset.last()
    );
    let closed = out.reports(RESET + 400, SECOND_RESET - 1);
    let wanted = (Some(StopReason::BrakeNotClosed), Some(State::SwitchOnDisabled));
    assert!(closed.clone().all(|it| (it.stop, it.state) == wanted), "{:?}", closed.last());
    assert!(out.way(TROUBLE + 200, SECOND_RESET) < STANDS);
    assert!(out.way(SECOND_RESET + 200, END) > 0.3, "it moves again");
    assert_eq!((out.exit_code(), &out.findings[..]), (0, &[][..]));
}

#[test]
fn the_end_of_a_run_finds_a_brake_that_stays_open() {
    for holds_load in [true, false] {
        let stuck =
            Play { holds_load, troubles: vec![(END - 50, Trouble::StuckOpen)], ..Play::of(Trouble::None) };
        let out = play(stuck);
        assert_eq!(out.seen.last().unwrap().0 > HURRIED, holds_load, "{:?}", out.seen.last());
        let last: Vec<_> = out.seen.iter().rev().take(6).map(|it| (it.0, it.2.state, it.2.stop)).collect();
        assert_eq!(out.taken.last().unwrap().state, State::SwitchOnDisabled, "{holds_load} {last:?}");
        assert_eq!(out.exit_code(), AXIS, "{:?}", out.findings);
        let stopped = |it: &Finding| match it {
            Finding::AxisStopped { reason, .. } => *reason == StopReason::BrakeNotClosed,
            _ => false,
        };
        assert!(out.findings.iter().any(stopped), "{:?}", out.findings);
        if holds_load {
            assert!(out.way(END + 500, HURRIED) < STANDS);
        }
    }
}

// feature(axes): an axis is not enabled while its brake shows that it is not closed (brake.feedback)
#[test]
fn axis_with_an_open_brake_at_the_start_is_never_enabled() {
    let open = Play { troubles: vec![(0, Trouble::StuckOpen)], ..Play::of(Trouble::None) };
    let out = play(open);
    let enabled = |it: &&Taken| it.state == State::OperationEnabled;
    assert!(out.taken.iter().find(enabled).is_none(), "{:?}", out.seen.last());
    let last = out.seen.last().unwrap().2;
    let wanted = (Some(StopReason::BrakeNotClosed), Some(State::SwitchOnDisabled));
    assert_eq!((last.stop, last.state), wanted);
    assert_eq!(out.exit_code(), AXIS, "{:?}", out.findings);
}

#[test]
fn a_brake_that_opens_by_itself_is_reported_without_torque() {
    let opens = Play { troubles: vec![(TROUBLE + 300, Trouble::StuckOpen)], ..Play::of(Trouble::None) };
    let out = play(opens.disabled(TROUBLE, u64::MAX));
    let off = Some(State::SwitchOnDisabled);
    assert!(out.reports(TROUBLE + 250, TROUBLE + 300).all(|it| it.state == off && it.stop.is_none()));
    let open = out.reports(TROUBLE + 340, END);
    let wanted = (Some(StopReason::BrakeNotClosed), off);
    assert!(open.clone().all(|it| (it.stop, it.state) == wanted), "{:?}", open.last());
    assert_eq!(out.exit_code(), AXIS, "{:?}", out.findings);
}

#[test]
fn inputs_that_disagree_or_are_lost_stop_the_axis_with_torque() {
    for (trouble, level) in [
        (Trouble::BothOn, InputLevel::High),
        (Trouble::BothOff, InputLevel::Low),
        (Trouble::Lost, InputLevel::Lost),
    ] {
        let out = play(Play::of(trouble));
        let stop = out.stop(TROUBLE);
        assert_eq!(stop.2.stop, Some(StopReason::BrakeNotOpen), "{trouble:?}");
        assert_eq!(stop.2.brake.map(|it| it.level), Some(level), "{trouble:?}");
        assert!((TROUBLE + 20..TROUBLE + 45).contains(&stop.0), "{trouble:?} in cycle {}", stop.0);
        // No input shows that the brake closes: the load stays on the drive.
        let kept = out.reports(TROUBLE + 300, END);
        let wanted = (Some(StopReason::BrakeNotClosed), Some(State::OperationEnabled));
        assert!(kept.clone().all(|it| (it.stop, it.state) == wanted), "{trouble:?} {:?}", kept.last());
        assert!(out.way(TROUBLE + 300, END) < STANDS, "{trouble:?}");
        let code = if trouble == Trouble::Lost { BUS } else { AXIS };
        assert_eq!(out.exit_code(), code, "{trouble:?} {:?}", out.findings);
    }
}

#[test]
fn a_drive_fault_with_a_brake_that_stays_open_names_both() {
    let out = play(Play::of(Trouble::DriveFault));
    let open = out.reports(TROUBLE + 120, RESET - 1);
    let wanted = (Some(StopReason::BrakeNotClosed), Some(State::Fault));
    assert!(open.clone().all(|it| (it.stop, it.state) == wanted), "{:?}", open.last());
    assert!(out.stops.iter().any(|it| it.contains("the drive is in fault")), "{:?}", out.stops);
    assert!(out.stops.iter().any(|it| it.contains("its brake is not closed")), "{:?}", out.stops);
    // A reset of the fault enables nothing while the brake is open.
    let enabled = |it: &AxisReport| it.state == Some(State::OperationEnabled);
    assert!(!out.reports(RESET + 5, END).any(enabled));
    assert_eq!(out.exit_code(), AXIS);
}

#[test]
fn a_feedback_input_that_is_not_there_is_refused() {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (segment, _) = segment(&Wires::new(), &Wires::new());
    let mut link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let mut main_device = main_device(PERIOD);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    pump.bring_up(Duration::from_secs(20), |_| ()).unwrap();
    let with = |sub_device, channel| {
        let mut axis = axis(true, true);
        let closed = Some(FeedbackInput { sub_device, channel, inverted: false });
        axis.brake.as_mut().unwrap().feedback.closed = closed;
        axis
    };
    check(&[with(INPUTS, 4)], &main_device).unwrap();
    for (sub_device, channel, there) in [(INPUTS, 0, 4), (INPUTS, 5, 4), (OUTPUTS, 1, 0), (9, 1, 0)] {
        let error = check(&[with(sub_device, channel)], &main_device).unwrap_err();
        let named = matches!(
            error,
            AxisError::NoBrakeInput { found, input: BrakeInput::Closed, .. } if found == there
        );
        assert!(named, "{error}");
    }
}
