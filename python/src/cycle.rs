//! A running cycle, attached to, and the lease of its commands.

use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipc::client::{
    AttachError, Client, ControllerError as NoRole, FindError, ForceError, LeaseError as NoLease,
    PortError as NoPort,
};
use ipc::command::{self, AxisTarget, Command, SendError, ToolPose, Twist};
use ipc::description::Description;
use ipc::state::{self, ReadError};
use ipc::units::{Metres, NewtonMetres, Radians, RadiansPerSecond};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use crate::controller::ControllerRole;
use crate::errors::{
    CommandError, CycleEndedError, LeaseError, NoCycleError, OnbeatError, PortError, ended,
};
use crate::ports::{ControlPort, Port, TrajectoryPort};
use crate::state::{SignalValue, State};
use crate::wait;

/// Attaches to the one running cycle, the one of this name, or the one at this socket.
#[pyfunction]
#[pyo3(signature = (name = None, *, path = None))]
pub(crate) fn attach(py: Python<'_>, name: Option<String>, path: Option<PathBuf>) -> PyResult<Cycle> {
    let attached = py.detach(|| match (&name, &path) {
        (Some(_), Some(_)) => Err(PyValueError::new_err("name and path: expected one of them, found both")),
        (None, Some(path)) => Client::open(path).map_err(of_attach),
        (Some(name), None) => Client::named(name).map_err(of_find),
        (None, None) => Client::find().map_err(of_find),
    })?;
    Ok(Cycle::new(attached))
}

/// All running cycles.
#[pyfunction]
pub(crate) fn cycles(py: Python<'_>) -> Vec<Cycle> {
    py.detach(Client::all).into_iter().map(Cycle::new).collect()
}

/// A running cycle.
#[pyclass(frozen, module = "onbeat._native", subclass)]
pub(crate) struct Cycle {
    /// `None` once closed.
    attached: Mutex<Option<Client>>,
    reader: state::Reader,
    description: Arc<Description>,
}

impl Cycle {
    fn new(attached: Client) -> Self {
        let description = Arc::new(attached.description().clone());
        Self { reader: attached.state(), description, attached: Mutex::new(Some(attached)) }
    }

    fn with<T>(&self, work: impl FnOnce(&Client) -> PyResult<T>) -> PyResult<T> {
        // A panic elsewhere leaves an attachment as good as it was.
        let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = attached.as_ref();
        work(attached.ok_or_else(|| PyValueError::new_err("this attachment is closed: attach again"))?)
    }
}

#[pymethods]
impl Cycle {
    /// Its name.
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.with(|attached| Ok(attached.name().to_owned()))
    }

    /// Number of the process that runs it.
    #[getter]
    fn process(&self) -> PyResult<u32> {
        self.with(|attached| Ok(attached.process()))
    }

    /// Number of the user that runs it.
    #[getter]
    fn user(&self) -> PyResult<u32> {
        self.with(|attached| Ok(attached.user()))
    }

    /// Its socket.
    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        self.with(|attached| Ok(attached.path().to_owned()))
    }

    /// True if it has ended; the last state stays readable.
    #[getter]
    fn has_ended(&self) -> PyResult<bool> {
        self.with(|attached| Ok(attached.has_ended()))
    }

    /// Description of it, as a JSON document.
    fn description_json(&self) -> PyResult<String> {
        self.with(|attached| {
            serde_json::to_string(attached.description())
                .map_err(|error| OnbeatError::new_err(error.to_string()))
        })
    }

    /// Diagnostics of it, as a JSON document; `None` before its first word.
    fn diagnostics_json(&self) -> PyResult<Option<String>> {
        self.with(|attached| match attached.diagnostics() {
            Ok(document) => Ok(Some(document)),
            Err(ReadError::Nothing) => Ok(None),
            Err(error) => Err(OnbeatError::new_err(error.to_string())),
        })
    }

    /// The newest state.
    fn state(&self) -> PyResult<State> {
        self.with(|_| Ok(()))?;
        let state = self.reader.read().map_err(|error| OnbeatError::new_err(error.to_string()))?;
        Ok(State::new(state, Arc::clone(&self.description)))
    }

    /// Waits for a state of a later cycle than this one, and gives it.
    #[pyo3(signature = (after = None, *, timeout = None))]
    fn next_state(&self, py: Python<'_>, after: Option<u64>, timeout: Option<f64>) -> PyResult<State> {
        let longest = wait::maybe_seconds("timeout", timeout)?;
        let (first, period) = self.with(|attached| {
            Ok((self.reader.heartbeat(), Duration::from_nanos(attached.description().period_ns)))
        })?;
        // Half a period: late by that at most, and no load.
        let nap = (period / 2).clamp(Duration::from_micros(100), Duration::from_millis(5));
        let found = wait::until(py, longest, |_| {
            let newer = match after {
                None => self.reader.heartbeat() != first,
                Some(_) => true,
            };
            if newer {
                match self.reader.read() {
                    Ok(state) if after.is_none_or(|after| state.cycle > after) => return Ok(Some(state)),
                    _ => {}
                }
            }
            if self.with(|attached| Ok(attached.has_ended()))? {
                return Err(ended());
            }
            std::thread::sleep(nap);
            Ok(None)
        })?;
        let late = || PyTimeoutError::new_err("no new cycle in that time: the cycle stands still");
        found.map(|state| State::new(state, Arc::clone(&self.description))).ok_or_else(late)
    }

    /// Takes the lease of commands.
    fn lease(&self, py: Python<'_>) -> PyResult<Lease> {
        let writer = py.detach(|| self.with(|attached| attached.command().map_err(of_lease)))?;
        Ok(Lease { writer: Mutex::new(Some(writer)) })
    }

    /// Holds a signal, by its index in the description, at a value for so many seconds.
    fn force(&self, py: Python<'_>, signal: usize, value: SignalValue, time: f64) -> PyResult<()> {
        let time = wait::seconds("time", time)?;
        py.detach(|| self.with(|attached| attached.force(signal, value.into(), time).map_err(of_force)))
    }

    /// Releases a signal, or all that are forced.
    #[pyo3(signature = (signal = None))]
    fn release(&self, py: Python<'_>, signal: Option<usize>) -> PyResult<()> {
        py.detach(|| self.with(|attached| attached.release(signal).map_err(of_force)))
    }

    /// Opens a port.
    fn open_port(&self, py: Python<'_>, name: &str) -> PyResult<Port> {
        let channel = py.detach(|| self.with(|attached| attached.port(name).map_err(of_no_port)))?;
        Ok(Port::new(name, channel))
    }

    /// Opens the port of requests.
    fn open_control(&self, py: Python<'_>) -> PyResult<ControlPort> {
        let port = ipc::message::control::PORT;
        let open = |attached: &Client| -> PyResult<_> {
            Ok((attached.port(port).map_err(of_no_port)?, attached.state().clone()))
        };
        let (channel, state) = py.detach(|| self.with(open))?;
        Ok(ControlPort::new(channel, state, Arc::clone(&self.description)))
    }

    /// Opens the port of trajectories.
    fn open_trajectories(&self, py: Python<'_>) -> PyResult<TrajectoryPort> {
        let port = ipc::message::trajectory::PORT;
        let channel = py.detach(|| self.with(|attached| attached.port(port).map_err(of_no_port)))?;
        Ok(TrajectoryPort::new(channel))
    }

    /// Becomes its controller.
    fn controller(&self, py: Python<'_>) -> PyResult<ControllerRole> {
        let controller = py.detach(|| self.with(|attached| attached.controller().map_err(of_no_role)))?;
        Ok(ControllerRole::new(controller, Arc::clone(&self.description)))
    }

    /// Opens a connection to its bus: the number of a descriptor that is the caller's.
    fn open_bus(&self, py: Python<'_>) -> PyResult<i32> {
        let bus = py.detach(|| {
            self.with(|attached| {
                attached.bus().map_err(|error| match error {
                    AttachError::NoServer { .. } => ended(),
                    error => of_attach(error),
                })
            })
        })?;
        Ok(UnixStream::from(bus).into_raw_fd())
    }

    /// Detaches from it. Leases and ports taken from it stay.
    fn close(&self) {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The lease of a cycle's commands.
#[pyclass(frozen, module = "onbeat._native")]
pub(crate) struct Lease {
    /// `None` once given back.
    writer: Mutex<Option<command::Writer>>,
}

/// Command for an axis: `(0, rad)`, `(1, rad/s)` or `(2, N m)`.
type Target = (u8, f64);

#[pymethods]
impl Lease {
    /// Gives a command, and returns its sequence number.
    #[pyo3(signature = (twist, pose, axes, signals, ttl))]
    fn send(
        &self,
        twist: Option<(f64, f64, f64)>,
        pose: Option<([f64; 3], [f64; 4])>,
        axes: Vec<Option<Target>>,
        signals: Vec<Option<SignalValue>>,
        ttl: f64,
    ) -> PyResult<u64> {
        let holds = wait::seconds("ttl", ttl)?;
        let target = |(kind, value): Target| match kind {
            0 => Ok(AxisTarget::Position(Radians(value))),
            1 => Ok(AxisTarget::Velocity(RadiansPerSecond(value))),
            2 => Ok(AxisTarget::Effort(NewtonMetres(value))),
            3 => Ok(AxisTarget::Jog(RadiansPerSecond(value))),
            _ => Err(PyValueError::new_err(format!("kind of target: expected 0 to 3, found {kind}"))),
        };
        let command = Command {
            time_to_live_ns: u64::try_from(holds.as_nanos()).unwrap_or(u64::MAX),
            twist: twist.map(|(x, y, yaw)| Twist::new(x, y, yaw)),
            pose: pose
                .map(|(position, orientation)| ToolPose { position: position.map(Metres), orientation }),
            axes: axes.into_iter().map(|axis| axis.map(target).transpose()).collect::<PyResult<_>>()?,
            signals: signals.into_iter().map(|value| value.map(Into::into)).collect(),
            ..Command::default()
        };
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let given_back = || LeaseError::new_err("this lease was given back: take it again");
        writer.as_mut().ok_or_else(given_back)?.send(&command).map_err(|error| match error {
            SendError::Ended => CycleEndedError::new_err(error.to_string()),
            _ => CommandError::new_err(error.to_string()),
        })
    }

    /// Returns it. The last command holds until its time-to-live has expired.
    fn close(&self) {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// True if it was given back.
    #[getter]
    fn closed(&self) -> bool {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

fn of_find(error: FindError) -> PyErr {
    match error {
        FindError::Attach(error) => of_attach(error),
        _ => NoCycleError::new_err(error.to_string()),
    }
}

fn of_attach(error: AttachError) -> PyErr {
    match error {
        AttachError::NoServer { .. } => NoCycleError::new_err(error.to_string()),
        _ => OnbeatError::new_err(error.to_string()),
    }
}

fn of_lease(error: NoLease) -> PyErr {
    match error {
        NoLease::Attach(AttachError::NoServer { .. }) => ended(),
        NoLease::Attach(error) => of_attach(error),
        _ => LeaseError::new_err(error.to_string()),
    }
}

fn of_no_role(error: NoRole) -> PyErr {
    match error {
        NoRole::Attach(AttachError::NoServer { .. }) => ended(),
        NoRole::Attach(error) => of_attach(error),
        _ => LeaseError::new_err(error.to_string()),
    }
}

fn of_force(error: ForceError) -> PyErr {
    match error {
        ForceError::Attach(AttachError::NoServer { .. }) => ended(),
        ForceError::Attach(error) => of_attach(error),
        _ => CommandError::new_err(error.to_string()),
    }
}

fn of_no_port(error: NoPort) -> PyErr {
    match error {
        NoPort::Attach(AttachError::NoServer { .. }) => ended(),
        NoPort::Attach(error) => of_attach(error),
        _ => PortError::new_err(error.to_string()),
    }
}
