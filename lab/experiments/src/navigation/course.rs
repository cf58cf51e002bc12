//! Course: 3 m to a goal, a triangle in between, boards around, and their appearance to a range
//! finder.

use motion::base::Pose;
use motion::{Metres, Radians};
use serde::{Deserialize, Serialize};

/// Course on the floor; the robot starts at the origin and faces along x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Position of the goal, m.
    pub goal: [f64; 2],
    /// Corners of the obstacle, m.
    pub obstacle: [[f64; 2]; 3],
    /// Two corners of the enclosing boards: lowest x and y, highest x and y, m.
    pub boards: [[f64; 2]; 2],
    /// Length and width of the robot, a rectangle about the middle between its wheels, m.
    pub robot: [f64; 2],
    /// Distance from the goal at which the robot has arrived, m.
    pub tolerance: f64,
    /// Highest velocity that the planner asks for, m/s.
    pub velocity: f64,
    /// Highest acceleration and deceleration that it counts on, m/s^2.
    pub acceleration: f64,
}

impl Default for Course {
    /// The service-robot paper's: 3 m straight ahead, a triangle about 1.5 m from the start, white
    /// boards around, a robot of 45 x 28 cm with 0.25 m/s and 0.37 m/s^2. Size and place of
    /// triangle and boards are ours.
    fn default() -> Self {
        Self {
            goal: [3.0, 0.0],
            obstacle: [[1.4, 0.05], [1.75, -0.15], [1.75, 0.25]],
            boards: [[-0.5, -1.0], [3.75, 1.0]],
            robot: [0.45, 0.28],
            tolerance: 0.1,
            velocity: 0.25,
            acceleration: 0.37,
        }
    }
}

impl Course {
    /// Clearance between the robot and the triangle or a board, m; negative if they overlap.
    #[must_use]
    pub fn room(&self, pose: Pose) -> f64 {
        let edges = self.edges().map(|edge| edge.map(|end| seen_from(pose, end)));
        edges.into_iter().map(|edge| along(edge, self.robot)).fold(f64::INFINITY, f64::min)
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

    /// Scan of a range finder at the robot's centre: the nearest point in each of [`SECTORS`]
    /// sectors, in the robot's own frame; none in sectors without an edge in range.
    #[must_use]
    pub fn scan(&self, pose: Pose) -> [Option<[f64; 2]>; SECTORS] {
        let edges = self.edges().map(|edge| edge.map(|end| seen_from(pose, end)));
        let mut nearest: [Option<(f64, [f64; 2])>; SECTORS] = [None; SECTORS];
        for beam in 0..BEAMS {
            let angle = FIELD * (beam as f64 / (BEAMS - 1) as f64 - 0.5);
            let (sin, cos) = angle.sin_cos();
            let range =
                edges.iter().filter_map(|edge| range(*edge, sin, cos)).fold(f64::INFINITY, f64::min);
            let sector = beam * SECTORS / BEAMS;
            if range < LONGEST && nearest[sector].is_none_or(|(best, _)| range < best) {
                nearest[sector] = Some((range, [range * cos, range * sin]));
            }
        }
        nearest.map(|found| found.map(|(_, point)| point))
    }

    /// Goal in the robot's own frame, m.
    #[must_use]
    pub fn goal_from(&self, pose: Pose) -> [f64; 2] {
        seen_from(pose, self.goal)
    }

    /// Pose at the start.
    #[must_use]
    pub const fn start() -> Pose {
        Pose { x: Metres(0.0), y: Metres(0.0), yaw: Radians(0.0) }
    }

    /// Edges of the triangle and of the boards.
    pub(super) fn edges(&self) -> [[[f64; 2]; 2]; 7] {
        let [a, b, c] = self.obstacle;
        let [[left, low], [right, high]] = self.boards;
        let corners = [[left, low], [right, low], [right, high], [left, high]];
        let board = |it: usize| [corners[it], corners[(it + 1) % 4]];
        [[a, b], [b, c], [c, a], board(0), board(1), board(2), board(3)]
    }
}

/// Distance of a point from a rectangle of this length and width about the origin, m; negative
/// inside.
pub(super) fn distance([x, y]: [f64; 2], [length, width]: [f64; 2]) -> f64 {
    let (ahead, aside) = (x.abs() - length / 2.0, y.abs() - width / 2.0);
    if ahead > 0.0 && aside > 0.0 { ahead.hypot(aside) } else { ahead.max(aside) }
}

/// Place on the floor in the frame of a robot at this pose, m.
fn seen_from(pose: Pose, [x, y]: [f64; 2]) -> [f64; 2] {
    let (sin, cos) = pose.yaw.0.sin_cos();
    let (dx, dy) = (x - pose.x.0, y - pose.y.0);
    [cos * dx + sin * dy, cos * dy - sin * dx]
}

/// Smallest distance of an edge from the rectangle: it is convex along the edge, and is found by
/// thirds.
fn along([from, to]: [[f64; 2]; 2], robot: [f64; 2]) -> f64 {
    let at = |part: f64| {
        distance([from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1])], robot)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..THIRDS {
        let third = (high - low) / 3.0;
        if at(low + third) < at(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    at(f64::midpoint(low, high))
}

/// Range at which a beam from the origin meets an edge, m.
fn range([[ax, ay], [bx, by]]: [[f64; 2]; 2], sin: f64, cos: f64) -> Option<f64> {
    let (dx, dy) = (bx - ax, by - ay);
    let across = cos * dy - sin * dx;
    let (range, part) = ((ax * dy - ay * dx) / across, (ax * sin - ay * cos) / across);
    // An edge along the beam has no such place.
    (range >= 0.0 && (0.0..=1.0).contains(&part)).then_some(range)
}

/// Sectors of a reduced scan: 15 degrees each.
pub const SECTORS: usize = 16;

/// Beams of the range finder, 1 degree apart.
const BEAMS: usize = 241;

/// Field of view: 240 degrees, as that of the papers' URG-04LX.
const FIELD: f64 = 240.0 / 180.0 * std::f64::consts::PI;

/// Longest range, m.
const LONGEST: f64 = 4.0;

/// Steps that leave a billionth of an edge.
const THIRDS: u32 = 50;

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    #[test]
    fn a_range_finder_sees_the_near_side_and_the_boards() {
        let course = Course::default();
        let points: Vec<[f64; 2]> = course.scan(Course::start()).into_iter().flatten().collect();
        assert_eq!(points.len(), SECTORS, "boards all around");
        let (boards, triangle): (Vec<[f64; 2]>, Vec<[f64; 2]>) =
            points.iter().partition(|[x, y]| y.abs() > 0.9 || *x < -0.49 || *x > 3.7);
        assert!(!boards.is_empty() && (1..=2).contains(&triangle.len()), "{points:?}");
        for [x, y] in &boards {
            assert!((y.abs() - 1.0).abs() < 1e-9 || (x + 0.5).abs() < 1e-9, "{x} {y}");
        }
        // Both near edges begin at the tip.
        let nearest = triangle.iter().map(|[x, y]| x.hypot(*y)).fold(f64::INFINITY, f64::min);
        assert!((nearest - 1.4_f64.hypot(0.05)).abs() < 0.02, "{nearest}");
        let behind = Pose { x: Metres(2.5), ..Course::start() };
        assert!(
            course.scan(behind).iter().flatten().all(|[x, y]| x.hypot(*y) > 0.9),
            "it is out of the field"
        );
    }

    #[test]
    fn clearance_is_a_rectangles_and_the_robot_sees_the_goal() {
        let course = Course::default();
        // 22.5 cm ahead of the middle the robot ends; 5 cm aside is within its width.
        let ahead = Pose { x: Metres(1.0), ..Course::start() };
        assert!((course.room(ahead) - (0.4 - 0.225)).abs() < 1e-9, "{}", course.room(ahead));
        let turned = Pose { yaw: Radians(FRAC_PI_2), ..ahead };
        assert!((course.room(turned) - (0.4 - 0.14)).abs() < 1e-9, "{}", course.room(turned));
        assert!((course.room(Course::start()) - (0.5 - 0.225)).abs() < 1e-9, "the board behind");
        let onto = Pose { x: Metres(1.3), ..Course::start() };
        assert!(course.room(onto) < 0.0, "{}", course.room(onto));
        let turned = Pose { yaw: Radians(FRAC_PI_2), ..Course::start() };
        let [x, y] = course.goal_from(turned);
        assert!(x.abs() < 1e-12 && (y + 3.0).abs() < 1e-12);
        assert!(course.is_reached(Pose { x: Metres(2.95), ..turned }) && !course.is_reached(turned));
    }
}
