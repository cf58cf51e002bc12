//! Ports as files, and what two of them speak: requests and trajectories.

use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipc::channel::{Channel, Kind};
use ipc::description::Description;
use ipc::message::control::{Action, Refusal, Reply, Request};
use ipc::message::trajectory::{
    AxisTolerances, Begin, GoalTime, Order, Outcome, Point, REPORT_SIZE, Report, Tolerance, size,
};
use ipc::message::{self, MOST_AXES, Rows};
use ipc::state::Reader;
use ipc::{request, words};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{OnbeatError, RequestRefusedError, of_port};
use crate::wait;

/// A channel that can be closed while others wait in it.
struct Open(Mutex<Option<Arc<Channel>>>);

impl Open {
    fn new(channel: Channel) -> Self {
        Self(Mutex::new(Some(Arc::new(channel))))
    }

    fn get(&self) -> PyResult<Arc<Channel>> {
        let channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        channel.clone().ok_or_else(|| PyValueError::new_err("this port is closed: open it again"))
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Writes one message; false if the cycle does not take it within this time.
    fn send_within(&self, py: Python<'_>, bytes: &[u8], longest: Option<Duration>) -> PyResult<bool> {
        let channel = self.get()?;
        let send = |slice: Duration| match channel.send_timeout(bytes, slice) {
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
            sent => sent.map(Some).map_err(of_port),
        };
        Ok(wait::until(py, longest, send)?.is_some())
    }

    /// Writes all of it.
    fn send(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let channel = self.get()?;
        py.detach(|| (&*channel).write_all(bytes)).map_err(of_port)
    }

    /// Message that came within this time.
    fn receive(
        &self,
        py: Python<'_>,
        longest_message: usize,
        longest: Option<Duration>,
    ) -> PyResult<Option<Vec<u8>>> {
        let channel = self.get()?;
        wait::until(py, longest, |slice| {
            let mut buffer = vec![0; longest_message];
            let came = channel.recv_timeout(&mut buffer, slice).map_err(of_port)?;
            Ok(came.map(|length| {
                buffer.truncate(length);
                buffer
            }))
        })
    }
}

/// An open port: a file of messages or bytes.
#[pyclass(frozen, module = "onbeat._native")]
pub(crate) struct Port {
    name: String,
    kind: Kind,
    open: Open,
}

impl Port {
    pub(crate) fn new(name: &str, channel: Channel) -> Self {
        Self { name: name.to_owned(), kind: channel.kind(), open: Open::new(channel) }
    }
}

#[pymethods]
impl Port {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// `"message"` or `"stream"`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Message { .. } => "message",
            Kind::Stream { .. } => "stream",
        }
    }

    /// Longest message, or bytes that find room in the stream.
    #[getter]
    fn size(&self) -> usize {
        match self.kind {
            Kind::Message { size, .. } | Kind::Stream { size } => size,
        }
    }

    /// Its descriptor, for `select`, `poll` and event loops.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.open.get()?.as_raw_fd())
    }

    /// Writes a message, or bytes: waits until there is room.
    fn write(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        self.open.send(py, data)?;
        Ok(data.len())
    }

    /// Waits for a message, or for bytes; `None` when the time has expired.
    #[pyo3(signature = (size = None, *, timeout = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        size: Option<usize>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let longest = wait::maybe_seconds("timeout", timeout)?;
        let size = match self.kind {
            // A message cut is a message lost.
            Kind::Message { size, .. } => size,
            Kind::Stream { size: all } => size.unwrap_or(all).clamp(1, all),
        };
        Ok(self.open.receive(py, size, longest)?.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// True if it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Closes it for the next one.
    fn close(&self) {
        self.open.close();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        _kind: Option<Bound<'_, PyAny>>,
        _error: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) {
        self.close();
    }
}

/// The port of requests, open.
#[pyclass(frozen, module = "onbeat._native")]
pub(crate) struct ControlPort {
    open: Open,
    state: Reader,
    description: Arc<Description>,
    next: Mutex<u64>,
}

impl ControlPort {
    pub(crate) fn new(channel: Channel, state: Reader, description: Arc<Description>) -> Self {
        Self { open: Open::new(channel), state, description, next: Mutex::new(1) }
    }

    /// A refusal with the cause at each axis, and what to do.
    fn refused(&self, py: Python<'_>, what: Action, refusal: Refusal, left: Option<Duration>) -> String {
        let pause = left.map_or(request::FIRST_LOOK, |left| left.min(request::FIRST_LOOK));
        py.detach(|| std::thread::sleep(pause));
        match self.state.read() {
            Ok(state) => words::refused(refusal, what, &state, &self.description),
            Err(_) => refusal.to_string(),
        }
    }

    /// Sentences on the axes that wait for another request after this one was carried out; `None`
    /// if they are not known within `left`.
    ///
    /// # Errors
    /// An axis that this request did not make ready.
    fn remaining(
        &self,
        py: Python<'_>,
        what: Action,
        left: Option<Duration>,
    ) -> PyResult<Option<Vec<String>>> {
        let begin = std::time::Instant::now();
        let look = |slice: Duration| {
            std::thread::sleep(slice.min(LOOK));
            let state = match self.state.read() {
                Ok(state) => state,
                Err(error) => return Ok(Some(Err(error.to_string()))),
            };
            let found = request::remaining(what, begin.elapsed(), &state, &self.description);
            let sentences = |axes: Vec<usize>| {
                axes.into_iter().filter_map(|it| words::hindrance(it, &state, &self.description)).collect()
            };
            Ok(found.map(|it| it.map(sentences)))
        };
        let found = wait::until(py, left, look)?;
        found.transpose().map_err(RequestRefusedError::new_err)
    }
}

/// Time between two looks at the state of the axes.
const LOOK: Duration = Duration::from_millis(20);

#[pymethods]
impl ControlPort {
    /// Asks, and waits until it is done. Returns sentences on axes that wait for another request,
    /// and after a reset on each axis with a drive that did not carry out a quick stop.
    #[pyo3(signature = (action, number = 0, *, timeout = None))]
    fn request(
        &self,
        py: Python<'_>,
        action: &str,
        number: u32,
        timeout: Option<f64>,
    ) -> PyResult<Vec<String>> {
        let longest = wait::maybe_seconds("timeout", timeout)?;
        let what = match action {
            "enable" => Action::Enable,
            "disable" => Action::Disable,
            "reset_faults" => Action::ResetFaults,
            "switch_controller" => Action::SwitchController(number),
            "home" => Action::Home(number),
            "stop" => Action::Stop,
            "deactivate" => Action::Deactivate,
            _ => return Err(PyValueError::new_err(format!("there is no request `{action}`"))),
        };
        let mut notes = match self.state.read() {
            Ok(state) if what == Action::ResetFaults => {
                words::ignored_quick_stops(&state, &self.description)
            }
            _ => Vec::new(),
        };
        let id = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next - 1
        };
        let mut buffer = [0; message::control::SIZE];
        let length = Request { id, what }.encode(&mut buffer).map_err(of_message)?;
        let begin = std::time::Instant::now();
        let left = || longest.map(|longest| longest.saturating_sub(begin.elapsed()));
        let given = longest.unwrap_or_default().as_secs_f64();
        let late = |what: &str| PyTimeoutError::new_err(format!("`{action}`: within {given} s {what}"));
        if !self.open.send_within(py, &buffer[..length], longest)? {
            return Err(late("the cycle did not take the request: is its process suspended?"));
        }
        loop {
            let Some(bytes) = self.open.receive(py, message::control::SIZE, left())? else {
                return Err(late("the cycle did not answer; it may carry the request out later"));
            };
            let reply = Reply::decode(&bytes).map_err(of_message)?;
            // What was given up waiting for may still be answered.
            if reply.id == id {
                reply.outcome.map_err(|refusal| {
                    let why = self.refused(py, what, refusal, left());
                    RequestRefusedError::new_err(format!("`{action}` was refused: {why}"))
                })?;
                let waits = self.remaining(py, what, left())?;
                notes.extend(waits.ok_or_else(|| {
                    late("the cycle carried it out, but not all axes were ready; look at their state")
                })?);
                return Ok(notes);
            }
        }
    }

    /// Closes the port for the next one.
    fn close(&self) {
        self.open.close();
    }
}

/// The port of trajectories, open.
#[pyclass(frozen, module = "onbeat._native")]
pub(crate) struct TrajectoryPort {
    open: Open,
}

impl TrajectoryPort {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { open: Open::new(channel) }
    }

    fn order(&self, py: Python<'_>, order: &Order) -> PyResult<()> {
        let mut buffer = [0; size(MOST_AXES)];
        let length = order.encode(&mut buffer).map_err(of_message)?;
        self.open.send(py, &buffer[..length])
    }
}

/// Time from the start, positions, velocities, accelerations of one point.
type PointRows = (f64, Vec<f64>, Vec<f64>, Vec<f64>);

/// Tolerances of one axis: position and velocity on the way, position and velocity at the goal. 0
/// is the robot file's, -1 none.
type Tolerances = (f64, f64, f64, f64);

#[pymethods]
impl TrajectoryPort {
    /// Sends a trajectory. `axes` are indices, each with its tolerances.
    #[pyo3(signature = (id, axes, points, goal_time = None))]
    fn send(
        &self,
        py: Python<'_>,
        id: u64,
        axes: Vec<(u32, Tolerances)>,
        points: Vec<PointRows>,
        goal_time: Option<f64>,
    ) -> PyResult<()> {
        let named = axes.len();
        let axes = axes.into_iter().map(|(axis, tolerances)| {
            let (path_position, path_velocity, goal_position, goal_velocity) = tolerances;
            Ok(AxisTolerances {
                axis,
                path_position: tolerance(path_position)?,
                path_velocity: tolerance(path_velocity)?,
                goal_position: tolerance(goal_position)?,
                goal_velocity: tolerance(goal_velocity)?,
            })
        });
        let axes = axes.collect::<PyResult<Vec<_>>>()?;
        let goal_time = match goal_time {
            None => GoalTime::Default,
            Some(-1.0) => GoalTime::Unlimited,
            Some(seconds) => GoalTime::Within(nanoseconds("goal_time", seconds)?),
        };
        let begin = Begin {
            id,
            points: u32::try_from(points.len()).unwrap_or(u32::MAX),
            start_ns: None,
            goal_time,
            axes: rows(&axes)?,
        };
        // All is looked at before the first is sent.
        let mut orders = vec![Order::Begin(begin)];
        for (index, (time, positions, velocities, accelerations)) in points.into_iter().enumerate() {
            for (name, row, may_lack) in [
                ("positions", &positions, false),
                ("velocities", &velocities, true),
                ("accelerations", &accelerations, true),
            ] {
                if row.len() != named && !(may_lack && row.is_empty()) {
                    let found = row.len();
                    let why = format!("point {index}: expected {name} of {named} axes, found {found}");
                    return Err(PyValueError::new_err(why));
                }
            }
            orders.push(Order::Point(Point {
                id,
                index: u32::try_from(index).unwrap_or(u32::MAX),
                time_from_start_ns: nanoseconds("time", time)?,
                positions: rows(&positions)?,
                velocities: rows(&velocities)?,
                accelerations: rows(&accelerations)?,
            }));
        }
        orders.push(Order::Commit { id });
        orders.iter().try_for_each(|order| self.order(py, order))
    }

    /// Calls a trajectory off; 0 for whatever runs.
    fn cancel(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.order(py, &Order::Cancel { id })
    }

    /// Waits for the next report on any trajectory; `None` when the time has expired.
    #[pyo3(signature = (*, timeout = None))]
    fn report(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<TrajectoryReport>> {
        let longest = wait::maybe_seconds("timeout", timeout)?;
        let bytes = self.open.receive(py, REPORT_SIZE, longest)?;
        bytes.map(|bytes| TrajectoryReport::read(&bytes)).transpose()
    }

    /// Closes the port for the next one.
    fn close(&self) {
        self.open.close();
    }
}

/// Outcome of a trajectory.
#[pyclass(frozen, get_all, module = "onbeat")]
#[derive(Clone, Debug)]
pub(crate) struct TrajectoryReport {
    /// That of the trajectory.
    id: u64,
    /// `accepted`, `rejected`, `succeeded`, `aborted` or `canceled`.
    outcome: &'static str,
    /// All of it as a sentence.
    words: String,
    /// Index of the axis it concerns.
    axis: Option<u32>,
    /// Index of the point it concerns.
    point: Option<u32>,
    /// Value found there.
    found: f64,
    /// Value allowed there.
    allowed: f64,
}

impl TrajectoryReport {
    fn read(bytes: &[u8]) -> PyResult<Self> {
        let report = Report::decode(bytes).map_err(of_message)?;
        let outcome = match report.outcome {
            Outcome::Accepted => "accepted",
            Outcome::Rejected(_) => "rejected",
            Outcome::Succeeded => "succeeded",
            Outcome::Aborted(_) => "aborted",
            Outcome::Canceled => "canceled",
        };
        let words = report.to_string();
        let Report { id, axis, point, found, allowed, .. } = report;
        Ok(Self { id, outcome, words, axis, point, found, allowed })
    }
}

#[pymethods]
impl TrajectoryReport {
    fn __repr__(&self) -> String {
        format!("<TrajectoryReport {}: {}>", self.id, self.words)
    }
}

fn tolerance(value: f64) -> PyResult<Tolerance> {
    match value {
        0.0 => Ok(Tolerance::Default),
        -1.0 => Ok(Tolerance::Unlimited),
        above if above > 0.0 && above.is_finite() => Ok(Tolerance::Within(above)),
        _ => Err(PyValueError::new_err(format!(
            "a tolerance is {value}, expected 0 (the robot file's), -1 (none) or above 0"
        ))),
    }
}

fn rows<T: Copy + Default>(all: &[T]) -> PyResult<Rows<T>> {
    Rows::from_slice(all).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn nanoseconds(name: &str, value: f64) -> PyResult<u64> {
    Ok(u64::try_from(wait::seconds(name, value)?.as_nanos()).unwrap_or(u64::MAX))
}

fn of_message(error: impl std::fmt::Display) -> PyErr {
    OnbeatError::new_err(error.to_string())
}
