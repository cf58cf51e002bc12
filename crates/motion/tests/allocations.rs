//! Code on the real-time path does not allocate once it is built.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::hint::black_box;

use onbeat_motion::base::Twist;
use onbeat_motion::kinematics::{DifferentialDrive, InverseSettings, OmniBase, SerialArm};
use onbeat_motion::odometry::Odometry;
use onbeat_motion::online::{AxisLimits, OnlineMotion, OnlineTwist, Synchronisation, Target, TwistLimits};
use onbeat_motion::supervision::{
    CyclicMode, Jog, Limits, OnStale, Outage, Seen, Settings, StopReason, Supervisor, Written,
};
use onbeat_motion::{
    AxisFeedback, AxisPhase, AxisSetpoint, Metres, MetresPerSecond, MetresPerSecondCubed,
    MetresPerSecondSquared, NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondCubed,
    RadiansPerSecondSquared, Seconds,
};
use testkit::CountingAllocator;
use testkit::allocations::{self, calls_of};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

#[test]
fn the_counter_counts() {
    assert_eq!(calls_of(|| drop(black_box(Box::new(1)))), 2);
}

#[test]
fn online_motion_of_many_axes_together_allocates_nothing() {
    let limits = AxisLimits {
        velocity: RadiansPerSecond(2.0),
        acceleration: RadiansPerSecondSquared(10.0),
        jerk: RadiansPerSecondCubed(100.0),
    };
    let mut motion = OnlineMotion::new(&[limits; 24], Synchronisation::Together).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    let made = calls_of(|| {
        for _ in 0..200 {
            let targets: [Target; 24] =
                std::array::from_fn(|_| Target::rest_at(Radians(rng.f64() * 4.0 - 2.0)));
            motion.aim(&targets).unwrap();
            for _ in 0..20 {
                black_box(motion.advance(Seconds(0.01)));
            }
            motion.aim_axis(3, Target::Velocity(RadiansPerSecond(0.5))).unwrap();
            assert!(motion.aim_axis(3, Target::Velocity(RadiansPerSecond(f64::NAN))).is_err());
        }
    });
    assert_eq!(made, 0);
}

// feature(axes): after an outage set-points begin at most one step from the axis, and stop within velocity, acceleration, jerk and position limits
#[test]
fn outage_and_long_return_do_not_allocate() {
    let limits = Limits {
        position: None,
        velocity: RadiansPerSecond(2.0),
        acceleration: RadiansPerSecondSquared(10.0),
        deceleration: RadiansPerSecondSquared(10.0),
        jerk: RadiansPerSecondCubed(100.0),
        torque: NewtonMetres(1.0),
        step: Radians(0.004),
        written: Written::ALL,
    };
    let settings = Settings {
        mode: CyclicMode::Position.into(),
        limits,
        following_error: None,
        on_stale: OnStale::Hold,
        outage: Outage::default(),
    };
    let mut supervisor = Supervisor::new(settings, Seconds(0.001)).unwrap();
    let mut feedback = AxisFeedback { phase: AxisPhase::Following, ..AxisFeedback::default() };
    let made = calls_of(|| {
        for missed in 1..10 {
            let seen = Seen { feedback, missed, ..Seen::default() };
            supervisor.step(Seconds(0.001), AxisSetpoint::default(), &seen);
        }
        feedback = AxisFeedback {
            position: Radians(0.3),
            velocity: RadiansPerSecond(3.0),
            fresh: true,
            ..feedback
        };
        let seen = Seen { feedback, ..Seen::default() };
        for _ in 0..2_000 {
            black_box(supervisor.step(Seconds(0.001), AxisSetpoint::default(), &seen));
        }
    });
    assert_eq!((made, supervisor.stopped()), (0, Some(StopReason::Outage)));
}

#[test]
fn a_jog_allocates_nothing() {
    let limits = Limits {
        position: Some((Radians(-0.2), Radians(0.2))),
        velocity: RadiansPerSecond(2.0),
        acceleration: RadiansPerSecondSquared(10.0),
        deceleration: RadiansPerSecondSquared(10.0),
        jerk: RadiansPerSecondCubed(100.0),
        torque: NewtonMetres(1.0),
        step: Radians(0.004),
        written: Written::ALL,
    };
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        let (on_stale, outage) = (OnStale::Hold, Outage::default());
        let settings = Settings { mode: mode.into(), limits, following_error: None, on_stale, outage };
        let mut supervisor = Supervisor::new(settings, Seconds(0.001)).unwrap();
        let mut feedback =
            AxisFeedback { phase: AxisPhase::Following, fresh: true, ..AxisFeedback::default() };
        let mut fastest = 0.0_f64;
        let made = calls_of(|| {
            for cycle in 0..4_000 {
                let velocity = RadiansPerSecond([1e300, f64::NAN, -0.1, 0.05][cycle / 100 % 4]);
                let jog = (cycle % 1_000 > 20).then_some(Jog { velocity, permitted: cycle % 700 > 9 });
                let seen = Seen { feedback, jog, not_homed: cycle % 900 > 600, ..Seen::default() };
                let sent = supervisor.step(Seconds(0.001), AxisSetpoint::default(), &seen).setpoint;
                feedback.position += sent.velocity * Seconds(0.001);
                feedback.velocity = sent.velocity;
                fastest = fastest.max(sent.velocity.0);
            }
        });
        assert_eq!(made, 0, "{mode:?}");
        assert!(fastest > 0.19, "{mode:?}: {fastest}");
    }
}

#[test]
fn bases_and_their_odometry_allocate_nothing() {
    let limits = TwistLimits {
        velocity: MetresPerSecond(1.0),
        acceleration: MetresPerSecondSquared(1.0),
        jerk: MetresPerSecondCubed(5.0),
        yaw_velocity: RadiansPerSecond(2.0),
        yaw_acceleration: RadiansPerSecondSquared(4.0),
        yaw_jerk: RadiansPerSecondCubed(20.0),
    };
    let mut twist = OnlineTwist::new(limits).unwrap();
    let drive = DifferentialDrive::new(Metres(0.1016), Metres(0.4)).unwrap();
    let omni = OmniBase::mecanum(Metres(0.1), Metres(0.5), Metres(0.4), Radians(0.785)).unwrap();
    let (mut two, mut four) = (Odometry::new(drive), Odometry::new(omni));
    let made = calls_of(|| {
        for cycle in 0..1000 {
            if cycle % 50 == 0 {
                let x = MetresPerSecond(f64::from(cycle % 7) / 7.0);
                twist.aim(Twist { x, yaw: RadiansPerSecond(0.3), ..Twist::default() }).unwrap();
            }
            let now = twist.advance(Seconds(0.001));
            let wheels = drive.wheels(now);
            two.update(wheels.map(|wheel| wheel * Seconds(f64::from(cycle)))).unwrap();
            let wheels = omni.wheels(now);
            four.update(wheels.map(|wheel| wheel * Seconds(f64::from(cycle)))).unwrap();
            black_box(omni.twist(wheels));
        }
    });
    assert_eq!(made, 0);
}

#[test]
fn an_arm_allocates_nothing_even_where_it_cannot_reach() {
    let arm = SerialArm::from_urdf(include_str!("six-axis.urdf"), None, None).unwrap();
    let mut workspace = arm.workspace();
    let mut columns = vec![onbeat_motion::kinematics::SpatialVector::default(); arm.joints().len()];
    let mut positions = [0.1, -0.4, 0.6, 0.2, 0.5, -0.3];
    let target = arm.forward(&[0.3, -0.2, 0.4, 0.1, 0.7, 0.0]);
    let mut far = target;
    far.position.x += 10.0;
    let made = calls_of(|| {
        black_box(arm.jacobian(&positions, &mut columns));
        arm.inverse(&target, &mut positions, &InverseSettings::default(), &mut workspace).unwrap();
        assert!(arm.inverse(&far, &mut positions, &InverseSettings::default(), &mut workspace).is_err());
    });
    assert_eq!(made, 0);
}
