//! Bases with scripted axes: wheels that fail or report nothing, twists beyond the limits, and
//! joints that are stopped.
use crate::rig;

use control::controller::{
    AxisCommand, AxisReport, AxisTarget, Controller, ControllerOutput, CycleInfo, ExternalCommand,
    Freshness, Io,
};
use control::signal::Signals;
use ethercat::cia402::CyclicMode;
use ipc::state::{Clamped, Limit};
use motion::base::Twist;
use motion::kinematics::{DifferentialDrive, OmniBase};
use motion::{
    AxisPhase, Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, NewtonMetres,
    Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, TwistLimits,
};
use onbeat_controllers::{BaseController, JointEffort, JointVelocity};
use proptest::prelude::*;
use rig::{VELOCITY, settings};

const RADIUS: f64 = 0.1;
const TRACK: f64 = 0.4;

/// A controller, and axes that turn as commanded.
struct Played<C> {
    controller: C,
    command: ExternalCommand,
    reports: Vec<AxisReport>,
    commands: Vec<AxisCommand>,
    stopping: bool,
}

impl<C: Controller> Played<C> {
    fn new(controller: C, axes: usize) -> Self {
        let mut report = AxisReport::default();
        report.feedback.phase = AxisPhase::Following;
        report.feedback.fresh = true;
        Self {
            controller,
            command: ExternalCommand {
                freshness: Freshness::Fresh,
                axes: vec![None; axes],
                ..ExternalCommand::default()
            },
            reports: vec![report; axes],
            commands: vec![AxisCommand::default(); axes],
            stopping: false,
        }
    }

    fn run(&mut self, cycles: usize) -> ControllerOutput {
        let cycle = CycleInfo {
            cycle: 0,
            release: ethercat::time::Instant::from_nanos(0),
            bus_time: ethercat::time::Instant::from_nanos(0),
            period: rig::PERIOD,
            periods: 1,
            stopping: self.stopping,
        };
        for _ in 0..cycles {
            self.controller.command(&self.command);
            self.controller
                .update(cycle, &mut Io::new(&mut Signals::default(), &self.reports, &mut self.commands));
            for (report, command) in self.reports.iter_mut().zip(&self.commands) {
                if report.feedback.phase == AxisPhase::Following {
                    report.feedback.velocity = command.setpoint.velocity;
                    report.feedback.position.0 += command.setpoint.velocity.0 * rig::CYCLE;
                } else {
                    report.feedback.velocity = RadiansPerSecond::ZERO;
                }
            }
        }
        self.controller.output()
    }

    fn velocity(&self, axis: usize) -> f64 {
        self.commands[axis].setpoint.velocity.0
    }

    fn ask(&mut self, x: f64, y: f64, yaw: f64) {
        let (x, y) = (MetresPerSecond(x), MetresPerSecond(y));
        self.command.twist = Some(Twist { x, y, yaw: RadiansPerSecond(yaw) });
    }
}

fn limits() -> TwistLimits {
    TwistLimits {
        velocity: MetresPerSecond(0.35),
        acceleration: MetresPerSecondSquared(0.5),
        jerk: MetresPerSecondCubed(5.0),
        yaw_velocity: RadiansPerSecond(1.5),
        yaw_acceleration: RadiansPerSecondSquared(3.0),
        yaw_jerk: RadiansPerSecondCubed(30.0),
    }
}

fn differential(limits: TwistLimits) -> Played<BaseController> {
    let base = DifferentialDrive::new(Metres(RADIUS), Metres(TRACK)).unwrap();
    Played::new(BaseController::differential(base, [0, 1], RadiansPerSecond(VELOCITY), limits).unwrap(), 2)
}

fn mecanum(limits: TwistLimits, wheel_limit: f64) -> Played<BaseController> {
    let angle = Radians(core::f64::consts::FRAC_PI_4);
    let base = OmniBase::mecanum(Metres(RADIUS), Metres(0.34), Metres(TRACK), angle).unwrap();
    Played::new(BaseController::omni(base, [0, 1, 2, 3], RadiansPerSecond(wheel_limit), limits).unwrap(), 4)
}

#[test]
fn each_part_of_a_twist_is_clamped_to_base_limits() {
    for (asked, wanted) in [
        ((0.9, 0.0, 0.0), (0.35, 0.0, 0.0)),
        ((0.0, 0.0, -2.7), (0.0, 0.0, -1.5)),
        // Forward and sideways together, and the turn with them.
        ((0.3, 0.4, 0.1), (0.21, 0.28, 0.07)),
        ((0.1, 0.1, 3.0), (0.05, 0.05, 1.5)),
    ] {
        let mut base = mecanum(limits(), 100.0);
        // Exactly the limit, rounded on its way through other units.
        base.ask(0.35 * (1.0 + 1e-15), 0.0, 1.5);
        assert_eq!(base.run(1).clamped, None);
        base.ask(asked.0, asked.1, asked.2);
        let told = base.run(3_000);
        assert_eq!(told.clamped, Some(Clamped { limit: Limit::Velocity, axis: None }), "asked {asked:?}");
        let twist = told.twist;
        for (found, wanted) in
            [twist.x.0, twist.y.0, twist.yaw.0].into_iter().zip([wanted.0, wanted.1, wanted.2])
        {
            assert!((found - wanted).abs() < 1e-6, "asked {asked:?}: {twist:?}");
        }
    }
}

#[test]
fn a_twist_that_is_no_number_is_none() {
    for (x, yaw) in [(f64::NAN, 0.0), (0.3, f64::INFINITY)] {
        let mut base = differential(limits());
        base.ask(0.3, 0.0, 0.0);
        base.run(2_000);
        base.ask(x, 0.0, yaw);
        base.run(2_000);
        assert_eq!(base.velocity(0), 0.0, "it does not go on as it was asked before");
    }
}

// feature(axes): trajectories and requests that something comes between: faults, deaf drives, limits, another homing
#[test]
fn with_a_wheel_that_falls_out_the_others_come_to_rest_softly() {
    let mut base = differential(limits());
    base.ask(0.3, 0.0, 0.0);
    base.run(2_000);
    assert!(base.velocity(1) > 2.9);
    base.reports[0].feedback.phase = AxisPhase::NotEnabled;
    base.run(10);
    assert!(base.velocity(1) > 2.5, "softly");
    base.run(2_000);
    assert_eq!(base.velocity(1), 0.0);
}

#[test]
fn re_enabled_base_begins_at_standstill() {
    let mut base = differential(limits());
    base.ask(0.3, 0.0, 0.0);
    base.run(2_000);
    let all = |base: &mut Played<BaseController>, phase: AxisPhase| {
        base.reports.iter_mut().for_each(|report| report.feedback.phase = phase);
    };
    all(&mut base, AxisPhase::NotEnabled);
    base.run(10);
    let place = base.reports[0].feedback.position;
    all(&mut base, AxisPhase::HoldingAt(place));
    base.run(1);
    all(&mut base, AxisPhase::Following);
    base.run(1);
    assert!(base.velocity(0).abs() < 0.01, "{}", base.velocity(0));
    base.run(2_000);
    assert!(base.velocity(0) > 2.9, "and goes on as it is asked");
}

#[test]
fn a_cycle_that_is_stopped_brings_base_and_joints_to_rest() {
    let mut base = differential(limits());
    base.ask(0.3, 0.0, 0.0);
    base.run(2_000);
    base.stopping = true;
    base.run(10);
    assert!(base.velocity(0) > 2.5, "softly");
    base.run(2_000);
    assert_eq!(base.velocity(0), 0.0);

    let mut joint = Played::new(JointVelocity::new(&[(settings(0), CyclicMode::Velocity)]).unwrap(), 1);
    joint.command.axes[0] = Some(AxisTarget::Velocity(RadiansPerSecond(2.0)));
    joint.run(1_000);
    assert!(joint.velocity(0) > 1.9);
    joint.stopping = true;
    joint.run(1_000);
    assert_eq!(joint.velocity(0), 0.0);

    let mut joint = Played::new(JointEffort::new(&[(settings(0), NewtonMetres(0.5))]), 1);
    for (asked, sent) in [(0.3, 0.3), (9.0, 0.5), (-9.0, -0.5)] {
        joint.command.axes[0] = Some(AxisTarget::Effort(NewtonMetres(asked)));
        let clamped = Some(Clamped { limit: Limit::Effort, axis: Some(0) }).filter(|_| asked != sent);
        assert_eq!(joint.run(1).clamped, clamped);
        assert_eq!(joint.commands[0].setpoint.torque, NewtonMetres(sent));
    }
    joint.stopping = true;
    joint.run(1);
    assert_eq!(joint.commands[0].setpoint.torque, NewtonMetres::ZERO);
}

/// The feedback of one wheel arrives a cycle later than the other's: the base has not turned in
/// between.
#[test]
fn odometry_waits_until_it_knows_all_wheels() {
    let mut base = differential(limits());
    base.run(1);
    for number in 1..=10 {
        for (fresh, wheels) in [([true, false], 1), ([true, true], 2)] {
            for (wheel, report) in base.reports.iter_mut().enumerate() {
                report.feedback.phase = AxisPhase::NotEnabled;
                report.feedback.fresh = fresh[wheel];
                if wheel < wheels {
                    report.feedback.position = Radians(f64::from(number));
                }
            }
            base.run(1);
        }
    }
    let pose = base.controller.output().pose;
    assert!((pose.x.0 - 10.0 * RADIUS).abs() < 1e-9 && pose.y.0.abs() < 1e-9, "{pose:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// From one twist to another each part changes in its own time, and no wheel exceeds its limit.
    #[test]
    fn whatever_follows_whatever_no_wheel_is_asked_to_turn_too_fast(
        asked in prop::collection::vec((-1.0..1.0, -1.0..1.0, -4.0..4.0, 1..600_usize), 1..8), omni in any::<bool>(),
    ) {
        // Limits of the base that its wheels cannot reach.
        let limits = TwistLimits {
            velocity: MetresPerSecond(2.0),
            yaw_velocity: RadiansPerSecond(9.0),
            ..limits()
        };
        let mut base = if omni { mecanum(limits, VELOCITY) } else { differential(limits) };
        for (x, y, yaw, cycles) in asked {
            base.ask(x, y, yaw);
            for _ in 0..cycles {
                base.run(1);
                for command in &base.commands {
                    let velocity = command.setpoint.velocity.0;
                    prop_assert!(velocity.abs() <= VELOCITY * (1.0 + 1e-9), "{velocity}");
                }
            }
        }
    }
}
