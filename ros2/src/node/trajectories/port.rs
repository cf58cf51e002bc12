//! Port `trajectory`: outgoing orders, and the recipients of their reports.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};

use ipc::channel::Channel;
use ipc::message::MOST_AXES;
use ipc::message::trajectory::{Abort, Order, Outcome, PORT, REPORT_SIZE, Rejection, Report, size};
use ipc::state::{State, TrajectoryStatus};

use super::Moment;
use super::path::Path;
use crate::clock::monotonic_ns;
use crate::robot::Robot;

/// Orders of trajectories that are not done.
#[derive(Default)]
pub(crate) struct Orders {
    /// Open while a trajectory is not done: others may need the port, too.
    channel: Option<Channel>,
    outgoing: VecDeque<Vec<u8>>,
    running: HashMap<u64, Running>,
    /// Reports made on this side: the port broke, or a reply timed out.
    own: VecDeque<(Option<usize>, Report)>,
    last_id: u64,
}

struct Running {
    /// Action that gets the reports; `None` for the topic.
    action: Option<usize>,
    accepted: bool,
    given_ns: u64,
    path: Path,
}

/// Timeout of acceptance: it takes a few cycles after the last point.
const LONGEST_NS: u64 = 10_000_000_000;

/// Messages that may wait for room: no port holds a longer trajectory.
const MOST_WAITING: usize = 20_000;

impl Orders {
    /// A number that no trajectory of any client has had.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id = monotonic_ns().max(self.last_id + 1);
        self.last_id
    }

    /// Sends the orders of one trajectory.
    ///
    /// # Errors
    /// The port cannot be opened, or has no room for them.
    pub(crate) fn give(
        &mut self,
        id: u64,
        orders: &[Order],
        action: Option<usize>,
        robot: &Robot,
    ) -> Result<(), String> {
        if self.outgoing.len() + orders.len() > MOST_WAITING {
            return Err(format!("{} points are more than find room here", orders.len()));
        }
        if self.channel.is_none() {
            self.channel = Some(robot.port(PORT)?);
        }
        for order in orders {
            self.push(order)?;
        }
        self.running.insert(id, {
            let path = Path::new(orders);
            Running { action, accepted: false, given_ns: monotonic_ns(), path }
        });
        self.flush();
        Ok(())
    }

    /// Notes where the axes are when the cycle begins to follow a trajectory of these.
    pub(crate) fn look(&mut self, state: &State) {
        let control = &state.control;
        if control.trajectory_status == TrajectoryStatus::Executing
            && let Some(running) = self.running.get_mut(&control.trajectory)
        {
            running.path.enter(state);
        }
    }

    /// Way of a trajectory that is not done.
    pub(super) fn path(&self, id: u64) -> Option<&Path> {
        self.running.get(&id).map(|running| &running.path)
    }

    /// True if a trajectory is not done.
    pub(crate) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Cancels a trajectory.
    pub(crate) fn cancel(&mut self, id: u64) {
        if self.channel.is_some() && self.push(&Order::Cancel { id }).is_ok() {
            self.flush();
        }
    }

    /// Next report on a trajectory, and the action it belongs to.
    pub(crate) fn next(&mut self, moment: &Moment<'_>) -> Option<(Option<usize>, Report)> {
        self.flush();
        loop {
            if let Some(own) = self.own.pop_front() {
                return Some(own);
            }
            let mut bytes = [0; REPORT_SIZE + 1];
            match self.channel.as_mut()?.read(&mut bytes) {
                Ok(0) => self.broken(),
                Ok(length) => match Report::decode(&bytes[..length]) {
                    Ok(report) => {
                        if let Some(action) = self.note(&report) {
                            return Some((action, report));
                        }
                    }
                    Err(why) => moment.voice.error("trajectory", format_args!("port trajectory: {why}")),
                },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.give_up_late();
                    if self.own.is_empty() {
                        if self.running.is_empty() && self.outgoing.is_empty() {
                            self.channel = None;
                        }
                        return None;
                    }
                }
                Err(error) => {
                    moment.voice.error("trajectory", format_args!("port trajectory: {error}"));
                    self.broken();
                }
            }
        }
    }

    /// Forgets all, after the end of the cycle: the clients are informed elsewhere.
    pub(crate) fn clear(&mut self) {
        *self = Self { last_id: self.last_id, ..Self::default() };
    }

    /// Port, while it is open.
    pub(crate) fn channel(&self) -> Option<&Channel> {
        self.channel.as_ref()
    }

    /// True if orders wait for room.
    pub(crate) fn is_pressed(&self) -> bool {
        !self.outgoing.is_empty()
    }

    fn push(&mut self, order: &Order) -> Result<(), String> {
        let mut bytes = vec![0; LARGEST];
        let length = order.encode(&mut bytes).map_err(|error| error.to_string())?;
        bytes.truncate(length);
        self.outgoing.push_back(bytes);
        Ok(())
    }

    /// Writes as many messages as have room.
    fn flush(&mut self) {
        while let (Some(channel), Some(bytes)) = (&mut self.channel, self.outgoing.front()) {
            match channel.write(bytes) {
                Ok(_) => {
                    self.outgoing.pop_front();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Reading gives the reason, and the clients it concerns.
                Err(_) => return self.broken(),
            }
        }
    }

    /// Recipient of a report; `None` if its trajectory is unknown.
    fn note(&mut self, report: &Report) -> Option<Option<usize>> {
        let running = self.running.get_mut(&report.id)?;
        let action = running.action;
        if report.outcome == Outcome::Accepted {
            running.accepted = true;
        } else {
            self.running.remove(&report.id);
        }
        Some(action)
    }

    fn broken(&mut self) {
        self.channel = None;
        self.outgoing.clear();
        for (id, running) in std::mem::take(&mut self.running) {
            self.own.push_back((running.action, own_report(id, running.accepted)));
        }
    }

    /// Gives up trajectories that were neither accepted nor refused in time.
    fn give_up_late(&mut self) {
        let now = monotonic_ns();
        let late =
            |running: &Running| !running.accepted && now.saturating_sub(running.given_ns) > LONGEST_NS;
        let late: Vec<u64> =
            self.running.iter().filter(|(_, running)| late(running)).map(|(&id, _)| id).collect();
        for id in late {
            self.cancel(id);
            if let Some(running) = self.running.remove(&id) {
                self.own.push_back((running.action, own_report(id, false)));
            }
        }
    }
}

/// Room for the longest order: a begin, or a point with positions, velocities and accelerations.
const LARGEST: usize = size(MOST_AXES);

fn own_report(id: u64, accepted: bool) -> Report {
    let outcome =
        if accepted { Outcome::Aborted(Abort::Stopped) } else { Outcome::Rejected(Rejection::Malformed) };
    Report { id, outcome, axis: None, point: None, found: 0.0, allowed: 0.0 }
}

#[cfg(test)]
mod tests {
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
            assert!(
                begin.elapsed() < std::time::Duration::from_secs(40),
                "{} of {count} orders",
                found.len()
            );
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
}
