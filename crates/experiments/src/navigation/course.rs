//! Course: 3 m to a goal, with an obstacle in between, and its appearance to a range finder.

use motion::base::Pose;
use motion::{Metres, Radians};
use serde::{Deserialize, Serialize};

/// Course on the floor; the robot starts at the origin and faces along x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Position of the goal, m.
    pub goal: [f64; 2],
    /// Centre of the obstacle, a post, m.
    pub obstacle: [f64; 2],
    /// Radius of the post, m.
    pub obstacle_radius: f64,
    /// Radius of the robot, m.
    pub robot_radius: f64,
    /// Distance from the goal at which the robot has arrived, m.
    pub tolerance: f64,
}

impl Default for Course {
    /// 3 m straight ahead, a post of 40 cm a hand's breadth beside the straight line, a robot of 50 cm.
    fn default() -> Self {
        Self {
            goal: [3.0, 0.0],
            obstacle: [1.5, 0.08],
            obstacle_radius: 0.2,
            robot_radius: 0.25,
            tolerance: 0.1,
        }
    }
}

impl Course {
    /// Clearance between the robot and the obstacle, m; negative if they overlap.
    #[must_use]
    pub fn room(&self, pose: Pose) -> f64 {
        let [x, y] = self.obstacle;
        (pose.x.0 - x).hypot(pose.y.0 - y) - self.obstacle_radius - self.robot_radius
    }

    /// Distance to the goal, m.
    #[must_use]
    pub fn left(&self, pose: Pose) -> f64 {
        (pose.x.0 - self.goal[0]).hypot(pose.y.0 - self.goal[1])
    }

    /// True if the robot is at the goal.
    #[must_use]
    pub fn is_reached(&self, pose: Pose) -> bool {
        self.left(pose) <= self.tolerance
    }

    /// Scan of a range finder at the robot's centre: the obstacle's nearest point in each of [`SECTORS`]
    /// sectors, in the robot's own frame; none in sectors without an obstacle.
    #[must_use]
    pub fn scan(&self, pose: Pose) -> [Option<[f64; 2]>; SECTORS] {
        let (sin, cos) = pose.yaw.0.sin_cos();
        let (dx, dy) = (self.obstacle[0] - pose.x.0, self.obstacle[1] - pose.y.0);
        // Obstacle in the robot's frame.
        let (x, y) = (cos * dx + sin * dy, cos * dy - sin * dx);
        let mut nearest: [Option<(f64, [f64; 2])>; SECTORS] = [None; SECTORS];
        for beam in 0..BEAMS {
            let angle = FIELD * (beam as f64 / (BEAMS - 1) as f64 - 0.5);
            let (sin, cos) = angle.sin_cos();
            // Coordinates along and beside the beam.
            let (along, aside) = (x * cos + y * sin, y * cos - x * sin);
            let half = self.obstacle_radius * self.obstacle_radius - aside * aside;
            if half < 0.0 || along < 0.0 {
                continue;
            }
            let range = along - half.sqrt();
            let sector = beam * SECTORS / BEAMS;
            if (0.0..LONGEST).contains(&range) && nearest[sector].is_none_or(|(best, _)| range < best) {
                nearest[sector] = Some((range, [range * cos, range * sin]));
            }
        }
        nearest.map(|found| found.map(|(_, point)| point))
    }

    /// Goal in the robot's own frame, m.
    #[must_use]
    pub fn goal_from(&self, pose: Pose) -> [f64; 2] {
        let (sin, cos) = pose.yaw.0.sin_cos();
        let (dx, dy) = (self.goal[0] - pose.x.0, self.goal[1] - pose.y.0);
        [cos * dx + sin * dy, cos * dy - sin * dx]
    }

    /// Pose at the start.
    #[must_use]
    pub const fn start() -> Pose {
        Pose { x: Metres(0.0), y: Metres(0.0), yaw: Radians(0.0) }
    }
}

/// Sectors of a reduced scan: 15 degrees each.
pub const SECTORS: usize = 16;

/// Beams of the range finder, 1 degree apart.
const BEAMS: usize = 241;

/// Field of view: 240 degrees, as that of the papers' URG-04LX.
const FIELD: f64 = 240.0 / 180.0 * std::f64::consts::PI;

/// Longest range, m.
const LONGEST: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_finder_sees_the_near_side_of_the_post() {
        let course = Course { obstacle: [1.5, 0.0], ..Course::default() };
        let points: Vec<[f64; 2]> = course.scan(Course::start()).into_iter().flatten().collect();
        assert!((1..=3).contains(&points.len()), "{points:?}");
        for [x, y] in &points {
            assert!(((x - 1.5).hypot(*y) - 0.2).abs() < 1e-9 && *x < 1.5, "{x} {y}");
        }
        let nearest = points.iter().map(|[x, y]| x.hypot(*y)).fold(f64::INFINITY, f64::min);
        assert!((nearest - 1.3).abs() < 1e-3, "{nearest}");
        let behind = Pose { x: Metres(2.5), ..Course::start() };
        assert!(course.scan(behind).iter().all(Option::is_none), "what is behind is out of its field");
    }

    #[test]
    fn room_and_goal_are_seen_from_the_robot() {
        let course = Course { obstacle: [1.5, 0.0], ..Course::default() };
        assert!((course.room(Course::start()) - 1.05).abs() < 1e-12);
        let turned = Pose { yaw: Radians(std::f64::consts::FRAC_PI_2), ..Course::start() };
        let [x, y] = course.goal_from(turned);
        assert!(x.abs() < 1e-12 && (y + 3.0).abs() < 1e-12);
        assert!(course.is_reached(Pose { x: Metres(2.95), ..turned }) && !course.is_reached(turned));
    }
}
