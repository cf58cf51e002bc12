//! Bases with simulated drives: the twist is followed, wheels and odometry agree, and without a
//! twist they stop.
use crate::rig;

use control::controller::{Freshness, Io};
use control::signal::Signals;
use ethercat::cia402::CyclicMode;
use motion::kinematics::{DifferentialDrive, OmniBase};
use motion::{
    Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, Radians, RadiansPerSecond,
    RadiansPerSecondCubed, RadiansPerSecondSquared, TwistLimits,
};
use onbeat_controllers::{BaseController, Hold, Member, MemberKind};
use rig::{Flow, Log, Rig, VELOCITY};

const RADIUS: f64 = 0.2032 / 2.0;
const TRACK: f64 = 0.42;

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

fn differential() -> Member {
    let base = DifferentialDrive::new(Metres(RADIUS), Metres(TRACK)).unwrap();
    let drive = BaseController::differential(base, [0, 1], RadiansPerSecond(VELOCITY), limits()).unwrap();
    Member::new(MemberKind::Base(Box::new(drive)), &[0, 1])
}

fn mecanum() -> (OmniBase, Member) {
    let base = OmniBase::mecanum(
        Metres(RADIUS),
        Metres(0.34),
        Metres(0.38),
        Radians(core::f64::consts::FRAC_PI_4),
    )
    .unwrap();
    let drive = BaseController::omni(base, [0, 1, 2, 3], RadiansPerSecond(VELOCITY), limits()).unwrap();
    (base, Member::new(MemberKind::Base(Box::new(drive)), &[0, 1, 2, 3]))
}

fn hold() -> Member {
    Member::new(MemberKind::Plain(Box::new(Hold)), &[0, 1])
}

/// Commands a twist for `seconds`, then none, until the base is at standstill.
fn drive(twist: (f64, f64, f64), seconds: u64, wheels: usize, member: Member) -> Log {
    Rig::new(wheels, CyclicMode::Velocity).run(vec![member], move |world| {
        let (x, y, yaw) = if world.cycles < seconds * 1000 { twist } else { (0.0, 0.0, 0.0) };
        world.twist(x, y, yaw);
        if world.cycles > (seconds + 2) * 1000 && world.rests() { Flow::Over } else { Flow::On }
    })
}

/// Pose of a base after its wheels made these small displacements (x, y, yaw), each along the mean
/// heading.
fn placed(moved: impl Iterator<Item = [f64; 3]>) -> [f64; 3] {
    moved.fold([0.0; 3], |[x, y, yaw], [ahead, left, turn]| {
        let (sin, cos) = (yaw + turn / 2.0).sin_cos();
        [x + ahead * cos - left * sin, y + ahead * sin + left * cos, yaw + turn]
    })
}

fn assert_close(found: [f64; 3], wanted: [f64; 3], within: f64) {
    let close = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < within);
    assert!(close, "{found:?}, wanted {wanted:?}");
}

fn end(log: &Log) -> [f64; 3] {
    let pose = log.cycles.last().unwrap().output.pose;
    [pose.x.0, pose.y.0, pose.yaw.0]
}

// feature(axes): `diff_drive`, `omni_drive` (Mecanum): twist, odometry and wheels agree
#[test]
fn a_twist_is_obeyed_and_the_odometry_is_what_the_wheels_did() {
    let log = drive((0.3, 0.0, 0.5), 3, 2, differential());
    let twist = log.cycles[2500].output.twist;
    assert_close([twist.x.0, twist.y.0, twist.yaw.0], [0.3, 0.0, 0.5], 0.01);
    let wheels: Vec<_> =
        log.cycles.iter().map(|it| [0, 1].map(|wheel| it.reports[wheel].feedback.position.0)).collect();
    let moved = wheels.windows(2).map(|pair| {
        let [left, right] = [0, 1].map(|wheel| (pair[1][wheel] - pair[0][wheel]) * RADIUS);
        [(left + right) / 2.0, 0.0, (right - left) / TRACK]
    });
    assert_close(end(&log), placed(moved), 1e-4);
    // Three seconds at 0.5 rad/s: ramps up and down take as long as each other.
    assert!((end(&log)[2] - 1.5).abs() < 0.03, "{:?}", end(&log));
}

// feature(axes): `diff_drive`, `omni_drive` (Mecanum): twist, odometry and wheels agree
#[test]
fn a_base_on_mecanum_wheels_moves_ahead_aside_and_about_at_once() {
    let (base, member) = mecanum();
    let log = drive((0.15, 0.1, 0.3), 3, 4, member);
    let twist = log.cycles[2500].output.twist;
    assert_close([twist.x.0, twist.y.0, twist.yaw.0], [0.15, 0.1, 0.3], 0.01);
    let wheels: Vec<_> =
        log.cycles.iter().map(|it| [0, 1, 2, 3].map(|wheel| it.reports[wheel].feedback.position)).collect();
    let moved = wheels.windows(2).map(|pair| {
        let moved = base.displacement([0, 1, 2, 3].map(|wheel| pair[1][wheel] - pair[0][wheel]));
        [moved.x.0, moved.y.0, moved.yaw.0]
    });
    assert_close(end(&log), placed(moved), 1e-4);
    assert!((end(&log)[2] - 0.9).abs() < 0.03, "{:?}", end(&log));
}

#[test]
fn too_fast_twist_slows_down_along_the_same_arc() {
    // Straight ahead 0.35 m/s is the limit; the outer wheel would have to turn at 6 rad/s, 4 are
    // allowed.
    let log = drive((0.9, 0.0, 2.7), 3, 2, differential());
    let twist = log.cycles[2500].output.twist;
    assert!((twist.yaw.0 / twist.x.0 - 3.0).abs() < 0.05, "{twist:?}");
    assert!(twist.x.0 > 0.2 && twist.x.0 < 0.36, "{twist:?}");
    for wheel in 0..2 {
        let fastest = log.cycles.iter().map(|it| it.setpoints[wheel].velocity.0.abs()).fold(0.0, f64::max);
        assert!(fastest <= VELOCITY * 1.000_001, "{fastest}");
        // 0.5 m/s^2 and 3 rad/s^2 at the position of the wheel.
        let hardest = (0.5 + 3.0 * TRACK / 2.0) / RADIUS;
        assert!(log.hardest_velocity(wheel) <= hardest * 1.01, "{}", log.hardest_velocity(wheel));
    }
}

#[test]
fn stale_twist_stops_the_base_smoothly() {
    for freshness in [Freshness::Stale, Freshness::Never] {
        let log = Rig::new(2, CyclicMode::Velocity).run(vec![differential()], move |world| {
            world.twist(0.3, 0.0, 0.0);
            if world.cycles > 2000 {
                world.command.freshness = freshness;
            }
            if world.cycles > 4000 { Flow::Over } else { Flow::On }
        });
        assert!(log.cycles[1900].output.twist.x.0 > 0.29);
        assert!(log.cycles[3900].output.twist.x.0.abs() < 1e-3);
        assert!(log.hardest_velocity(0) <= 0.5 / RADIUS * 1.01, "{}", log.hardest_velocity(0));
    }
}

#[test]
fn a_wheel_that_is_stopped_stops_the_others() {
    let base = DifferentialDrive::new(Metres(RADIUS), Metres(TRACK)).unwrap();
    let mut drive =
        BaseController::differential(base, [0, 1], RadiansPerSecond(VELOCITY), limits()).unwrap();
    use control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, ExternalCommand};
    use motion::AxisPhase::{Following, HoldingAt};
    use motion::supervision::StopReason;
    let cycle = CycleInfo {
        cycle: 0,
        release: ethercat::time::Instant::from_nanos(0),
        bus_time: ethercat::time::Instant::from_nanos(0),
        period: rig::PERIOD,
        periods: 1,
        stopping: false,
    };
    let twist = motion::base::Twist { x: MetresPerSecond(0.3), ..Default::default() };
    drive.command(&ExternalCommand {
        freshness: Freshness::Fresh,
        twist: Some(twist),
        axes: vec![None; 2],
        ..ExternalCommand::default()
    });
    let mut reports = [AxisReport::default(); 2];
    for report in &mut reports {
        report.feedback.phase = Following;
        report.feedback.fresh = true;
    }
    let mut commands = [AxisCommand::default(); 2];
    let mut run = |drive: &mut BaseController, reports: &[AxisReport], cycles: usize| {
        (0..cycles).for_each(|_| {
            drive.update(cycle, &mut Io::new(&mut Signals::default(), reports, &mut commands))
        });
        commands[1].setpoint.velocity.0
    };
    assert!(run(&mut drive, &reports, 2000) > 2.9);
    reports[0].stop = Some(StopReason::Fault);
    reports[0].feedback.phase = HoldingAt(Radians(0.0));
    assert!(run(&mut drive, &reports, 10) > 2.5, "softly");
    assert_eq!(run(&mut drive, &reports, 2000), 0.0);
}

#[test]
fn odometry_continues_while_another_controller_is_active() {
    use ipc::message::control::Action;
    let log = Rig::new(2, CyclicMode::Velocity).run(vec![hold(), differential()], |world| {
        match world.cycles {
            50 => {
                world.request(Action::SwitchController(1));
            }
            100..2000 => world.twist(0.2, 0.0, 0.0),
            2000..3000 => world.twist(0.0, 0.0, 0.0),
            3000 => {
                world.request(Action::SwitchController(0));
            }
            _ => {}
        }
        if world.cycles > 3100 { Flow::Over } else { Flow::On }
    });
    assert!(log.replies.iter().all(|reply| reply.1.is_ok()) && log.replies.len() == 2, "{:?}", log.replies);
    let (before, after) = (log.cycles[2950].output, log.cycles.last().unwrap().output);
    assert_eq!((before.control.active, after.control.active), (1, 0));
    assert!(before.pose.x.0 > 0.3 && (after.pose.x.0 - before.pose.x.0).abs() < 1e-4, "{after:?}");
    assert!(before.commanded && !after.commanded);
    let wheel = log.cycles.last().unwrap().reports[0].feedback.position.0;
    assert!((after.pose.x.0 - wheel * RADIUS).abs() < 1e-3);
}
