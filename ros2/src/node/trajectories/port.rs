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
mod tests;
