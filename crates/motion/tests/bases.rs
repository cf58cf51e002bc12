//! Wheels to bases and back, and where that leads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};

use onbeat_motion::base::{Pose, Twist};
use onbeat_motion::kinematics::BaseError;
use onbeat_motion::odometry::{Odometry, Rolling};
use onbeat_motion::online::{OnlineError, OnlineTwist, TwistLimits};
use onbeat_motion::{
    DifferentialDrive, Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, OmniBase,
    OmniWheel, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};
use proptest::prelude::*;

/// The service robot: wheels of 20.32 cm, here 40 cm apart.
fn service_robot() -> DifferentialDrive {
    DifferentialDrive::new(Metres(0.1016), Metres(0.4)).unwrap()
}

fn twist(x: f64, y: f64, yaw: f64) -> Twist {
    Twist { x: MetresPerSecond(x), y: MetresPerSecond(y), yaw: RadiansPerSecond(yaw) }
}

fn near(found: Twist, expected: Twist) -> bool {
    (found.x - expected.x).abs().0 < 1e-9
        && (found.y - expected.y).abs().0 < 1e-9
        && (found.yaw - expected.yaw).abs().0 < 1e-9
}

fn close(found: Pose, expected: Pose) -> bool {
    found.distance_to(expected).0 < 1e-9 && (found.yaw - expected.yaw).abs().0 < 1e-9
}

#[test]
fn a_differential_drive_goes_straight_and_turns_on_the_spot() {
    let drive = service_robot();
    let [left, right] = drive.wheels(twist(0.1016, 0.0, 0.0));
    assert_eq!((left, right), (RadiansPerSecond(1.0), RadiansPerSecond(1.0)));
    let [left, right] = drive.wheels(twist(0.0, 0.0, 1.0));
    assert_eq!(left, -right);
    assert!((right.0 - 0.2 / 0.1016).abs() < 1e-12);
}

/// Textbook signs of a Mecanum base (front left, front right, rear left, rear right).
// feature(motion): differential, Mecanum and omni bases; odometry by exact arcs
#[test]
fn mecanum_wheels_turn_as_in_the_textbook() {
    let (radius, half_length, half_track) = (0.1, 0.25, 0.2);
    let base = OmniBase::mecanum(Metres(radius), Metres(0.5), Metres(0.4), Radians(FRAC_PI_4)).unwrap();
    let about = half_length + half_track;
    for (x, y, yaw) in [(0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 1.0), (0.3, -0.2, 0.7)] {
        let expected = [x - y - about * yaw, x + y + about * yaw, x + y - about * yaw, x - y + about * yaw];
        for (found, expected) in base.wheels(twist(x, y, yaw)).iter().zip(expected) {
            assert!((found.0 - expected / radius).abs() < 1e-9, "{found} {expected}");
        }
    }
}

/// Textbook equations of four omni wheels at 45 degrees: each drives along its own tangent.
#[test]
fn omni_wheels_turn_as_in_the_textbook() {
    let (radius, arm) = (0.05, 0.3);
    let base = OmniBase::omni(Metres(radius), Metres(arm), Radians(FRAC_PI_4)).unwrap();
    let (x, y, yaw) = (0.4, -0.3, 0.8);
    for (number, found) in base.wheels(twist(x, y, yaw)).iter().enumerate() {
        let at = FRAC_PI_4 + FRAC_PI_2 * number as f64;
        let expected = (-at.sin() * x + at.cos() * y + arm * yaw) / radius;
        assert!((found.0 - expected).abs() < 1e-9, "{number}: {found} {expected}");
    }
}

#[test]
fn bases_that_cannot_drive_are_refused() {
    let wrong = |found| matches!(found, Err(BaseError::Length { .. }));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(wrong(DifferentialDrive::new(Metres(bad), Metres(1.0)).map(|_| ())));
        assert!(wrong(DifferentialDrive::new(Metres(1.0), Metres(bad)).map(|_| ())));
        assert!(wrong(OmniBase::omni(Metres(bad), Metres(1.0), Radians(0.0)).map(|_| ())));
        assert!(wrong(OmniBase::mecanum(Metres(0.1), Metres(bad), Metres(1.0), Radians(0.7)).map(|_| ())));
    }
    let mecanum = |roller| OmniBase::mecanum(Metres(0.1), Metres(0.5), Metres(0.4), Radians(roller));
    assert_eq!(mecanum(0.0), Err(BaseError::Rollers { wheel: 0 }));
    assert_eq!(mecanum(FRAC_PI_2), Err(BaseError::Free), "wheels without slanted rollers cannot go aside");
    assert!(matches!(mecanum(f64::NAN), Err(BaseError::Angle { .. })));
    let wheel = OmniWheel {
        x: Metres(0.3),
        y: Metres(0.2),
        direction: Radians::ZERO,
        roller: Radians(FRAC_PI_4),
        radius: Metres(0.1),
    };
    assert_eq!(
        OmniBase::new([wheel; 4]),
        Err(BaseError::Free),
        "four wheels at one place leave turning free"
    );
    // Nearly on one line, with rollers that lean both ways: turning and driving ahead differ only
    // by a ten-millionth.
    let beside =
        |roller: f64, y: f64| OmniWheel { x: Metres(0.0), y: Metres(y), roller: Radians(roller), ..wheel };
    let line = [beside(0.7, 0.2), beside(-0.7, 0.2), beside(0.7, 0.2), beside(-0.7, 0.2 + 1e-8)];
    assert_eq!(OmniBase::new(line), Err(BaseError::Free));
}

#[test]
fn a_wheel_that_slips_shows() {
    let base = OmniBase::mecanum(Metres(0.1), Metres(0.5), Metres(0.4), Radians(FRAC_PI_4)).unwrap();
    let mut wheels = base.wheels(twist(0.3, 0.1, 0.5));
    assert!(base.slip(wheels).0 < 1e-9);
    wheels[2] += RadiansPerSecond(1.0);
    assert!((base.slip(wheels).0 - 0.5).abs() < 1e-9, "a quarter of the square is in no twist");
}

#[test]
fn a_full_circle_leads_home() {
    let drive = service_robot();
    let mut odometry = Odometry::new(drive);
    let wheels = drive.wheels(twist(0.5, 0.0, 0.5));
    odometry.update([Radians(3.0), Radians(-7.0)]).unwrap();
    let at =
        |time: f64| [Radians(3.0) + wheels[0] * Seconds(time), Radians(-7.0) + wheels[1] * Seconds(time)];
    // Two updates for half a circle of 1 m, each exact.
    let half = TAU;
    odometry.update(at(half / 2.0)).unwrap();
    let pose = odometry.update(at(half)).unwrap();
    let expected = Pose { x: Metres(0.0), y: Metres(2.0), yaw: Radians(PI) };
    assert!(close(pose, expected), "{pose:?}");
    let pose = odometry.update(at(2.0 * half)).unwrap();
    assert!(close(pose, Pose { yaw: Radians(TAU), ..Pose::ORIGIN }), "{pose:?}");
}

#[test]
fn odometry_skips_numbers_that_are_not_finite() {
    let mut odometry = Odometry::new(service_robot());
    odometry.update([Radians(0.0); 2]).unwrap();
    let error = odometry.update([Radians(1.0), Radians(f64::NAN)]).unwrap_err();
    assert_eq!(error.wheel, 1);
    let pose = odometry.update([Radians(1.0); 2]).unwrap();
    assert!(close(pose, Pose { x: Metres(0.1016), ..Pose::ORIGIN }));
    odometry.restart();
    assert_eq!(odometry.update([Radians(-50.0); 2]).unwrap(), pose, "a jump is no motion");
    odometry.place(Pose::ORIGIN);
    let pose = odometry.update([Radians(-49.0); 2]).unwrap();
    assert!(close(pose, Pose { x: Metres(0.1016), ..Pose::ORIGIN }));
}

#[test]
fn a_twist_is_reached_with_bounded_acceleration() {
    let mut online = OnlineTwist::new(LIMITS).unwrap();
    let asked = twist(3.0, -0.4, 0.5);
    online.aim(asked).unwrap();
    let slower = asked.scaled(1.0 / 3.0_f64.hypot(0.4));
    let (period, mut last) = (Seconds(0.001), Twist::default());
    while !online.arrived() {
        let now = online.advance(period);
        assert!((now.x - last.x).abs().0 <= LIMITS.acceleration.0 * period.0 * 1.001);
        assert!((now.yaw - last.yaw).abs().0 <= LIMITS.yaw_acceleration.0 * period.0 * 1.001);
        last = now;
    }
    assert_eq!(online.twist(), slower, "what is beyond a limit is brought within it, on its arc");
    assert_eq!(online.within(twist(0.1, 0.2, -4.0)), twist(0.05, 0.1, -2.0));
    let found = online.aim(twist(0.0, f64::NAN, 0.0)).unwrap_err();
    assert!(matches!(found, OnlineError::NotFinite { axis: 1, .. }));
    assert_eq!(online.advance(period), slower);
    online.halt();
    assert_eq!(online.twist(), Twist::default());
}

proptest! {
    #[test]
    fn wheels_and_twist_are_each_others_inverse(
        x in -2.0..2.0, y in -2.0..2.0, yaw in -3.0..3.0,
        radius in 0.02..0.3, wheelbase in 0.1..2.0, track in 0.1..2.0, roller in 0.2..1.3, first in 0.0..1.6,
    ) {
        let asked = twist(x, y, yaw);
        let drive = DifferentialDrive::new(Metres(radius), Metres(track)).unwrap();
        prop_assert!(near(drive.twist(drive.wheels(asked)), twist(x, 0.0, yaw)));
        let mecanum =
            OmniBase::mecanum(Metres(radius), Metres(wheelbase), Metres(track), Radians(roller)).unwrap();
        prop_assert!(near(mecanum.twist(mecanum.wheels(asked)), asked));
        let omni = OmniBase::omni(Metres(radius), Metres(track), Radians(first)).unwrap();
        prop_assert!(near(omni.twist(omni.wheels(asked)), asked));
    }

    /// No other twist comes nearer to wheels that contradict each other.
    #[test]
    fn the_twist_of_four_wheels_is_the_least_squares(
        wheels in prop::array::uniform4(-10.0..10.0), away in prop::array::uniform3(-0.1..0.1),
    ) {
        let base = OmniBase::mecanum(Metres(0.1), Metres(0.5), Metres(0.4), Radians(FRAC_PI_4)).unwrap();
        let wheels = wheels.map(RadiansPerSecond);
        let distance = |twist: Twist| -> f64 {
            base.wheels(twist).iter().zip(wheels).map(|(a, b)| (*a - b).0.powi(2)).sum()
        };
        let best = base.twist(wheels);
        let other = twist(best.x.0 + away[0], best.y.0 + away[1], best.yaw.0 + away[2]);
        prop_assert!(distance(best) <= distance(other) + 1e-9);
        prop_assert!((base.slip(wheels).0 - distance(best).sqrt()).abs() < 1e-9);
    }

    /// Many small straight steps approximate the one exact arc.
    // feature(motion): differential, Mecanum and omni bases; odometry by exact arcs
    #[test]
    fn the_arc_is_what_many_small_steps_tend_to(
        x in -1.0..1.0, y in -1.0..1.0, yaw in -3.0..3.0, begin in -3.0..3.0,
    ) {
        let base = OmniBase::omni(Metres(0.05), Metres(0.3), Radians(FRAC_PI_4)).unwrap();
        let wheels = base.wheels(twist(x, y, yaw)).map(|wheel| wheel * Seconds(1.0));
        let from = Pose { x: Metres(1.0), y: Metres(-2.0), yaw: Radians(begin) };
        let exact = from.moved(Rolling::displacement(&base, wheels));
        let (mut at, steps) = (from, 20_000);
        for _ in 0..steps {
            let step = 1.0 / f64::from(steps);
            // Half a turn before and half after each step: errors of second order only.
            let (sin, cos) = (at.yaw.0 + yaw * step / 2.0).sin_cos();
            at.x.0 += (x * cos - y * sin) * step;
            at.y.0 += (x * sin + y * cos) * step;
            at.yaw.0 += yaw * step;
        }
        prop_assert!(exact.distance_to(at).0 < 1e-7 && (exact.yaw - at.yaw).abs().0 < 1e-9);
    }

    #[test]
    fn small_turns_lose_no_digits(yaw in -1e-3..1e-3) {
        let after = Pose::ORIGIN.after(twist(1.0, 0.0, yaw), Seconds(1.0));
        // The series of the sine and the cosine to the order that doubles hold.
        let expected = (1.0 - yaw * yaw / 6.0 + yaw.powi(4) / 120.0, yaw / 2.0 - yaw.powi(3) / 24.0);
        prop_assert!((after.x.0 - expected.0).abs() < 1e-15 && (after.y.0 - expected.1).abs() < 1e-16);
    }
}

const LIMITS: TwistLimits = TwistLimits {
    velocity: MetresPerSecond(1.0),
    acceleration: MetresPerSecondSquared(1.0),
    jerk: MetresPerSecondCubed(5.0),
    yaw_velocity: RadiansPerSecond(2.0),
    yaw_acceleration: RadiansPerSecondSquared(4.0),
    yaw_jerk: RadiansPerSecondCubed(20.0),
};
