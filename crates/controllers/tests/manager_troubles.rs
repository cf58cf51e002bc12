//! Requests while something is wrong: drives in fault, drives that ignore requests, axes that are
//! blocked or pushed, and a cycle that is being stopped.
use crate::rig;

use control::controller::{
    AxisReport, AxisTarget, Controller, ControllerOutput, CycleInfo, Freshness, InterlockCause, Io,
};
use ethercat::cia402::{AxisMode, CyclicMode, ModeOfOperation, Request, State};
use ipc::message::control::{Action, Refusal};
use ipc::state::InputLevel;
use motion::kinematics::DifferentialDrive;
use motion::supervision::StopReason;
use motion::{
    AxisPhase, Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, Radians,
    RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, TwistLimits,
};
use onbeat_controllers::{BaseController, Hold, JointPosition, Member, MemberKind};
use rig::bench::{Bench, Trouble};
use rig::{VELOCITY, settings};

fn positions(axes: &[usize]) -> Member {
    let settings: Vec<_> = axes.iter().map(|axis| settings(*axis)).collect();
    Member::new(MemberKind::Plain(Box::new(JointPosition::new(&settings).unwrap())), axes)
}

fn hold() -> Member {
    Member::new(MemberKind::Plain(Box::new(Hold)), &[0, 1])
}

fn bench() -> Bench {
    Bench::new(&[CyclicMode::Position; 2], vec![positions(&[0, 1]), hold()])
}

fn target(bench: &mut Bench, axis: usize, position: f64) {
    bench.command.freshness = Freshness::Fresh;
    bench.command.axes[axis] = Some(AxisTarget::Position(Radians(position)));
}

/// A little more than the timeout of a request, in cycles.
const TOO_LONG: usize = 10_100;

#[test]
fn a_robot_with_a_fault_is_not_enabled_and_says_so() {
    let mut bench = bench();
    bench.troubles[1] = Trouble::Broken;
    bench.run(10);
    let enable = bench.request(Action::Enable);
    bench.run(2);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::Fault)), "at once");
    // A drive that fails while it is being enabled.
    let mut bench = self::bench();
    let disable = bench.request(Action::Disable);
    bench.run(100);
    assert_eq!(bench.reply(disable), Some(Ok(())));
    bench.troubles[1] = Trouble::Deaf;
    let enable = bench.request(Action::Enable);
    bench.run(5);
    bench.troubles[1] = Trouble::Broken;
    bench.run(50);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::Fault)));
}

// feature(axes): trajectories and requests that are interrupted: faults, drives that do not react, limits, another homing
#[test]
fn a_drive_that_does_not_follow_is_not_waited_for_for_ever() {
    let mut bench = bench();
    bench.troubles[0] = Trouble::Deaf;
    let disable = bench.request(Action::Disable);
    bench.run(TOO_LONG - 200);
    assert_eq!(bench.reply(disable), None);
    bench.run(200);
    assert_eq!(bench.reply(disable), Some(Err(Refusal::TimedOut)));
    // Nor for an axis that never stops: it is disabled all the same.
    let mut bench = self::bench();
    bench.troubles[0] = Trouble::Coasts(1.0);
    let disable = bench.request(Action::Disable);
    bench.run(TOO_LONG - 200);
    assert_eq!(bench.reports[0].state, Some(State::OperationEnabled));
    bench.run(400);
    assert_eq!(bench.reply(disable), Some(Ok(())));
    assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled));
}

#[test]
fn fault_is_reset_and_persistent_fault_is_reported() {
    let mut bench = bench();
    bench.troubles[1] = Trouble::Fault;
    bench.run(10);
    assert_eq!(bench.reports[1].state, Some(State::Fault));
    let reset = bench.request(Action::ResetFaults);
    bench.run(50);
    assert_eq!(bench.reply(reset), Some(Ok(())));
    assert_eq!(bench.reports[1].state, Some(State::OperationEnabled), "and enabled again");
    bench.troubles[1] = Trouble::Broken;
    bench.run(10);
    let reset = bench.request(Action::ResetFaults);
    bench.run(50);
    assert_eq!(bench.reply(reset), None, "not done while it stays");
    assert_eq!(bench.commands[1].request, Request::FaultReset);
    assert_eq!(bench.commands[0].request, Request::Enable, "of the others nothing is asked");
    bench.run(TOO_LONG);
    assert_eq!(bench.reply(reset), Some(Err(Refusal::Fault)));
    // A drive in fault is already as far down as possible.
    let disable = bench.request(Action::Disable);
    bench.run(100);
    assert_eq!(bench.reply(disable), Some(Ok(())));
}

#[test]
fn an_interlock_that_does_not_permit_refuses_at_once() {
    let mut bench = bench();
    let cause = |permits| Some(InterlockCause { interlock: 0, level: InputLevel::Low, permits });
    bench.reports[0].stop = Some(StopReason::Interlock);
    bench.reports[0].interlock = cause(false);
    bench.run(10);
    let enable = bench.request(Action::Enable);
    bench.run(1);
    let reported = bench.manager.output().request.expect("a report for the events");
    assert_eq!((reported.what, reported.refused), (Action::Enable, Some(Refusal::Interlock)));
    assert_eq!(reported.interlock, cause(false));
    bench.run(1);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::Interlock)), "at once");
    // A client that asks all the time does not flood the events.
    let mut reports = 0;
    for _ in 0..900 {
        bench.request(Action::Enable);
        bench.run(1);
        reports += usize::from(bench.manager.output().request.is_some());
    }
    assert_eq!(reports, 0);
    bench.run(100);
    bench.request(Action::Enable);
    bench.run(1);
    assert!(bench.manager.output().request.is_some(), "again after a while");
    bench.reports[0].interlock = cause(true);
    bench.run(1);
    let enable = bench.request(Action::Enable);
    bench.run(2);
    assert_ne!(bench.reply(enable), Some(Err(Refusal::Interlock)), "it permits again");
}

// feature(program): a reset is refused while an interlock of kind "enable" does not permit
#[test]
fn a_missing_permission_refuses_the_reset() {
    let mut bench = bench();
    let cause = |permits| Some(InterlockCause { interlock: 0, level: InputLevel::Low, permits });
    bench.troubles[0] = Trouble::Latched;
    bench.reports[0].stop = Some(StopReason::NotPermitted);
    bench.reports[0].interlock = cause(false);
    bench.run(10);
    let reset = bench.request(Action::ResetFaults);
    bench.run(20);
    assert_eq!(bench.reply(reset), Some(Err(Refusal::Interlock)));
    bench.troubles[0] = Trouble::None;
    bench.reports[0].stop = None;
    let reset = bench.request(Action::ResetFaults);
    bench.run(20);
    assert_eq!(bench.reply(reset), Some(Ok(())), "it permits");
}

#[test]
fn a_missing_permission_leaves_a_slow_drive_its_time_to_reset() {
    let mut bench = bench();
    bench.troubles = vec![Trouble::Latched, Trouble::Broken];
    bench.reports[0].stop = Some(StopReason::NotPermitted);
    bench.reports[0].interlock =
        Some(InterlockCause { interlock: 0, level: InputLevel::Low, permits: false });
    bench.run(10);
    let reset = bench.request(Action::ResetFaults);
    bench.run(1_000);
    assert_eq!((bench.reply(reset), bench.commands[1].request), (None, Request::FaultReset));
    bench.troubles[1] = Trouble::Fault;
    bench.run(50);
    assert_eq!(bench.reply(reset), Some(Err(Refusal::Interlock)));
    assert_ne!(bench.reports[1].state, Some(State::Fault));
}

// feature(axes): a reset enables no drive of an unreferenced axis, and leaves one that is enabled as it is
#[test]
fn a_reset_leaves_the_drive_of_an_unreferenced_axis_off() {
    let mut bench = bench();
    bench.troubles[0] = Trouble::Latched;
    let unreferenced = Some(StopReason::UnreferencedRestart);
    bench.reports[0].stop = unreferenced;
    bench.reports[0].feedback.phase = AxisPhase::HoldingAt(Radians(0.0));
    bench.run(10);
    let reset = bench.request(Action::ResetFaults);
    bench.run(150);
    assert_eq!(bench.reply(reset), Some(Err(Refusal::Held)));
    assert_eq!(bench.reports[0].state, Some(State::OperationEnabled), "it was enabled");
    // Its drive restarts.
    bench.troubles[0] = Trouble::Deaf;
    bench.reports[0].state = Some(State::SwitchOnDisabled);
    bench.run(10);
    let reset = bench.request(Action::ResetFaults);
    bench.run(3);
    // Supervision would still hold it.
    bench.commands[0].request = Request::Disable;
    bench.troubles[0] = Trouble::Latched;
    bench.reports[0].stop = unreferenced;
    bench.run(500);
    assert_eq!(bench.reply(reset), Some(Err(Refusal::Held)));
    assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled), "a refused reset enables it");
    assert_eq!(bench.reports[1].state, Some(State::OperationEnabled), "the other one stays enabled");
    assert!(bench.manager.output().control.enabled, "it is still to be enabled");
    // A drive that still brakes is not disabled.
    bench.troubles[0] = Trouble::Deaf;
    bench.reports[0].state = Some(State::QuickStopActive);
    bench.run(2);
    assert_eq!(bench.commands[0].request, Request::QuickStop);
    bench.reports[0].state = Some(State::SwitchOnDisabled);
    bench.troubles[0] = Trouble::Latched;
    // Enabled and held, it may look for its home, or be jogged.
    let enable = bench.request(Action::Enable);
    bench.run(600);
    assert_eq!(bench.reply(enable), Some(Err(Refusal::Held)));
    assert_eq!(bench.reports[0].state, Some(State::OperationEnabled));
}

#[test]
fn a_brake_that_contradicts_refuses_the_reset() {
    for reason in [StopReason::BrakeNotOpen, StopReason::BrakeNotClosed] {
        let mut bench = bench();
        bench.reports[0].stop = Some(reason);
        bench.reports[0].feedback.phase = AxisPhase::HoldingAt(Radians(0.0));
        bench.troubles[0] = Trouble::Latched;
        bench.run(10);
        let reset = bench.request(Action::ResetFaults);
        bench.run(150);
        assert_eq!(bench.reply(reset), Some(Err(Refusal::Held)), "{reason}");
        bench.troubles[0] = Trouble::None;
        let reset = bench.request(Action::ResetFaults);
        bench.run(20);
        assert_eq!(bench.reply(reset), Some(Ok(())), "{reason}");
    }
}

// feature(axes): a stop is accepted in an outage, and kept when the bus returns
#[test]
fn a_stop_in_an_outage_is_answered_and_kept() {
    for what in [Action::Stop, Action::Disable, Action::Deactivate] {
        let mut bench = bench();
        target(&mut bench, 0, 2.0);
        bench.run(200);
        // Its last state is that of an enabled axis, in motion.
        bench.troubles[0] = if what == Action::Disable { Trouble::Deaf } else { Trouble::Coasts(0.5) };
        bench.run(10);
        bench.reports[0].missed = 1_000;
        let stop = bench.request(what);
        bench.run(50);
        assert_eq!(bench.reply(stop), None, "{what:?}: the outage may be short");
        bench.run(950);
        assert_eq!(bench.reply(stop), Some(Err(Refusal::NoProcessData)), "{what:?}");
        let control = bench.manager.output().control;
        match what {
            Action::Disable => assert!(!control.enabled, "{what:?}"),
            Action::Deactivate => assert_eq!(control.active, ipc::state::NO_CONTROLLER),
            _ => assert!(control.enabled && control.active == 0),
        }
        if what != Action::Stop {
            continue;
        }
        // An axis with process data that still moves is waited for.
        bench.troubles[1] = Trouble::Coasts(0.5);
        bench.run(10);
        let stop = bench.request(Action::Stop);
        bench.run(1_000);
        assert_eq!(bench.reply(stop), None);
        bench.troubles[1] = Trouble::None;
        bench.run(20);
        assert_eq!(bench.reply(stop), Some(Err(Refusal::NoProcessData)));
        // The bus returns, and the command of before is still there.
        bench.troubles[0] = Trouble::None;
        bench.reports[0].missed = 0;
        bench.run(20);
        let before = bench.commands[0].setpoint.position;
        bench.run(1_000);
        assert_eq!(bench.commands[0].setpoint.position, before, "the stop is kept");
    }
}

#[test]
fn drives_keep_their_torque_in_a_short_outage() {
    let mut bench = bench();
    bench.run(200);
    bench.troubles[0] = Trouble::Coasts(0.5);
    bench.run(10);
    let disable = bench.request(Action::Disable);
    bench.run(250);
    bench.reports[0].missed = 18;
    bench.run(30);
    assert!(bench.manager.output().control.enabled, "it moves, and its drive can still stop it");
    assert_eq!(bench.reply(disable), None);
    bench.reports[0].missed = 200;
    bench.run(30);
    assert!(!bench.manager.output().control.enabled);
}

/// A controller that ignores each request to stop.
struct Runaway(f64);

impl Controller for Runaway {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        self.0 += 1e-3;
        io.commands()[0].request = Request::Enable;
        io.commands()[0].setpoint.position = Radians(self.0);
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, ..ControllerOutput::default() }
    }
}

#[test]
fn a_stop_in_an_outage_holds_against_any_controller() {
    let member = Member::new(MemberKind::Plain(Box::new(Runaway(0.0))), &[0]);
    let mut bench = Bench::new(&[CyclicMode::Position; 1], vec![member]);
    bench.run(200);
    bench.reports[0].missed = 1_000;
    let stop = bench.request(Action::Stop);
    bench.run(500);
    assert_eq!(bench.reply(stop), Some(Err(Refusal::NoProcessData)));
    bench.reports[0].missed = 0;
    bench.run(20);
    let before = bench.commands[0].setpoint.position;
    bench.run(500);
    assert_eq!(bench.commands[0].setpoint.position, before);
}

#[test]
fn a_drive_that_holds_a_load_refuses_to_be_disabled() {
    let mut bench = bench();
    bench.troubles[0] = Trouble::Deaf;
    let disable = bench.request(Action::Disable);
    bench.run(100);
    assert_eq!(bench.reply(disable), None);
    bench.reports[0].stop = Some(StopReason::BrakeNotClosed);
    bench.run(2);
    assert_eq!(bench.reply(disable), Some(Err(Refusal::Held)));
}

#[test]
fn drives_are_enabled_in_set_up_mode_and_a_stop_ends_jogs() {
    let mut bench = bench();
    let disable = bench.request(Action::Disable);
    bench.run(100);
    assert_eq!(bench.reply(disable), Some(Ok(())));
    let cause = InterlockCause { interlock: 0, level: InputLevel::Low, permits: false };
    bench.reports[0].stop = Some(StopReason::SetUp);
    bench.reports[0].interlock = Some(cause);
    let enable = bench.request(Action::Enable);
    bench.run(100);
    assert_eq!(bench.reply(enable), Some(Ok(())));
    assert!(!bench.manager.output().rests);
    let stop = bench.request(Action::Stop);
    bench.run(1);
    assert!(bench.manager.output().rests, "for a cycle at least");
    bench.run(100);
    assert_eq!(bench.reply(stop), Some(Ok(())));
    assert!(!bench.manager.output().rests);
    // While a jog moves an axis, however slowly, it is not done.
    bench.reports[0].stop = Some(StopReason::Jog);
    bench.run(1);
    let stop = bench.request(Action::Stop);
    bench.run(100);
    assert_eq!((bench.reply(stop), bench.manager.output().rests), (None, true));
    bench.reports[0].stop = None;
    bench.run(100);
    assert_eq!(bench.reply(stop), Some(Ok(())));
}

#[test]
fn a_stop_by_supervision_is_acknowledged_by_a_reset() {
    let mut bench = bench();
    bench.reports[0].stop = Some(StopReason::Step);
    bench.reports[0].feedback.phase = AxisPhase::HoldingAt(Radians::ZERO);
    bench.run(10);
    assert_eq!(bench.commands[0].request, Request::Enable);
    let reset = bench.request(Action::ResetFaults);
    bench.run(50);
    assert_eq!((bench.reply(reset), bench.reports[0].stop), (Some(Ok(())), None));
}

#[test]
fn stopped_cycle_begins_nothing_and_aborts_running_goals() {
    let mut bench = bench();
    target(&mut bench, 0, 2.0);
    bench.run(300);
    let stop = bench.request(Action::Stop);
    bench.run(2);
    assert_eq!(bench.reply(stop), None, "it moves still");
    bench.stopping = true;
    let enable = bench.request(Action::Enable);
    let switch = bench.request(Action::SwitchController(1));
    bench.run(2);
    assert_eq!([stop, enable, switch].map(|id| bench.reply(id)), [Some(Err(Refusal::Stopping)); 3]);
}

#[test]
fn axes_stand_when_they_do_and_when_they_are_asked_to() {
    // Commanded to move, and blocked.
    let mut bench = bench();
    target(&mut bench, 0, 2.0);
    bench.troubles[0] = Trouble::Stuck;
    bench.run(200);
    let first = bench.request(Action::SwitchController(1));
    // Commanded to stop, and pushed.
    let mut pushed = self::bench();
    pushed.troubles[0] = Trouble::Coasts(0.1);
    pushed.run(200);
    let second = pushed.request(Action::SwitchController(1));
    bench.run(2);
    pushed.run(2);
    assert_eq!(bench.reply(first), Some(Err(Refusal::Moving)));
    assert_eq!(pushed.reply(second), Some(Err(Refusal::Moving)));
}

#[test]
fn switched_controller_starts_at_last_set_points() {
    let mut bench =
        Bench::new(&[CyclicMode::Position; 2], vec![positions(&[0, 1]), positions(&[0, 1]), hold()]);
    target(&mut bench, 0, 1.25);
    bench.run(1_500);
    bench.command.axes[0] = None;
    // Under its load the axis deviates a little from its set-point: a start at the feedback would
    // pull it down.
    bench.troubles[0] = Trouble::Stuck;
    bench.reports[0].feedback.position -= Radians(0.02);
    bench.run(20);
    for controller in [1, 2, 0] {
        let switch = bench.request(Action::SwitchController(controller));
        bench.run(30);
        assert_eq!(bench.reply(switch), Some(Ok(())));
        assert_eq!(bench.manager.output().control.active, controller as u16);
    }
    let places: Vec<f64> =
        bench.positions[bench.positions.len() - 110..].iter().map(|row| row[0]).collect();
    assert!(places.iter().all(|place| (place - 1.25).abs() < 1e-9), "{places:?}");
}

#[test]
fn repeated_command_after_a_stop_counts() {
    let mut bench = bench();
    target(&mut bench, 0, 2.0);
    bench.run(300);
    let stop = bench.request(Action::Stop);
    bench.run(600);
    assert_eq!(bench.reply(stop), Some(Ok(())));
    let rest = bench.reports[0].feedback.position;
    bench.run(300);
    assert_eq!(bench.reports[0].feedback.position, rest, "the old one does not");
    // The command becomes stale, and the same one arrives once more.
    bench.command.freshness = Freshness::Stale;
    bench.run(10);
    bench.command.freshness = Freshness::Fresh;
    bench.run(1_500);
    assert!((bench.reports[0].feedback.position.0 - 2.0).abs() < 1e-9);
}

fn base() -> Member {
    let limits = TwistLimits {
        velocity: MetresPerSecond(0.35),
        acceleration: MetresPerSecondSquared(0.5),
        jerk: MetresPerSecondCubed(5.0),
        yaw_velocity: RadiansPerSecond(1.5),
        yaw_acceleration: RadiansPerSecondSquared(3.0),
        yaw_jerk: RadiansPerSecondCubed(30.0),
    };
    let base = DifferentialDrive::new(Metres(0.1), Metres(0.4)).unwrap();
    let drive = BaseController::differential(base, [0, 1], RadiansPerSecond(VELOCITY), limits).unwrap();
    Member::new(MemberKind::Base(Box::new(drive)), &[0, 1])
}

#[test]
fn odometry_sees_wheels_turned_from_outside() {
    let mut bench = Bench::new(&[CyclicMode::Velocity; 2], vec![hold(), base()]);
    bench.troubles = vec![Trouble::Coasts(2.0); 2];
    bench.run(1_000);
    assert!((bench.manager.output().pose.x.0 - 0.2).abs() < 1e-3, "{:?}", bench.manager.output().pose);
}

/// Repeatedly: a wheel that was homed before is homed again.
// feature(axes): trajectories and requests that are interrupted: faults, drives that do not react, limits, another homing
#[test]
fn homing_a_wheel_moves_its_position_and_not_the_base() {
    for active in [0, 1] {
        let mut bench = Bench::new(&[CyclicMode::Velocity; 2], vec![hold(), base()]);
        let switch = bench.request(Action::SwitchController(active));
        bench.run(20);
        assert_eq!(bench.reply(switch), Some(Ok(())));
        for (round, mark) in [(1, 5.0), (2, -3.0)] {
            bench.troubles = vec![Trouble::Coasts(1.0); 2];
            bench.run(100);
            bench.troubles = vec![Trouble::None; 2];
            bench.run(100);
            let before = bench.manager.output().pose;
            assert!((before.x.0 - 0.01 * f64::from(round)).abs() < 2e-3, "{before:?}");
            let home = bench.request(Action::Home(0));
            bench.run(1);
            assert!(bench.commands[0].home && bench.commands[0].home_again);
            // Visible one cycle later.
            bench.run(1);
            assert!(!bench.commands[0].home_again);
            bench.reports[0].feedback.position = Radians(mark);
            bench.run(1);
            bench.commands[0].home = false;
            bench.run(50);
            assert_eq!(bench.reply(home), Some(Ok(())));
            let after = bench.manager.output().pose;
            assert!(before.distance_to(after).0 < 1e-3, "round {round}: {before:?} {after:?}");
        }
    }
}

/// Enables no axis, as a controller process that is missing.
struct Idle;

impl Controller for Idle {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        io.commands().iter_mut().for_each(|command| command.request = Request::Disable);
    }
}

#[test]
fn drives_their_controller_disables_are_not_shown_as_requested() {
    let idle = Member::new(MemberKind::Plain(Box::new(Idle)), &[0, 1]);
    let mut bench = Bench::new(&[CyclicMode::Position; 2], vec![hold(), idle]);
    bench.run(10);
    assert!(bench.manager.output().control.enabled);
    let _ = bench.request(Action::SwitchController(1));
    bench.run(200);
    assert_eq!(bench.manager.output().control.active, 1);
    assert!(!bench.manager.output().control.enabled);
    assert_eq!(bench.reports[0].state, Some(State::SwitchOnDisabled));
}

/// One of two drives does not take the mode: both return to the modes of the previous controller,
/// which continues, and moves nothing meanwhile.
// feature(axes): a switch to a controller fails if a drive does not take its mode; the axes return to the previous modes
#[test]
fn a_mode_that_a_drive_does_not_take_ends_the_switch() {
    let own = Some(ModeOfOperation::CyclicSynchronousPosition);
    let other = Some(ModeOfOperation::ProfilePosition);
    let members = vec![positions(&[0, 1]), positions(&[0, 1]).in_mode(AxisMode::ProfilePosition)];
    let mut bench = Bench::new(&[CyclicMode::Position; 2], members);
    bench.reports.iter_mut().for_each(|report| report.mode = own);
    bench.run(50);
    let switch = bench.request(Action::SwitchController(1));
    bench.run(5);
    assert_eq!(bench.commands[0].mode, Some(AxisMode::ProfilePosition));
    assert_eq!(bench.commands[1].mode, Some(AxisMode::ProfilePosition));
    bench.reports[1].mode = other;
    target(&mut bench, 0, 1.0);
    let busy = bench.request(Action::ResetFaults);
    bench.run(400);
    assert_eq!((bench.reply(switch), bench.reply(busy)), (None, Some(Err(Refusal::Busy))));
    assert_eq!(bench.reports[0].feedback.position, Radians::ZERO, "held meanwhile");
    bench.run(200);
    assert_eq!(bench.reply(switch), Some(Err(Refusal::Mode)));
    assert_eq!(bench.manager.output().control.active, 0);
    assert_eq!((bench.commands[0].mode, bench.commands[1].mode), (None, Some(AxisMode::CyclicPosition)));
    assert_eq!(bench.reports[0].feedback.position, Radians::ZERO, "until all are back");
    bench.reports[1].mode = own;
    let from = bench.positions.len();
    bench.run(2_000);
    assert!((bench.reports[0].feedback.position.0 - 1.0).abs() < 1e-9);
    assert!(bench.hardest(0, from - 2) <= rig::ACCELERATION * 1.01);
    // A stop takes the place of a switch.
    let switch = bench.request(Action::SwitchController(1));
    bench.run(5);
    let stop = bench.request(Action::Stop);
    bench.run(50);
    assert_eq!((bench.reply(switch), bench.reply(stop)), (Some(Err(Refusal::Replaced)), Some(Ok(()))));
}

// feature(axes): *enable* is the start request of an axis that waits for one
#[test]
fn enable_starts_axes_that_wait_for_a_start() {
    let mut bench = bench();
    // The first axis lost its torque, and the second was stopped with it.
    for (axis, stop) in [(0, StopReason::AwaitsStart), (1, StopReason::OtherAxis)] {
        bench.troubles[axis] = Trouble::Deaf;
        bench.reports[axis].state = Some(State::SwitchOnDisabled);
        bench.reports[axis].stop = Some(stop);
    }
    bench.reports[1].stopped_with = Some(0);
    bench.run(200);
    assert!(bench.commands.iter().all(|it| it.request == Request::Enable), "the wish is no start request");
    assert_eq!(bench.reports[0].stop, Some(StopReason::AwaitsStart));
    bench.troubles.fill(Trouble::None);
    let id = bench.request(Action::Enable);
    bench.run(1);
    assert!(bench.commands.iter().all(|it| it.request == Request::FaultReset), "{:?}", bench.commands);
    bench.run(20);
    assert_eq!(bench.reply(id), Some(Ok(())));
    let follows = |it: &AxisReport| it.feedback.phase == AxisPhase::Following && it.stop.is_none();
    assert!(bench.reports.iter().all(follows), "{:?}", bench.reports);
    // Another stop is not ended by it.
    bench.reports[0].stop = Some(StopReason::FollowingError);
    bench.request(Action::Enable);
    bench.run(5);
    assert!(bench.commands.iter().all(|it| it.request == Request::Enable));
}
