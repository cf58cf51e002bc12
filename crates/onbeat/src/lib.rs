//! Runs robots and machines over EtherCAT from ordinary Linux, in real time.
//!
//! A robot is described in a file ([its
//! keys](https://github.com/onbeat-rt/onbeat/blob/main/docs/robot-file.md)): the SubDevices of its
//! bus, its axes with their limits, names for process data, the cycle. [`Robot`] reads the file and
//! runs it, simulated down to the registers of the SubDevices or on a network interface, with a
//! custom [`Controller`] or with the controllers of the file. Supervision limits the commands of
//! every controller before they reach the drives.
//!
//! ```
//! use std::time::Duration;
//!
//! use onbeat::{CycleInfo, Controller, Input, Io, Output, Robot, SignalError, Signals};
//!
//! /// A lamp that shows a button.
//! #[derive(Default)]
//! struct Lamp {
//!     signals: Option<(Input<bool>, Output<bool>)>,
//! }
//!
//! impl Controller for Lamp {
//!     // Once, before the first cycle: names become handles. A wrong name or type ends the start.
//!     fn init(&mut self, names: &Signals) -> Result<(), SignalError> {
//!         self.signals = Some((names.input("button")?, names.output("lamp")?));
//!         Ok(())
//!     }
//!
//!     // In every cycle: no allocation, no lock, no system call.
//!     fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
//!         if let Some((button, lamp)) = self.signals {
//!             io.set(lamp, io.is_fresh(button) && io.get(button));
//!         }
//!     }
//! }
//!
//! let robot = Robot::parse(
//!     r#"
//!     name = "lamp"
//!     [cycle]
//!     period = "2ms"
//!     profile = "none"
//!     [bus]
//!     sub_device = [
//!         { name = "out", simulate = { kind = "digital_outputs", channels = 8 } },
//!         { name = "in", simulate = { kind = "digital_inputs", channels = 8 } },
//!     ]
//!     [[signal]]
//!     name = "lamp"
//!     sub_device = "out"
//!     channel = 1
//!     [[signal]]
//!     name = "button"
//!     sub_device = "in"
//!     channel = 2
//!     "#,
//!     "lamp.toml",
//! )?;
//! // On real hardware: robot.interface("enp3s0").profile(Profile::PMC)
//! let summary = robot.without_ipc().duration(Duration::from_millis(100)).run(Lamp::default())?;
//! assert!(summary.cycles() > 0);
//! assert!(summary.signal("lamp").is_some());
//! # Ok::<(), onbeat::Error>(())
//! ```
//!
//! The same with an axis, as a program of forty lines:
//! [`examples/door.rs`](https://github.com/onbeat-rt/onbeat/blob/main/crates/onbeat/examples/door.rs).
//!
//! # A run
//!
//! [`Robot::run`] brings the bus up, enables the axes on request of the controller, and returns at
//! the end of the run. It blocks the calling thread; the cycle has a separate thread. The run ends
//! after [`Robot::cycles`] or [`Robot::duration`], on request of a [`StopHandle`], when the bus
//! stays lost, when the controller panics, or as the robot file says after an overrun. In every
//! case the axes stop within their limits, brakes engage, outputs get their safe values, and the
//! bus goes to Init.
//!
//! ```no_run
//! # use onbeat::{Controller, Profile, Robot, StopHandle};
//! # #[derive(Default)] struct Mine; impl Controller for Mine {}
//! let stop = StopHandle::new();
//! let from_elsewhere = stop.clone();
//! std::thread::spawn(move || {
//!     std::thread::sleep(std::time::Duration::from_secs(60));
//!     from_elsewhere.stop(); // orderly; hurry() brakes as fast as the limits allow
//! });
//! let robot = Robot::load("robot.toml")?.interface("enp3s0").profile(Profile::PMC);
//! let summary = robot.stop(&stop).run(Mine)?;
//! println!("{summary}"); // counts, worst wakeup latency, a sentence on each finding
//! let is_bus_failure = |it: &onbeat::Finding| matches!(it, onbeat::Finding::BusFailed { .. });
//! let bus_failed = summary.findings.iter().any(is_bus_failure);
//! # Ok::<(), onbeat::Error>(())
//! ```
//!
//! A run that cannot start returns an [`Error`] to match on; a run that did not go as it should
//! returns a [`Summary`] with its findings. The library installs no signal handler, prints nothing,
//! ends no process and keeps no state between runs except in [`Robot::state_directory`]. Runs can
//! be sequential or, on different interfaces or simulated, concurrent. Its only globals count what
//! Linux keeps for the whole process: holders of the memory lock and of the ban on huge pages,
//! which the last holder releases, journals of changes to the machine, numbers that keep names
//! apart, and a panic hook before the program's, which has another thread report panics of
//! real-time threads. At its end a run undoes its changes to the machine (profile C); `onbeat run`
//! undoes the changes of a killed process.
//!
//! # Features
//!
//! None is on by default: each brings crates that a robot runs without.
//!
//! | feature | adds |
//! |---|---|
//! | `devices` | devices outside the bus, `[[peripheral]]` in the robot file |
//! | `diagnosis` | `Robot::explain` and `Robot::watch`: causes of late cycles, disturbances of threads |
//! | `recording` | `Robot::record` and `Robot::flight_recorder`: cycles in files |
//!
//! # Modules and types
//!
//! | | |
//! |---|---|
//! | [`Robot`] | robot file and settings of a run |
//! | [`Controller`], [`CycleInfo`] | the code that runs in every cycle |
//! | [`Signals`], [`Input`], [`Output`], [`Io`] | process data by name |
//! | [`AxisReport`], [`AxisCommand`], [`AxisPhase`] | axes, in SI units |
//! | [`ExternalCommand`], [`ControllerOutput`], [`Parts`] | commands from other processes, and replies |
//! | [`external`] | a controller in a separate process |
//! | [`fault`] | faults of a simulated bus, on demand |
//! | [`Reporter`], [`Notice`], [`Progress`] | a run in progress |
//! | [`Summary`], [`Error`] | the end of a run |
//! | [`state`] | state directory: what a robot keeps over restarts |
//! | [`sub_devices`] | SubDevices described for other processes |
//! | [`compose`] | the parts that a robot's description becomes |
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod compose;
mod error;
pub mod external;
pub mod fault;
mod reporter;
mod robot;
mod run;
pub mod state;
pub mod sub_devices;
mod summary;

pub use ::robot::{FileError, Profile};
pub use compose::link::SimulatedTime;
pub use control::controller::{
    AxisCommand, AxisReport, AxisTarget, Controller, ControllerOutput, CycleInfo, ExternalCommand,
    Freshness, IgnoredSetpoint, Io,
};
pub use control::observer::{CycleEvent, Happening};
pub use control::signal::{ForceEvent, Input, Output, SignalError, SignalState, SignalValue, Signals};
pub use control::stop::StopHandle;
pub use control::verdict::{Finding, KeptOff};
#[cfg(feature = "diagnosis")]
pub use diagnose::{LateCycle, disturbance::Detail};
pub use error::{
    CaptureError, ControllerError, Error, FailedStart, Incomplete, RecordingError, SharedMemoryError,
    SimulationError, UrdfError, UrdfFileError,
};
pub use ethercat::cia402::{ProbeSource, ProbeTrigger, Request, TouchProbe};
pub use ipc;
pub use motion::{self, AxisPhase, AxisSetpoint};
pub use onbeat_ethercat_linux::bring_up::BringUpError;
pub use onbeat_ethercat_linux::link::{FaultRates, Faults, LinkKind, OpenError};
#[cfg(feature = "recording")]
pub use record::recorder::{FlightRecorder, RecordingParts, Threshold, Trigger, TriggerError};
pub use record::{self, RunSummary};
pub use reporter::{HeldBy, Notice, Phase, Progress, Reporter};
pub use robot::{Control, Make, Parts, Robot};
#[cfg(feature = "recording")]
pub use run::RecordedSignals;
pub use run::SIMULATED;
#[cfg(feature = "diagnosis")]
pub use summary::Diagnosis;
pub use summary::Summary;
pub use types::Value;
