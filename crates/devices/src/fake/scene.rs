//! Surroundings of the simulated devices: a room with posts, seen from above.

use std::sync::Arc;

/// Position and heading: x and y in m, yaw in rad.
pub type Place = [f64; 3];

/// Room, and the pose of the robot in it.
#[derive(Clone)]
pub struct Scene {
    /// Walls: lowest x, lowest y, highest x, highest y, m.
    pub room: [f64; 4],
    /// Round posts: x, y and radius, m.
    pub posts: Vec<[f64; 3]>,
    /// Pose of the robot at a time of CLOCK_MONOTONIC in ns.
    pub robot: Arc<dyn Fn(u64) -> Place + Send + Sync>,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("room", &self.room)
            .field("posts", &self.posts)
            .finish_non_exhaustive()
    }
}

impl Default for Scene {
    /// A room of 6 m by 4 m with a post; the robot is at its centre and faces along x.
    fn default() -> Self {
        Self { room: [-3.0, -2.0, 3.0, 2.0], posts: vec![[1.5, 0.3, 0.1]], robot: Arc::new(|_| [0.0; 3]) }
    }
}

impl Scene {
    /// Distance at an instant to the next wall or post, from a point `ahead` m ahead of the robot's
    /// centre, in a direction relative to its heading. Infinite from outside the room.
    #[must_use]
    pub fn range(&self, now_ns: u64, ahead: f64, direction: f64) -> f64 {
        let [x, y, yaw] = (self.robot)(now_ns);
        let from = [x + ahead * yaw.cos(), y + ahead * yaw.sin()];
        let (sin, cos) = (yaw + direction).sin_cos();
        let [left, low, right, high] = self.room;
        let inside = (left..=right).contains(&from[0]) && (low..=high).contains(&from[1]);
        if !inside {
            return f64::INFINITY;
        }
        let walls =
            [(left, right, from[0], cos), (low, high, from[1], sin)].map(|(near, far, at, step)| {
                if step.abs() < 1e-12 {
                    f64::INFINITY
                } else {
                    (if step > 0.0 { far - at } else { near - at }) / step
                }
            });
        let posts = self.posts.iter().filter_map(|&[x, y, radius]| {
            let (dx, dy) = (x - from[0], y - from[1]);
            let along = dx * cos + dy * sin;
            let beside = (dx * sin - dy * cos).abs();
            (along > 0.0 && beside < radius).then(|| along - (radius * radius - beside * beside).sqrt())
        });
        posts.chain(walls).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_and_posts_are_where_they_are() {
        let scene = Scene::default();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(near(scene.range(0, 0.0, 0.0), 3.0));
        assert!(near(scene.range(0, 0.5, 0.0), 2.5));
        assert!(near(scene.range(0, 0.0, std::f64::consts::FRAC_PI_2), 2.0));
        assert!(near(scene.range(0, 0.0, std::f64::consts::PI), 3.0));
        let to_post = 0.3_f64.atan2(1.5);
        assert!(near(scene.range(0, 0.0, to_post), 1.5_f64.hypot(0.3) - 0.1));
        let away = Scene { robot: Arc::new(|_| [9.0, 0.0, 0.0]), ..scene };
        assert_eq!(away.range(0, 0.0, 0.0), f64::INFINITY);
    }
}
