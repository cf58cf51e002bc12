//! The role of the controller of a cycle. What may be in an answer is checked in Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc::command::AxisTarget;
use ipc::controller::{Answer, AxisAnswer, Controller, DriveRequest, Request, Waited};
use ipc::description::Description;
use ipc::state::State;
use ipc::units::{NewtonMetres, Radians, RadiansPerSecond};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use crate::errors::{CommandError, ended};
use crate::state::{Axis, Signal};
use crate::wait;

/// The role of the controller.
#[pyclass(frozen, module = "onbeat._native")]
pub(crate) struct ControllerRole {
    /// `None` once given back.
    controller: Mutex<Option<Controller>>,
    description: Arc<Description>,
}

/// Request to a drive, 0 for none; whether the axis shall home; set-point: `(1, rad)`, `(2, rad/s)`
/// or `(3, N m)`.
type Row = (u8, bool, Option<Number>);

type Number = (u8, f64);

impl ControllerRole {
    pub(crate) fn new(controller: Controller, description: Arc<Description>) -> Self {
        Self { controller: Mutex::new(Some(controller)), description }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Controller>> {
        self.controller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn given_back() -> PyErr {
    PyValueError::new_err("this role was given back: take it again")
}

#[pymethods]
impl ControllerRole {
    /// Waits until the cycle asks.
    #[pyo3(signature = (*, timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<ControllerRequest> {
        let longest = wait::maybe_seconds("timeout", timeout)?;
        let found = wait::until(py, longest, |slice| {
            let mut controller = self.lock();
            let controller = controller.as_mut().ok_or_else(given_back)?;
            match controller.wait_for(slice) {
                Waited::Asked(turn) => Ok(Some(turn.request.clone())),
                Waited::TimedOut => Ok(None),
                Waited::Ended => Err(ended()),
            }
        })?;
        let late = || {
            PyTimeoutError::new_err(
                "the cycle has asked nothing in that time: another controller is active",
            )
        };
        let description = Arc::clone(&self.description);
        found.map(|request| ControllerRequest { request, description }).ok_or_else(late)
    }

    /// Answers the request that was waited for last; whether that was in time.
    fn answer(&self, axes: Vec<Row>, outputs: Vec<Option<u64>>, commanded: bool) -> PyResult<bool> {
        let axes = axes.into_iter().map(axis).collect::<PyResult<_>>()?;
        let mut controller = self.lock();
        let controller = controller.as_mut().ok_or_else(given_back)?;
        let request = controller.request();
        if request.period_ns == 0 {
            return Err(CommandError::new_err("nothing was asked yet: wait for a request first"));
        }
        let answer = Answer { cycle: request.cycle, axes, outputs, commanded, ..Answer::default() };
        Ok(controller.answer(&answer))
    }

    /// Gives it back.
    fn close(&self) {
        self.lock().take();
    }
}

fn axis((request, home, target): Row) -> PyResult<AxisAnswer> {
    let unknown = |what: &str, found: u8| PyValueError::new_err(format!("{what} {found} is unknown"));
    let request = match request {
        0 => None,
        code => Some(DriveRequest::from_code(code).ok_or_else(|| unknown("request", code))?),
    };
    let target = match target {
        None => None,
        Some((1, number)) => Some(AxisTarget::Position(Radians(number))),
        Some((2, number)) => Some(AxisTarget::Velocity(RadiansPerSecond(number))),
        Some((3, number)) => Some(AxisTarget::Effort(NewtonMetres(number))),
        Some((found, _)) => return Err(unknown("kind of target", found)),
    };
    Ok(AxisAnswer { request, home, target, ignored: None })
}

/// Inputs of one cycle.
#[pyclass(frozen, module = "onbeat._native")]
pub(crate) struct ControllerRequest {
    request: Request,
    description: Arc<Description>,
}

/// Command from outside: freshness, twist, pose, targets of the axes.
type Commanded = (String, Option<(f64, f64, f64)>, Option<([f64; 3], [f64; 4])>, Vec<Option<Number>>);

#[pymethods]
impl ControllerRequest {
    #[getter]
    fn cycle(&self) -> u64 {
        self.request.cycle
    }

    #[getter]
    fn release_ns(&self) -> u64 {
        self.request.release_ns
    }

    #[getter]
    fn deadline_ns(&self) -> u64 {
        self.request.deadline_ns
    }

    #[getter]
    fn period_ns(&self) -> u64 {
        self.request.period_ns
    }

    #[getter]
    fn periods(&self) -> u64 {
        self.request.periods
    }

    #[getter]
    fn stopping(&self) -> bool {
        self.request.stopping
    }

    #[getter]
    fn axes(&self) -> Vec<Axis> {
        // A request has no levels of interlocks.
        let state = State::default();
        self.request.axes.iter().map(|axis| Axis::new(axis, &state, &self.description)).collect()
    }

    fn signal(&self, name: &str) -> PyResult<Signal> {
        Signal::named(&self.description, &self.request.signals, name)
    }

    #[getter]
    fn command(&self) -> Commanded {
        let it = &self.request.command;
        let number = |target| match target {
            AxisTarget::Position(position) => (0, position.0),
            AxisTarget::Velocity(velocity) => (1, velocity.0),
            AxisTarget::Effort(torque) => (2, torque.0),
            AxisTarget::Jog(velocity) => (3, velocity.0),
        };
        (
            it.freshness.to_string(),
            it.twist.map(|twist| (twist.x.0, twist.y.0, twist.yaw.0)),
            it.pose.map(|pose| (pose.position.map(|metres| metres.0), pose.orientation)),
            it.axes.iter().map(|target| target.map(number)).collect(),
        )
    }
}
