use ipc::message::Rows;
use ipc::message::trajectory::{AxisTolerances, Begin, GoalTime, Point};

use super::*;
use crate::node::bench::{Bench, POSITION};

fn trajectory(id: u64, points: u32) -> Vec<Order> {
    let axes = Rows::from_slice(&[AxisTolerances::default()]).unwrap();
    let begin = Begin { id, points, start_ns: None, goal_time: GoalTime::Default, axes };
    let point = |index: u32| {
        Order::Point(Point {
            id,
            index,
            time_from_start_ns: u64::from(index + 1) * 1_000_000,
            positions: Rows::from_slice(&[0.0]).unwrap(),
            velocities: Rows::new(),
            accelerations: Rows::new(),
        })
    };
    let mut orders = vec![Order::Begin(begin)];
    orders.extend((0..points).map(point));
    orders.push(Order::Commit { id });
    orders
}

/// Reads this many orders at the cycle's end.
fn read(bench: &mut Bench, orders: &mut Orders, count: usize) -> Vec<Order> {
    let mut found = Vec::new();
    let mut bytes = [0; LARGEST];
    let begin = std::time::Instant::now();
    while found.len() < count {
        if let Some(length) = bench.trajectory.receive(&mut bytes) {
            found.push(Order::decode(&bytes[..length]).unwrap());
        }
        assert_eq!(heard(bench, orders), None);
        assert!(begin.elapsed() < std::time::Duration::from_secs(40), "{} of {count} orders", found.len());
    }
    found
}

fn heard(bench: &mut Bench, orders: &mut Orders) -> Option<(Option<usize>, Report)> {
    let Bench { robot, settings, voice, lifecycle, node, .. } = bench;
    orders.next(&Moment { robot: Some(robot), settings, voice, lifecycle, node })
}

/// Next report.
fn next(bench: &mut Bench, orders: &mut Orders) -> (Option<usize>, Report) {
    let begin = std::time::Instant::now();
    loop {
        if let Some(found) = heard(bench, orders) {
            return found;
        }
        assert!(begin.elapsed() < std::time::Duration::from_secs(40), "nothing is heard");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn tell(bench: &mut Bench, report: Report) {
    let mut bytes = [0; REPORT_SIZE];
    let length = report.encode(&mut bytes).unwrap();
    bench.trajectory.send(&bytes[..length]).unwrap();
}

#[test]
fn a_long_trajectory_passes_a_small_port_and_returns_it() {
    let (mut bench, mut orders) = (Bench::new(POSITION), Orders::default());
    let id = orders.next_id();
    let wanted = trajectory(id, 500);
    orders.give(id, &wanted, Some(3), &bench.robot).unwrap();
    assert_eq!(read(&mut bench, &mut orders, wanted.len()), wanted);
    assert!(!orders.is_pressed());
    tell(&mut bench, Report::new(id, Outcome::Accepted));
    assert_eq!(next(&mut bench, &mut orders), (Some(3), Report::new(id, Outcome::Accepted)));
    assert_eq!(heard(&mut bench, &mut orders), None);
    assert!(orders.channel().is_some(), "it is still followed");
    tell(&mut bench, Report::new(id, Outcome::Succeeded));
    assert_eq!(next(&mut bench, &mut orders), (Some(3), Report::new(id, Outcome::Succeeded)));
    assert_eq!(heard(&mut bench, &mut orders), None);
    assert!(orders.channel().is_none(), "others may give trajectories now");
}

#[test]
fn more_than_find_room_are_refused_and_ids_never_come_again() {
    let (bench, mut orders) = (Bench::new(POSITION), Orders::default());
    let id = orders.next_id();
    assert!(orders.next_id() > id);
    let many = vec![Order::Commit { id }; MOST_WAITING + 1];
    let error = orders.give(id, &many, None, &bench.robot).unwrap_err();
    assert!(error.contains("more than find room"), "{error}");
    assert!(!orders.is_pressed() && orders.channel().is_none());
}

#[test]
fn waiting_clients_are_notified_when_the_cycle_ends() {
    let (mut bench, mut orders) = (Bench::new(POSITION), Orders::default());
    let (taken, given) = (orders.next_id(), orders.next_id());
    for id in [taken, given] {
        orders.give(id, &trajectory(id, 1), Some(1), &bench.robot).unwrap();
    }
    read(&mut bench, &mut orders, 6);
    tell(&mut bench, Report::new(taken, Outcome::Accepted));
    next(&mut bench, &mut orders);
    bench.end();
    let mut last = [next(&mut bench, &mut orders).1, next(&mut bench, &mut orders).1];
    last.sort_by_key(|report| report.id);
    let outcomes = last.map(|report| (report.id, report.outcome));
    let expected =
        [(taken, Outcome::Aborted(Abort::Stopped)), (given, Outcome::Rejected(Rejection::Malformed))];
    assert_eq!(outcomes, expected);
}
