//! A controller process in virtual time.

use std::sync::mpsc::Sender;
use std::time::Duration;

use ethercat::time::Instant;
use ipc::controller::{Answer, AxisAnswer, ControllerCounters, Received, Request as Question, Wrong};
use onbeat_control::external::Remote;
use rt::clock::{Clock, VirtualClock};

use super::DRIVES;

pub(crate) const BACK_AFTER: u64 = 300;

/// Answer that comes so long after the request.
pub(crate) type Coming = (Duration, Result<Answer, Wrong>);

/// A process in virtual time: its answers to a request, and `None` if it is gone.
pub(crate) trait Process: FnMut(&Question) -> Option<Vec<Coming>> + Send {}

impl<F: FnMut(&Question) -> Option<Vec<Coming>> + Send> Process for F {}

pub(crate) struct Fake<P> {
    pub(crate) clock: VirtualClock,
    pub(crate) process: P,
    pub(crate) coming: Vec<(Instant, Result<Answer, Wrong>)>,
    pub(crate) is_attached: bool,
    pub(crate) holder: u64,
    /// Requests after which another process is there from one look to the next.
    pub(crate) follows_after: u64,
    pub(crate) asked: u64,
    /// Polls without a process since it was gone.
    pub(crate) away: u64,
    pub(crate) counters: Sender<ControllerCounters>,
}

impl<P: Process> Remote for Fake<P> {
    fn blank_request(&self) -> Question {
        Question {
            axes: vec![ipc::state::Axis::default(); DRIVES],
            command: ipc::controller::ExternalCommand { axes: vec![None; DRIVES], ..Default::default() },
            ..Question::default()
        }
    }

    fn blank_answer(&self) -> Answer {
        Answer { axes: vec![AxisAnswer::default(); DRIVES], ..Answer::default() }
    }

    fn newest(&mut self, answer: &mut Answer) -> Received {
        if !self.is_attached {
            self.away += 1;
            self.is_attached = self.away > BACK_AFTER;
            self.holder += u64::from(self.is_attached);
            return Received::Nothing;
        }
        let now = self.clock.now();
        let Some(place) = self.coming.iter().position(|(at, _)| *at <= now) else {
            return Received::Nothing;
        };
        match self.coming.remove(place).1 {
            Ok(found) => {
                answer.clone_from(&found);
                Received::Answer
            }
            Err(why) => Received::Wrong(why),
        }
    }

    fn holder(&self) -> Option<u64> {
        let follows = self.asked >= self.follows_after;
        self.is_attached.then_some(self.holder + u64::from(follows))
    }

    fn ask(&mut self, request: &Question) {
        self.asked += 1;
        let answers = (self.process)(request);
        (self.is_attached, self.away) = (answers.is_some(), 0);
        let now = self.clock.now();
        let answers = answers.into_iter().flatten();
        self.coming.extend(answers.map(|(after, answer)| (now + after, answer)));
    }

    fn wait(&mut self, deadline: Instant) {
        let next = self.coming.iter().map(|(at, _)| *at).min().unwrap_or(deadline);
        self.clock.sleep_until(next.min(deadline));
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn count(&self, counters: &ControllerCounters) {
        let _ = self.counters.send(counters.clone());
    }
}
