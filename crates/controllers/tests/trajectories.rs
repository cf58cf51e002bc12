//! Trajectories with simulated drives: followed, replaced, cancelled, given up, refused.
use crate::rig;

use ethercat::cia402::CyclicMode;
use ipc::message::Rows;
use ipc::message::control::Action;
use ipc::message::trajectory::{
    Abort, AxisTolerances, Begin, GoalTime, Order, Outcome, Point, Rejection, Tolerance,
};
use ipc::state::TrajectoryStatus;
use onbeat_controllers::{Hold, Member, MemberKind};
use rig::way::{AXES, begin, member, point, points};
use rig::{Flow, Log, Rig, VELOCITY, World};

fn rig() -> Rig {
    Rig::new(AXES, CyclicMode::Position)
}

/// Ends half a second after this trajectory has its final outcome.
fn until_over(world: &World, id: u64, since: &mut Option<u64>) -> Flow {
    let over = world.outcomes(id).iter().any(|outcome| *outcome != Outcome::Accepted);
    if over && since.is_none() {
        *since = Some(world.cycles);
    }
    if since.is_some_and(|since| world.cycles > since + 500) { Flow::Over } else { Flow::On }
}

/// Runs one trajectory to its end.
fn run(begin: Begin, points: Vec<Point>) -> Log {
    let mut since = None;
    rig().run(vec![member()], move |world| {
        if world.cycles == 20 {
            world.send(&begin, &points);
        }
        until_over(world, begin.id, &mut since)
    })
}

fn outcomes(log: &Log, id: u64) -> Vec<Outcome> {
    log.trajectory.iter().filter(|report| report.id == id).map(|report| report.outcome).collect()
}

// feature(axes): `joint_trajectory`: followed, replaced, cancelled, tolerances, refusals
#[test]
fn a_trajectory_is_followed_through_its_points_and_succeeds() {
    let rows: [(f64, &[f64]); 4] = [
        (0.5, &[0.3, -0.2, 0.1]),
        (1.0, &[0.8, -0.2, 0.4]),
        (1.5, &[0.6, 0.4, 0.5]),
        (2.0, &[1.0, 0.5, 0.0]),
    ];
    let log = run(begin(7, &[0, 1, 2], 4), points(7, &rows));
    assert_eq!(outcomes(&log, 7), [Outcome::Accepted, Outcome::Succeeded]);
    let started = log.cycles.iter().position(|seen| seen.output.control.trajectory == 7).unwrap();
    for (time, row) in rows {
        // The first set-point of the trajectory is one cycle behind its start.
        let seen = &log.cycles[started - 1 + (time * 1e3) as usize];
        for (axis, position) in row.iter().enumerate() {
            assert!((seen.setpoints[axis].position.0 - position).abs() < 1e-6, "{time} s, axis {axis}");
        }
    }
    for axis in 0..AXES {
        let off = log
            .cycles
            .iter()
            .map(|seen| (seen.setpoints[axis].position - seen.reports[axis].feedback.position).0.abs());
        assert!(off.fold(0.0, f64::max) < 0.02, "axis {axis} follows");
        assert!(log.fastest(axis) <= VELOCITY);
        let end = log.cycles.last().unwrap().reports[axis].feedback.position.0;
        assert!((end - rows[3].1[axis]).abs() < 5e-3, "axis {axis} ends at {end}");
    }
    let told = log.cycles.iter().find(|seen| seen.output.control.trajectory_elapsed_ns > 1_000_000_000);
    assert_eq!(told.unwrap().output.control.trajectory_status, TrajectoryStatus::Executing);
    let last = log.cycles.last().unwrap().output.control;
    assert_eq!((last.trajectory, last.trajectory_status), (7, TrajectoryStatus::Succeeded));
}

#[test]
fn velocities_shape_the_path_and_axes_come_in_any_order() {
    let mut all = vec![
        point(1, 0, 0.0, &[0.0, 0.0], &[0.0, 0.0]),
        point(1, 1, 0.5, &[0.4, -0.5], &[1.5, -1.0]),
        point(1, 2, 1.0, &[0.8, -0.5], &[0.0, 0.0]),
    ];
    for point in &mut all {
        point.accelerations = Rows::from_slice(&[0.0, 0.0]).unwrap();
    }
    let log = run(begin(1, &[2, 0], 3), all);
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Succeeded]);
    let started = log.cycles.iter().position(|seen| seen.output.control.trajectory == 1).unwrap();
    let middle = &log.cycles[started - 1 + 500].setpoints;
    assert!(
        (middle[2].position.0 - 0.4).abs() < 1e-6 && (middle[2].velocity.0 - 1.5).abs() < 1e-6,
        "{middle:?}"
    );
    assert!(
        (middle[0].position.0 + 0.5).abs() < 1e-6 && (middle[0].velocity.0 + 1.0).abs() < 1e-6,
        "{middle:?}"
    );
    assert!(
        log.cycles.iter().all(|seen| seen.setpoints[1].position.0.abs() < 1e-3),
        "axis 1 is none of its"
    );
    // Degree five: no step in acceleration, at most some 40 rad/s^2.
    assert!(log.hardest(0) < 40.0 && log.hardest(2) < 40.0, "{} {}", log.hardest(0), log.hardest(2));
}

// feature(axes): `joint_trajectory`: followed, replaced, cancelled, tolerances, refusals
#[test]
fn another_trajectory_takes_over_without_a_step() {
    let mut since = None;
    let log = rig().run(vec![member()], move |world| {
        match world.cycles {
            20 => world.send(&begin(1, &[0], 1), &points(1, &[(2.0, &[2.0])])),
            1020 => world.send(&begin(2, &[0, 1], 1), &points(2, &[(1.0, &[0.5, 0.5])])),
            _ => {}
        }
        until_over(world, 2, &mut since)
    });
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Aborted(Abort::Replaced)]);
    assert_eq!(outcomes(&log, 2), [Outcome::Accepted, Outcome::Succeeded]);
    // In the middle of the first one the axis turns at 1.5 rad/s: a stop and restart would show as
    // 1500 rad/s^2.
    assert!(log.fastest(0) > 1.4 && log.hardest(0) < 40.0, "{} {}", log.fastest(0), log.hardest(0));
}

// feature(axes): `joint_trajectory`: followed, replaced, cancelled, tolerances, refusals
#[test]
fn cancelled_trajectory_stops_and_reports_at_standstill() {
    let mut canceled = None;
    let log = rig().run(vec![member()], move |world| {
        match world.cycles {
            20 => world.send(&begin(1, &[0], 1), &points(1, &[(2.0, &[2.0])])),
            1020 => world.order(&Order::Cancel { id: 1 }),
            _ => {}
        }
        if canceled.is_none() && world.outcomes(1).contains(&Outcome::Canceled) {
            canceled = Some(world.cycles);
            assert!(world.setpoints[0].velocity.0 == 0.0, "it rests");
        }
        if canceled.is_some_and(|at| world.cycles > at + 100) { Flow::Over } else { Flow::On }
    });
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Canceled]);
    let end = log.cycles.last().unwrap().setpoints[0].position.0;
    assert!(end > 1.0 && end < 1.3, "{end}");
    assert!(log.hardest(0) <= rig::ACCELERATION * 1.01, "{}", log.hardest(0));
}

// feature(axes): `joint_trajectory`: followed, replaced, cancelled, tolerances, refusals
#[test]
fn path_tolerance_violation_ends_trajectory_at_standstill() {
    let mut tight = begin(1, &[0, 1], 1);
    let tolerance = Tolerance::Within(1e-6);
    let axes = [
        AxisTolerances { axis: 0, ..Default::default() },
        AxisTolerances { axis: 1, path_position: tolerance, ..Default::default() },
    ];
    tight.axes = Rows::from_slice(&axes).unwrap();
    let log = run(tight, points(1, &[(1.0, &[1.0, 1.0])]));
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Aborted(Abort::PathTolerance)]);
    let report = log.trajectory.last().unwrap();
    assert_eq!((report.axis, report.allowed), (Some(1), 1e-6));
    assert!(report.found > 1e-6);
    assert!(log.cycles.last().unwrap().setpoints[0].position.0 < 0.5);
}

#[test]
fn a_goal_that_is_not_reached_in_time_ends_it() {
    let mut strict = begin(1, &[0], 1);
    let tolerances =
        AxisTolerances { axis: 0, goal_position: Tolerance::Within(1e-12), ..Default::default() };
    strict.axes = Rows::from_slice(&[tolerances]).unwrap();
    strict.goal_time = GoalTime::Within(20_000_000);
    let log = run(strict, points(1, &[(0.3, &[0.77])]));
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Aborted(Abort::GoalTolerance)]);
}

#[test]
fn a_trajectory_starts_at_the_instant_it_names() {
    let mut since = None;
    let mut starts_ns = 0;
    let log = rig().run(vec![member()], move |world| {
        if world.cycles == 20 {
            starts_ns = world.now_ns + 300_000_000;
            let later = Begin { start_ns: Some(starts_ns), ..begin(1, &[0], 1) };
            world.send(&later, &points(1, &[(0.5, &[0.5])]));
        }
        let moving = world.setpoints.first().is_some_and(|it| it.velocity.0 != 0.0);
        assert!(!moving || world.now_ns > starts_ns, "not before its start");
        until_over(world, 1, &mut since)
    });
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Succeeded]);
}

// feature(axes): `joint_trajectory`: followed, replaced, cancelled, tolerances, refusals
#[test]
fn what_cannot_be_followed_is_refused_and_moves_nothing() {
    type Spoil = fn(&mut Begin, &mut Vec<Point>, u64);
    let cases: &[(Spoil, Rejection, i32)] = &[
        (|begin, _, _| begin.points = 51, Rejection::Points, -1),
        (|begin, _, _| begin.points = 3, Rejection::Incomplete, -1),
        (|_, points, _| points[1].index = 7, Rejection::Incomplete, -1),
        (|_, points, _| points[1].time_from_start_ns = points[0].time_from_start_ns, Rejection::Times, -1),
        (|_, points, _| points[1] = point(0, 1, 2.0, &[9.0], &[]), Rejection::PositionLimit, -1),
        (|_, points, _| points[1] = point(0, 1, 2.0, &[1.0], &[99.0]), Rejection::VelocityLimit, -1),
        (|_, points, _| points[1] = point(0, 1, 1.1, &[2.0], &[]), Rejection::VelocityLimit, -1),
        (|_, points, _| points[1] = point(0, 1, 2.0, &[1.0], &[0.5]), Rejection::EndsMoving, -1),
        (|begin, _, _| begin.axes = self::begin(1, &[9], 1).axes, Rejection::NoSuchAxis, -2),
        (|begin, _, _| begin.axes = self::begin(1, &[0, 0], 1).axes, Rejection::NoSuchAxis, -2),
        (|begin, _, now| begin.start_ns = Some(now - 5_000_000_000), Rejection::Past, -3),
        (|_, points, _| points[0] = point(0, 0, 0.0, &[1.0], &[]), Rejection::Start, -1),
        (|_, points, _| points[0] = point(0, 0, 0.05, &[1.0], &[]), Rejection::Start, -1),
    ];
    let wanted: Vec<_> = cases.iter().map(|(_, why, code)| (*why, *code)).collect();
    let log = rig().run(vec![member()], move |world| {
        let case = world.cycles as usize / 20;
        if world.cycles % 20 == 10 {
            if let Some((spoil, ..)) = cases.get(case) {
                let id = case as u64 + 1;
                let mut begin = begin(id, &[0], 2);
                let mut points = points(id, &[(1.0, &[0.2]), (2.0, &[0.4])]);
                spoil(&mut begin, &mut points, world.now_ns);
                points.iter_mut().for_each(|point| point.id = id);
                world.send(&Begin { id, ..begin }, &points);
            }
        }
        if case > cases.len() { Flow::Over } else { Flow::On }
    });
    for (case, (why, code)) in wanted.into_iter().enumerate() {
        assert_eq!(outcomes(&log, case as u64 + 1), [Outcome::Rejected(why)], "case {case}");
        assert_eq!(why.result_code(), code);
    }
    assert!(log.cycles.iter().all(|seen| seen.setpoints[0].position.0.abs() < 1e-3), "nothing moved");
}

#[test]
fn bytes_that_are_no_order_and_ids_that_come_again_are_refused() {
    let log = rig().run(vec![member()], |world| {
        match world.cycles {
            10 => {
                world.raw_order(&[7; 40]);
                world.raw_order(&[]);
                world.order(&Order::Commit { id: 77 });
                world.order(&Order::Cancel { id: 77 });
                world.send(&begin(5, &[0], 1), &points(5, &[(0.2, &[0.1])]));
            }
            400 => world.send(&begin(5, &[0], 1), &points(5, &[(0.2, &[0.0])])),
            _ => {}
        }
        if world.cycles == 500 { Flow::Over } else { Flow::On }
    });
    assert_eq!(outcomes(&log, 0x0707_0707_0707_0707), [Outcome::Rejected(Rejection::Malformed)]);
    let expected = [Outcome::Accepted, Outcome::Succeeded, Outcome::Rejected(Rejection::Id)];
    assert_eq!(outcomes(&log, 5), expected);
    assert!(outcomes(&log, 77).is_empty());
}

#[test]
fn stopped_switched_off_or_disabled_it_is_given_up() {
    let hold = Member::new(MemberKind::Plain(Box::new(Hold)), &[0, 1, 2]);
    let mut asked = [0; 3];
    let log = rig().run(vec![member(), hold], move |world| {
        match world.cycles {
            20 => world.send(&begin(1, &[0], 1), &points(1, &[(2.0, &[1.0])])),
            500 => asked[0] = world.request(Action::SwitchController(1)),
            520 => asked[1] = world.request(Action::Stop),
            1500 => asked[2] = world.request(Action::SwitchController(1)),
            1600 => world.send(&begin(2, &[0], 1), &points(2, &[(2.0, &[1.0])])),
            _ => {}
        }
        if world.cycles == 1700 { Flow::Over } else { Flow::On }
    });
    use ipc::message::control::Refusal;
    let replies: Vec<_> = log.replies.iter().map(|reply| reply.1).collect();
    assert_eq!(replies, [Err(Refusal::Moving), Ok(()), Ok(())]);
    assert_eq!(outcomes(&log, 1), [Outcome::Accepted, Outcome::Aborted(Abort::Stopped)]);
    assert_eq!(outcomes(&log, 2), [Outcome::Rejected(Rejection::NotActive)]);
    assert!(log.hardest(0) <= rig::ACCELERATION * 1.01);
}
