//! The controller process's end.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::ends::newest_of;
use super::words::{self, Rows};
use super::{Answer, AxisAnswer, Request};
use crate::cell::{Found, Reader, Words, Writer};
use crate::client::Line;
use crate::region::{Other, Region, RegionError};
use crate::sys::futex;
use crate::sys::mapping::Use;
use crate::sys::now_ns;

/// The role of the controller; dropping it gives it back, and the axes are stopped as the robot
/// file says.
#[derive(Debug)]
pub struct Controller {
    requests: Reader<Region>,
    answers: Writer<Region>,
    line: Line,
    rows: Rows,
    incoming: Box<[u64]>,
    outgoing: Box<[u64]>,
    seen: u64,
    request: Request,
    answer: Answer,
}

impl Controller {
    pub(crate) fn open(
        requests: BorrowedFd<'_>,
        answers: BorrowedFd<'_>,
        line: Line,
        axes: usize,
        signals: usize,
    ) -> Result<Self, RegionError> {
        let rows = Rows { axes, signals, interlocks: 0 };
        let requests = Region::open(words::REQUEST, requests, Use::Load)?;
        let answers = Region::open(words::ANSWER, answers, Use::Store)?;
        let lengths = [words::request_length(rows), words::answer_length(rows)];
        for ((region, kind), length) in
            [(&requests, words::REQUEST), (&answers, words::ANSWER)].into_iter().zip(lengths)
        {
            if region.shape().words() != length {
                return Err(RegionError::Other(Other {
                    region: kind.name,
                    what: "number of words",
                    expected: length as u64,
                    found: region.shape().words() as u64,
                }));
            }
        }
        let shape = requests.shape();
        Ok(Self {
            requests: crate::region::reader(requests, shape)?,
            answers: crate::region::writer(answers)?,
            line,
            rows,
            incoming: vec![0; lengths[0]].into(),
            outgoing: vec![0; lengths[1]].into(),
            seen: 0,
            request: Request::default(),
            answer: Answer {
                axes: vec![AxisAnswer::default(); axes],
                outputs: vec![None; signals],
                ..Answer::default()
            },
        })
    }

    /// Sleeps until the cycle asks, and returns the newest request with an answer that says nothing
    /// yet; a request that is not answered yet counts as late. `None` once the cycle has ended.
    pub fn wait(&mut self) -> Option<Turn<'_>> {
        match self.sleep(u64::MAX) {
            Awake::Asked => Some(self.turn()),
            Awake::TimedOut | Awake::Ended => None,
        }
    }

    /// Does as [`Controller::wait`], for this time at most: while another controller is active
    /// nothing is asked.
    pub fn wait_for(&mut self, limit: Duration) -> Waited<'_> {
        let limit = types::time::nanoseconds(limit);
        match self.sleep(now_ns().saturating_add(limit)) {
            Awake::Asked => Waited::Asked(self.turn()),
            Awake::TimedOut => Waited::TimedOut,
            Awake::Ended => Waited::Ended,
        }
    }

    /// The request that was waited for last.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Sends an answer to it and wakes the cycle, as [`Turn::send`] does; true if it is in time.
    pub fn answer(&mut self, answer: &Answer) -> bool {
        words::encode_answer(answer, self.rows, &mut self.outgoing);
        let in_time = now_ns() <= self.request.deadline_ns;
        self.answers.publish(&self.outgoing);
        futex::wake(&self.answers.memory().words()[0]);
        in_time
    }

    fn sleep(&mut self, limit_ns: u64) -> Awake {
        loop {
            match self.requests.read(&mut self.incoming, ATTEMPTS) {
                Found::Whole(number) if number != self.seen => {
                    self.seen = number;
                    return Awake::Asked;
                }
                Found::Torn(_) => continue,
                Found::Whole(_) | Found::Nothing => {}
            }
            let until = now_ns().saturating_add(LOOK_NS).min(limit_ns);
            futex::wait(newest_of(self.requests.memory()), self.seen, until);
            // Checked only if nothing came: in a cycle the wait is the only system call.
            let now = now_ns();
            if self.requests.newest() == self.seen && now >= until {
                if self.line.has_ended() {
                    return Awake::Ended;
                }
                if now >= limit_ns {
                    return Awake::TimedOut;
                }
            }
        }
    }

    fn turn(&mut self) -> Turn<'_> {
        words::decode_request(&self.incoming, self.rows, &mut self.request);
        self.answer.axes.fill(AxisAnswer::default());
        self.answer.outputs.fill(None);
        self.answer.cycle = self.request.cycle;
        let Self { request, answer, answers, outgoing, rows, .. } = self;
        Turn { request, answer, answers, outgoing, rows: *rows }
    }
}

enum Awake {
    Asked,
    TimedOut,
    Ended,
}

/// Outcome of [`Controller::wait_for`].
#[derive(Debug)]
pub enum Waited<'a> {
    /// The cycle asks.
    Asked(Turn<'a>),
    /// It did not ask in this time.
    TimedOut,
    /// It has ended.
    Ended,
}

/// A request, and the answer to it.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Inputs of the cycle.
    pub request: &'a Request,
    /// The answer to be; as long as nothing is set in it, all stays as it was.
    pub answer: &'a mut Answer,
    answers: &'a mut Writer<Region>,
    outgoing: &'a mut [u64],
    rows: Rows,
}

impl Turn<'_> {
    /// True once the deadline of the answer has passed.
    #[must_use]
    pub fn is_late(&self) -> bool {
        now_ns() > self.request.deadline_ns
    }

    /// Sends the answer and wakes the cycle.
    pub fn send(self) {
        words::encode_answer(self.answer, self.rows, self.outgoing);
        self.answers.publish(self.outgoing);
        futex::wake(&self.answers.memory().words()[0]);
    }
}

/// Attempts of one read: the cycle laps the reader only with three requests during one copy.
const ATTEMPTS: u32 = 16;

/// Time after which a process without requests checks for the end of the cycle.
const LOOK_NS: u64 = 100_000_000;
