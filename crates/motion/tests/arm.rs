//! Arms from URDF: forward, their Jacobian, and back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::f64::consts::{FRAC_PI_2, PI};

use fastrand::Rng;
use glam::{DQuat, DVec3};
use onbeat_motion::kinematics::{
    ArmError, InverseError, InverseSettings, JointKind, SerialArm, SpatialVector, Transform,
};

const SIX_AXIS: &str = include_str!("six-axis.urdf");

fn six_axis() -> SerialArm {
    SerialArm::from_urdf(SIX_AXIS, None, None).unwrap()
}

/// Three joints about z, 0.5 m, 0.3 m and 0.2 m long, in the plane.
fn planar() -> SerialArm {
    let mut urdf = r#"<robot name="planar"><link name="l0"/>"#.to_owned();
    for (joint, before) in [(1, 0.0), (2, 0.5), (3, 0.3)] {
        urdf += &format!(
            r#"<link name="l{joint}"/><joint name="j{joint}" type="revolute">
            <parent link="l{}"/><child link="l{joint}"/><origin xyz="{before} 0 0"/><axis xyz="0 0 1"/>
            <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>"#,
            joint - 1
        );
    }
    urdf += r#"<link name="tip"/><joint name="f" type="fixed"><parent link="l3"/><child link="tip"/>
        <origin xyz="0.2 0 0"/></joint></robot>"#;
    SerialArm::from_urdf(&urdf, None, None).unwrap()
}

fn any_positions(arm: &SerialArm, rng: &mut Rng) -> Vec<f64> {
    let within = |(lower, upper): (f64, f64)| {
        let (lower, upper) = (lower.max(-PI), upper.min(PI));
        lower + (upper - lower) * rng.f64()
    };
    arm.joints().iter().map(|joint| joint.limits).map(within).collect()
}

#[test]
fn a_planar_arm_is_where_trigonometry_says() {
    let arm = planar();
    let (a, b, c) = (0.4_f64, -0.9, 1.7);
    let tip = arm.forward(&[a, b, c]);
    let x = 0.5 * a.cos() + 0.3 * (a + b).cos() + 0.2 * (a + b + c).cos();
    let y = 0.5 * a.sin() + 0.3 * (a + b).sin() + 0.2 * (a + b + c).sin();
    assert!((tip.position - DVec3::new(x, y, 0.0)).length() < 1e-12);
    assert!((tip.turn_since(&Transform::IDENTITY).length() - (a + b + c)).abs() < 1e-12);
    let mut columns = [SpatialVector::default(); 3];
    arm.jacobian(&[a, b, c], &mut columns);
    assert!((columns[0].linear - DVec3::new(-y, x, 0.0)).length() < 1e-12);
    assert!((columns[0].angular - DVec3::Z).length() < 1e-12);
}

#[test]
fn a_urdf_is_read_as_ros_reads_it() {
    let arm = six_axis();
    let names: Vec<&str> = arm.joints().iter().map(|joint| joint.name.as_str()).collect();
    assert_eq!(names, ["joint1", "joint2", "joint3", "joint4", "joint5", "joint6"]);
    assert_eq!(arm.joints()[1].limits, (-1.8, 2.2));
    assert_eq!(arm.joints()[5].limits, (f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!((arm.joints()[0].velocity, arm.joints()[0].effort), (3.0, 120.0));
    // Stretched: the forearm's quarter turn about y lays the wrist along x, and the flange leans by
    // 0.2 about a y that the last joint has turned by 0.3.
    let tip = arm.forward(&[0.0; 6]);
    let wrist =
        DVec3::new(0.07 + 0.05 + 0.20 + 0.08 + 0.10, 0.01 * 0.3_f64.sin(), 1.04 - 0.01 * 0.3_f64.cos());
    assert!((tip.position - wrist).length() < 1e-9, "{}", tip.position);
    // Roll, pitch and yaw are about fixed axes, roll first.
    let turned = r#"<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="prismatic">
        <parent link="a"/><child link="b"/><origin rpy="0.3 0.5 0.7"/><axis xyz="2 0 0"/>
        <limit lower="0" upper="1" velocity="1" effort="1"/></joint></robot>"#;
    let arm = SerialArm::from_urdf(turned, None, None).unwrap();
    assert_eq!(arm.joints()[0].kind, JointKind::Slides);
    let about = |axis, angle| DQuat::from_axis_angle(axis, angle);
    let expected = about(DVec3::Z, 0.7) * about(DVec3::Y, 0.5) * about(DVec3::X, 0.3);
    let tip = arm.forward(&[0.4]);
    assert!(tip.turn_since(&Transform { rotation: expected, ..tip }).length() < 1e-9);
    assert!((tip.position - expected * DVec3::new(0.4, 0.0, 0.0)).length() < 1e-9);
}

// feature(motion): serial arm from URDF: forward, Jacobian, inverse
#[test]
fn the_jacobian_is_what_small_steps_show() {
    let (arm, mut rng) = (six_axis(), Rng::with_seed(1));
    let mut columns = [SpatialVector::default(); 6];
    for _ in 0..200 {
        let positions = any_positions(&arm, &mut rng);
        assert_eq!(arm.jacobian(&positions, &mut columns), arm.forward(&positions));
        for joint in 0..6 {
            let step = 1e-6;
            let moved = |by: f64| {
                let mut positions = positions.clone();
                positions[joint] += by;
                arm.forward(&positions)
            };
            let (before, after) = (moved(-step), moved(step));
            let linear = (after.position - before.position) / (2.0 * step);
            let angular = after.turn_since(&before) / (2.0 * step);
            let found = columns[joint];
            assert!((found.linear - linear).length() < 1e-8, "{found:?} {linear}");
            assert!((found.angular - angular).length() < 1e-8, "{found:?} {angular}");
        }
    }
}

// feature(motion): serial arm from URDF: forward, Jacobian, inverse
#[test]
fn the_way_back_leads_to_the_same_pose_within_the_limits() {
    let (arm, mut rng) = (six_axis(), Rng::with_seed(2));
    let (mut workspace, settings) = (arm.workspace(), InverseSettings::default());
    let (trials, mut reached) = (2000, 0);
    for _ in 0..trials {
        let solution = any_positions(&arm, &mut rng);
        let target = arm.forward(&solution);
        let mut positions: Vec<f64> = solution.iter().map(|at| at + (rng.f64() - 0.5) * 0.8).collect();
        if arm.inverse(&target, &mut positions, &settings, &mut workspace).is_ok() {
            reached += 1;
            let tip = arm.forward(&positions);
            assert!((tip.position - target.position).length() <= 1e-6);
            assert!(tip.turn_since(&target).length() <= 1.001e-6);
        }
        let within = |(at, limits): (&f64, (f64, f64))| *at >= limits.0 && *at <= limits.1;
        assert!(positions.iter().zip(arm.joints().iter().map(|joint| joint.limits)).all(within));
    }
    // From 0.4 rad away in every joint a few run into a limit and stay there: that is what the
    // error is for.
    assert!(reached * 100 >= trials * 97, "{reached} of {trials}");
}

/// One revolute joint, and one prismatic joint along the arm it turns.
fn crane() -> SerialArm {
    let joint = |name: &str, kind: &str, axis: &str| {
        format!(
            r#"<link name="{name}"/><joint name="j-{name}" type="{kind}"><parent link="{}"/><child link="{name}"/>
            <origin xyz="0.1 0 0.2" rpy="0.1 0.2 0.3"/><axis xyz="{axis}"/>
            <limit lower="-1" upper="2" velocity="1" effort="1"/></joint>"#,
            if name == "b" { "a" } else { "b" }
        )
    };
    let joints = joint("b", "revolute", "0 0 1") + &joint("c", "prismatic", "1 0 0");
    let urdf = format!(r#"<robot name="crane"><link name="a"/>{joints}</robot>"#);
    SerialArm::from_urdf(&urdf, None, None).unwrap()
}

#[test]
fn prismatic_joint_moves_tip_along_its_axis_without_turning() {
    let (arm, positions, step) = (crane(), [0.4, 0.7], 1e-6);
    let mut columns = [SpatialVector::default(); 2];
    let tip = arm.jacobian(&positions, &mut columns);
    assert_eq!(tip, arm.forward(&positions));
    for joint in 0..2 {
        let mut moved = positions;
        moved[joint] += step;
        let moved = arm.forward(&moved);
        let linear = (moved.position - tip.position) / step;
        let angular = moved.turn_since(&tip) / step;
        assert!((columns[joint].linear - linear).length() < 1e-5, "joint {joint}: {linear}");
        assert!((columns[joint].angular - angular).length() < 1e-5, "joint {joint}: {angular}");
    }
}

#[test]
fn joints_stay_within_limits_and_steps_stay_short() {
    let (arm, settings) = (planar(), InverseSettings::default());
    // A pose that these positions have, and no others within the limits.
    let mut positions = [3.2, 0.0, 0.0];
    let beyond = arm.forward(&positions);
    let found = arm.inverse(&beyond, &mut positions, &settings, &mut arm.workspace());
    assert!(matches!(found, Err(InverseError::NotReached { .. })), "{found:?}");
    assert!(positions.iter().all(|at| at.abs() <= 3.0), "{positions:?}");

    let target = arm.forward(&[2.0, -1.0, 1.0]);
    let short = InverseSettings { steps: 1, longest_step: 0.01, ..settings };
    let mut positions = [0.1, 0.2, 0.3];
    assert!(arm.inverse(&target, &mut positions, &short, &mut arm.workspace()).is_err());
    let farthest =
        positions.iter().zip([0.1, 0.2, 0.3]).map(|(at, was)| (at - was).abs()).fold(0.0, f64::max);
    assert!(farthest <= 0.01 + 1e-12 && farthest > 0.0, "{farthest}");
}

#[test]
fn what_is_left_is_what_is_left_where_the_arm_was_brought() {
    let (arm, mut rng) = (planar(), Rng::with_seed(4));
    for _ in 0..200 {
        let target = Transform {
            position: DVec3::new(rng.f64() * 3.0 - 1.5, rng.f64() * 3.0 - 1.5, 0.0),
            rotation: DQuat::from_rotation_z(rng.f64() * 6.0 - 3.0),
        };
        let mut positions = any_positions(&arm, &mut rng);
        let settings = InverseSettings { steps: 12, ..InverseSettings::default() };
        let mut workspace = arm.workspace();
        let Err(error) = arm.inverse(&target, &mut positions, &settings, &mut workspace) else { continue };
        let InverseError::NotReached { distance, angle } = error else { panic!("{error}") };
        let tip = arm.forward(&positions);
        let off = (tip.position - target.position).length();
        assert!((off - distance.0).abs() < 1e-9, "{off} {distance}");
        assert!((tip.turn_since(&target).length() - angle.0).abs() < 1e-9, "{angle}");
    }
}

#[test]
fn unreachable_pose_is_an_error_and_the_arm_stretches_to_it() {
    let arm = planar();
    let mut positions = [0.3, 0.4, 0.5];
    let target =
        Transform { position: DVec3::new(0.0, 3.0, 0.0), rotation: DQuat::from_rotation_z(FRAC_PI_2) };
    let error = arm.inverse(&target, &mut positions, &InverseSettings::default(), &mut arm.workspace());
    let Err(InverseError::NotReached { distance, .. }) = error else { panic!("{error:?}") };
    assert!((distance.0 - 2.0).abs() < 0.05, "{distance}: the arm is 1 m long");
    assert!(arm.forward(&positions).position.y > 0.95);
}

#[test]
fn a_stretched_arm_comes_back_from_its_singularity() {
    let arm = six_axis();
    let mut workspace = arm.workspace();
    let target = arm.forward(&[0.0, 0.2, 0.5, 0.0, 0.4, 0.0]);
    let mut positions = [0.0; 6];
    let reached =
        arm.inverse(&target, &mut positions, &InverseSettings::default(), &mut workspace).unwrap();
    assert!(reached.steps < 60, "{reached:?}");
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    let arm = planar();
    let (mut workspace, settings) = (arm.workspace(), InverseSettings::default());
    let target = arm.forward(&[0.1, 0.2, 0.3]);
    let mut bad = target;
    bad.position.x = f64::NAN;
    let mut inverse =
        |target, positions: &mut [f64]| arm.inverse(target, positions, &settings, &mut workspace);
    assert_eq!(inverse(&bad, &mut [0.0; 3]), Err(InverseError::NotFinite));
    assert_eq!(inverse(&target, &mut [f64::INFINITY; 3]), Err(InverseError::NotFinite));
    assert_eq!(inverse(&target, &mut [0.0; 2]), Err(InverseError::Positions { expected: 3, found: 2 }));
    let anothers = arm.inverse(&target, &mut [0.0; 3], &settings, &mut six_axis().workspace());
    assert_eq!(anothers, Err(InverseError::Positions { expected: 3, found: 3 }));
    assert!(inverse(&target, &mut [1e300, -1e300, 0.0]).is_ok(), "brought within the limits first");
}

/// A fault, and the error's words for it.
#[test]
fn a_urdf_that_is_no_arm_is_refused_with_its_reason() {
    let joint = |kind: &str, more: &str| {
        format!(
            r#"<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="{kind}"><parent link="a"/>
            <child link="b"/>{more}</joint></robot>"#
        )
    };
    let limit = r#"<limit lower="-1" upper="1" velocity="1" effort="1"/>"#;
    let found = |urdf: &str| SerialArm::from_urdf(urdf, None, None).unwrap_err();
    for no_urdf in ["", "robot", "<robot", "<robot name='x'><link/></robot>", "\0", "<a/>"] {
        let error = found(no_urdf);
        assert!(matches!(error, ArmError::NoUrdf(_) | ArmError::Roots(_)), "{no_urdf:?}: {error}");
    }
    for (urdf, says) in [
        (joint("floating", ""), "expected revolute, continuous, prismatic or fixed, found floating"),
        (joint("fixed", ""), "no joint moves between"),
        (
            joint(
                "revolute",
                r#"<axis xyz="0 0 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/>"#,
            ),
            "axis",
        ),
        (
            joint("revolute", r#"<limit lower="1" upper="-1" velocity="1" effort="1"/>"#),
            "lower below upper",
        ),
        (joint("revolute", &format!(r#"<mimic joint="k"/>{limit}"#)), "found mimic"),
        (joint("revolute", &format!(r#"<origin xyz="nan 0 0"/>{limit}"#)), "origin"),
        (
            joint("revolute", &format!(r#"<origin rpy="0 0"/>{limit}"#)),
            "line 2, <origin> has rpy=\"0 0\", expected three numbers",
        ),
        (
            joint("revolute", r#"<limit lower="low"/>"#),
            "<limit> has lower=\"low\", expected a finite number",
        ),
        (
            joint("prismatic", r#"<limit upper="1e600"/>"#),
            "<limit> has upper=\"1e600\", expected a finite number",
        ),
        (joint("fixed", "").replace(r#" link="a""#, ""), "line 1, <parent> lacks link"),
        (joint("fixed", "").replace(r#"<parent link="a"/>"#, ""), "line 1, <joint> lacks <parent>"),
    ] {
        let error = found(&urdf).to_string();
        assert!(error.contains(says), "{error}");
    }
    let named = |base, tip| SerialArm::from_urdf(SIX_AXIS, base, tip).unwrap_err();
    assert_eq!(named(None, Some("hand")), ArmError::NoLink("hand".into()));
    assert!(matches!(named(Some("link3"), Some("link2")), ArmError::NoWay { .. }));
    let twice = r#"<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
        <joint name="x" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
        <joint name="y" type="continuous"><parent link="a"/><child link="c"/><axis xyz="0 0 1"/></joint></robot>"#;
    assert_eq!(found(twice), ArmError::Ends(vec!["b".into(), "c".into()]));
    assert_eq!(SerialArm::from_urdf(twice, None, Some("b")).unwrap().joints().len(), 1);
    let ring = r#"<robot name="r"><link name="a"/><link name="b"/>
        <joint name="x" type="continuous"><parent link="a"/><child link="b"/></joint>
        <joint name="y" type="continuous"><parent link="b"/><child link="a"/></joint></robot>"#;
    assert_eq!(found(ring), ArmError::Roots(vec![]));
    let error = SerialArm::from_urdf(ring, Some("a"), Some("a")).unwrap_err();
    assert!(matches!(error, ArmError::NoJoint { .. }), "{error}");
    // Round and round, and never to the base.
    let aside = ring.replace("<link name=\"a\"/>", "<link name=\"a\"/><link name=\"base\"/>");
    let error = SerialArm::from_urdf(&aside, Some("base"), Some("a")).unwrap_err();
    assert_eq!(error, ArmError::NoWay { base: "base".into(), tip: "a".into() });
    // A joint aside may be of any kind.
    let finger = twice.replace("\"y\" type=\"continuous\"", "\"y\" type=\"floating\"");
    assert_eq!(SerialArm::from_urdf(&finger, None, Some("b")).unwrap().joints().len(), 1);
    let two = twice.replace("<child link=\"c\"/>", "<child link=\"b\"/>");
    let error = SerialArm::from_urdf(&two, Some("a"), Some("b")).unwrap_err();
    assert_eq!(error, ArmError::TwoParents("b".into()));
}

/// No text makes the reader panic: a URDF with pieces cut out or exchanged.
#[test]
fn a_broken_urdf_is_an_error_and_no_panic() {
    let mut rng = Rng::with_seed(3);
    let bytes = SIX_AXIS.as_bytes();
    let mut refused = 0;
    for _ in 0..500 {
        let mut broken = bytes.to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..broken.len() - 40);
            match rng.u8(0..3) {
                0 => drop(broken.drain(at..at + rng.usize(1..40))),
                1 => broken[at] = rng.u8(32..127),
                _ => broken.truncate(at + 40),
            }
            if broken.len() < 100 {
                break;
            }
        }
        refused += u32::from(SerialArm::from_urdf(&String::from_utf8_lossy(&broken), None, None).is_err());
    }
    assert!(refused > 100, "{refused}");
}
