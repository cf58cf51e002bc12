//! A small robot for whole-system tests: servo drives in a line, and a controller that sways them.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

pub mod controller;
pub mod scripted;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::{CyclicMode, Request};
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::sii::Identity;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::Link;
use ipc::client::Client;
use ipc::command::Command;
use ipc::description::{AxisDescription, Description, InterlockDescription, OUTSIDE, SignalDescription};
use ipc::server::{Builder, Server};
use ipc::state::State;
use motion::supervision::{AfterOutage, Limits, OnStale, Outage, Settings, Written};
use motion::{
    AxisPhase, AxisScale, AxisSetpoint, Hertz, NewtonMetres, Radians, RadiansPerSecond,
    RadiansPerSecondSquared, Seconds, SmoothSinusoid, StopProfile, TrajectoryPoint,
};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{
    AxisTarget, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness, Io,
};
use onbeat_control::cycle::{Cycle, CycleConfiguration};
use onbeat_control::ipc::{Commanded, Ipc, Rules, Takes};
use onbeat_control::observer::Observer;
use rt::clock::{Clock, VirtualClock};
use simulator::application::servo::{ServoDescription, ServoDrive, ServoRecord};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};

pub const PERIOD: Duration = Duration::from_millis(1);

/// Servo drives in a line, each standing at another angle.
pub fn segment(drives: usize) -> Segment {
    segment_in(drives, CyclicMode::Position)
}

/// The same in another mode.
pub fn segment_in(drives: usize, mode: CyclicMode) -> Segment {
    let drive = |position: usize| {
        let (drive, sii) = servo(mode, |it| it.initial_position = position as f64);
        SubDevice::new(EscDescription::default(), sii, Box::new(drive))
    };
    Segment::new((0..drives).map(drive).collect())
}

/// A simulated drive in a mode, with changes to its description, and the record of what it takes.
pub fn sub_device(
    mode: CyclicMode,
    change: impl FnOnce(&mut ServoDescription),
) -> (SubDevice, ServoRecord) {
    let (mut drive, sii) = servo(mode, change);
    let record = drive.record();
    (SubDevice::new(EscDescription::default(), sii, Box::new(drive)), record)
}

/// The same without a record, which allocates, and its SII.
pub fn servo(mode: CyclicMode, change: impl FnOnce(&mut ServoDescription)) -> (ServoDrive, Vec<u8>) {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
    let mut description =
        ServoDescription { mode, ..ServoDescription::new(DeviceDescription::new(identity, "Servo")) };
    change(&mut description);
    let sii = with_coe(identity, "Servo", description.mapping.clone()).image().emit();
    (ServoDrive::new(&description).unwrap(), sii)
}

/// The drives' axes, in cyclic synchronous position.
pub fn axes(drives: usize) -> Vec<AxisConfiguration> {
    let axis = |sub_device| {
        let scale = AxisScale::new(f64::from(1 << 20), 1.0, NewtonMetres(2.4)).unwrap();
        let name = format!("axis-{sub_device}");
        AxisConfiguration::new(&name, sub_device, CyclicMode::Position, scale, Radians(0.1))
    };
    (0..drives).map(axis).collect()
}

/// A MainDevice on its way to Op with whatever is there.
pub fn main_device(period: Duration) -> MainDevice {
    let configuration = Configuration { target: AlState::Op, period, ..Configuration::default() };
    MainDevice::new(configuration).unwrap()
}

/// Brings the bus up on `link` and makes the cycle.
pub fn cycle<L: Link, C: Clock>(
    link: L,
    clock: C,
    drives: usize,
    controller: impl Controller + 'static,
    configuration: CycleConfiguration,
) -> (Cycle<L, C>, Observer) {
    cycle_of(link, clock, &axes(drives), controller, configuration)
}

/// The same with these axes.
pub fn cycle_of<L: Link, C: Clock>(
    link: L,
    clock: C,
    axes: &[AxisConfiguration],
    controller: impl Controller + 'static,
    configuration: CycleConfiguration,
) -> (Cycle<L, C>, Observer) {
    let main_device = main_device(configuration.period);
    cycle_with(main_device, link, clock, axes, controller, configuration)
}

/// The same with this MainDevice.
pub fn cycle_with<L: Link, C: Clock>(
    mut main_device: MainDevice,
    mut link: L,
    clock: C,
    axes: &[AxisConfiguration],
    controller: impl Controller + 'static,
    configuration: CycleConfiguration,
) -> (Cycle<L, C>, Observer) {
    let stop = AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
    Cycle::new(main_device, link, clock, axes, Box::new(controller), configuration).unwrap()
}

/// The same for SubDevices in this process that use `bus`: the cycle runs by the host's `clock`.
pub fn cycle_in_bus_time<L: Link, C: Clock>(
    mut link: L,
    (clock, bus): (C, VirtualClock),
    axes: &[AxisConfiguration],
    controller: impl Controller + 'static,
    configuration: CycleConfiguration,
) -> (Cycle<L, C>, Observer) {
    let mut main_device = main_device(configuration.period);
    let stop = AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &bus, stop: &stop }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
    let made = Cycle::new(main_device, link, clock, axes, Box::new(controller), configuration);
    let (cycle, observer) = made.unwrap();
    (cycle.with_bus_time(bus), observer)
}

/// Every axis sways about its start position, until the request to stop.
#[derive(Default)]
pub struct Sway {
    axes: Vec<Option<Motion>>,
}

struct Motion {
    sway: SmoothSinusoid,
    stop: Option<(StopProfile, f64)>,
    elapsed: f64,
}

impl Sway {
    pub fn new(axes: usize) -> Self {
        Self { axes: (0..axes).map(|_| None).collect() }
    }
}

impl Controller for Sway {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let elapsed = info.period.as_secs_f64() * info.periods as f64;
        for ((motion, report), command) in self.axes.iter_mut().zip(reports).zip(commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(start) = report.feedback.phase {
                motion.get_or_insert_with(|| {
                    let sway = SmoothSinusoid::new(start, Radians(0.5), Hertz(1.0), Seconds(0.5)).unwrap();
                    Motion { sway, stop: None, elapsed: 0.0 }
                });
            }
            if let Some(motion) = motion {
                command.setpoint = motion.step(elapsed, info.stopping).into();
            }
        }
    }
}

impl Motion {
    fn step(&mut self, elapsed: f64, stopping: bool) -> TrajectoryPoint {
        let here = self.sway.at(Seconds(self.elapsed));
        self.elapsed += elapsed;
        if stopping && self.stop.is_none() {
            let limit = RadiansPerSecondSquared(50.0);
            let profile = StopProfile::new(here.position, here.velocity, limit).unwrap();
            self.stop = Some((profile, self.elapsed - elapsed));
        }
        match &self.stop {
            None => self.sway.at(Seconds(self.elapsed)),
            Some((profile, since)) => profile.at(Seconds(self.elapsed - since)),
        }
    }
}

/// A folder for the socket of one test's IPC, gone with its test.
pub struct IpcFolder(pub std::path::PathBuf);

impl IpcFolder {
    pub fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for IpcFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An IPC for this many axes, which take anything within wide limits; open as long as the server
/// is.
pub fn ipc(folder: &IpcFolder, rules: Rules) -> (Ipc, Server, Client) {
    ipc_with(folder, rules, &[])
}

/// The same with signals, which can be forced.
pub fn ipc_with(folder: &IpcFolder, rules: Rules, signals: &[types::Signal]) -> (Ipc, Server, Client) {
    ipc_of(folder, rules, signals, &[])
}

/// The same with interlocks, all of them inputs of a SubDevice "inputs-1".
pub fn ipc_of(
    folder: &IpcFolder,
    rules: Rules,
    signals: &[types::Signal],
    interlocks: &[types::Interlock],
) -> (Ipc, Server, Client) {
    let interlock = |it: &types::Interlock| InterlockDescription {
        name: it.name.clone(),
        kind: it.kind,
        sub_device: "inputs-1".to_owned(),
        channel: it.channel,
        inverted: it.inverted,
        axes: it.axes.clone(),
    };
    let axis = |index| AxisDescription::new(format!("axis-{index}"), CyclicMode::Position, 1.0, 1.0);
    let axes = (0..rules.axes.len()).map(axis).collect();
    let described = |signal: &types::Signal| SignalDescription {
        name: signal.name.clone(),
        kind: signal.kind(),
        writer: signal.is_commanded().then(|| OUTSIDE.to_owned()),
        ..SignalDescription::default()
    };
    let description = Description {
        axes,
        signals: signals.iter().map(described).collect(),
        interlocks: interlocks.iter().map(interlock).collect(),
        ..Description::default()
    };
    let mut builder = Builder::new("robot", &description);
    builder.folder(&folder.0).forces(signals);
    let (ends, server) = builder.open().unwrap();
    let client = Client::open(&folder.0.join("robot.sock")).unwrap();
    (Ipc::new(ends, Rules { signals: Commanded::of(signals), ..rules }), server, client)
}

/// Takes targets of every kind.
pub fn rules(axes: usize) -> Rules {
    let takes = Takes { position: true, velocity: true, effort: true };
    let longest_time_to_live = Duration::from_secs(3600);
    Rules {
        axes: vec![takes; axes],
        base: None,
        pose: false,
        controllers: Vec::new(),
        signals: Vec::new(),
        longest_time_to_live,
    }
}

/// Moves every axis as it is asked: to positions at a steady speed, at velocities, with torques;
/// and holds it otherwise.
pub struct Servant {
    pub speed: f64,
    command: ExternalCommand,
    setpoints: Vec<AxisSetpoint>,
}

impl Servant {
    pub fn new(axes: usize, speed: f64) -> Self {
        let command = ExternalCommand { axes: vec![None; axes], ..ExternalCommand::default() };
        Self { speed, command, setpoints: vec![AxisSetpoint::default(); axes] }
    }
}

impl Controller for Servant {
    fn command(&mut self, command: &ExternalCommand) {
        self.command.clone_from(command);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let elapsed = info.period.as_secs_f64() * info.periods as f64;
        for (index, (report, command)) in reports.iter().zip(commands).enumerate() {
            command.request = Request::Enable;
            let setpoint = &mut self.setpoints[index];
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                *setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
            }
            let fresh = self.command.freshness == Freshness::Fresh && !info.stopping;
            match self.command.axes[index] {
                Some(AxisTarget::Position(target)) if fresh => {
                    let step = self.speed * elapsed;
                    setpoint.position.0 += (target - setpoint.position).0.clamp(-step, step);
                }
                Some(AxisTarget::Velocity(velocity)) if fresh => {
                    setpoint.velocity = velocity;
                    setpoint.position += velocity * Seconds(elapsed);
                }
                Some(AxisTarget::Effort(torque)) if fresh => setpoint.torque = torque,
                _ if info.stopping => {
                    *setpoint = AxisSetpoint { position: setpoint.position, ..AxisSetpoint::default() };
                }
                _ => {}
            }
            command.setpoint = *setpoint;
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, ..ControllerOutput::default() }
    }
}

/// The drives' axes with supervision, within wide limits.
pub fn supervised(drives: usize) -> Vec<AxisConfiguration> {
    let settings = Settings {
        mode: CyclicMode::Position.into(),
        limits: Limits {
            position: None,
            velocity: RadiansPerSecond(10.0),
            acceleration: RadiansPerSecondSquared(50.0),
            deceleration: RadiansPerSecondSquared(50.0),
            jerk: Limits::usual_jerk(RadiansPerSecondSquared(50.0)),
            torque: NewtonMetres(5.0),
            step: Radians(0.05),
            written: Written::default(),
        },
        following_error: None,
        on_stale: OnStale::Ramp,
        // Tests by the wall clock share their machine: it stalls for milliseconds at times.
        outage: Outage { time: Some(Seconds(10.0)), after: AfterOutage::Resume },
    };
    let supervised = |axis| AxisConfiguration { supervision: Some(settings), ..axis };
    axes(drives).into_iter().map(supervised).collect()
}

/// Two threads at an IPC: one reads as fast as it can, one sends commands, good and bad ones, all
/// the time.
pub struct Peers {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<u64>,
    writer: JoinHandle<u64>,
}

impl Peers {
    pub fn start(client: &Client, axes: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let goes_on = |stop: &Arc<AtomicBool>| {
            let stop = Arc::clone(stop);
            move || !stop.load(Ordering::Relaxed)
        };
        let (state, read_on) = (client.state(), goes_on(&stop));
        let reader = std::thread::spawn(move || {
            let mut read = 0;
            let mut into = State::default();
            while read_on() {
                read += u64::from(state.read_into(&mut into).is_ok());
            }
            read
        });
        let (mut commands, send_on) = (client.command().unwrap(), goes_on(&stop));
        let writer = std::thread::spawn(move || {
            let mut sent = 0;
            while send_on() {
                let target = match sent % 5 {
                    0 => AxisTarget::Position(Radians(f64::NAN)),
                    1 => AxisTarget::Velocity(RadiansPerSecond(f64::INFINITY)),
                    _ => AxisTarget::Position(Radians(if sent % 2 == 0 { 1.0 } else { -1.0 })),
                };
                let command = Command {
                    // Now and then none comes in time.
                    time_to_live_ns: if sent % 7 == 0 { 10_000 } else { 5_000_000 },
                    axes: vec![Some(target); axes],
                    signals: vec![Some(types::Value::Unsigned(sent % 300)); commands.signals()],
                    ..Command::default()
                };
                commands.send(&command).unwrap();
                sent += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            sent
        });
        Self { stop, reader, writer }
    }

    /// States read, and commands sent.
    pub fn stop(self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        (self.reader.join().unwrap(), self.writer.join().unwrap())
    }
}
