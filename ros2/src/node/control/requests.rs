//! Requests to the cycle through the ports `control` and `stop`, and its replies.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use ipc::channel::Channel;
use ipc::message::control::{Action, Refusal, Reply, Request, SIZE};
use ipc::{request, words};

use crate::clock::monotonic_ns;
use crate::node::Moment;
use crate::node::commands::attached;
use crate::robot::Robot;

/// Requests that the cycle has not answered yet, each with its sender.
#[derive(Debug)]
pub(crate) struct Requests<F> {
    /// Ports by name, open while a request is pending: others may need them, too.
    channels: HashMap<&'static str, Channel>,
    waiting: HashMap<u64, Waiting<F>>,
    replied: Vec<Replied<F>>,
    last_id: u64,
}

#[derive(Debug)]
struct Waiting<F> {
    from: F,
    what: Action,
    /// Text of the answer if the request is carried out.
    note: String,
    until_ns: u64,
}

/// A request that the cycle has answered. Its state after the reply has the reason of a refusal,
/// and axes that are still stopped although the request was carried out.
#[derive(Debug)]
struct Replied<F> {
    waiting: Waiting<F>,
    outcome: Result<(), Refusal>,
    at_ns: u64,
}

/// Sender of a request, and its outcome: a text, or the reason for a refusal.
pub(crate) type Answered<F> = (F, Result<String, String>);

/// Timeout: a cycle answers all requests unless it hangs.
const LONGEST_NS: u64 = 30_000_000_000;

/// Time between two looks at the state of the axes.
const LOOK: Duration = Duration::from_millis(20);

impl<F> Default for Requests<F> {
    fn default() -> Self {
        Self { channels: HashMap::new(), waiting: HashMap::new(), replied: Vec::new(), last_id: 0 }
    }
}

impl<F> Requests<F> {
    /// Passes a request on; gives its sender back, with the reason, if it cannot be passed.
    pub(crate) fn ask(
        &mut self,
        from: F,
        action: Result<Action, String>,
        moment: &mut Moment<'_>,
    ) -> Option<Answered<F>> {
        let id = monotonic_ns().max(self.last_id + 1);
        self.last_id = id;
        let note = action.as_ref().map_or_else(|_| String::new(), |&what| note(what, moment));
        match action.and_then(|what| self.send(Request { id, what }, moment).map(|()| what)) {
            Ok(what) => {
                let until_ns = monotonic_ns() + LONGEST_NS;
                self.waiting.insert(id, Waiting { from, what, note, until_ns });
                None
            }
            Err(why) => {
                moment.voice.warn("service", format_args!("a service call failed: {why}"));
                Some((from, Err(why)))
            }
        }
    }

    fn send(&mut self, request: Request, moment: &mut Moment<'_>) -> Result<(), String> {
        let robot = attached(&mut moment.robot)?;
        let name = request.what.port();
        let channel = match self.channels.entry(name) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => closed.insert(robot.port(name)?),
        };
        let mut bytes = [0; SIZE];
        let length = request.encode(&mut bytes).map_err(|error| error.to_string())?;
        let sent = channel.write(&bytes[..length]);
        sent.map(|_| ()).map_err(|error| format!("the cycle does not take requests: {error}"))
    }

    /// Requests that were answered meanwhile, or are given up.
    pub(crate) fn answered(&mut self, moment: &mut Moment<'_>) -> Vec<Answered<F>> {
        let mut replies = Vec::new();
        for (name, channel) in &mut self.channels {
            match replies_of(channel, name, moment) {
                Some(more) => replies.extend(more),
                None => return self.lost("the cycle has ended"),
            }
        }
        let mut answered = Vec::new();
        let now = monotonic_ns();
        for Reply { id, outcome } in replies {
            let waiting = self.waiting.remove(&id);
            self.replied.extend(waiting.map(|waiting| Replied { waiting, outcome, at_ns: now }));
        }
        self.look(now, moment, &mut answered);
        for (_, waiting) in self.waiting.extract_if(|_, waiting| waiting.until_ns < now) {
            let why = format!("the cycle did not answer within {} s", LONGEST_NS / 1_000_000_000);
            answered.push((waiting.from, Err(why)));
        }
        answered
    }

    /// Answers a request that was refused, or when its axes are ready or stay stopped.
    fn look(&mut self, now: u64, moment: &mut Moment<'_>, answered: &mut Vec<Answered<F>>) {
        if self.replied.is_empty() {
            return;
        }
        let Some(robot) = moment.robot.as_deref_mut() else { return };
        robot.refresh();
        for it in std::mem::take(&mut self.replied) {
            match end(&it, now, robot) {
                None => self.replied.push(it),
                Some(outcome) => answered.push((it.waiting.from, outcome)),
            }
        }
    }

    /// Time at which the state of the axes is looked at next, for a request that the cycle has
    /// answered, or at which a request is given up.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let ns = |time: Duration| time.as_nanos() as u64;
        let look = |it: &Replied<F>| {
            let [first, last] = [request::FIRST_LOOK, request::LAST_LOOK].map(|time| it.at_ns + ns(time));
            if now < first { first } else { last.min(now + ns(LOOK)) }
        };
        let looks = self.replied.iter().map(look);
        looks.chain(self.waiting.values().map(|it| it.until_ns)).min()
    }

    /// Closes the ports where no request is pending.
    pub(crate) fn rest(&mut self) {
        if self.waiting.is_empty() {
            self.channels.clear();
        }
    }

    /// Drops the pending requests, after the end of the cycle.
    pub(crate) fn lost(&mut self, why: &str) -> Vec<Answered<F>> {
        self.channels.clear();
        let waiting = self.waiting.drain().map(|(_, waiting)| waiting.from);
        let replied = self.replied.drain(..).map(|it| it.waiting.from);
        waiting.chain(replied).map(|from| (from, Err(why.to_owned()))).collect()
    }

    /// Ports that are open.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values()
    }
}

/// Sentence of the answer to a reset about the axes that it resets.
fn note(what: Action, moment: &Moment<'_>) -> String {
    match &moment.robot {
        Some(robot) if what == Action::ResetFaults => {
            words::ignored_quick_stops(robot.state(), robot.description()).join("; ")
        }
        _ => String::new(),
    }
}

/// Outcome of a request that the cycle has answered: a text, or the reason for the failure with the
/// cause at each axis, and what to do. `None` while the state may still change it.
fn end<F>(it: &Replied<F>, now: u64, robot: &Robot) -> Option<Result<String, String>> {
    let (state, description) = (robot.state(), robot.description());
    let since = Duration::from_nanos(now.saturating_sub(it.at_ns));
    let Waiting { what, note, .. } = &it.waiting;
    match it.outcome {
        Err(_) if since < request::FIRST_LOOK => None,
        Err(refusal) => Some(Err(words::refused(refusal, *what, state, description))),
        Ok(()) => Some(request::remaining(*what, since, state, description)?.map(|axes| {
            let waits = request::sentence(&axes, state, description);
            let notes = [note.clone(), waits].into_iter().filter(|it| !it.is_empty());
            notes.collect::<Vec<_>>().join("; ")
        })),
    }
}

/// Replies at a port; none where its cycle has ended.
fn replies_of(channel: &mut Channel, name: &str, moment: &Moment<'_>) -> Option<Vec<Reply>> {
    let (mut bytes, mut replies) = ([0; SIZE + 1], Vec::new());
    loop {
        match channel.read(&mut bytes) {
            Ok(0) => return None,
            Ok(length) => match Reply::decode(&bytes[..length]) {
                Ok(reply) => replies.push(reply),
                Err(why) => moment.voice.error("control", format_args!("port {name}: {why}")),
            },
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Some(replies);
            }
            Err(error) => {
                moment.voice.error("control", format_args!("port {name}: {error}"));
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    // feature(ros2): enable and reset are answered in time although nothing else wakes the node
    #[test]
    fn the_node_wakes_for_the_looks_after_a_reply() {
        let waiting =
            |from, until_ns| Waiting { from, what: Action::Enable, note: String::new(), until_ns };
        let mut requests = Requests::default();
        assert_eq!(requests.next(0), None);
        requests.waiting.insert(1, waiting((), 5_000 * MS));
        assert_eq!(requests.next(1_000 * MS), Some(5_000 * MS), "it is given up then");
        requests.waiting.clear();
        let at_ns = 1_000 * MS;
        requests.replied.push(Replied { waiting: waiting((), 5_000 * MS), outcome: Ok(()), at_ns });
        assert_eq!(requests.next(at_ns), Some(1_050 * MS));
        assert_eq!(requests.next(1_050 * MS), Some(1_070 * MS));
        assert_eq!(requests.next(1_890 * MS), Some(1_900 * MS), "the last look is not late");
        assert_eq!(requests.next(2_000 * MS), Some(1_900 * MS), "at once");
    }
}
