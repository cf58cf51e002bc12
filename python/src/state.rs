//! The state of a cycle for Python: that of `ipc`, with codes as words.

use std::sync::Arc;

use ipc::description::Description;
use ipc::{state, words};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A cycle at the end of one cycle.
#[pyclass(frozen, module = "onbeat")]
pub(crate) struct State {
    it: state::State,
    description: Arc<Description>,
}

impl State {
    pub(crate) fn new(it: state::State, description: Arc<Description>) -> Self {
        Self { it, description }
    }

    /// One number of each axis, as an array of doubles: numpy takes it without a copy.
    fn array<'py>(&self, py: Python<'py>, of: fn(&state::Axis) -> f64) -> PyResult<Bound<'py, PyAny>> {
        let bytes: Vec<u8> = self.it.axes.iter().flat_map(|axis| of(axis).to_ne_bytes()).collect();
        py.import("array")?.getattr("array")?.call1(("d", PyBytes::new(py, &bytes)))
    }
}

#[pymethods]
impl State {
    #[getter]
    fn cycle(&self) -> u64 {
        self.it.cycle
    }

    #[getter]
    fn release_ns(&self) -> u64 {
        self.it.release_ns
    }

    #[getter]
    fn bus(&self) -> Bus {
        let it = &self.it.bus;
        Bus {
            phase: words::bus_phase(it.phase).into_owned(),
            all_fresh: it.all_fresh,
            working_counter_errors: it.working_counter_errors,
            absent: it.absent,
            frames_sent: it.frames_sent,
            frames_accepted: it.frames_accepted,
            frames_lost: it.frames_lost,
            frames_rejected: it.frames_rejected,
            broken_cycles: it.broken_cycles,
            clock_difference_ns: it.clock_difference_ns,
            link_errors: it.link_errors,
        }
    }

    #[getter]
    fn clock(&self) -> Clock {
        let it = &self.it.clock;
        Clock {
            lock: words::clock_lock(it.lock).into_owned(),
            fresh: it.fresh,
            difference_ns: it.difference_ns,
            frame_phase_ns: it.frame_phase_ns,
            phase_error_ns: it.phase_error_ns,
            drift_ppb: it.drift_ppb,
            losses: it.losses,
        }
    }

    #[getter]
    fn timing(&self) -> Timing {
        let it = &self.it.timing;
        Timing {
            cycles: it.cycles,
            wakeup_latency: Spread::new(&it.wakeup_latency),
            period_jitter: Spread::new(&it.period_jitter),
            execution: Spread::new(&it.execution),
            overruns: it.overruns,
            skipped: it.skipped,
            last_overrun: (it.overruns > 0).then_some(it.last_overrun),
        }
    }

    #[getter]
    fn command(&self) -> CommandState {
        let it = &self.it.command;
        CommandState {
            sequence: it.sequence,
            stamp_ns: it.stamp_ns,
            freshness: it.freshness.to_string(),
            accepted: it.accepted,
            refused: it.refused,
            last_refusal: words::refusal_of(it, &self.description).map(words::Words::into_owned),
            last_refused_axis: (it.last_refusal != 0 && it.last_refused_axis != u16::MAX)
                .then_some(it.last_refused_axis),
            last_refused_signal: (it.last_refusal != 0 && it.last_refused_signal != u16::MAX)
                .then_some(it.last_refused_signal),
            clamped: it.clamped,
            last_clamp: words::clamp(it.last_clamp).map(words::Words::into_owned),
            last_clamped_axis: (it.last_clamp != 0 && it.last_clamped_axis != u16::MAX)
                .then_some(it.last_clamped_axis),
        }
    }

    #[getter]
    fn control(&self) -> Control {
        let it = &self.it.control;
        Control {
            active: it.active,
            enabled: it.enabled,
            trajectory: it.trajectory,
            trajectory_status: it.trajectory_status.to_string(),
            trajectory_elapsed_ns: it.trajectory_elapsed_ns,
        }
    }

    #[getter]
    fn base(&self) -> Base {
        let ([x, y, yaw], [ahead, left, turn]) = (self.it.base.pose, self.it.base.twist);
        Base { pose: (x, y, yaw), twist: (ahead, left, turn) }
    }

    #[getter]
    fn axes(&self) -> Vec<Axis> {
        self.it.axes.iter().map(|axis| Axis::new(axis, &self.it, &self.description)).collect()
    }

    #[getter]
    fn signals(&self) -> Vec<Signal> {
        let described = self.description.signals.iter();
        self.it
            .signals
            .iter()
            .zip(described)
            .map(|(it, described)| Signal::new(*it, described.kind))
            .collect()
    }

    /// The signal of this name.
    fn signal(&self, name: &str) -> PyResult<Signal> {
        Signal::named(&self.description, &self.it.signals, name)
    }

    /// Elements of the signal of this name, such as the samples of a cycle.
    fn elements(&self, name: &str) -> PyResult<Vec<Signal>> {
        let places = self.description.elements(name);
        if places.is_empty() {
            // Its own value, or the names there are.
            return Signal::named(&self.description, &self.it.signals, name).map(|only| vec![only]);
        }
        let both = |place: usize| Some((self.it.signals.get(place)?, self.description.signals.get(place)?));
        let found = places.into_iter().filter_map(both);
        Ok(found.map(|(it, described)| Signal::new(*it, described.kind)).collect())
    }

    #[getter]
    fn signal_counters(&self) -> SignalCounters {
        let state::SignalCounters { clamped, refused } = self.it.signal_counters;
        SignalCounters { clamped, refused }
    }

    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, |axis| axis.position)
    }

    #[getter]
    fn velocities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, |axis| axis.velocity)
    }

    #[getter]
    fn efforts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, |axis| axis.effort)
    }

    #[getter]
    fn target_positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, |axis| axis.target_position)
    }

    #[getter]
    fn target_velocities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, |axis| axis.target_velocity)
    }

    #[getter]
    fn target_efforts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, |axis| axis.target_effort)
    }

    fn __repr__(&self) -> String {
        format!(
            "<State of cycle {}: {}, {} axes>",
            self.it.cycle,
            words::bus_phase(self.it.bus.phase),
            self.it.axes.len()
        )
    }
}

/// A value of a signal: a `bool`, an `int` or a `float`.
#[derive(Clone, Copy, Debug, FromPyObject, IntoPyObject)]
pub(crate) enum SignalValue {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Real(f64),
}

impl From<state::Value> for SignalValue {
    fn from(value: state::Value) -> Self {
        match value {
            state::Value::Bool(value) => Self::Bool(value),
            state::Value::Unsigned(value) => Self::Unsigned(value),
            state::Value::Signed(value) => Self::Signed(value),
            state::Value::Real(value) => Self::Real(value),
        }
    }
}

impl From<SignalValue> for state::Value {
    fn from(value: SignalValue) -> Self {
        match value {
            SignalValue::Bool(value) => Self::Bool(value),
            SignalValue::Unsigned(value) => Self::Unsigned(value),
            SignalValue::Signed(value) => Self::Signed(value),
            SignalValue::Real(value) => Self::Real(value),
        }
    }
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty,)+ })+) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, get_all, module = "onbeat")]
            #[derive(Clone)]
            pub(crate) struct $name {
                $($field: $kind,)+
            }

            #[pymethods]
            impl $name {
                fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                    let fields = [$((stringify!($field), self.$field.clone().into_bound_py_any(py)?),)+];
                    let field = |(name, value): &(&str, Bound<'_, PyAny>)| Ok(format!("{name}={}", value.repr()?));
                    let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
                    Ok(format!("{}({})", stringify!($name), fields.join(", ")))
                }
            }
        )+
    };
}

parts! {
    /// The bus.
    Bus {
        phase: String,
        all_fresh: bool,
        working_counter_errors: u16,
        absent: u16,
        frames_sent: u64,
        frames_accepted: u64,
        frames_lost: u64,
        frames_rejected: u64,
        broken_cycles: u64,
        clock_difference_ns: u64,
        link_errors: u64,
    }
    /// The reference clock of the bus, and the cycle against it.
    Clock {
        lock: String,
        fresh: bool,
        difference_ns: i64,
        frame_phase_ns: u64,
        phase_error_ns: i64,
        drift_ppb: i64,
        losses: u64,
    }
    /// The timing of the cycle since the first cycle in Op.
    Timing {
        cycles: u64,
        wakeup_latency: Spread,
        period_jitter: Spread,
        execution: Spread,
        overruns: u64,
        skipped: u64,
        last_overrun: Option<u64>,
    }
    /// Last, smallest, largest and mean of a time.
    Spread {
        last_ns: u64,
        minimum_ns: u64,
        maximum_ns: u64,
        mean_ns: u64,
    }
    /// Outcome of commands.
    CommandState {
        sequence: u64,
        stamp_ns: u64,
        freshness: String,
        accepted: u64,
        refused: u64,
        last_refusal: Option<String>,
        last_refused_axis: Option<u16>,
        last_refused_signal: Option<u16>,
        clamped: u64,
        last_clamp: Option<String>,
        last_clamped_axis: Option<u16>,
    }
    /// The mover of the axes.
    Control {
        active: u16,
        enabled: bool,
        trajectory: u64,
        trajectory_status: String,
        trajectory_elapsed_ns: u64,
    }
    /// A base that moves about, by its odometry.
    Base {
        pose: (f64, f64, f64),
        twist: (f64, f64, f64),
    }
    /// One signal.
    Signal {
        value: SignalValue,
        fresh: bool,
        forced: bool,
    }
    /// Values set to outputs that could not be.
    SignalCounters {
        clamped: u64,
        refused: u64,
    }
    /// One axis.
    Axis {
        drive_state: String,
        phase: String,
        fresh: bool,
        homed: bool,
        stop: Option<String>,
        stopped_with: Option<String>,
        why: Option<String>,
        interlock: Option<String>,
        mode: Option<String>,
        position: f64,
        velocity: f64,
        effort: f64,
        target_position: f64,
        target_velocity: f64,
        target_effort: f64,
    }
}

impl Spread {
    fn new(it: &state::Spread) -> Self {
        let state::Spread { last_ns, minimum_ns, maximum_ns, mean_ns } = *it;
        Self { last_ns, minimum_ns, maximum_ns, mean_ns }
    }
}

impl Signal {
    fn new(it: state::Signal, kind: state::ValueKind) -> Self {
        Self { value: it.value(kind).into(), fresh: it.fresh, forced: it.forced }
    }

    /// The signal of this name; the error names the existing signals.
    pub(crate) fn named(
        description: &Description,
        signals: &[state::Signal],
        name: &str,
    ) -> PyResult<Self> {
        let mut known = description.signals.iter().zip(signals);
        let found = known.find(|(described, _)| described.name == name);
        found.map(|(described, it)| Self::new(*it, described.kind)).ok_or_else(|| {
            let names: Vec<&str> = description.signals.iter().map(|it| it.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            PyKeyError::new_err(format!("there is no signal '{name}'; there are: {known}"))
        })
    }
}

impl Axis {
    pub(crate) fn new(it: &state::Axis, state: &state::State, description: &Description) -> Self {
        Self {
            drive_state: words::drive_state(it.drive_state).into_owned(),
            phase: words::phase(it.phase).into_owned(),
            fresh: it.fresh,
            homed: it.homed,
            stop: words::stop(it.stop).map(words::Words::into_owned),
            stopped_with: words::stopped_with(it, description).map(str::to_owned),
            why: words::why_stopped(it, state, description),
            interlock: words::interlock_name(it, description).map(str::to_owned),
            mode: words::mode(it.mode).map(words::Words::into_owned),
            position: it.position,
            velocity: it.velocity,
            effort: it.effort,
            target_position: it.target_position,
            target_velocity: it.target_velocity,
            target_effort: it.target_effort,
        }
    }
}
