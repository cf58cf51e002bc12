//! Thousands of random sequences of answers, evaluated by the set-points that the simulated drives
//! took.

use std::time::Duration;

use ethercat::cia402::{CyclicMode, State};
use ethercat_linux::link::DirectLink;
use ipc::command::AxisTarget;
use ipc::controller::{Answer, AxisAnswer, DriveRequest, Request as Question, Wrong};
use ipc::units::{NewtonMetres, Radians, RadiansPerSecond};
use motion::supervision::{Limits, Settings, Written};
use motion::{RadiansPerSecondCubed, RadiansPerSecondSquared};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::external::{External, ExternalAxis, Settings as ExternalSettings};
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::Segment;
use simulator::application::servo::{ServoDescription, ServoRecord, Taken};
use simulator::sub_device::STEP;

use super::support::{PERIOD, cycle_of, sub_device, supervised};
use super::{AT_ONCE, Coming, DEADLINE, DRIVES, Fake, MAX_LATE, ORDERS};

/// Sequences of answers in one test, in runs of so many.
const SEQUENCES: u64 = 10_000;
const IN_ONE_RUN: u64 = 500;

/// Cycles of a sequence.
const LENGTH: u64 = 40;

const POSITION: f64 = 1.2;
const VELOCITY: f64 = 4.0;
const ACCELERATION: f64 = 20.0;
const JERK: f64 = 400.0;

/// Cycles from Operation enabled to the first set-point of the process.
const ENABLED: usize = 5;

/// So fine that the differences of positions show accelerations.
const COUNTS: u32 = 1 << 27;

const MODES: [CyclicMode; DRIVES] = [CyclicMode::Position, CyclicMode::Velocity];

fn axes() -> Vec<AxisConfiguration> {
    let mut axes = supervised(DRIVES);
    for (axis, mode) in axes.iter_mut().zip(MODES) {
        axis.mode = mode.into();
        axis.scale = motion::AxisScale::new(COUNTS.into(), 1.0, NewtonMetres(2.4)).unwrap();
        let settings = axis.supervision.unwrap();
        let limits = Limits {
            position: Some((Radians(-POSITION), Radians(POSITION))),
            velocity: RadiansPerSecond(VELOCITY),
            acceleration: RadiansPerSecondSquared(ACCELERATION),
            deceleration: RadiansPerSecondSquared(ACCELERATION),
            jerk: RadiansPerSecondCubed(JERK),
            step: Radians(2.0 * VELOCITY * PERIOD.as_secs_f64()),
            written: Written::ALL,
            ..settings.limits
        };
        axis.supervision = Some(Settings { limits, ..settings });
    }
    axes
}

/// Answers of a process that means harm, in sequences of one kind each.
struct Hostile {
    random: fastrand::Rng,
    asked: u64,
    kinds: [u8; DRIVES],
    at: [f64; DRIVES],
}

impl Hostile {
    fn answer(&mut self, request: &Question) -> Option<Vec<Coming>> {
        if self.asked % LENGTH == 0 {
            self.kinds = std::array::from_fn(|_| self.random.u8(..12));
        }
        self.asked += 1;
        let mut axes = Vec::new();
        for (index, axis) in request.axes.iter().enumerate() {
            let unit = if MODES[index] == CyclicMode::Position { VELOCITY * 1e-3 } else { VELOCITY };
            if axis.phase != 2 {
                self.at[index] = if index == 0 { axis.target_position } else { 0.0 };
            }
            let random = &mut self.random;
            let at = &mut self.at[index];
            let side = if self.asked % 2 == 0 { 1.0 } else { -1.0 };
            let mut target = None;
            match self.kinds[index] {
                0 => {}
                1 if index == 0 => *at += unit,
                1 => *at = unit,
                2 if index == 0 => *at -= 1.04 * unit,
                2 => *at = -1.04 * unit,
                3 => target = Some(*at + side * unit),
                4 => target = Some(*at + unit * (random.f64() - 0.5)),
                5 => *at += unit * (random.f64() - 0.5),
                6 if random.u8(..10) == 0 => *at += side * 0.9 * unit,
                7 if random.u8(..10) == 0 => {
                    target = Some([1e300, -1e300, f64::NAN, 7.0][random.usize(..4)])
                }
                8 => *at = axis.position + 0.01 * side * unit,
                9 if random.u8(..20) == 0 => *at = -*at,
                _ => {}
            }
            if index == 1 {
                *at = at.clamp(-1.04 * unit, 1.04 * unit);
            } else {
                *at = at.clamp(-POSITION, POSITION);
            }
            let number = target.unwrap_or(*at);
            let target = match MODES[index] {
                CyclicMode::Position => AxisTarget::Position(Radians(number)),
                CyclicMode::Velocity => AxisTarget::Velocity(RadiansPerSecond(number)),
                CyclicMode::Torque => AxisTarget::Effort(NewtonMetres(number)),
            };
            let other =
                [DriveRequest::Disable, DriveRequest::QuickStop, DriveRequest::Halt][random.usize(..3)];
            let request = match random.u8(..) {
                0 => other,
                1..30 => DriveRequest::FaultReset,
                _ => DriveRequest::Enable,
            };
            let target = (random.u8(..50) > 0).then_some(target);
            axes.push(AxisAnswer { request: Some(request), target, ..AxisAnswer::default() });
        }
        let random = &mut self.random;
        let cycle = if random.u8(..) == 0 { request.cycle + 1 } else { request.cycle };
        let after = if random.u8(..15) == 0 { Duration::from_micros(random.u64(..1_500)) } else { AT_ONCE };
        match random.u16(..400) {
            0 => return None,
            1 => return Some(vec![(after, Err(Wrong::Torn))]),
            2..8 => return Some(Vec::new()),
            _ => {}
        }
        Some(vec![(after, Ok(Answer { cycle, axes, ..Answer::default() }))])
    }
}

/// Set-points that a drive took in each cycle in which it followed set-points; `None` in others.
fn by_cycle(record: &ServoRecord) -> Vec<Option<Taken>> {
    let steps = record.taken();
    // Frames arrive at the same time of each cycle: the step before the next frames has this
    // cycle's.
    let per_cycle = usize::try_from(PERIOD.as_micros() / STEP.as_micros()).unwrap();
    let first = steps.iter().position(|it| it.operational).unwrap_or(steps.len());
    let offset = first % per_cycle;
    steps[offset..].chunks(per_cycle).map(|it| it.last().copied().filter(follows)).collect()
}

/// True if a drive follows set-points, and is not asked to stop.
fn follows(taken: &Taken) -> bool {
    taken.follows() && taken.controlword.0 & 0x0F == 0x0F
}

/// Largest excess of set-points over position, velocity and acceleration, each as a share of its
/// limit.
fn excess(taken: &[Option<Taken>], mode: CyclicMode) -> [f64; 3] {
    let counts = f64::from(COUNTS) / std::f64::consts::TAU;
    let period = PERIOD.as_secs_f64();
    let mut most = [0.0_f64; 3];
    let mut followed = 0;
    for window in taken.windows(3) {
        let &[Some(a), Some(b), Some(c)] = window else {
            followed = 0;
            continue;
        };
        followed += 1;
        if followed < ENABLED {
            // The position of the axis is sent back until it is seen to be enabled.
            continue;
        }
        let place = f64::from(c.position) / counts;
        let (velocity, before) = match mode {
            CyclicMode::Position => {
                let moved = |from: Taken, to: Taken| {
                    f64::from(to.target_position.wrapping_sub(from.target_position)) / counts / period
                };
                (moved(b, c), moved(a, b))
            }
            _ => (f64::from(c.target_velocity) / counts, f64::from(b.target_velocity) / counts),
        };
        let target =
            if mode == CyclicMode::Position { f64::from(c.target_position) / counts } else { place };
        let found = [
            target.abs() / POSITION,
            velocity.abs() / VELOCITY,
            ((velocity - before) / period).abs() / ACCELERATION,
        ];
        most = std::array::from_fn(|it| most[it].max(found[it]));
    }
    most
}

// feature(ipc): ten thousand hostile sequences of a controller process stay within position, velocity and acceleration
#[test]
fn ten_thousand_hostile_sequences_stay_within_the_limits() {
    let mut followed = 0;
    for run in 0..SEQUENCES / IN_ONE_RUN {
        let order = ORDERS[usize::try_from(run % 2).unwrap()];
        let (clock, axes) = (VirtualClock::default(), axes());
        clock.advance(Duration::from_secs(1000));
        let mut records = Vec::new();
        let drives = MODES.map(|mode| {
            let (drive, record) = sub_device(mode, |it: &mut ServoDescription| {
                it.encoder_counts = COUNTS;
                it.initial_position = 0.0;
            });
            records.push(record);
            drive
        });
        let link = DirectLink::new(Segment::new(drives.into()), clock.clone(), Duration::from_micros(60));
        let random = fastrand::Rng::with_seed(run);
        let mut hostile = Hostile { random, asked: 0, kinds: [0; DRIVES], at: [0.0; DRIVES] };
        let (counters, _counted) = std::sync::mpsc::channel();
        let fake = Fake {
            clock: clock.clone(),
            process: move |request: &Question| hostile.answer(request),
            coming: Vec::new(),
            is_attached: true,
            holder: 1,
            follows_after: u64::MAX,
            asked: 0,
            away: 0,
            counters,
        };
        let axis = |mode: CyclicMode| {
            let position = Some((Radians(-POSITION), Radians(POSITION)));
            Some(ExternalAxis { mode: mode.into(), position })
        };
        let settings =
            ExternalSettings { deadline: DEADLINE, max_late: MAX_LATE, axes: MODES.map(axis).into() };
        let cycles = Some(IN_ONE_RUN * LENGTH);
        let configuration = CycleConfiguration { order, cycles, ..CycleConfiguration::every(PERIOD) };
        let (cycle, _observer) = cycle_of(link, clock, &axes, External::new(fake, settings), configuration);
        let ended = cycle.run(&StopHandle::new());
        assert_eq!(ended.failure, None);
        for ((record, mode), axis) in records.iter().zip(MODES).zip(["csp", "csv"]) {
            let taken = by_cycle(record);
            followed += taken.iter().flatten().count();
            let [position, velocity, acceleration] = excess(&taken, mode);
            // 1 % is what the clamp allows; counts round.
            assert!(position <= 1.0 + 1e-6, "run {run}, {axis}: position {position}");
            assert!(velocity <= 1.001, "run {run}, {axis}: velocity {velocity}");
            assert!(acceleration <= 1.02, "run {run}, {axis}: acceleration {acceleration}");
            assert!(record.taken().iter().any(|it| it.state == State::OperationEnabled), "run {run}");
        }
    }
    // The drives followed for a good part of the time, or nothing is shown.
    assert!(followed as u64 > SEQUENCES * LENGTH / 4, "{followed}");
}
