//! What moves the axes: called once a beat with feedback, gives back set-points, both in SI units.

use std::time::Duration;

use ethercat::cia402::{Phase, Request, State};
use ethercat::time::Instant;

/// Decides where the axes go.
///
/// `update` runs on the real-time path: it neither allocates, locks, waits nor logs.
pub trait Controller: Send {
    /// One beat. `setpoints` hold what was asked on the last beat, in the axes' order; at the start every
    /// axis is asked to stay disabled.
    ///
    /// While [`AxisFeedback::phase`] is [`Phase::Holding`] an axis in cyclic synchronous position mode starts
    /// from [`AxisFeedback::holds_at`]. Once [`Beat::stopping`] is set the controller brings its set-points
    /// to rest by its own profile; axes whose set-points stand still are then disabled.
    fn update(&mut self, beat: Beat, feedback: &[AxisFeedback], setpoints: &mut [AxisSetpoint]);
}

impl<T: Controller + ?Sized> Controller for Box<T> {
    fn update(&mut self, beat: Beat, feedback: &[AxisFeedback], setpoints: &mut [AxisSetpoint]) {
        (**self).update(beat, feedback, setpoints);
    }
}

/// The beat a controller is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Number of the cycle: its place on the grid, with gaps where releases were skipped.
    pub cycle: u64,
    /// The ideal instant of the beat.
    pub release: Instant,
    /// Time between two releases.
    pub period: Duration,
    /// Periods since the last beat: 1, or more after an overrun.
    pub periods: u64,
    /// The axes are to come to rest.
    pub stopping: bool,
}

/// What an axis reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisFeedback {
    /// Whether the numbers are of this beat; if not, they are the last ones that came.
    pub fresh: bool,
    /// State of its drive; `None` before the first statusword, or if that shows none.
    pub state: Option<State>,
    /// Whose target the drive was last sent.
    pub phase: Phase,
    /// Position, rad.
    pub position: f64,
    /// Velocity, rad/s. From the positions where the drive does not map its own.
    pub velocity: f64,
    /// Torque, N m; 0 where the drive does not map it.
    pub torque: f64,
    /// Target position the drive was last sent, rad.
    pub holds_at: f64,
}

impl Default for AxisFeedback {
    /// An axis of which nothing was heard yet.
    fn default() -> Self {
        Self {
            fresh: false,
            state: None,
            phase: Phase::NotEnabled,
            position: 0.0,
            velocity: 0.0,
            torque: 0.0,
            holds_at: 0.0,
        }
    }
}

/// What is asked of an axis. Only the target of its mode counts; one that is not a number changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisSetpoint {
    /// What to do.
    pub request: Request,
    /// Cyclic synchronous position: rad.
    pub position: f64,
    /// Cyclic synchronous velocity: rad/s.
    pub velocity: f64,
    /// Cyclic synchronous torque: N m.
    pub torque: f64,
}
