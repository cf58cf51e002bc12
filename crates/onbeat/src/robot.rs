//! A robot, to be run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use control::controller::Controller;
use control::stop::StopHandle;
use ipc::channel::Port;
use onbeat_ethercat_linux::link::{Faults, LinkKind};
use robot::{ControllerKind, Overrides, Profile, RobotConfig};

use crate::Error;
use crate::compose::controller;
use crate::compose::ipc::Ports;
use crate::compose::link::{SimulatedTime, Wire};
use crate::run;

/// A robot as its file describes it, and settings of a run of it.
///
/// It is simulated, unless [`Robot::interface`] names a network interface; it runs until
/// [`Robot::stop`]'s handle requests a stop, or for [`Robot::cycles`]. Clones can be run any number
/// of times, sequentially and concurrently.
#[derive(Clone, Debug)]
#[must_use = "a robot does nothing until it is run"]
pub struct Robot {
    pub(crate) config: RobotConfig,
    pub(crate) settings: Settings,
    /// Handle that stops its runs; without it, each run has a separate one.
    pub(crate) stop: Option<StopHandle>,
}

impl From<RobotConfig> for Robot {
    fn from(config: RobotConfig) -> Self {
        Self { config, settings: Settings::default(), stop: None }
    }
}

impl Robot {
    /// Reads the robot file at `path`.
    ///
    /// # Errors
    /// [`Error::RobotFile`], with the line and column of the first problem.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(RobotConfig::read(path.as_ref(), Overrides::default())?.into())
    }

    /// Reads the robot file at `path`, with another period.
    ///
    /// # Errors
    /// As [`Robot::load`].
    pub fn load_with_period(path: impl AsRef<Path>, period: Duration) -> Result<Self, Error> {
        let overrides = Overrides { period: Some(period), ..Overrides::default() };
        Ok(RobotConfig::read(path.as_ref(), overrides)?.into())
    }

    /// Reads the robot file `text`; its errors name it `name`.
    ///
    /// # Errors
    /// As [`Robot::load`].
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        Ok(RobotConfig::parse_with(text, name, Overrides::default())?.into())
    }

    /// Name of the robot.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Names of the axes, in the order in which a controller has them.
    pub fn axes(&self) -> impl ExactSizeIterator<Item = &str> {
        self.config.axes.iter().map(|axis| axis.name.as_str())
    }

    /// Description that the robot file gives.
    #[must_use]
    pub fn config(&self) -> &RobotConfig {
        &self.config
    }

    /// Controllers of the robot file, to be wrapped in one's own; without ports.
    ///
    /// # Errors
    /// [`Error::Controller`].
    pub fn controllers(&self) -> Result<impl Controller + 'static, Error> {
        controller::controllers(&self.config, None)
    }

    /// Brings its SubDevices, all of them simulated, to PreOp, and makes the cycle as a run does:
    /// signals, axes and controllers are resolved. Nothing is exchanged, and no client can attach.
    ///
    /// # Errors
    /// As [`Robot::run`], before the first cycle.
    pub fn rehearse(&self) -> Result<(), Error> {
        self.settings.rehearse(&self.alone().config)
    }

    /// This robot without other programs and devices: it holds where its controller is a process,
    /// and has no peripherals.
    pub fn alone(&self) -> Self {
        let mut robot = self.clone();
        robot.config.peripherals.clear();
        let external = robot.config.controllers.iter_mut().filter(|it| it.kind == ControllerKind::External);
        external.for_each(|it| it.kind = ControllerKind::Hold);
        robot
    }

    /// Runs it on the real bus at this network interface.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.settings.wire.interface = Some(name.into());
        self
    }

    /// Name of this program, for others that want the interface; `onbeat` without one.
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.settings.wire.program = Some(name.into());
        self
    }

    /// Reaches the interface by this kind of link; by default a packet socket.
    pub fn link(mut self, kind: LinkKind) -> Self {
        self.settings.wire.link = kind;
        self
    }

    /// Takes the SubDevices from another MainDevice on the wire.
    pub fn take_over(mut self) -> Self {
        self.settings.wire.take_over = true;
        self
    }

    /// Simulates the SubDevices of another robot file instead of this one.
    pub fn simulate_as(mut self, robot_file: impl Into<PathBuf>) -> Self {
        self.settings.wire.segment = Some(robot_file.into());
        self
    }

    /// Time of simulated SubDevices; by default the time of the bus.
    pub fn simulated_time(mut self, time: SimulatedTime) -> Self {
        self.settings.wire.time = time;
        self
    }

    /// Puts faults on the link.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.settings.wire.faults = Some(faults);
        self
    }

    /// Writes every frame, sent and received, to a pcapng file.
    pub fn capture(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.wire.capture = Some(path.into());
        self
    }

    /// Real-time settings, in place of the robot file's.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.config.cycle.profile = Some(profile);
        self
    }

    /// SCHED_FIFO priority of P, 1 to 99.
    pub fn priority(mut self, priority: u8) -> Self {
        self.config.cycle.priority = Some(priority.clamp(1, 99));
        self
    }

    /// CPU of the cycle; with C all else is moved away from it.
    pub fn cpu(mut self, cpu: usize) -> Self {
        self.config.cycle.cpu = Some(cpu);
        self
    }

    /// Prepares the network interface for the cycle while it runs, and puts it back: coalescing,
    /// offloads, energy saving, deferral, threads and interrupts, which go to `cpu` if it is given.
    /// Without root it runs unprepared, and its conditions say so.
    pub fn prepare_nic(mut self, cpu: Option<usize>) -> Self {
        self.config.cycle.prepare_nic = Some(true);
        self.config.cycle.nic_cpu = cpu.or(self.config.cycle.nic_cpu);
        self
    }

    /// Stops the run when this handle, or a clone of it, asks for it. A handle that has asked
    /// before ends a run at once.
    pub fn stop(mut self, handle: &StopHandle) -> Self {
        self.stop = Some(handle.clone());
        self
    }

    /// Stops the run after this many cycles in Op.
    pub fn cycles(mut self, cycles: u64) -> Self {
        self.settings.limit = Some(Limit::Cycles(cycles));
        self
    }

    /// Stops the run after this time in Op.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.settings.limit = Some(Limit::Time(duration));
        self
    }

    /// Name of the shared-memory interface that other programs attach to, or path of its socket, in
    /// place of the robot file's.
    pub fn ipc(mut self, name: impl Into<String>) -> Self {
        self.settings.ipc = IpcPlace::Named(name.into());
        self
    }

    /// Lets no other program attach.
    pub fn without_ipc(mut self) -> Self {
        self.settings.ipc = IpcPlace::Nowhere;
        self
    }

    /// Keeps in this directory the state for later runs ([`crate::state`]): history,
    /// `position_memory`, `reset_faults`. Without it nothing is kept.
    pub fn state_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.state = Some(path.into());
        self
    }

    /// Link that it runs on, in all its parts.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.settings.wire = wire;
        self
    }
}

/// With the feature `recording`.
#[cfg(feature = "recording")]
impl Robot {
    /// Records every cycle in Op to this file, as MCAP: its timing, axes and signals.
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.recording.path = Some(path.into());
        self
    }

    /// Lets the file of [`Robot::record`] take the place of an earlier recording. Without it such a
    /// run is refused.
    pub fn replace_recording(mut self) -> Self {
        self.settings.recording.replaces = true;
        self
    }

    /// Signals that are recorded, in place of the signals that the robot file names.
    pub fn recorded_signals(mut self, signals: run::RecordedSignals) -> Self {
        self.settings.recording.signals = signals;
        self
    }

    /// Keeps recordings for a reason only, each in a separate file, named after the file of
    /// [`Robot::record`].
    pub fn flight_recorder(mut self, recorder: record::recorder::FlightRecorder) -> Self {
        self.settings.recording.kept = run::Kept::Around(recorder);
        self
    }

    /// Records in parts: files of a bounded size named after that of [`Robot::record`], a bounded
    /// number of them.
    pub fn recording_parts(mut self, parts: record::recorder::RecordingParts) -> Self {
        self.settings.recording.kept = run::Kept::Parts(parts);
        self
    }
}

/// With the feature `diagnosis`.
#[cfg(feature = "diagnosis")]
impl Robot {
    /// Watches for disturbances of the cycle's thread and of the devices' tasks:
    /// [`crate::Diagnosis::disturbances`].
    pub fn watch(mut self, detail: diagnose::disturbance::Detail) -> Self {
        self.settings.watch = Some(detail);
        self
    }

    /// Explains cycles that are later than this, by the kernel's trace:
    /// [`crate::Diagnosis::explanation`].
    pub fn explain(mut self, late_above: Duration) -> Self {
        self.settings.late_above = Some(late_above);
        self
    }
}

/// Control of the axes and signals of a run.
#[non_exhaustive]
pub enum Control<'a> {
    /// Controllers of the robot file.
    AsDescribed,
    /// Custom controller, made once the bus is in PreOp.
    Own(Make<'a>),
}

impl Control<'_> {
    /// Custom controller that takes no part of the run.
    pub fn own(controller: impl Controller + 'static) -> Self {
        Self::Own(Box::new(|_| Box::new(controller)))
    }
}

/// Maker of a controller.
pub type Make<'a> = Box<dyn FnOnce(&mut Parts) -> Box<dyn Controller> + 'a>;

/// Parts of a run that its controller may take.
#[derive(Debug)]
pub struct Parts {
    pub(crate) ports: Option<Ports>,
}

impl Parts {
    /// Real-time end of a port of the shared-memory interface: `control`, `trajectory`, or one of
    /// the robot file. Once; `None` where there is none of that name, or no interface. The
    /// controller binds it in its first cycle.
    pub fn port(&mut self, name: &str) -> Option<Port> {
        self.ports.as_mut()?.take(name)
    }
}

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) wire: Wire,
    pub(crate) stop: StopHandle,
    pub(crate) limit: Option<Limit>,
    pub(crate) ipc: IpcPlace,
    /// State directory.
    pub(crate) state: Option<PathBuf>,
    pub(crate) recording: run::RecordingSettings,
    /// Detail in which the real-time threads are watched for disturbances; `None` if they are not.
    #[cfg(feature = "diagnosis")]
    pub(crate) watch: Option<diagnose::disturbance::Detail>,
    /// Lateness above which cycles are explained; `None` without a request.
    #[cfg(feature = "diagnosis")]
    pub(crate) late_above: Option<Duration>,
}

impl Settings {
    /// Cycles to measure; `None` for a run until a stop is requested.
    pub(crate) fn cycles(&self, robot: &RobotConfig) -> Option<u64> {
        self.limit.map(|limit| match limit {
            Limit::Cycles(cycles) => cycles,
            Limit::Time(time) => {
                u64::try_from(time.as_nanos().div_ceil(robot.cycle.period.as_nanos())).unwrap_or(u64::MAX)
            }
        })
    }
}

/// Length of a run in Op.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Cycles(u64),
    Time(Duration),
}

/// Place of the shared-memory interface.
#[derive(Clone, Debug, Default)]
pub(crate) enum IpcPlace {
    /// As the robot file says.
    #[default]
    AsDescribed,
    /// Under this name, or at this path.
    Named(String),
    /// There is none.
    Nowhere,
}
