//! `onbeat control move`: axes to positions, slowly.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use ipc::channel::Channel;
use ipc::client::Client;
use ipc::description::Description;
use ipc::message::Rows;
use ipc::message::trajectory::{
    AxisTolerances, Begin, GoalTime, Order, Outcome, PORT, Point, REPORT_SIZE, Rejection, Report, size,
};
use ipc::state::{State, TrajectoryStatus};
use types::ControllerKind;
use types::number::Rounded;

use super::reasons::Motion;
use super::{LOOK, active, held_axis, place, powerless};
use crate::arguments::share;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::target::first_state;

/// Moves axes to positions in one smooth motion, all at the same time, and waits for its end.
/// Ctrl-C stops them. A `joint_trajectory` controller of these axes must be active.
#[derive(Args, Debug)]
pub(super) struct Move {
    /// Axes, each with its position, rad
    #[arg(required = true, num_args = 2.., value_names = ["AXIS", "POSITION"], allow_negative_numbers = true)]
    pairs: Vec<String>,

    /// Positions count from where the axes are
    #[arg(long)]
    by: bool,

    /// Positions are degrees
    #[arg(long)]
    degrees: bool,

    /// Highest velocity on the way, as a share of each axis's limit
    #[arg(long, value_name = "SHARE", value_parser = some_share, default_value = "10%")]
    speed: f64,
}

/// An axis on its way.
struct Leg {
    axis: u32,
    from: f64,
    to: f64,
}

impl Leg {
    /// True of a position that is not the end of this motion.
    fn misses(&self, position: f64) -> bool {
        let distance = (self.to - position).abs();
        let half = (self.to - self.from).abs() / 2.0;
        distance.is_nan() || distance > half.clamp(NEAREST, NEAR)
    }
}

impl Move {
    pub(super) fn execute(&self, cycle: &Client, within: Duration, stop: &Stop) -> Result<(), Failure> {
        let Some(state) = first_state(cycle, stop)? else {
            return Err(Failure::new("ended before anything moved"));
        };
        let description = cycle.description();
        let legs = self.legs(description, &state)?;
        let moved: Vec<usize> = legs.iter().map(|leg| leg.axis as usize).collect();
        active(description, &state, &[ControllerKind::JointTrajectory], &moved)?;
        let stopped = held_axis(&moved, description, &state);
        if let Some(why) = stopped.or_else(|| powerless(&moved, description, &state)) {
            return Err(Failure::new(why));
        }
        still(&state)?;
        let lasts = self.duration(&legs, description)?;
        let port = cycle.port(PORT).map_err(Failure::new)?;
        // Higher than that of each trajectory before: the Python package counts by the same clock.
        let id = state.release_ns.max(state.control.trajectory + 1);
        for order in orders(id, &legs, lasts)? {
            send(&port, &order)?;
        }
        let begin = Instant::now();
        let lines = legs.iter().map(|leg| {
            let (name, Leg { from, to, .. }) = (&description.axes[leg.axis as usize].name, leg);
            format!("{name} from {from:.4} to {to:.4} rad in {:.1} s", lasts.as_secs_f64())
        });
        output::say_beside(lines.collect::<Vec<_>>().join("\n"));
        let motion = Motion { moved: &moved, from_cycle: state.cycle };
        for id in id.. {
            if await_end(&port, id, cycle, lasts + within, (stop, begin), &motion)? {
                break;
            }
            // Just enabled, or after a switch, the axes do not follow their controller yet.
            std::thread::sleep(Duration::from_millis(50));
            for order in orders(id + 1, &legs, lasts)? {
                send(&port, &order)?;
            }
        }
        arrived(cycle, &legs)?;
        output::print("done\n")
    }

    fn legs(&self, description: &Description, state: &State) -> Result<Vec<Leg>, Failure> {
        let mut legs: Vec<Leg> = Vec::new();
        for pair in self.pairs.chunks(2) {
            let [name, text] = pair else {
                return Err(Failure::new(format!(
                    "axis \"{}\" without a position, expected one behind each axis",
                    pair[0]
                )));
            };
            let axis = place("axis", name, description.axes.iter().map(|it| it.name.as_str()))?;
            if legs.iter().any(|leg| leg.axis == axis) {
                return Err(Failure::new(format!(
                    "axis \"{name}\" named twice, expected one position for each"
                )));
            }
            let from = state.axes[axis as usize].position;
            let number = text.parse::<f64>().ok().filter(|it| it.is_finite()).ok_or_else(|| {
                Failure::new(format!("\"{text}\" for axis \"{name}\", expected a position as a number"))
            })?;
            let asked = if self.degrees { number.to_radians() } else { number };
            let to = if self.by { from + asked } else { asked };
            if let Some((lowest, highest)) = description.axes[axis as usize].position_limits
                && !(lowest..=highest).contains(&to)
            {
                return Err(Failure::new(format!(
                    "{} rad for axis \"{name}\", expected {lowest} to {highest} rad, its limits",
                    Rounded(to)
                )));
            }
            // Beyond that a count of its encoder is less than the rounding of the number.
            if to.abs() > FARTHEST {
                return Err(Failure::new(format!(
                    "{} rad for axis \"{name}\", expected a position from -{FARTHEST:e} to {FARTHEST:e} rad",
                    Rounded(to)
                )));
            }
            legs.push(Leg { axis, from, to });
        }
        Ok(legs)
    }

    /// Time of the motion: no axis is beyond its share of velocity, nor its acceleration and jerk.
    fn duration(&self, legs: &[Leg], description: &Description) -> Result<Duration, Failure> {
        let seconds = legs.iter().map(|leg| {
            let axis = &description.axes[leg.axis as usize];
            let share = |limit: Option<f64>| SHARE * limit.unwrap_or(f64::INFINITY);
            let limits = [
                self.speed.min(SHARE) * axis.velocity_limit,
                share(axis.acceleration_limit),
                share(axis.jerk_limit),
            ];
            shortest((leg.to - leg.from).abs(), limits)
        });
        let seconds = seconds.fold(SHORTEST.as_secs_f64(), f64::max);
        Duration::try_from_secs_f64(seconds).ok().filter(|&it| it <= LONGEST).ok_or_else(|| {
            Failure::new(format!(
                "the motion would take {}, expected at most {} s: give nearer positions, or a higher --speed",
                if seconds < 1e9 { format!("{seconds:.0} s") } else { format!("{seconds:.0e} s") },
                LONGEST.as_secs()
            ))
        })
    }
}

/// Shortest time, s, of a motion of degree five from rest to rest that keeps within a velocity, an
/// acceleration and a jerk. Of a way and a time of 1 the peaks are 15/8, 10/sqrt(3) and 60.
fn shortest(way: f64, [velocity, acceleration, jerk]: [f64; 3]) -> f64 {
    let times = [
        1.875 * way / velocity,
        (10.0 / 3.0_f64.sqrt() * way / acceleration).sqrt(),
        (60.0 * way / jerk).cbrt(),
    ];
    times.into_iter().fold(0.0, f64::max)
}

/// Checks that the axes are at their positions, which a trajectory without tolerances does not.
fn arrived(cycle: &Client, legs: &[Leg]) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        let state = cycle.state().read().map_err(Failure::new)?;
        let missed = legs.iter().find_map(|leg| {
            let axis = state.axes.get(leg.axis as usize)?;
            leg.misses(axis.position).then_some((leg, axis))
        });
        let Some((leg, axis)) = missed else { return Ok(()) };
        if begin.elapsed() >= ARRIVAL {
            let name = &cycle.description().axes[leg.axis as usize].name;
            return Err(Failure::new(format!(
                "axis \"{name}\" is at {:.4} rad after the motion, expected {:.4} rad: check its drive, its scale \
                 and its load",
                axis.position, leg.to
            )));
        }
        std::thread::sleep(LOOK);
    }
}

/// Checks that no motion is under way: this one begins at standstill.
fn still(state: &State) -> Result<(), Failure> {
    match state.control.trajectory_status {
        TrajectoryStatus::Executing => Err(Failure::new(
            "a motion is in progress, expected all axes at standstill: wait, or `onbeat control stop`",
        )),
        _ => Ok(()),
    }
}

/// A motion of degree five from where the axes are to rest at their positions.
fn orders(id: u64, legs: &[Leg], lasts: Duration) -> Result<[Order; 3], Failure> {
    let of = |number: &dyn Fn(&Leg) -> f64| {
        Rows::from_slice(&legs.iter().map(number).collect::<Vec<_>>()).map_err(Failure::new)
    };
    let axes: Vec<_> =
        legs.iter().map(|leg| AxisTolerances { axis: leg.axis, ..AxisTolerances::default() }).collect();
    let begin = Begin {
        id,
        points: 1,
        start_ns: None,
        goal_time: GoalTime::Default,
        axes: Rows::from_slice(&axes).map_err(Failure::new)?,
    };
    let point = Point {
        id,
        index: 0,
        time_from_start_ns: types::time::nanoseconds(lasts),
        positions: of(&|leg| leg.to)?,
        velocities: of(&|_| 0.0)?,
        accelerations: of(&|_| 0.0)?,
    };
    Ok([Order::Begin(begin), Order::Point(point), Order::Commit { id }])
}

fn send(mut port: &Channel, order: &Order) -> Result<(), Failure> {
    let mut message = vec![0; size(ipc::message::MOST_AXES)];
    let length = order.encode(&mut message).map_err(Failure::new)?;
    port.write_all(&message[..length]).map_err(Failure::new)
}

/// Time for which axes that are held may pass.
const PASSING: Duration = Duration::from_millis(500);

/// Waits for the result of a trajectory; Ctrl-C cancels it. False if an axis is held,
/// which may pass.
fn await_end(
    port: &Channel,
    id: u64,
    cycle: &Client,
    within: Duration,
    (stop, first): (&Stop, Instant),
    motion: &Motion<'_>,
) -> Result<bool, Failure> {
    let begin = Instant::now();
    let mut canceled = None;
    let mut message = [0; REPORT_SIZE];
    loop {
        if let Some(length) = port.recv_timeout(&mut message, LOOK).map_err(Failure::new)? {
            let report = Report::decode(&message[..length]).map_err(Failure::new)?;
            if report.id == id {
                match report.outcome {
                    Outcome::Accepted => {}
                    Outcome::Succeeded => return Ok(true),
                    Outcome::Canceled if canceled.is_none() => {
                        let why = "cancelled by another program: the axes are at standstill; give the motion again";
                        return Err(Failure::new(why));
                    }
                    Outcome::Canceled => return Err(Failure::new("cancelled: the axes are at standstill")),
                    Outcome::Rejected(Rejection::Held) if first.elapsed() < PASSING => return Ok(false),
                    Outcome::Rejected(_) | Outcome::Aborted(_) => {
                        return Err(Failure::new(sentence(&report, cycle, motion)));
                    }
                }
            }
        }
        let over = begin.elapsed() >= within;
        if canceled.is_none() && (stop.is_requested() || over) {
            send(port, &Order::Cancel { id })?;
            canceled = Some(Instant::now());
        }
        if canceled.is_some_and(|asked: Instant| asked.elapsed() > REST) {
            return Err(Failure::new(
                "cancelled, but the cycle did not report that the axes are at standstill: check \
                 with `onbeat top`",
            ));
        }
    }
}

/// A trajectory that was refused or aborted, with its axis and the numbers.
fn sentence(report: &Report, cycle: &Client, motion: &Motion<'_>) -> String {
    let description = cycle.description();
    let (what, why) = match report.outcome {
        Outcome::Rejected(why) => ("refused", why.to_string()),
        Outcome::Aborted(why) => ("ended before its goal", why.to_string()),
        _ => ("ended", String::new()),
    };
    let axis = report.axis.and_then(|axis| description.axes.get(axis as usize));
    let axis = axis.map_or(String::new(), |it| format!(" (axis \"{}\")", it.name));
    let numbers = match (report.found, report.allowed) {
        (0.0, 0.0) => String::new(),
        (found, allowed) => format!(", found {found:.4}, allowed {allowed:.4}"),
    };
    format!("the motion was {what}: {why}{axis}{numbers}{}", motion.cause(report, cycle))
}

/// A share above 0.
pub(super) fn some_share(text: &str) -> Result<f64, String> {
    share(text).and_then(|it| {
        if it > 0.0 { Ok(it) } else { Err(format!("found \"{text}\", expected a share above 0, as 10%")) }
    })
}

/// Share of an axis's limits that a motion keeps within: set-points of a cycle are differences.
const SHARE: f64 = 0.95;

/// Shortest motion, so that a short way is no jerk.
const SHORTEST: Duration = Duration::from_millis(500);

/// Farthest position that an axis without limits is sent to, rad.
const FARTHEST: f64 = 1e9;

/// Longest motion.
const LONGEST: Duration = Duration::from_secs(3600);

/// Time in which an axis reaches its last set-point.
const ARRIVAL: Duration = Duration::from_secs(2);

/// Distance from the target, rad, that counts as arrived; of a short motion its half. The loop of a
/// drive may leave an error under load.
const NEAR: f64 = 0.02;
/// That distance for a motion that is hardly one, rad.
const NEAREST: f64 = 0.001;

/// Longest time for axes to stop.
const REST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use ipc::description::AxisDescription;
    use ipc::state::Axis;
    use types::CyclicMode;

    use super::*;

    /// Peaks of 10 t^3 - 15 t^4 + 6 t^5 by differences.
    #[test]
    fn a_motion_keeps_within_velocity_acceleration_and_jerk() {
        let limits = [2.0, 3.0, 40.0];
        for way in [0.001, 0.1, 1.0, 50.0] {
            let time = shortest(way, limits);
            let at = |t: f64| way * t.powi(3) * (10.0 - 15.0 * t + 6.0 * t * t);
            let steps = 2000;
            let of: Vec<f64> = (0..=steps).map(|step| at(f64::from(step) / f64::from(steps))).collect();
            let per = time / f64::from(steps);
            let slope = |of: &[f64]| of.windows(2).map(|it| (it[1] - it[0]) / per).collect::<Vec<_>>();
            let (velocity, acceleration) = (slope(&of), slope(&slope(&of)));
            let jerk = slope(&acceleration);
            let peaks =
                [velocity, acceleration, jerk].map(|it| it.iter().fold(0.0_f64, |top, x| top.max(x.abs())));
            let shares: Vec<f64> = peaks.iter().zip(limits).map(|(peak, limit)| peak / limit).collect();
            let top = shares.iter().copied().fold(0.0, f64::max);
            assert!((0.99..1.001).contains(&top), "{way}: {shares:?}");
        }
    }

    #[test]
    fn an_axis_without_limits_is_not_sent_beyond_a_range() {
        let axis = AxisDescription::new("wheel", CyclicMode::Position, 1.0, 1.0);
        let description = Description { axes: vec![axis], ..Description::default() };
        let state = State { axes: vec![Axis::default()], ..State::default() };
        let legs = |position: &str| {
            let pairs = vec!["wheel".to_owned(), position.to_owned()];
            Move { pairs, by: false, degrees: false, speed: 0.1 }.legs(&description, &state)
        };
        let told = |position| legs(position).map(drop).unwrap_err().to_string();
        let expected = "rad for axis \"wheel\", expected a position from -1e9 to 1e9 rad";
        for position in ["1e300", "-1e300"] {
            assert_eq!(told(position), format!("{position} {expected}"));
        }
        assert_eq!(legs("1e9").map(|it| it.len()).ok(), Some(1));
    }

    #[test]
    fn an_axis_that_did_not_move_misses_its_target() {
        let leg = Leg { axis: 0, from: 0.0, to: 0.5 };
        assert!(!leg.misses(0.499) && !leg.misses(0.515));
        assert!(leg.misses(0.0) && leg.misses(0.47) && leg.misses(f64::NAN));
        let short = Leg { axis: 0, from: 0.1, to: 0.109 };
        assert!(short.misses(0.1) && !short.misses(0.108));
        // To the place where it is.
        let none = Leg { axis: 0, from: 0.100_01, to: 0.1 };
        assert!(!none.misses(0.100_01) && none.misses(0.102));
        let long = Leg { axis: 0, from: 0.0, to: 20.0 };
        assert!(long.misses(19.9));
    }

    #[test]
    fn a_speed_is_a_share_above_0() {
        assert_eq!(
            (some_share("10%"), some_share("0").is_err(), some_share("2").is_err()),
            (Ok(0.1), true, true)
        );
    }
}
