//! The way of a trajectory that this node has given to the cycle, so that it can be asked where it
//! is at a time.
//!
//! The cycle makes the way of the points; here it is made again, of the same polynomials.

use ipc::message::trajectory::Order;
use ipc::state::State;
use motion::TrajectoryPoint;
use motion::spline::{Knot, Segment, velocity_between};

/// A trajectory, and its entry once it is being followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path {
    /// Axes of the robot, in the order of a point's numbers.
    pub(super) axes: Vec<usize>,
    points: Vec<Point>,
    entry: Option<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Point {
    /// Time since the start, s.
    time: f64,
    knots: Vec<Knot>,
    /// It came with velocities.
    given: bool,
}

/// Start of a trajectory, and the first place seen on it.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    start_ns: u64,
    at: Point,
}

impl Path {
    /// The way of these orders.
    pub(super) fn new(orders: &[Order]) -> Self {
        let mut path = Self::default();
        for order in orders {
            match order {
                Order::Begin(begin) => path.axes = begin.axes.iter().map(|row| row.axis as usize).collect(),
                Order::Point(point) => {
                    let knot = |row: usize| Knot {
                        position: point.positions[row],
                        velocity: point.velocities.get(row).copied().unwrap_or(0.0),
                        acceleration: point.accelerations.get(row).copied(),
                    };
                    path.points.push(Point {
                        time: point.time_from_start_ns as f64 * 1e-9,
                        knots: (0..point.positions.len()).map(knot).collect(),
                        given: !point.velocities.is_empty(),
                    });
                }
                Order::Commit { .. } | Order::Cancel { .. } => {}
            }
        }
        path
    }

    /// Notes where the axes are when the cycle is first seen to follow it.
    pub(super) fn enter(&mut self, state: &State) {
        if self.entry.is_some() {
            return;
        }
        let knot = |&axis: &usize| {
            state.axes.get(axis).map(|axis| Knot {
                position: axis.target_position,
                velocity: axis.target_velocity,
                acceleration: Some(0.0),
            })
        };
        let Some(knots) = self.axes.iter().map(knot).collect() else { return };
        let elapsed_ns = state.control.trajectory_elapsed_ns;
        let start_ns = state.release_ns.saturating_sub(elapsed_ns);
        let at = Point { time: elapsed_ns as f64 * 1e-9, knots, given: true };
        self.smooth(&at);
        self.entry = Some(Entry { start_ns, at });
    }

    /// Gives points without velocities the same velocities as the cycle does.
    fn smooth(&mut self, entry: &Point) {
        for index in 0..self.points.len().saturating_sub(1) {
            let before = index.checked_sub(1).map_or(entry, |before| &self.points[before]);
            let (here, after) = (&self.points[index], &self.points[index + 1]);
            if here.given || here.time <= before.time {
                continue;
            }
            let (time_in, time_out) = (here.time - before.time, after.time - here.time);
            let ways = before.knots.iter().zip(&here.knots).zip(&after.knots);
            let velocities: Vec<f64> = ways
                .map(|((before, here), after)| {
                    let (way_in, way_out) =
                        (here.position - before.position, after.position - here.position);
                    velocity_between((way_in, time_in), (way_out, time_out))
                })
                .collect();
            for (knot, velocity) in self.points[index].knots.iter_mut().zip(velocities) {
                knot.velocity = velocity;
            }
        }
    }

    /// Where the axes are to be at an instant, in the order of [`Path::axes`].
    ///
    /// # Errors
    /// The instant is before the start, or after the end.
    pub(super) fn sample(&self, at_ns: u64) -> Result<Vec<TrajectoryPoint>, &'static str> {
        let entry = self.entry.as_ref().ok_or("the trajectory has not begun")?;
        let time = (at_ns as f64 - entry.start_ns as f64) * 1e-9;
        if time < entry.at.time {
            return Err("the time is before the start of the trajectory");
        }
        let next = self.points.iter().position(|point| point.time > time);
        let next = next.ok_or("the time is after the end of the trajectory")?;
        let first = self.points.iter().position(|point| point.time > entry.at.time).unwrap_or(next);
        let from = if next == first { &entry.at } else { &self.points[next - 1] };
        let to = &self.points[next];
        let between = from.knots.iter().zip(&to.knots);
        Ok(between
            .map(|(&a, &b)| Segment::between(a, b, to.time - from.time).at(time - from.time))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use ipc::message::Rows;
    use ipc::message::trajectory::{self, AxisTolerances, Begin, GoalTime};
    use ipc::state::{Axis, Control};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Way of axis 1: at 1 s, 2 s, 4 s, with these velocities.
    fn path(positions: [f64; 3], velocities: Option<[f64; 3]>) -> Path {
        let tolerances = AxisTolerances { axis: 1, ..AxisTolerances::default() };
        let axes = Rows::from_slice(&[tolerances]).unwrap();
        let begin = Begin { id: 7, points: 3, start_ns: None, goal_time: GoalTime::Default, axes };
        let mut orders = vec![Order::Begin(begin)];
        for (index, seconds) in [1, 2, 4].into_iter().enumerate() {
            let velocities = velocities.map(|them| Rows::from_slice(&[them[index]]).unwrap());
            orders.push(Order::Point(trajectory::Point {
                id: 7,
                index: index as u32,
                time_from_start_ns: seconds * SECOND,
                positions: Rows::from_slice(&[positions[index]]).unwrap(),
                velocities: velocities.unwrap_or_default(),
                accelerations: Rows::new(),
            }));
        }
        orders.push(Order::Commit { id: 7 });
        Path::new(&orders)
    }

    /// State in which axis 1 is on its way for `elapsed_ns`.
    fn state(position: f64, elapsed_ns: u64) -> State {
        let axis = Axis { target_position: position, ..Axis::default() };
        State {
            release_ns: 10 * SECOND + elapsed_ns,
            axes: vec![Axis::default(), axis],
            control: Control { trajectory: 7, trajectory_elapsed_ns: elapsed_ns, ..Control::default() },
            ..State::default()
        }
    }

    fn at(path: &Path, seconds: f64) -> (f64, f64) {
        let points = path.sample(10 * SECOND + (seconds * 1e9) as u64).unwrap();
        assert_eq!((points.len(), &path.axes[..]), (1, &[1][..]));
        (points[0].position.0, points[0].velocity.0)
    }

    // feature(ros2): `CONTROLLER/query_state` and `CONTROLLER/controller_state` as joint_trajectory_controller has them
    #[test]
    fn a_trajectory_is_interpolated_from_its_entry_state() {
        let mut path = path([1.0, 3.0, 3.0], Some([2.0, 2.0, 0.0]));
        assert!(path.sample(10 * SECOND).is_err(), "it has not begun");
        path.enter(&state(0.5, SECOND / 2));
        path.enter(&state(9.0, SECOND));
        assert_eq!(at(&path, 0.5), (0.5, 0.0), "the first place counts");
        let (position, velocity) = at(&path, 1.5);
        assert!((position - 2.0).abs() < 1e-9 && (velocity - 2.0).abs() < 1e-9, "{position} {velocity}");
        assert!((at(&path, 0.999_999).0 - 1.0).abs() < 1e-4);
        assert!(path.sample(10 * SECOND + SECOND / 4).unwrap_err().contains("before the start"));
        assert!(path.sample(14 * SECOND).unwrap_err().contains("after the end"));
    }

    #[test]
    fn points_without_velocities_get_the_cycles_velocities() {
        let mut path = path([1.0, 2.0, 1.0], None);
        path.enter(&state(0.0, 0));
        assert_eq!(at(&path, 1.0), (1.0, 1.0), "as fast in as out");
        assert_eq!(at(&path, 2.0), (2.0, 0.0), "it turns back there");
        let (position, velocity) = at(&path, 3.0);
        assert!((position - 1.5).abs() < 1e-9 && velocity < -0.5, "{position} {velocity}");
    }
}
