//! A [`Controller`] in a separate process.
//!
//! `onbeat run robot.toml --controller external`, or `[controller] kind = "external"` in the robot
//! file, leaves the axes to another process. [`run`] is that process: the same controller as in the
//! cycle's thread, with the same `init`, `command`, `update` and `output`. It may allocate, log, or
//! be killed; what comes after the deadline of a cycle is late, and the axes stop as the robot file
//! says.
//!
//! ```no_run
//! use onbeat::ipc::client::Client;
//! use onbeat::{Controller, CycleInfo, Io, StopHandle, external};
//!
//! #[derive(Default)]
//! struct Mine;
//!
//! impl Controller for Mine {
//!     fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
//!         // As in the cycle's thread.
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! println!("{:?}", external::run(&Client::find()?, Mine, &StopHandle::new())?);
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use control::external::{ControllerProcess, is_real_time};
use ipc::client::{Client, ControllerError};
use ipc::controller::{Answer, AxisAnswer, DriveRequest, Request, Waited};
use thiserror::Error;

use crate::{Controller, StopHandle};

pub use control::external::{ProcessError, ProcessSettings as Settings, Refused};

/// Reason for which a controller does not become that of a running cycle.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// The controller does not find its signals, or the cycle is of another version.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Another process is the controller, this user may not command, or the cycle takes none.
    #[error(transparent)]
    Role(#[from] ControllerError),
    /// Its thread does not get the priority or the CPU that was requested.
    #[error(transparent)]
    Scheduling(#[from] Refused),
}

types::debug_is_sentence!(Error);

/// Cycles that a controller process served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// Requests answered.
    pub answered: u64,
    /// Answers sent after their deadline: taken in the next cycle.
    pub late: u64,
    /// Cycles that passed unanswered between two requests: this process slept too long, or another
    /// controller was active.
    pub missed: u64,
    /// True if its thread had a real-time priority.
    pub real_time: bool,
    /// True if the cycle has ended; otherwise this process was asked to stop.
    pub cycle_ended: bool,
}

impl Served {
    /// Advice for answers that were late: a real-time priority, if the process had none.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let Self { answered, late, missed, real_time, .. } = *self;
        (!real_time && late + missed > 0).then(|| {
            format!(
                "{late} of {answered} answers were late, and {missed} cycles passed unanswered: this process has no \
                 real-time priority; set one below the cycle's, and another CPU (external::Settings)"
            )
        })
    }
}

/// Controls the axes of a running cycle until it ends or `stop` asks.
///
/// After [`StopHandle::stop`] the controller gets [`crate::CycleInfo::stopping`]: it brings its
/// set-points to standstill as at the end of a run. Then its drives are disabled and the role is
/// given back; after ten seconds it is in any case. After [`StopHandle::hurry`] it is given back at
/// once: supervision stops the axes as the robot file's `on_stale` says.
///
/// # Errors
/// Nothing has moved: the signals are not there, or the role is not to be had.
pub fn run(client: &Client, controller: impl Controller, stop: &StopHandle) -> Result<Served, Error> {
    run_with(client, controller, stop, Settings::default())
}

/// The same with a priority and a CPU for the calling thread, which keeps them afterwards. Without
/// a priority answers are late whenever the computer is busy, and the axes stop:
/// [`Served::advice`].
///
/// # Errors
/// As [`run`], and settings that are refused: nothing has moved.
pub fn run_with(
    client: &Client,
    controller: impl Controller,
    stop: &StopHandle,
    settings: Settings,
) -> Result<Served, Error> {
    settings.apply()?;
    let mut process = ControllerProcess::new(client.description(), controller)?;
    let mut role = client.controller()?;
    let (mut served, mut last, mut leave) =
        (Served { real_time: is_real_time(), ..Served::default() }, None, None);
    loop {
        let turn = match role.wait_for(LOOK) {
            Waited::Ended => return Ok(Served { cycle_ended: true, ..served }),
            Waited::TimedOut if stop.is_requested() => return Ok(served),
            Waited::TimedOut => continue,
            Waited::Asked(turn) => turn,
        };
        process.answer(turn.request, stop.is_requested(), turn.answer);
        let mut gone = stop.is_hurried();
        if stop.is_requested() {
            let leave = leave.get_or_insert_with(|| Leave::new(turn.request));
            gone |= leave.step(turn.request, process.moves(), turn.answer);
        }
        served.answered += 1;
        served.missed += missed(turn.request, last.replace(turn.request.cycle));
        served.late += u64::from(turn.is_late());
        turn.send();
        if gone {
            return Ok(served);
        }
    }
}

fn missed(request: &Request, last: Option<u64>) -> u64 {
    let before = request.cycle.saturating_sub(request.periods);
    last.map_or(0, |last| before.saturating_sub(last))
}

/// End of the process: set-points stop, then the drives are disabled.
struct Leave {
    since_ns: u64,
    /// Since when the set-points stand, if they do.
    standing_ns: Option<u64>,
    positions: Vec<f64>,
}

impl Leave {
    fn new(request: &Request) -> Self {
        let positions = vec![f64::NAN; request.axes.len()];
        Self { since_ns: request.release_ns, standing_ns: None, positions }
    }

    /// True once nothing is left to do: the axes have no power, or it has taken too long.
    fn step(&mut self, request: &Request, moves: impl Iterator<Item = bool>, answer: &mut Answer) -> bool {
        let now = request.release_ns;
        let elapsed = request.period_ns as f64 * request.periods as f64 * 1e-9;
        let axes = request.axes.iter().zip(&mut self.positions).zip(moves).zip(&mut answer.axes);
        let (mut stand, mut powered) = (true, false);
        let mut own: Vec<&mut AxisAnswer> = Vec::new();
        for (((axis, before), moves), answer) in axes {
            let velocity =
                (axis.target_position - std::mem::replace(before, axis.target_position)) / elapsed;
            if moves {
                let rests = velocity.abs() < AT_REST && axis.target_velocity.abs() < AT_REST;
                stand &= axis.phase != FOLLOWING || rests;
                powered |= axis.phase != NOT_ENABLED;
                own.push(answer);
            }
        }
        self.standing_ns = stand.then(|| self.standing_ns.unwrap_or(now));
        let rested = self.standing_ns.is_some_and(|since| now.saturating_sub(since) >= REST_NS);
        if rested || !powered {
            for answer in own {
                *answer = AxisAnswer { request: Some(DriveRequest::Disable), ..AxisAnswer::default() };
            }
        }
        !powered || now.saturating_sub(self.since_ns) >= LONGEST_NS
    }
}

/// Time from one look for a stop to the next while nothing is asked.
const LOOK: Duration = Duration::from_millis(50);

/// Velocity of a set-point that counts as stationary, rad/s.
const AT_REST: f64 = 1e-3;

/// Time for which all set-points are to stand.
const REST_NS: u64 = 100_000_000;

/// Time after which the role is given back in any case.
const LONGEST_NS: u64 = 10_000_000_000;

/// Phases of an axis in a request.
const NOT_ENABLED: u8 = 0;
const FOLLOWING: u8 = 2;
