//! Interrupted trajectories: axes that fail, starts that cannot be reached any more, orders that
//! cancel others, and invalid points.
use crate::rig;

use control::controller::Controller;
use ethercat::cia402::CyclicMode;
use ipc::message::Rows;
use ipc::message::control::Action;
use ipc::message::trajectory::{
    Abort, AxisTolerances, Begin, GoalTime, Order, Outcome, Point, Rejection, Tolerance,
};
use ipc::state::TrajectoryStatus;
use motion::supervision::StopReason;
use motion::{AxisPhase, Radians};
use onbeat_controllers::{Hold, JointTrajectory, Member, MemberKind, TrajectorySettings};
use rig::ACCELERATION;
use rig::bench::{Bench, Trouble};
use rig::way::{AXES, begin, member, point, points, trajectory_settings};

use Outcome::{Aborted, Accepted, Canceled, Rejected, Succeeded};

fn bench() -> Bench {
    Bench::new(&[CyclicMode::Position; AXES], vec![member()])
}

/// Release this many cycles from now.
fn later(bench: &Bench, cycles: u64) -> Option<u64> {
    Some(bench.now_ns() + cycles * 1_000_000)
}

fn place(bench: &Bench, axis: usize) -> f64 {
    bench.reports[axis].feedback.position.0
}

fn status(bench: &Bench) -> (u64, TrajectoryStatus) {
    let control = bench.manager.output().control;
    (control.trajectory, control.trajectory_status)
}

// feature(axes): trajectories and requests that are interrupted: faults, drives that do not react, limits, another homing
#[test]
fn axis_that_drops_out_ends_trajectory_and_stops_the_others() {
    for stopped in [false, true] {
        let mut bench = bench();
        bench.send(&begin(1, &[0, 1], 1), &points(1, &[(1.0, &[1.0, 0.8])]));
        bench.run(500);
        assert_eq!(status(&bench), (1, TrajectoryStatus::Executing));
        let from = bench.positions.len() - 3;
        let stands = bench.reports[1].feedback.position;
        if stopped {
            // Report of supervision: enabled, with its set-points ignored.
            bench.reports[1].stop = Some(StopReason::Step);
            bench.reports[1].feedback.phase = AxisPhase::HoldingAt(stands);
        } else {
            bench.troubles[1] = Trouble::Broken;
        }
        bench.run(600);
        assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::Fault)]);
        assert_eq!(bench.trajectory.last().unwrap().axis, Some(1));
        assert_eq!(status(&bench), (1, TrajectoryStatus::Aborted));
        assert!(bench.hardest(0, from) <= ACCELERATION * 1.01, "{}", bench.hardest(0, from));
        assert!((0.4..0.9).contains(&place(&bench, 0)), "{}", place(&bench, 0));
        assert_eq!(bench.reports[0].feedback.velocity.0, 0.0);
        assert!((bench.commands[1].setpoint.position - stands).abs().0 < 1e-2, "it is held where it fell");
    }
}

/// Moves an axis while its drive is disabled, and enables it again.
fn carry(bench: &mut Bench, axis: usize, to: f64) {
    bench.troubles[axis] = Trouble::Broken;
    bench.run(5);
    bench.reports[axis].feedback.position = Radians(to);
    bench.run(5);
    bench.troubles[axis] = Trouble::None;
    bench.run(20);
    assert_eq!(bench.reports[axis].feedback.phase, AxisPhase::Following);
}

#[test]
fn start_out_of_reach_at_its_time_moves_nothing() {
    let mut bench = bench();
    let start_ns = later(&bench, 300);
    bench.send(&Begin { start_ns, ..begin(1, &[0], 1) }, &points(1, &[(0.5, &[0.4])]));
    bench.run(10);
    assert_eq!(bench.outcomes(1), [Accepted]);
    carry(&mut bench, 0, 2.9);
    bench.run(600);
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::Unreachable)]);
    let report = bench.trajectory.last().unwrap();
    assert_eq!((report.axis, report.point), (Some(0), Some(0)));
    assert!(report.found > 7.0 && report.allowed == rig::VELOCITY, "{report}");
    assert_eq!(status(&bench), (1, TrajectoryStatus::Aborted));
    assert_eq!(place(&bench, 0), 2.9);
}

// feature(axes): trajectories and requests that are interrupted: faults, drives that do not react, limits, another homing
#[test]
fn a_start_that_cannot_be_reached_leaves_alone_what_is_followed() {
    let mut bench = bench();
    bench.send(&begin(1, &[0], 1), &points(1, &[(1.0, &[0.5])]));
    let start_ns = later(&bench, 300);
    bench.send(&Begin { start_ns, ..begin(2, &[1], 1) }, &points(2, &[(0.5, &[0.4])]));
    bench.run(10);
    carry(&mut bench, 1, 2.9);
    bench.run(400);
    assert_eq!(bench.outcomes(2), [Accepted, Aborted(Abort::Unreachable)]);
    assert_eq!(status(&bench), (1, TrajectoryStatus::Executing), "what is told is of the one that runs");
    bench.run(700);
    assert_eq!(bench.outcomes(1), [Accepted, Succeeded]);
    assert_eq!(status(&bench), (1, TrajectoryStatus::Succeeded));
    assert!((place(&bench, 0) - 0.5).abs() < 1e-9);
}

#[test]
fn trajectory_for_disabled_axis_is_refused_or_fails_at_start() {
    let mut bench = bench();
    let start_ns = later(&bench, 100);
    bench.send(&Begin { start_ns, ..begin(1, &[0, 2], 1) }, &points(1, &[(1.0, &[0.5, 0.5])]));
    bench.run(20);
    bench.troubles[2] = Trouble::Broken;
    bench.run(300);
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::Fault)]);
    bench.send(&begin(2, &[0, 2], 1), &points(2, &[(1.0, &[0.5, 0.5])]));
    bench.run(20);
    assert_eq!(bench.outcomes(2), [Rejected(Rejection::NotEnabled)]);
    assert_eq!(bench.trajectory.last().unwrap().axis, Some(2));
    // Held, while its drive is enabled.
    bench.reports[0].stop = Some(StopReason::Outage);
    bench.reports[0].feedback.phase = AxisPhase::HoldingAt(Radians(0.0));
    bench.run(2);
    bench.send(&begin(3, &[0], 1), &points(3, &[(1.0, &[0.5])]));
    bench.run(20);
    assert_eq!(bench.outcomes(3), [Rejected(Rejection::Held)]);
}

#[test]
fn while_the_axes_are_stopped_no_trajectory_is_taken() {
    let mut bench = bench();
    bench.stopping = true;
    bench.run(1);
    bench.send(&begin(1, &[0], 1), &points(1, &[(1.0, &[0.5])]));
    bench.run(20);
    assert_eq!(bench.outcomes(1), [Rejected(Rejection::Stopping)]);
    // Nor a trajectory with orders that arrived while another request was in progress.
    for asked in [Action::Stop, Action::Disable] {
        let mut bench = self::bench();
        bench.send(&begin(1, &[0], 1), &points(1, &[(1.0, &[1.0])]));
        bench.run(500);
        let id = bench.request(asked);
        bench.run(5);
        bench.order(&Order::Begin(begin(2, &[0], 1)));
        bench.order(&Order::Point(point(2, 0, 1.0, &[0.0], &[])));
        bench.run(600);
        bench.order(&Order::Commit { id: 2 });
        bench.run(20);
        assert_eq!(bench.reply(id), Some(Ok(())));
        assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::Stopped)]);
        assert_eq!(bench.outcomes(2), [Rejected(Rejection::Stopping)], "{asked:?}");
    }
}

#[test]
fn orders_are_called_off_by_their_id_or_all_at_once() {
    let mut bench = bench();
    // Waiting.
    let start_ns = later(&bench, 100);
    bench.send(&Begin { start_ns, ..begin(1, &[0], 1) }, &points(1, &[(1.0, &[0.5])]));
    bench.run(10);
    bench.order(&Order::Cancel { id: 9 });
    bench.run(10);
    assert_eq!(bench.outcomes(1), [Accepted], "that was another's");
    bench.order(&Order::Cancel { id: 1 });
    bench.run(300);
    assert_eq!((bench.outcomes(1), place(&bench, 0)), (vec![Accepted, Canceled], 0.0));
    // Arriving.
    bench.order(&Order::Begin(begin(2, &[0], 2)));
    bench.order(&Order::Cancel { id: 0 });
    bench.run(10);
    assert_eq!(bench.outcomes(2), [Rejected(Rejection::Interrupted)]);
    // Followed.
    bench.send(&begin(3, &[0], 1), &points(3, &[(1.0, &[0.5])]));
    bench.run(500);
    bench.order(&Order::Cancel { id: 0 });
    bench.run(500);
    assert_eq!(bench.outcomes(3), [Accepted, Canceled]);
    assert_eq!(status(&bench), (3, TrajectoryStatus::Canceled));
}

#[test]
fn trajectory_replaces_the_previous_and_each_is_notified_once() {
    let mut bench = bench();
    let start_ns = later(&bench, 200);
    bench.send(&Begin { start_ns, ..begin(1, &[0], 1) }, &points(1, &[(1.0, &[0.5])]));
    bench.run(10);
    bench.order(&Order::Begin(begin(2, &[0], 2)));
    bench.run(10);
    bench.send(&begin(3, &[0], 1), &points(3, &[(1.0, &[0.5])]));
    bench.run(500);
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::Replaced)]);
    assert_eq!(bench.outcomes(2), [Rejected(Rejection::Interrupted)]);
    // Also one that is cancelled and still moving.
    bench.order(&Order::Cancel { id: 3 });
    bench.run(20);
    bench.send(&begin(4, &[0], 1), &points(4, &[(1.0, &[0.0])]));
    bench.run(1_200);
    assert_eq!(bench.outcomes(3), [Accepted, Canceled]);
    assert_eq!(bench.outcomes(4), [Accepted, Succeeded]);
}

#[test]
fn what_waits_is_given_up_with_its_controller() {
    let hold = Member::new(MemberKind::Plain(Box::new(Hold)), &[0, 1, 2]);
    let mut bench = Bench::new(&[CyclicMode::Position; AXES], vec![member(), hold]);
    let start_ns = later(&bench, 200);
    bench.send(&Begin { start_ns, ..begin(1, &[0], 1) }, &points(1, &[(1.0, &[0.5])]));
    bench.run(20);
    let there = bench.request(Action::SwitchController(1));
    bench.run(20);
    let back = bench.request(Action::SwitchController(0));
    bench.run(400);
    assert_eq!((bench.reply(there), bench.reply(back)), (Some(Ok(())), Some(Ok(()))));
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::Stopped)]);
    assert_eq!(place(&bench, 0), 0.0, "its start has come and gone");
}

/// One axis with this single tolerance.
fn bounded(change: impl FnOnce(&mut AxisTolerances), goal_time: GoalTime) -> Begin {
    let mut tolerances = AxisTolerances {
        axis: 0,
        path_position: Tolerance::Unlimited,
        path_velocity: Tolerance::Unlimited,
        goal_position: Tolerance::Unlimited,
        goal_velocity: Tolerance::Unlimited,
    };
    change(&mut tolerances);
    Begin { goal_time, axes: Rows::from_slice(&[tolerances]).unwrap(), ..begin(1, &[0], 1) }
}

#[test]
fn velocities_are_held_to_their_tolerances_too() {
    let mut bench = bench();
    let within = bounded(|it| it.path_velocity = Tolerance::Within(0.3), GoalTime::Default);
    bench.send(&within, &points(1, &[(1.0, &[0.5])]));
    bench.run(300);
    bench.troubles[0] = Trouble::Stuck;
    bench.run(10);
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::PathTolerance)]);
    let report = bench.trajectory.last().unwrap();
    assert!(report.found > 0.3 && report.allowed == 0.3, "{report}");

    let mut bench = self::bench();
    let at_rest = bounded(|it| it.goal_velocity = Tolerance::Within(0.1), GoalTime::Within(50_000_000));
    bench.send(&at_rest, &points(1, &[(0.5, &[0.2])]));
    bench.run(400);
    bench.troubles[0] = Trouble::Coasts(0.2);
    bench.run(300);
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::GoalTolerance)]);
}

#[test]
fn a_goal_is_waited_for_as_long_as_it_may_take() {
    for (goal_time, late, outcome) in [
        (GoalTime::Default, 300, Succeeded),
        (GoalTime::Within(100_000_000), 300, Aborted(Abort::GoalTolerance)),
        (GoalTime::Unlimited, 3_000, Succeeded),
    ] {
        let mut bench = bench();
        bench.send(
            &bounded(|it| it.goal_position = Tolerance::Within(0.01), goal_time),
            &points(1, &[(0.5, &[0.3])]),
        );
        bench.run(250);
        bench.troubles[0] = Trouble::Stuck;
        bench.run(250 + late);
        bench.troubles[0] = Trouble::None;
        bench.run(10);
        assert_eq!(bench.outcomes(1), [Accepted, outcome], "{goal_time:?}");
    }
}

#[test]
fn axis_without_feedback_is_not_checked_nor_at_its_goal() {
    let mut bench = bench();
    bench.send(&begin(1, &[0], 1), &points(1, &[(1.0, &[0.5])]));
    bench.run(300);
    bench.troubles[0] = Trouble::Stuck;
    bench.reports[0].feedback.fresh = false;
    bench.run(900);
    assert_eq!(
        bench.outcomes(1),
        [Accepted],
        "far off, and over for a fifth of a second, by numbers of old"
    );
    bench.run(500);
    assert_eq!(bench.outcomes(1), [Accepted, Aborted(Abort::GoalTolerance)]);

    let mut bench = self::bench();
    bench.send(&begin(1, &[0], 1), &points(1, &[(1.0, &[0.5])]));
    bench.run(990);
    bench.reports[0].feedback.fresh = false;
    bench.run(200);
    assert_eq!(bench.outcomes(1), [Accepted]);
    bench.reports[0].feedback.fresh = true;
    bench.run(5);
    assert_eq!(bench.outcomes(1), [Accepted, Succeeded]);
}

#[test]
fn orders_with_another_id_are_ignored() {
    let mut bench = bench();
    bench.order(&Order::Begin(begin(1, &[0], 1)));
    bench.order(&Order::Point(point(99, 0, 1.0, &[0.3], &[])));
    bench.order(&Order::Point(point(1, 0, 1.0, &[0.5], &[])));
    bench.order(&Order::Commit { id: 99 });
    bench.run(50);
    assert!(bench.trajectory.is_empty(), "{:?}", bench.trajectory);
    bench.order(&Order::Commit { id: 1 });
    bench.run(1_100);
    assert_eq!(bench.outcomes(1), [Accepted, Succeeded]);
    assert!((place(&bench, 0) - 0.5).abs() < 1e-9);
}

#[test]
fn a_long_trajectory_is_read_over_several_cycles() {
    let mut bench = bench();
    let rows: Vec<(f64, &[f64])> =
        (1..=50).map(|number| (f64::from(number) * 0.1, &[0.0, 0.0, 0.0][..])).collect();
    bench.send(&begin(1, &[0, 1, 2], 50), &points(1, &rows));
    bench.run(2);
    assert!(bench.trajectory.is_empty(), "a cycle has no time for 150 rows");
    bench.run(30);
    assert_eq!(bench.outcomes(1), [Accepted]);
}

#[test]
fn points_in_between_are_passed_and_not_stopped_at() {
    let mut bench = bench();
    let rows: [(f64, &[f64]); 4] = [(0.5, &[0.5]), (1.0, &[1.0]), (1.5, &[1.5]), (2.0, &[2.0])];
    bench.send(&begin(1, &[0], 4), &points(1, &rows));
    bench.run(20);
    let started = bench.cycle;
    let mut slowest = f64::INFINITY;
    while bench.cycle < started + 1_500 {
        bench.run(1);
        if bench.cycle > started + 300 {
            slowest = slowest.min(bench.commands[0].setpoint.velocity.0);
        }
    }
    assert!(slowest > 0.9, "{slowest}");
}

#[test]
fn one_that_has_begun_without_us_is_joined_on_its_way() {
    for (ago_ms, outcome) in [(200, Accepted), (20, Rejected(Rejection::Start))] {
        let mut bench = bench();
        // The axis is no longer at the start, and its present position is not checked.
        let rows: [(f64, &[f64]); 2] = [(0.0, &[0.5]), (1.0, &[0.2])];
        let start_ns = Some(bench.now_ns() - ago_ms * 1_000_000);
        bench.send(&Begin { start_ns, ..begin(1, &[0], 2) }, &points(1, &rows));
        bench.run(20);
        assert_eq!(bench.outcomes(1), [outcome], "{ago_ms} ms ago");
    }
}

#[test]
fn trajectory_may_enter_but_not_leave_position_limits() {
    let mut bench = bench();
    carry(&mut bench, 0, 3.5);
    bench.send(&begin(1, &[0], 1), &points(1, &[(1.0, &[2.5])]));
    bench.run(1_200);
    assert_eq!(bench.outcomes(1), [Accepted, Succeeded]);
    // Both points are within 3 rad; at 3 rad/s the segment between them is not.
    let out = [point(2, 0, 0.5, &[2.9], &[3.0]), point(2, 1, 1.5, &[2.9], &[0.0])];
    bench.send(&begin(2, &[0], 2), &out);
    bench.run(20);
    assert_eq!(bench.outcomes(2), [Rejected(Rejection::PositionLimit)]);
    let report = bench.trajectory.last().unwrap();
    assert!(report.point == Some(1) && report.found > 3.1 && report.allowed == 3.0, "{report}");
}

#[test]
fn each_kind_of_point_that_may_not_be_has_its_reason() {
    let mut bend = point(0, 0, 1.0, &[0.2], &[0.1]);
    bend.accelerations = Rows::from_slice(&[-99.0]).unwrap();
    let way = |rows: &[(f64, f64)]| -> Vec<Point> {
        rows.iter()
            .enumerate()
            .map(|(index, (time, place))| point(0, index, *time, &[*place], &[]))
            .collect()
    };
    let cases = [
        (vec![bend, point(0, 1, 2.0, &[0.0], &[])], Rejection::AccelerationLimit, Some(0)),
        (way(&[(1.0, -3.1)]), Rejection::PositionLimit, Some(0)),
        (way(&[(3_601.0, 0.0)]), Rejection::Times, Some(0)),
        // Over at its very start.
        (way(&[(0.0, 0.0)]), Rejection::Times, None),
        // Too fast to the last point, and between two in the middle.
        (way(&[(1.0, 0.2), (2.0, 0.2), (2.05, 1.0)]), Rejection::VelocityLimit, Some(2)),
        (way(&[(1.0, 0.2), (2.0, 0.2), (2.05, 1.0), (3.0, 1.0)]), Rejection::VelocityLimit, Some(2)),
    ];
    let mut bench = bench();
    for (id, (mut points, why, at)) in (1..).zip(cases) {
        points.iter_mut().for_each(|point| point.id = id);
        bench.send(&begin(id, &[0], points.len()), &points);
        bench.run(20);
        assert_eq!(bench.outcomes(id), [Rejected(why)], "case {id}");
        assert_eq!(bench.trajectory.last().unwrap().point, at, "case {id}");
    }
    assert!(bench.positions.iter().all(|row| row[0] == 0.0), "nothing moved");
}

#[test]
fn an_axis_of_the_robot_that_is_anothers_is_named() {
    let settings =
        TrajectorySettings { axes: trajectory_settings().axes[..2].to_vec(), ..trajectory_settings() };
    let controller = MemberKind::Trajectory(Box::new(JointTrajectory::new(settings).unwrap()));
    let mut bench = Bench::new(&[CyclicMode::Position; AXES], vec![Member::new(controller, &[0, 1])]);
    bench.send(&begin(1, &[0, 2], 1), &points(1, &[(1.0, &[0.1, 0.1])]));
    bench.run(20);
    assert_eq!(bench.outcomes(1), [Rejected(Rejection::OtherAxis)]);
    assert_eq!(bench.trajectory.last().unwrap().axis, Some(2));
}
