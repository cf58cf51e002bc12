//! The drive's own following error (0x60F4), if mapped: it counts in addition to the one that
//! supervision computes, in virtual time.
//!
//! A drive that is pushed harder than its motor can hold: its fault reaction lasts, and its fault
//! is reported meanwhile. In virtual time.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use ethercat::cia402::object::{ERROR_CODE, FOLLOWING_ERROR_ACTUAL_VALUE};
use ethercat::cia402::{CyclicMode, State};
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::{Command, Frame};
use ethercat_linux::link::DirectLink;
use motion::supervision::{FollowingErrorLimit, StopReason};
use motion::{AxisScale, NewtonMetres, Radians, Seconds};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::scripted::{Scene, play};
use support::{PERIOD, Sway, cycle_of, sub_device, supervised};

use crate::support;

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// The default mapping, with the following error behind its inputs.
fn mapping() -> PdoMapping {
    let mut mapping = default_mapping();
    let value = u32::from(FOLLOWING_ERROR_ACTUAL_VALUE) << 16 | 32;
    mapping.inputs[0].entries.push(PdoEntry::from_mapping_value(value));
    mapping
}

/// A drive with a following error on the wire that differs from its own.
struct Shown {
    segment: Segment,
    counts: Arc<AtomicI32>,
}

impl Shown {
    fn new(counts: &Arc<AtomicI32>) -> Self {
        let description = ServoDescription {
            mapping: mapping(),
            ..ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo"))
        };
        let sii = with_coe(IDENTITY, "Servo", mapping()).image().emit();
        let drive = Box::new(ServoDrive::new(&description).unwrap());
        let segment = Segment::new(vec![SubDevice::new(EscDescription::default(), sii, drive)]);
        Self { segment, counts: Arc::clone(counts) }
    }
}

impl ethercat::link::Segment for Shown {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let comes_back = self.segment.process_frame(now, frame);
        let counts = self.counts.load(Ordering::Relaxed);
        let places: Vec<_> = Frame::parse(frame).unwrap().places().collect();
        let inputs = places.iter().filter(|it| matches!(it.header.command, Command::Lrw | Command::Lrd));
        for place in inputs.filter(|_| counts != AS_IT_IS) {
            let end = place.data().end;
            frame[end - 4..end].copy_from_slice(&counts.to_le_bytes());
        }
        comes_back
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// The following error is left as the drive counts it.
const AS_IT_IS: i32 = i32::MIN;

/// Farthest that the axis may be from its set-point, and for how long.
const WINDOW: f64 = 0.2;

const TIMEOUT: f64 = 0.05;

/// Cycle from which on the drive shows the following error of a test.
const FROM: u64 = 300;

/// One axis behind a gear, moved steadily; its drive shows `shown`, rad of the axis, from [`FROM`]
/// on, or what it counts. Cycle in which each report came, and the report.
fn run(gear_ratio: f64, shown: Option<f64>, window: f64) -> Vec<(u64, AxisReport)> {
    let counts = Arc::new(AtomicI32::new(AS_IT_IS));
    let mut axes: Vec<AxisConfiguration> = supervised(1);
    axes[0].scale = AxisScale::new(f64::from(1 << 20), gear_ratio, NewtonMetres(2.4)).unwrap();
    let limit = FollowingErrorLimit { distance: Radians(window), timeout: Seconds(TIMEOUT) };
    axes[0].supervision.as_mut().unwrap().following_error = Some(limit);
    let segment = Shown::new(&counts);
    let in_counts = shown.map(|radians| (radians * gear_ratio * f64::from(1 << 20) / TAU) as i32);
    let script = move |cycle: u64, _: &AxisReport, command: &mut AxisCommand| {
        if cycle == FROM {
            counts.store(in_counts.unwrap_or(AS_IT_IS), Ordering::Relaxed);
        }
        command.setpoint.position.0 += 1e-3;
    };
    let look =
        |scene: &Scene<'_>| (scene.cycles > 0 && !scene.stopping).then_some((scene.cycles, *scene.report));
    play(segment, &axes, 800, script, look)
}

fn stopped(seen: &[(u64, AxisReport)]) -> Option<u64> {
    seen.iter().find(|(_, report)| report.stop == Some(StopReason::FollowingError)).map(|(cycle, _)| *cycle)
}

/// An axis at the right position, with a drive that counts a following error.
// feature(axes): the drive's own following error (0x60F4) and the computed one: the larger stops the axis
#[test]
fn following_error_beyond_the_window_stops_the_axis() {
    for (gear_ratio, shown) in [(1.0, 0.25), (1.0, -0.25), (5.0, 0.25), (-0.5, 0.25)] {
        let seen = run(gear_ratio, Some(shown), WINDOW);
        let cycles = (TIMEOUT * 1000.0) as u64;
        let stopped =
            stopped(&seen).unwrap_or_else(|| panic!("gear {gear_ratio}, {shown} rad: not stopped"));
        assert!((FROM + cycles..FROM + cycles + 6).contains(&stopped), "gear {gear_ratio}: {stopped}");
        // Its quick stop, then no torque.
        assert_eq!(seen.last().unwrap().1.state, Some(State::SwitchOnDisabled));
    }
}

/// Counts are of the drive: behind a gear the same number is another angle of the axis.
#[test]
fn following_error_within_the_window_does_not_stop() {
    for (gear_ratio, shown) in [(1.0, 0.19), (1.0, -0.19), (5.0, 0.19), (-0.5, -0.19), (1.0, 0.0)] {
        assert_eq!(stopped(&run(gear_ratio, Some(shown), WINDOW)), None, "gear {gear_ratio}, {shown} rad");
    }
}

/// A drive that shows no error does not hide that its axis is elsewhere.
#[test]
fn a_drive_that_counts_less_than_there_is_hides_nothing() {
    // No drive follows this closely.
    let seen = run(1.0, Some(0.0), 1e-5);
    assert!(stopped(&seen).is_some());
    assert_eq!(stopped(&run(1.0, None, WINDOW)), None, "it counts no more than there is");
}

/// Cycle in which the push begins, or the drive has a fault without one.
const PUSHED: u64 = 2_000;

/// Error code of a fault without a push.
const RAISED: u16 = 0x2310;

/// Torque of the motor, N m, and of the push, mN m.
const MOTOR: f64 = 6.0;

const PUSH: i32 = 12_000;

/// The drive, with the push on its shaft or another fault.
struct Machine {
    segment: Segment,
    disturbed: Arc<AtomicBool>,
    pushes: bool,
}

impl ethercat::link::Segment for Machine {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.advance(now);
        self.segment.process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        let servo = self.segment.sub_device_mut(0).unwrap().servo_mut().unwrap();
        let disturbed = self.disturbed.load(Ordering::Relaxed);
        match self.pushes {
            true => servo.set_load(0, if disturbed { PUSH } else { 0 }),
            false if self.disturbed.swap(false, Ordering::Relaxed) => servo.raise_fault(0, RAISED),
            false => {}
        }
        self.segment.advance(now);
    }
}

/// Begins the disturbance, and notes the states of the drive.
struct Disturbing {
    sway: Sway,
    disturbed: Arc<AtomicBool>,
    see: std::sync::mpsc::Sender<(u64, State)>,
}

impl Controller for Disturbing {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        if info.cycle == PUSHED {
            self.disturbed.store(true, Ordering::Relaxed);
        }
        let state = io.split().0[0].state;
        let _ = state.map(|it| self.see.send((info.cycle, it)));
    }
}

/// Cycle and code of the only event of a fault; cycles of the fault reaction and of its end.
///
/// With `maps` the drive has its error code in the process data.
fn play_pushed(pushes: bool, maps: bool) -> ((u64, u16), [u64; 2]) {
    let (drive, _) = sub_device(CyclicMode::Position, |it| {
        (it.plant.inertia, it.plant.torque_limit) = (5e-4, MOTOR);
        if maps {
            let code = u32::from(ERROR_CODE) << 16 | 16;
            it.mapping.inputs[0].entries.push(PdoEntry::from_mapping_value(code));
        }
    });
    let disturbed = Arc::new(AtomicBool::new(false));
    let segment = Segment::new(vec![drive]);
    let machine = Machine { segment, disturbed: Arc::clone(&disturbed), pushes };
    let clock = VirtualClock::default();
    let link = DirectLink::new(machine, clock.clone(), Duration::from_micros(60));
    let (see, seen) = std::sync::mpsc::channel();
    let controller = Disturbing { sway: Sway::new(1), disturbed, see };
    let configuration = CycleConfiguration { cycles: Some(6_000), ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &supervised(1), controller, configuration);
    let _ = cycle.run(&StopHandle::new());
    let events: Vec<_> = std::iter::from_fn(|| observer.next_event()).collect();
    let seen: Vec<_> = seen.try_iter().collect();
    let states = [State::FaultReactionActive, State::Fault];
    let first = |state| seen.iter().find(|it| it.1 == state).map(|it| it.0);
    let cycles = states.map(|it| first(it).expect("a fault with a reaction"));
    let codes = events.iter().filter_map(|it| match it.what {
        Happening::DriveFault { code, .. } => Some((it.cycle, code)),
        _ => None,
    });
    let reported: Vec<_> = codes.collect();
    let [fault] = reported[..] else { panic!("expected one event of the fault: {events:?}") };
    (fault, cycles)
}

// feature(axes): a drive's fault is reported with its error code while its fault reaction lasts
#[test]
fn a_fault_is_reported_before_its_reaction_ends() {
    for maps in [false, true] {
        let ((cycle, code), [reaction, fault]) = play_pushed(true, maps);
        assert!(fault - reaction > 1_000, "the push keeps the shaft turning: {reaction} to {fault}");
        assert_eq!(code, 0x8611, "following error");
        let is_early = (reaction..reaction + 100).contains(&cycle);
        assert!(is_early && reaction < PUSHED + 200, "{reaction}, {cycle}");
    }
}

#[test]
fn a_fault_with_a_short_reaction_is_reported_once() {
    for maps in [false, true] {
        let ((cycle, code), [reaction, fault]) = play_pushed(false, maps);
        assert!(fault - reaction < 200, "{reaction} to {fault}");
        assert_eq!(code, RAISED);
        assert!((PUSHED..PUSHED + 100).contains(&cycle), "{cycle}");
    }
}
