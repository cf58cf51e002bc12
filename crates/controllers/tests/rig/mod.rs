//! A small robot in virtual time: simulated drives down to their frames, a controller manager with
//! its controllers, and a script in place of the outside world.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

pub mod bench;
pub mod loss;
pub mod ports;
pub mod way;

use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use control::axis::AxisConfiguration;
use control::controller::{
    AxisReport, AxisTarget, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness, Io,
};
use control::cycle::{Cycle, CycleConfiguration};
use control::stop::StopHandle;
use ethercat::al::AlState;
use ethercat::cia402::object::{
    MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY, PROFILE_ACCELERATION, PROFILE_DECELERATION,
    PROFILE_VELOCITY, TORQUE_SLOPE,
};
use ethercat::cia402::{AxisMode, CyclicMode, State};
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::pdo::{PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::DirectLink;
use ipc::message::control::Refusal;
use ipc::message::trajectory::Report;
use motion::base::Twist;
use motion::homing::Homing;
use motion::supervision::{FollowingErrorLimit, Limits, OnStale, Outage, Settings, Written};
use motion::{
    AxisScale, AxisSetpoint, MetresPerSecond, NewtonMetres, Radians, RadiansPerSecond,
    RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};
use onbeat_controllers::{AxisSettings, ControllerManager, HomedBy, ManagedAxis, Member};
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};

use loss::{Losses, LossySegment};
use ports::Client;

pub const PERIOD: Duration = Duration::from_millis(1);
pub const CYCLE: f64 = 1e-3;

/// Limits of every axis.
pub const VELOCITY: f64 = 4.0;
pub const ACCELERATION: f64 = 40.0;
pub const JERK: f64 = 800.0;
pub const POSITIONS: (f64, f64) = (-3.0, 3.0);

/// The robot and its messages in transit.
pub struct Rig {
    pub modes: Vec<CyclicMode>,
    pub homing: Homing,
    pub following_error: Option<f64>,
    pub enable: bool,
    /// Largest number of cycles of a script.
    pub timeout: u64,
}

impl Rig {
    pub fn new(axes: usize, mode: CyclicMode) -> Self {
        Self {
            modes: vec![mode; axes],
            homing: Homing::Never,
            following_error: None,
            enable: true,
            timeout: 20_000,
        }
    }

    /// Runs `script` once per cycle until it ends; returns the log of every cycle.
    pub fn run(self, members: Vec<Member>, script: impl FnMut(&mut World) -> Flow + Send + 'static) -> Log {
        let axes: Vec<_> = self.modes.iter().map(|mode| switch_axis(*mode, self.homing)).collect();
        let client = Client::default();
        let (requests, orders) = client.ports();
        let manager = ControllerManager::new(&axes, members, self.enable).with_ports(requests, orders);
        let clock = VirtualClock::default();
        clock.advance(Duration::from_secs(1000));
        let stop = StopHandle::new();
        let log = Arc::new(Mutex::new(Log::default()));
        let losses = Losses::of(axes.len());
        let world = World {
            losses: losses.clone(),
            cycles: 0,
            now_ns: 0,
            reports: Vec::new(),
            setpoints: Vec::new(),
            output: ControllerOutput::default(),
            command: ExternalCommand { axes: vec![None; axes.len()], ..ExternalCommand::default() },
            client,
        };
        let staged = Staged {
            manager,
            world,
            script: Box::new(script),
            stop: stop.clone(),
            log: Arc::clone(&log),
            over: false,
            timeout: self.timeout,
        };
        let segment = LossySegment { segment: segment(&self.modes), losses };
        let mut link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
        let configuration =
            Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() };
        let mut main_device = MainDevice::new(configuration).unwrap();
        Pump {
            main_device: &mut main_device,
            link: &mut link,
            clock: &clock,
            stop: &AtomicBool::new(false),
        }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
        let configurations: Vec<_> = (0..self.modes.len()).map(|axis| self.axis(axis)).collect();
        let every = CycleConfiguration::every(PERIOD);
        let (cycle, _observer) =
            Cycle::new(main_device, link, clock, &configurations, Box::new(staged), every).unwrap();
        let ended = cycle.run(&stop);
        assert_eq!(ended.failure, None);
        let mut log = std::mem::take(&mut *log.lock().unwrap());
        assert!(log.over, "the script is over before {} cycles", self.timeout);
        log.at_the_end = ended.status.axes;
        log
    }

    fn axis(&self, axis: usize) -> AxisConfiguration {
        let mode = self.modes[axis];
        let distance = self.following_error.map(Radians);
        let settings = Settings {
            mode: mode.into(),
            limits: Limits {
                position: (mode == CyclicMode::Position)
                    .then_some((Radians(POSITIONS.0), Radians(POSITIONS.1))),
                velocity: RadiansPerSecond(VELOCITY),
                acceleration: RadiansPerSecondSquared(ACCELERATION),
                deceleration: RadiansPerSecondSquared(ACCELERATION),
                jerk: RadiansPerSecondCubed(JERK),
                torque: NewtonMetres(2.0),
                step: Radians(2.0 * VELOCITY * CYCLE),
                written: Written::ALL,
            },
            following_error: distance
                .map(|distance| FollowingErrorLimit { distance, timeout: Seconds(0.01) }),
            on_stale: OnStale::Ramp,
            outage: Outage::default(),
        };
        let scale = AxisScale::new(f64::from(1 << 20), 1.0, NewtonMetres(2.4)).unwrap();
        let step = Radians(2.0 * VELOCITY * CYCLE);
        AxisConfiguration {
            supervision: Some(settings),
            homing: self.homing,
            modes: vec![AxisMode::ProfilePosition, AxisMode::ProfileVelocity, AxisMode::ProfileTorque],
            ..AxisConfiguration::new(&format!("axis-{axis}"), axis, self.modes[axis], scale, step)
        }
    }
}

/// Servo drives in a line.
fn segment(modes: &[CyclicMode]) -> Segment {
    let drive = |mode: &CyclicMode| {
        let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
        let sii = with_coe(identity, "Servo", mapping()).image().emit();
        let description = ServoDescription {
            mode: *mode,
            mapping: mapping(),
            ..ServoDescription::new(DeviceDescription::new(identity, "Servo"))
        };
        SubDevice::new(EscDescription::default(), sii, Box::new(ServoDrive::new(&description).unwrap()))
    };
    Segment::new(modes.iter().map(drive).collect())
}

/// With the mode of operation, and speed and ramps of profile modes.
fn mapping() -> PdoMapping {
    let mut mapping = default_mapping();
    let entry = |index: u16, bits: u32| PdoEntry::from_mapping_value(u32::from(index) << 16 | bits);
    let profile = [PROFILE_VELOCITY, PROFILE_ACCELERATION, PROFILE_DECELERATION, TORQUE_SLOPE];
    mapping.outputs[0].entries.push(entry(MODES_OF_OPERATION, 8));
    mapping.outputs[0].entries.extend(profile.map(|index| entry(index, 32)));
    mapping.inputs[0].entries.push(entry(MODES_OF_OPERATION_DISPLAY, 8));
    mapping
}

fn switch_axis(mode: CyclicMode, homing: Homing) -> ManagedAxis {
    let homing = match homing {
        Homing::Never | Homing::Absolute { .. } => HomedBy::Nobody,
        Homing::CurrentPosition { .. } => HomedBy::Hand,
        Homing::Drive { .. } => HomedBy::Drive,
    };
    ManagedAxis { mode: mode.into(), velocity_limit: RadiansPerSecond(VELOCITY), homing }
}

pub fn settings(axis: usize) -> AxisSettings {
    AxisSettings {
        axis,
        profile: false,
        position_limits: Some((Radians(POSITIONS.0), Radians(POSITIONS.1))),
        velocity_limit: RadiansPerSecond(VELOCITY),
        acceleration_limit: RadiansPerSecondSquared(ACCELERATION),
        jerk_limit: RadiansPerSecondCubed(JERK),
    }
}

/// Continuation of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    On,
    Over,
}

/// View of a script before a cycle, and its actions.
pub struct World {
    /// Cycles since all drives reported to be enabled, or since the start where they are not to be.
    pub cycles: u64,
    /// Release of the next cycle.
    pub now_ns: u64,
    /// Reports of the axes in this cycle.
    pub reports: Vec<AxisReport>,
    /// Set-points of the previous cycle.
    pub setpoints: Vec<AxisSetpoint>,
    /// Output of the controller in the previous cycle.
    pub output: ControllerOutput,
    /// Command; stays until it is changed.
    pub command: ExternalCommand,
    /// Losses of the bus.
    pub losses: Losses,
    client: Client,
}

impl Deref for World {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl World {
    pub fn twist(&mut self, x: f64, y: f64, yaw: f64) {
        let (x, y) = (MetresPerSecond(x), MetresPerSecond(y));
        self.command.freshness = Freshness::Fresh;
        self.command.twist = Some(Twist { x, y, yaw: RadiansPerSecond(yaw) });
    }

    pub fn target(&mut self, axis: usize, target: AxisTarget) {
        self.command.freshness = Freshness::Fresh;
        self.command.axes[axis] = Some(target);
    }

    /// True if no set-point differs from the previous cycle's, and nothing moves.
    pub fn rests(&self) -> bool {
        self.reports.iter().all(|report| report.feedback.velocity.0.abs() < 1e-3)
    }
}

/// Log of a run from the first cycle with all drives enabled until the end of the script.
#[derive(Default)]
pub struct Log {
    pub cycles: Vec<Seen>,
    pub trajectory: Vec<Report>,
    pub replies: Vec<(u64, Result<(), Refusal>)>,
    /// Reports of the axes at the end.
    pub at_the_end: Vec<AxisReport>,
    over: bool,
}

/// Log of one cycle.
#[derive(Clone, Debug)]
pub struct Seen {
    pub reports: Vec<AxisReport>,
    pub setpoints: Vec<AxisSetpoint>,
    pub output: ControllerOutput,
}

impl Log {
    /// Largest change of velocity per second in the position set-points of an axis.
    pub fn hardest(&self, axis: usize) -> f64 {
        hardest(self.cycles.iter().map(|seen| seen.setpoints[axis].position.0))
    }

    /// Highest speed of the position set-points of an axis.
    pub fn fastest(&self, axis: usize) -> f64 {
        let positions: Vec<f64> = self.cycles.iter().map(|seen| seen.setpoints[axis].position.0).collect();
        positions.windows(2).map(|it| ((it[1] - it[0]) / CYCLE).abs()).fold(0.0, f64::max)
    }

    /// Largest change of the velocity set-points of an axis, per second.
    pub fn hardest_velocity(&self, axis: usize) -> f64 {
        let velocities: Vec<f64> = self.cycles.iter().map(|seen| seen.setpoints[axis].velocity.0).collect();
        velocities.windows(2).map(|it| ((it[1] - it[0]) / CYCLE).abs()).fold(0.0, f64::max)
    }
}

/// Largest change of velocity per second from one of these positions, a cycle each, to the next.
pub fn hardest(positions: impl Iterator<Item = f64>) -> f64 {
    let positions: Vec<f64> = positions.collect();
    let change = |it: &[f64]| ((it[2] - 2.0 * it[1] + it[0]) / (CYCLE * CYCLE)).abs();
    positions.windows(3).map(change).fold(0.0, f64::max)
}

type Script = dyn FnMut(&mut World) -> Flow + Send;

/// The manager, and its script.
struct Staged {
    manager: ControllerManager,
    world: World,
    script: Box<Script>,
    stop: StopHandle,
    log: Arc<Mutex<Log>>,
    over: bool,
    timeout: u64,
}

impl Controller for Staged {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let world = &mut self.world;
        world.reports = io.axes().to_vec();
        world.now_ns = info.release.as_nanos();
        world.client.collect();
        let enabled = io.axes().iter().all(|report| report.state == Some(State::OperationEnabled));
        let begun = enabled || world.cycles > 0 || !self.manager.output().control.enabled;
        world.cycles += u64::from(begun);
        if begun && !self.over {
            self.over = (self.script)(world) == Flow::Over || world.cycles > self.timeout;
            if self.over {
                self.log.lock().unwrap().over = world.cycles <= self.timeout;
                self.stop.stop();
            }
        }
        self.manager.command(&world.command);
        self.manager.update(info, io);
        world.output = self.manager.output();
        world.setpoints = io.commands().iter().map(|command| command.setpoint).collect();
        if begun && !info.stopping {
            let mut log = self.log.lock().unwrap();
            log.cycles.push(Seen {
                reports: world.reports.clone(),
                setpoints: world.setpoints.clone(),
                output: world.output,
            });
            log.trajectory = world.trajectory.clone();
            log.replies = world.replies.clone();
        }
    }

    fn output(&self) -> ControllerOutput {
        self.manager.output()
    }
}
