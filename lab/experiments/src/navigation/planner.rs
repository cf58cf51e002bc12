//! Dynamic-window planner (Fox, Burgard and Thrun, IEEE Robotics & Automation Magazine 4, 1997).
//!
//! Each velocity that the base can reach before the next plan is followed for a while on its arc;
//! the one that comes nearest to the goal with enough clearance wins.
//! `python/examples/dynamic_window.py` is the same planner for ROS 2, and a test compares the two.

use std::f64::consts::{PI, TAU};

use motion::base::{Pose, Twist};
use motion::{MetresPerSecond, RadiansPerSecond, Seconds};

use super::course::{Course, distance};

/// Limits of the base and settings of the planner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicWindow {
    /// Highest velocity, m/s; it never drives backwards.
    pub velocity: f64,
    /// Highest yaw rate, rad/s.
    pub yaw: f64,
    /// Highest acceleration and deceleration, m/s^2.
    pub acceleration: f64,
    /// Highest yaw acceleration, rad/s^2.
    pub yaw_acceleration: f64,
    /// Time between two plans, s.
    pub period: f64,
    /// Length and width of the robot, m.
    pub robot: [f64; 2],
}

impl DynamicWindow {
    /// Planner of a course, with a plan every 50 ms.
    #[must_use]
    pub const fn of(course: &Course) -> Self {
        let Course { velocity, acceleration, robot, .. } = *course;
        Self { velocity, yaw: 1.2, acceleration, yaw_acceleration: 3.0, period: 0.05, robot }
    }

    /// Velocity to command. `goal` and the obstacle points in `points` are in the robot's own
    /// frame, m. If no velocity is safe, the base stops and turns towards free space.
    #[must_use]
    pub fn plan(&self, twist: Twist, goal: [f64; 2], points: &[[f64; 2]]) -> Twist {
        let mut best: Option<(f64, Twist)> = None;
        let seen = self.seen(points);
        let reach = WINDOW * self.period;
        let velocities = window(twist.x.0, self.acceleration * reach, 0.0, self.velocity);
        let turns = window(twist.yaw.0, self.yaw_acceleration * reach, -self.yaw, self.yaw);
        for step in 0..VELOCITIES {
            let velocity = between(velocities, step, VELOCITIES);
            for step in 0..TURNS {
                let asked = Twist {
                    x: MetresPerSecond(velocity),
                    yaw: RadiansPerSecond(between(turns, step, TURNS)),
                    ..Twist::default()
                };
                let Some(cost) = self.cost(asked, goal, &seen) else { continue };
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, asked));
                }
            }
        }
        best.map_or_else(|| self.turn_away(points), |(_, twist)| twist)
    }

    /// Cost of a velocity; `None` if the base could not stop in time.
    fn cost(&self, asked: Twist, goal: [f64; 2], seen: &Seen) -> Option<f64> {
        let (mut room, mut pose) = (f64::INFINITY, Pose::ORIGIN);
        let stopping = asked.x.0 * asked.x.0 / (2.0 * self.acceleration) + asked.x.0 * self.period;
        for step in 1..=STEPS {
            let time = AHEAD * f64::from(step) / f64::from(STEPS);
            pose = Pose::ORIGIN.after(asked, Seconds(time));
            let (sin, cos) = pose.yaw.0.sin_cos();
            let from = |[x, y]: &[f64; 2]| {
                let (dx, dy) = (x - pose.x.0, y - pose.y.0);
                distance([cos * dx + sin * dy, cos * dy - sin * dx], self.robot)
            };
            let here = seen.near.iter().map(from).fold(f64::INFINITY, f64::min);
            if here < LEAST_ROOM && asked.x.0 * time <= stopping + LEAST_ROOM {
                return None;
            }
            room = room.min(here);
        }
        let (left, direction) = self.way_left([pose.x.0, pose.y.0], goal, &seen.obstacles);
        // The heading error counts less near the goal.
        let turned = (direction - pose.yaw.0).sin().atan2((direction - pose.yaw.0).cos()).abs();
        let narrow = ((COMFORT - room) / COMFORT).clamp(0.0, 1.0);
        Some(
            left + 0.5 * turned * left.min(1.0)
                + 2.0 * narrow * narrow
                + 0.05 * (self.velocity - asked.x.0),
        )
    }

    /// Length and initial direction of the way from a position to the goal, round the obstacles in
    /// between on the shorter side.
    fn way_left(&self, from: [f64; 2], goal: [f64; 2], obstacles: &[Vec<[f64; 2]>]) -> (f64, f64) {
        let (dx, dy) = (goal[0] - from[0], goal[1] - from[1]);
        let straight = dx.hypot(dy);
        let bearing = dy.atan2(dx);
        let (sin, cos) = bearing.sin_cos();
        let wide = self.robot[1] / 2.0 + BERTH;
        // Coordinates along the straight way and to the left of it.
        let beside = |[x, y]: &[f64; 2]| {
            let (x, y) = (x - from[0], y - from[1]);
            (cos * x + sin * y, cos * y - sin * x)
        };
        let stands = |(along, left): (f64, f64)| (0.0..straight).contains(&along) && left.abs() < wide;
        let blocking = obstacles.iter().filter(|points| points.iter().map(beside).any(stands));
        let (mut blocked, mut sides) = (false, [(f64::NEG_INFINITY, straight); 2]);
        for (along, left) in blocking.flatten().map(beside) {
            blocked = true;
            let (to, beyond) = (along.hypot(left), (straight - along).hypot(left));
            let tangent = (wide / to).min(1.0).asin();
            let corner = PI - (left.abs().atan2(along) + left.abs().atan2(straight - along));
            for (side, best) in [1.0, -1.0].into_iter().zip(&mut sides) {
                let turn = side * left.atan2(along) + tangent;
                // The way round this side crosses the straight way, or this point does not obstruct
                // it.
                let about = if side * left < 0.0 { corner } else { TAU - corner };
                let arc = about - (wide / to).min(1.0).acos() - (wide / beyond).min(1.0).acos();
                let legs = (to * to - wide * wide).max(0.0).sqrt()
                    + (beyond * beyond - wide * wide).max(0.0).sqrt();
                if along > 0.0 && turn > best.0 {
                    *best = (turn, legs + wide * arc.max(0.0));
                }
            }
        }
        if !blocked {
            return (straight, bearing);
        }
        let [(left_turn, left), (right_turn, right)] = sides;
        if left <= right { (left, bearing + left_turn) } else { (right, bearing - right_turn) }
    }

    /// Points of a scan that are to be avoided.
    fn seen(&self, points: &[[f64; 2]]) -> Seen {
        let [length, width] = self.robot;
        let reach = self.velocity * AHEAD + length.hypot(width) / 2.0 + COMFORT;
        let near = points.iter().copied().filter(|[x, y]| x.hypot(*y) < reach).collect();
        let mut obstacles: Vec<Vec<[f64; 2]>> = Vec::new();
        for &point in points {
            let joins = |it: &[f64; 2]| (it[0] - point[0]).hypot(it[1] - point[1]) < width + 2.0 * BERTH;
            let (joined, apart) = obstacles.into_iter().partition(|it: &Vec<_>| it.iter().any(joins));
            obstacles = apart;
            obstacles.push(joined.into_iter().flatten().chain([point]).collect());
        }
        Seen { near, obstacles }
    }

    /// Turns on the spot, away from the nearest point.
    fn turn_away(&self, points: &[[f64; 2]]) -> Twist {
        let nearest = points.iter().min_by(|a, b| a[0].hypot(a[1]).total_cmp(&b[0].hypot(b[1])));
        let side = if nearest.is_some_and(|[_, y]| *y >= 0.0) { -0.5 } else { 0.5 };
        Twist { yaw: RadiansPerSecond(side * self.yaw), ..Twist::default() }
    }
}

/// Points of a scan.
#[derive(Debug)]
struct Seen {
    /// Points that the robot can come near to within the horizon.
    near: Vec<[f64; 2]>,
    /// Points of all obstacles; points with no way between them are one obstacle.
    obstacles: Vec<Vec<[f64; 2]>>,
}

fn window(now: f64, reach: f64, lowest: f64, highest: f64) -> (f64, f64) {
    let now = now.clamp(lowest, highest);
    ((now - reach).max(lowest), (now + reach).min(highest))
}

fn between((low, high): (f64, f64), step: i32, steps: i32) -> f64 {
    low + (high - low) * f64::from(step) / f64::from(steps - 1)
}

/// Number of velocities tried.
const VELOCITIES: i32 = 7;

/// Number of yaw rates tried with each.
const TURNS: i32 = 15;

/// Prediction horizon, s.
const AHEAD: f64 = 2.0;

/// Number of positions checked on the way.
const STEPS: i32 = 16;

/// Periods until the base has reached a commanded velocity, given its own controller.
const WINDOW: f64 = 4.0;

/// Clearance below which a point is an obstacle in the way, m.
const LEAST_ROOM: f64 = 0.05;

/// Clearance kept when passing an obstacle, m.
const BERTH: f64 = 0.2;

/// Clearance above which there is no penalty, m.
const COMFORT: f64 = 0.15;

#[cfg(test)]
mod tests {
    use motion::online::{OnlineTwist, TwistLimits};
    use motion::{
        MetresPerSecondCubed, MetresPerSecondSquared, RadiansPerSecondCubed, RadiansPerSecondSquared,
    };

    use super::*;

    const LIMITS: TwistLimits = TwistLimits {
        velocity: MetresPerSecond(2.0),
        acceleration: MetresPerSecondSquared(0.37),
        jerk: MetresPerSecondCubed(10.0),
        yaw_velocity: RadiansPerSecond(2.0),
        yaw_acceleration: RadiansPerSecondSquared(4.0),
        yaw_jerk: RadiansPerSecondCubed(40.0),
    };

    const COURSES: u32 = 16;

    /// Drives the course with a base that follows as its controller allows, `late` ms behind:
    /// seconds to the goal, and the smallest clearance on the way; no time if it never arrives.
    fn drive(course: &Course, begin: Pose, late: usize) -> (Option<f64>, f64) {
        let planner = DynamicWindow::of(course);
        let mut base = OnlineTwist::new(LIMITS).unwrap();
        let (mut pose, mut room) = (begin, f64::INFINITY);
        let mut asked = std::collections::VecDeque::from(vec![Twist::default(); late + 1]);
        for millisecond in 0..60_000 {
            if millisecond % 50 == 0 {
                let points: Vec<[f64; 2]> = course.scan(pose).into_iter().flatten().collect();
                *asked.back_mut().unwrap() = planner.plan(base.twist(), course.goal_from(pose), &points);
            }
            asked.push_back(*asked.back().unwrap());
            base.aim(asked.pop_front().unwrap()).unwrap();
            pose = pose.after(base.advance(Seconds(0.001)), Seconds(0.001));
            room = room.min(course.room(pose));
            if course.is_reached(pose) {
                return (Some(f64::from(millisecond) / 1000.0), room);
            }
        }
        (None, room)
    }

    #[test]
    fn the_planner_reaches_the_goal_without_touching_on_the_course() {
        let (time, room) = drive(&Course::default(), Course::start(), 10);
        assert!(time.is_some_and(|time| time < 17.0) && room > 0.02, "{time:?} s, {room} m");
    }

    // feature(papers): `measure navigation`
    #[test]
    fn the_planner_reaches_the_goal_past_many_triangles() {
        let mut rng = fastrand::Rng::with_seed(4);
        let mut worst = (f64::INFINITY, 0.0_f64);
        for seed in 0..COURSES {
            let mut about = |middle: f64, width: f64| middle + (rng.f64() - 0.5) * width;
            let (x, y, turn, size) = (about(1.6, 0.3), about(0.0, 0.3), about(0.0, 6.0), about(0.22, 0.1));
            let corner = |third: f64| {
                let (sin, cos) = (turn + third * TAU / 3.0).sin_cos();
                [x + size * cos, y + size * sin]
            };
            let course = Course {
                goal: [about(3.0, 0.4), about(0.0, 0.6)],
                obstacle: [0.0, 1.0, 2.0].map(corner),
                velocity: about(0.4, 0.3),
                ..Course::default()
            };
            let begin = Pose { yaw: motion::Radians(about(0.0, 1.0)), ..Course::start() };
            let (time, room) = drive(&course, begin, rng.usize(..30));
            assert!(time.is_some(), "seed {seed}: {course:?} from {begin:?} never arrives");
            assert!(room > 0.0, "seed {seed}: {course:?} from {begin:?} touches: {room} m");
            worst = (worst.0.min(room), worst.1.max(time.unwrap_or(0.0)));
        }
        println!("least room {:.3} m, longest {:.1} s", worst.0, worst.1);
    }

    #[test]
    fn without_any_room_it_turns_away_on_the_spot() {
        let planner = DynamicWindow::of(&Course::default());
        let asked = planner.plan(Twist::default(), [3.0, 0.0], &[[0.235, 0.05], [0.24, 0.0]]);
        assert!(asked.x.0 == 0.0 && asked.yaw.0 < 0.0, "{asked:?}");
    }
}
