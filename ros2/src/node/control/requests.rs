//! Requests to the cycle through the ports `control` and `stop`, and its replies.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{ErrorKind, Read, Write};

use ipc::channel::Channel;
use ipc::message::control::{Action, Refusal, Reply, Request, SIZE};
use ipc::words;

use crate::clock::monotonic_ns;
use crate::node::Moment;
use crate::node::commands::attached;

/// Requests that the cycle has not answered yet, each with its sender.
#[derive(Debug)]
pub(crate) struct Requests<F> {
    /// Ports by name, open while a request is pending: others may need them, too.
    channels: HashMap<&'static str, Channel>,
    waiting: HashMap<u64, Waiting<F>>,
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

/// Sender of a request, and its outcome: a text, or the reason for a refusal.
pub(crate) type Answered<F> = (F, Result<String, String>);

/// Timeout: a cycle answers all requests unless it hangs.
const LONGEST_NS: u64 = 30_000_000_000;

impl<F> Default for Requests<F> {
    fn default() -> Self {
        Self { channels: HashMap::new(), waiting: HashMap::new(), last_id: 0 }
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
                moment.voice.warn("service", format_args!("a service was called in vain: {why}"));
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
    pub(crate) fn answered(&mut self, moment: &Moment<'_>) -> Vec<Answered<F>> {
        let mut replies = Vec::new();
        for (name, channel) in &mut self.channels {
            match replies_of(channel, name, moment) {
                Some(more) => replies.extend(more),
                None => return self.lost("the cycle has ended"),
            }
        }
        let mut answered = Vec::new();
        for reply in replies {
            if let Some(waiting) = self.waiting.remove(&reply.id) {
                let refused = |refusal| refused(refusal, waiting.what, moment);
                let outcome = reply.outcome.map(|()| waiting.note).map_err(refused);
                answered.push((waiting.from, outcome));
            }
        }
        let now = monotonic_ns();
        for (_, waiting) in self.waiting.extract_if(|_, waiting| waiting.until_ns < now) {
            let why = format!("the cycle did not answer within {} s", LONGEST_NS / 1_000_000_000);
            answered.push((waiting.from, Err(why)));
        }
        answered
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
        self.waiting.drain().map(|(_, waiting)| (waiting.from, Err(why.to_owned()))).collect()
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

/// A refusal with the cause at each axis, and what to do.
fn refused(refusal: Refusal, what: Action, moment: &Moment<'_>) -> String {
    moment.robot.as_ref().map_or_else(
        || refusal.to_string(),
        |robot| words::refused(refusal, what, robot.state(), robot.description()),
    )
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
