//! Frames that are fixed to each other: the axles of a base's wheels, and the frames of the robot
//! file.

use ipc::description::FrameDescription;
use robot::{Base, BaseKind, RobotConfig};

/// Frames in the description for clients. A wheel's frame has the name of its axis, and does not
/// turn with the wheel.
pub(crate) fn described(robot: &RobotConfig) -> Vec<FrameDescription> {
    let wheel = |base: &Base, index: usize, axis: usize| FrameDescription {
        name: robot.axes[axis].name.clone(),
        parent: base.base_frame.clone(),
        translation: axle(base, index),
        rotation: quaternion([0.0; 3]),
    };
    let wheels = robot.base.iter().flat_map(|base| {
        base.wheels.iter().enumerate().map(move |(index, &axis)| wheel(base, index, axis))
    });
    let named = robot.frames.iter().map(|frame| FrameDescription {
        name: frame.name.clone(),
        parent: frame.parent.clone(),
        translation: frame.xyz,
        rotation: quaternion(frame.rpy),
    });
    wheels.chain(named).collect()
}

/// Place of a wheel's axle in the base's frame, which is on the floor in the middle of the wheels.
fn axle(base: &Base, index: usize) -> [f64; 3] {
    let left = if index % 2 == 0 { 1.0 } else { -1.0 };
    let ahead = match base.kind {
        BaseKind::Differential => 0.0,
        BaseKind::Mecanum | BaseKind::Omni if index < 2 => 1.0,
        BaseKind::Mecanum | BaseKind::Omni => -1.0,
    };
    [ahead * base.wheelbase / 2.0, left * base.track / 2.0, base.wheel_radius]
}

/// Roll, pitch and yaw, about fixed axes in this order, as a unit quaternion x, y, z, w.
fn quaternion(rpy: [f64; 3]) -> [f64; 4] {
    let [(sr, cr), (sp, cp), (sy, cy)] = rpy.map(|angle| (angle / 2.0).sin_cos());
    [
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    ]
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use super::*;

    // feature(ros2): `[[frame]]`: places on the robot, fixed to each other; the axles of a base by its sizes
    #[test]
    fn wheels_follow_the_base_and_frames_the_file() {
        let text = include_str!("../../../../examples/omni.toml").to_owned();
        let text =
            text + "\n[[frame]]\nname = \"laser\"\nxyz = [0.1, 0, 0.2]\nrpy = [0, 0, 3.141592653589793]\n";
        let frames = described(&RobotConfig::parse(&text, "omni.toml").unwrap());
        let names: Vec<_> = frames.iter().map(|it| (it.name.as_str(), it.parent.as_str())).collect();
        assert_eq!(names[..2], [("wheel-1", "base_link"), ("wheel-2", "base_link")]);
        let places: Vec<_> = frames.iter().map(|it| it.translation).collect();
        let (front, left, up) = (0.17, 0.19, 0.0762);
        assert_eq!(places[..2], [[front, left, up], [front, -left, up]]);
        assert_eq!(places[2..4], [[-front, left, up], [-front, -left, up]]);
        assert_eq!((names[4], places[4]), (("laser", "base_link"), [0.1, 0.0, 0.2]));
        assert!(near(frames[4].rotation, [0.0, 0.0, 1.0, 0.0]), "{frames:?}");
    }

    #[test]
    fn angles_match_a_urdf() {
        let half = FRAC_PI_2.sin() / 2_f64.sqrt();
        assert!(near(quaternion([FRAC_PI_2, 0.0, 0.0]), [half, 0.0, 0.0, half]));
        assert!(near(quaternion([0.0, FRAC_PI_2, 0.0]), [0.0, half, 0.0, half]));
        // About x, then about the fixed z: (0, 0, half, half) * (half, 0, 0, half).
        assert!(near(quaternion([FRAC_PI_2, 0.0, FRAC_PI_2]), [0.5, 0.5, 0.5, 0.5]));
        assert!(near(quaternion([PI, 0.0, 0.0]), [1.0, 0.0, 0.0, 0.0]));
    }

    fn near(found: [f64; 4], expected: [f64; 4]) -> bool {
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12)
    }
}
