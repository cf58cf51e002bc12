//! Modes of operation other than the cyclic synchronous ones, and mode changes, in virtual time:
//! drives that generate their own profile stay within the limits, whatever frames are lost.
use crate::support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ethercat::cia402::object::{
    INTERPOLATION_DATA_RECORD, MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY, PROFILE_ACCELERATION,
    PROFILE_DECELERATION, PROFILE_VELOCITY, TORQUE_SLOPE,
};
use ethercat::cia402::{AxisMode, CyclicMode, ModeOfOperation, Request, State};
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::DirectLink;
use motion::supervision::{AfterOutage, Outage, StopReason};
use motion::{AxisPhase, Radians, RadiansPerSecond};
use onbeat_control::axis::{AxisConfiguration, AxisError, check};
use onbeat_control::controller::{AxisCommand, AxisReport};
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, ServoRecord, Taken, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::scripted::{Scene, play};
use support::{PERIOD, main_device, supervised};

/// Limits of the axis, rad, rad/s, rad/s^2.
const POSITION: f64 = 2.0;
const VELOCITY: f64 = 5.0;
const DECELERATION: f64 = 50.0;

const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;

/// Frames that are lost: none, on the way out, on the way back. Written by the script, a cycle
/// ahead.
#[derive(Clone, Default)]
struct Loss(Arc<AtomicU64>);

impl Loss {
    const OUT: u64 = 1;
    const BACK: u64 = 2;

    fn set(&self, lost: u64) {
        self.0.store(lost, Ordering::Relaxed);
    }
}

struct Losing {
    segment: Segment,
    loss: Loss,
}

impl ethercat::link::Segment for Losing {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        match self.loss.0.load(Ordering::Relaxed) {
            Loss::OUT => {
                self.segment.advance(now);
                false
            }
            lost => self.segment.process_frame(now, frame) && lost != Loss::BACK,
        }
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

/// The usual mapping with the modes of operation, 0x60C1 and the objects of profiles: the drive's
/// own values would be others.
fn mapping() -> PdoMapping {
    let mut mapping = default_mapping();
    let entry = |index: u16, sub_index: u32, bits: u32| {
        PdoEntry::from_mapping_value(u32::from(index) << 16 | sub_index << 8 | bits)
    };
    mapping.outputs[0].entries.extend([
        entry(MODES_OF_OPERATION, 0, 8),
        entry(INTERPOLATION_DATA_RECORD, 1, 32),
        entry(PROFILE_VELOCITY, 0, 32),
        entry(PROFILE_ACCELERATION, 0, 32),
        entry(PROFILE_DECELERATION, 0, 32),
        entry(TORQUE_SLOPE, 0, 32),
    ]);
    mapping.inputs[0].entries.push(entry(MODES_OF_OPERATION_DISPLAY, 0, 8));
    mapping
}

fn segment() -> (Segment, ServoRecord) {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let mapping = mapping();
    let sii = with_coe(identity, "Servo", mapping.clone()).image().emit();
    let usual = ServoDescription::new(DeviceDescription::new(identity, "Servo"));
    let mut drive = ServoDrive::new(&ServoDescription { mapping, ..usual }).unwrap();
    let record = drive.record();
    (Segment::new(vec![SubDevice::new(EscDescription::default(), sii, Box::new(drive))]), record)
}

fn axis(mode: AxisMode) -> AxisConfiguration {
    let mut axis = AxisConfiguration { mode, ..supervised(1).remove(0) };
    let settings = axis.supervision.as_mut().unwrap();
    settings.mode = mode;
    settings.limits.position = Some((Radians(-POSITION), Radians(POSITION)));
    settings.limits.velocity = RadiansPerSecond(VELOCITY);
    settings.limits.deceleration.0 = DECELERATION;
    settings.outage = Outage { time: None, after: AfterOutage::Resume };
    axis
}

struct Played {
    taken: Vec<Taken>,
    /// For each cycle from the first enabled one: its number, the report, and the newest step of
    /// the drive.
    seen: Vec<(u64, AxisReport, Option<Taken>)>,
}

fn run(
    axis: AxisConfiguration,
    cycles: u64,
    loss: &Loss,
    script: impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send + 'static,
) -> Played {
    let (segment, record) = segment();
    let last = record.clone();
    let look = move |scene: &Scene<'_>| {
        (scene.cycles > 0 && !scene.stopping).then(|| (scene.cycles, *scene.report, last.last()))
    };
    let seen = play(Losing { segment, loss: loss.clone() }, &[axis], cycles, script, look);
    Played { taken: record.taken(), seen }
}

/// Targets of the drive in Op were within the limits, and so was the shaft: its speed if the drive
/// makes the motion, its position if a drive without frames stops.
fn check_limits(played: &Played, mode: AxisMode, what: &str) {
    let judges_speed = matches!(mode, AxisMode::ProfilePosition | AxisMode::ProfileVelocity);
    let judges_place = mode.cyclic() == CyclicMode::Position;
    for it in played.taken.iter().filter(|it| it.operational) {
        let position = f64::from(it.position) / COUNTS_PER_RADIAN;
        let velocity = it.velocity / COUNTS_PER_RADIAN;
        assert!(!judges_speed || velocity.abs() < VELOCITY * 1.1, "{what}: {velocity} rad/s in {it:?}");
        assert!(!judges_place || position.abs() < POSITION + 0.02, "{what}: {position} rad in {it:?}");
        let target = f64::from(it.target_position) / COUNTS_PER_RADIAN;
        assert!(!judges_place || target.abs() < POSITION + 0.02, "{what}: target {target} rad in {it:?}");
        let target = f64::from(it.target_velocity) / COUNTS_PER_RADIAN;
        assert!(target.abs() < VELOCITY * 1.001, "{what}: target {target} rad/s in {it:?}");
    }
}

/// Moves an axis now here, now there, also beyond what it may; begins where it is held.
fn wander(mode: AxisMode, seed: u64) -> impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut wanted, mut pause, mut speed) = (0.0, 0, 0.0_f64);
    move |_, report, command| {
        if report.stop.is_some_and(StopReason::is_latched) {
            command.request = Request::FaultReset;
        }
        let feedback = report.feedback;
        if feedback.phase != AxisPhase::Following {
            (pause, speed, command.setpoint.torque.0) = (20, 0.0, 0.0);
            return;
        }
        if mode == AxisMode::InterpolatedPosition {
            speed += (wanted * 0.9 * VELOCITY - speed).clamp(-0.03, 0.03);
            command.setpoint.position += Radians(speed * PERIOD.as_secs_f64());
        }
        pause -= 1;
        if pause > 0 {
            return;
        }
        pause = random.i32(50..600);
        wanted = random.f64() * 2.0 - 1.0;
        match mode {
            AxisMode::ProfilePosition => command.setpoint.position = Radians(wanted * POSITION * 1.2),
            AxisMode::InterpolatedPosition => {}
            AxisMode::ProfileVelocity => command.setpoint.velocity = RadiansPerSecond(wanted * VELOCITY),
            _ => command.setpoint.torque.0 = wanted * 0.05,
        }
    }
}

// feature(axes): modes pp, pv, tq and ip: no axis exceeds its limits, with any command and any lost frames
#[test]
fn profile_drives_keep_limits_despite_lost_frames() {
    let modes = [
        AxisMode::ProfilePosition,
        AxisMode::ProfileVelocity,
        AxisMode::ProfileTorque,
        AxisMode::InterpolatedPosition,
    ];
    for (mode, seed) in modes.into_iter().flat_map(|mode| [3, 7, 11].map(|seed| (mode, seed))) {
        let loss = Loss::default();
        let (mut random, cable) = (fastrand::Rng::with_seed(seed ^ 0x55), loss.clone());
        let mut left = 0_i32;
        let mut wander = wander(mode, seed);
        let played = run(axis(mode), 6_000, &loss, move |cycle, report, command| {
            wander(cycle, report, command);
            left -= 1;
            if left <= 0 {
                let is_lost = random.u8(..) < 128;
                let long = [1..4, 4..30, 30..150][random.usize(..3)].clone();
                left = if is_lost { random.i32(long) } else { random.i32(100..500) };
                cable.set(if is_lost { [Loss::OUT, Loss::BACK][random.usize(..2)] } else { 0 });
            }
        });
        let what = format!("{mode:?} seed {seed}");
        check_limits(&played, mode, &what);
        let moves = played.taken.iter().filter(|it| it.velocity.abs() > 0.1 * COUNTS_PER_RADIAN).count();
        assert!(moves > 1_000, "{what}: it moved in {moves} steps");
        let stops = played.seen.iter().filter(|(_, it, _)| it.stop == Some(StopReason::Outage)).count();
        assert!(stops > 100, "{what}: it was stopped in {stops} cycles");
        let shown = ModeOfOperation::from(mode);
        assert!(played.taken.iter().any(|it| it.mode == shown && it.follows()), "{what}");
    }
}

// feature(axes): pp: the controller's position is a destination; the drive goes there by the limits of the axis
#[test]
fn a_destination_is_reached_along_the_profile_of_the_limits() {
    let played = run(axis(AxisMode::ProfilePosition), 2_600, &Loss::default(), |cycle, report, command| {
        if report.feedback.phase == AxisPhase::Following {
            command.setpoint.position = Radians(match cycle {
                ..100 => 0.0,
                100..900 => 1.5,
                900..1_000 => -1.0,
                // Before it is there.
                _ => 7.0,
            });
        }
    });
    check_limits(&played, AxisMode::ProfilePosition, "pp");
    let at = |cycle: u64| played.seen.iter().find(|(it, ..)| *it == cycle).unwrap();
    let position = |cycle: u64| at(cycle).1.feedback.position.0;
    assert!(
        (position(890) - 1.5).abs() < 0.01 && position(99).abs() < 0.01,
        "{} {}",
        position(890),
        position(99)
    );
    assert!((position(2_500) - POSITION).abs() < 0.01, "{}", position(2_500));
    assert_eq!(at(2_500).1.stop, Some(StopReason::PositionLimit), "held back, and told");
    assert_eq!(at(2_500).1.mode, Some(ModeOfOperation::ProfilePosition));
    let velocities =
        played.taken.windows(2).map(|pair| (pair[1].velocity - pair[0].velocity) / COUNTS_PER_RADIAN);
    let fastest = played.taken.iter().map(|it| it.velocity.abs() / COUNTS_PER_RADIAN).fold(0.0, f64::max);
    assert!(fastest > 0.95 * VELOCITY, "{fastest}");
    // In a step of 250 us; the loops add to the ramp.
    let hardest = velocities.map(f64::abs).fold(0.0, f64::max);
    assert!(hardest < 2.0 * DECELERATION * 250e-6, "{hardest}");
    assert!(played.seen.iter().all(|(_, it, _)| it.state == Some(State::OperationEnabled)));
}

// feature(axes): pp, pv: a drive without replies gets a halt after two cycles, and does not resume its previous motion
#[test]
fn moving_profile_drive_is_halted_in_an_outage() {
    for mode in [AxisMode::ProfilePosition, AxisMode::ProfileVelocity] {
        let loss = Loss::default();
        let cable = loss.clone();
        let silent = Arc::new(Mutex::new(None));
        let since = Arc::clone(&silent);
        let played = run(axis(mode), 2_000, &loss, move |cycle, report, command| {
            if cycle < 500 && report.feedback.phase == AxisPhase::Following && cycle > 300 {
                command.setpoint.position = Radians(1.9);
                command.setpoint.velocity = RadiansPerSecond(1.5);
            }
            // A little way on, with most of it ahead.
            if cycle == 500 {
                cable.set(Loss::BACK);
                *since.lock().unwrap() = Some(report.feedback.position.0);
            }
            if cycle == 515 {
                cable.set(0);
            }
        });
        let at = |cycle: u64| played.seen.iter().find(|(it, ..)| *it == cycle).unwrap();
        let is_halted = |cycle: u64| at(cycle).2.unwrap().controlword.halt();
        assert!(at(499).1.feedback.velocity.0 > 0.5, "{mode:?}: {:?}", at(499).1);
        let first = (500..520).find(|&cycle| is_halted(cycle)).expect("it is halted");
        assert!((503..=506).contains(&first), "{mode:?}: halted in cycle {first}");
        let rest = at(1_500).1.feedback;
        let begun = silent.lock().unwrap().unwrap();
        assert!(
            rest.velocity.0.abs() < 0.02 && rest.position.0 < begun + 0.6,
            "{mode:?}: {rest:?} from {begun}"
        );
        // It is released at standstill, and does not move: the next cycles command no more than
        // holding.
        let held: Vec<_> = (900..1_900).map(|cycle| at(cycle).1.feedback.position.0).collect();
        let (least, most) = held.iter().fold((f64::MAX, f64::MIN), |(a, b), it| (a.min(*it), b.max(*it)));
        assert!(most - least < 0.01, "{mode:?}: {least} to {most}");
        assert!(!is_halted(1_500) && at(1_500).1.stop.is_none(), "{mode:?}: {:?}", at(1_500).1);
    }
}

// feature(axes): a controller changes the cyclic mode of an axis that moves; state and report show it
#[test]
fn a_controller_changes_the_cyclic_mode_of_an_axis_that_moves() {
    let speed = 1.0;
    let step = speed * PERIOD.as_secs_f64();
    let played =
        run(axis(AxisMode::CyclicPosition), 2_200, &Loss::default(), move |cycle, report, command| {
            let feedback = report.feedback;
            match cycle {
                300 => command.mode = Some(CyclicMode::Velocity.into()),
                600 => command.mode = Some(CyclicMode::Torque.into()),
                620 => command.mode = Some(CyclicMode::Velocity.into()),
                1_000 => command.mode = Some(CyclicMode::Position.into()),
                _ => {}
            }
            command.setpoint.torque = feedback.torque;
            command.setpoint.velocity = RadiansPerSecond(if cycle < 1_100 { speed } else { 0.0 });
            match cycle {
                ..50 => {}
                1_000 => command.setpoint.position = feedback.position + Radians(2.0 * step),
                50..1_200 => command.setpoint.position += Radians(step),
                _ => {}
            }
        });
    check_limits(&played, AxisMode::CyclicPosition, "changes");
    let at = |cycle: u64| played.seen.iter().find(|(it, ..)| *it == cycle).unwrap().1;
    for (cycle, mode) in [
        (290, ModeOfOperation::CyclicSynchronousPosition),
        (310, ModeOfOperation::CyclicSynchronousVelocity),
        (610, ModeOfOperation::CyclicSynchronousTorque),
        (640, ModeOfOperation::CyclicSynchronousVelocity),
        (1_010, ModeOfOperation::CyclicSynchronousPosition),
    ] {
        assert_eq!(at(cycle).mode, Some(mode), "cycle {cycle}");
        assert_eq!(at(cycle).stop, None, "cycle {cycle}");
    }
    for cycle in 250..1_050 {
        let velocity = at(cycle).feedback.velocity.0;
        assert!((velocity - speed).abs() < 0.3, "{velocity} rad/s in cycle {cycle}");
    }
}

// feature(axes): a profile mode is entered and left only at standstill; a mode that is not prepared is refused
#[test]
fn profile_mode_changes_only_at_standstill() {
    let step = 1.0 * PERIOD.as_secs_f64();
    let both =
        AxisConfiguration { modes: vec![AxisMode::ProfilePosition], ..axis(AxisMode::CyclicPosition) };
    let played = run(both, 3_400, &Loss::default(), move |cycle, report, command| {
        command.mode = match cycle {
            // On the way; prepared for no velocities; at standstill.
            200 | 600 => Some(AxisMode::ProfilePosition),
            500 => Some(AxisMode::ProfileVelocity),
            // On its way; and there.
            900 | 2_600 => Some(AxisMode::CyclicPosition),
            _ => None,
        };
        let follows = report.feedback.phase == AxisPhase::Following;
        match cycle {
            50..400 => command.setpoint.position += Radians(step),
            650..2_600 if follows => command.setpoint.position = Radians(1.5),
            2_700..3_000 if follows => command.setpoint.position += Radians(-step),
            _ => {}
        }
    });
    check_limits(&played, AxisMode::ProfilePosition, "changes");
    let at = |cycle: u64| played.seen.iter().find(|(it, ..)| *it == cycle).unwrap().1;
    let csp = ModeOfOperation::CyclicSynchronousPosition;
    for (cycle, mode, position) in [
        (390, csp, 0.34),
        (590, csp, 0.35),
        (640, ModeOfOperation::ProfilePosition, 0.35),
        (2_500, ModeOfOperation::ProfilePosition, 1.5),
        (2_690, csp, 1.5),
        (3_300, csp, 1.2),
    ] {
        let it = at(cycle);
        assert_eq!((it.mode, it.stop), (Some(mode), None), "cycle {cycle}");
        assert!((it.feedback.position.0 - position).abs() < 0.02, "cycle {cycle}: {it:?}");
    }
    assert!(at(950).feedback.velocity.0 > 0.5, "still on its way: {:?}", at(950));
    assert!(played.seen.iter().all(|(_, it, _)| it.state == Some(State::OperationEnabled)));
}

#[test]
fn axis_without_objects_of_its_mode_is_refused() {
    let (segment, _) = segment();
    let clock = VirtualClock::default();
    let mut link = DirectLink::new(segment, clock.clone(), PERIOD / 10);
    let mut main_device = main_device(PERIOD);
    let stop = std::sync::atomic::AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(std::time::Duration::from_secs(20), |_| ())
        .unwrap();
    let alone = AxisConfiguration { supervision: None, ..axis(AxisMode::ProfilePosition) };
    let error = check(&[alone], &main_device).unwrap_err();
    assert!(matches!(error, AxisError::UnsupervisedProfile { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "axis \"axis-0\": in mode pp its drive makes the motion, and it has no supervision; give it some"
    );
    assert_eq!(check(&[axis(AxisMode::InterpolatedPosition)], &main_device), Ok(()));
}
