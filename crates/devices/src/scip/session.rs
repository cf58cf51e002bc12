//! From a sensor one knows nothing of to a stream of scans, as bytes and time; no I/O, no clock.
//!
//! What a sensor does when it is found is anybody's guess: it may be streaming, in SCIP 1.1, or telling its time. So a
//! session first ends whatever goes on, and believes only replies that carry its own tags.

use std::time::Duration;

use thiserror::Error;

use super::command::{Command, Encoding, Sector, Symbol, TimeControl};
use super::reply::{Content, Parameters, Reply, ReplyError, Status, Version};
use super::sensor_clock::SensorClock;
use super::stream::Replies;

/// A conversation with one sensor. Feed it with [`Session::handle_bytes`] and [`Session::handle_timeout`]; after each of
/// them ask [`Session::poll_transmit`], [`Session::poll_event`] and [`Session::poll_timeout`]. A session that failed is
/// over: make another one, later.
#[derive(Debug)]
pub struct Session {
    replies: Replies,
    clock: SensorClock,
    step: Step,
    /// Tag of the command that is out.
    tag: u16,
    /// To be sent.
    out: Option<Vec<u8>>,
    deadline_ns: u64,
    version: Version,
    parameters: Parameters,
    events: std::collections::VecDeque<Event>,
    encoding: Encoding,
    wrong_in_a_row: u32,
    counters: Counters,
}

/// What a session has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The sensor answered, is in order and was told to stream.
    Ready(Box<(Version, Parameters)>),
    /// A scan.
    Scan(Scanned),
    /// A reply that cannot be believed; the session goes on with the next.
    Wrong(ReplyError),
    /// The session is over.
    Failed(SessionError),
}

/// A scan, in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// When it began, on the host's clock.
    pub stamp_ns: u64,
    /// Which part of a turn.
    pub sector: Sector,
    /// mm.
    pub ranges: Vec<u32>,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionError {
    /// No reply in time.
    #[error("no reply to {command} for {} ms: is it the right port, powered, and not in use by another program?", patience.as_millis())]
    Silent {
        /// What was asked.
        command: Symbol,
        /// For how long.
        patience: Duration,
    },
    /// It refused a command.
    #[error("{command} refused with status {status}: {}", status.meaning(*command))]
    Refused {
        /// What was asked.
        command: Symbol,
        /// What it said.
        status: Status,
    },
    /// Scans stopped coming.
    #[error("no scan for {} ms", patience.as_millis())]
    NoScans {
        /// For how long.
        patience: Duration,
    },
    /// It speaks, but nothing that can be believed.
    #[error("{count} wrong replies in a row, the last one: {last}")]
    Garbage {
        /// How many.
        count: u32,
        /// What was wrong with the last.
        last: ReplyError,
    },
    /// It says it can do what no sensor can.
    #[error("its parameters make no sense: steps {first} to {last} of {turn} a turn, {longest} mm", first = .0.first, last = .0.last, turn = .0.steps_per_turn, longest = .0.longest)]
    Parameters(Box<Parameters>),
}

/// What was counted in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans read.
    pub scans: u64,
    /// Replies that could not be believed.
    pub wrong: u64,
    /// Replies to nothing that was asked.
    pub unasked: u64,
    /// Bytes that belonged to no reply.
    pub lost_bytes: u64,
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// QT was sent; what comes meanwhile is of others.
    Quiet,
    /// SCIP2.0 was sent, and does not have to be understood.
    Scip2,
    Version,
    Parameters,
    /// TM0, then TM1 some times, then TM2.
    TimeOn,
    TimeAsk(u8),
    TimeOff,
    LaserOn,
    /// MD was sent.
    Begin,
    Scans,
    Over,
}

/// How long a reply may take: a sensor at 19 200 bit/s needs more than a second for a whole scan it was just sending.
pub const PATIENCE: Duration = Duration::from_millis(1_500);

/// How long scans may stay away. A turn takes 100 ms at most.
pub const SCAN_PATIENCE: Duration = Duration::from_secs(1);

/// How often the sensor's time is asked for.
const TIMES: u8 = 3;

/// So many wrong replies in a row are no accident.
const MOST_WRONG: u32 = 20;

impl Session {
    /// Begins to talk, at `now_ns` of any clock that does not go back.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        let mut session = Self {
            replies: Replies::new(),
            clock: SensorClock::default(),
            step: Step::Quiet,
            tag: 0,
            out: None,
            deadline_ns: 0,
            version: Version::default(),
            parameters: Parameters::default(),
            events: std::collections::VecDeque::new(),
            encoding: Encoding::Long,
            wrong_in_a_row: 0,
            counters: Counters::default(),
        };
        session.enter(Step::Quiet, now_ns);
        session
    }

    /// Bytes to be sent.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.take()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::handle_timeout`] is due; `None` when the session is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        (self.step != Step::Over).then_some(self.deadline_ns)
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { lost_bytes: self.replies.lost(), ..self.counters }
    }

    /// Bytes came at `now_ns`.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        self.replies.push(bytes);
        while let Some(reply) = self.replies.next_reply() {
            match reply {
                _ if self.step == Step::Over => {}
                Ok(reply) => self.reply(reply, now_ns),
                // Before it was told to be quiet it may say what it likes.
                Err(_) if matches!(self.step, Step::Quiet | Step::Scip2) => self.counters.unasked += 1,
                Err(error) => self.wrong(error),
            }
        }
    }

    /// The instant of [`Session::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        match self.step {
            Step::Over => {}
            // In SCIP 1.1 there is no QT.
            Step::Quiet => self.enter(Step::Scip2, now_ns),
            Step::Scans => self.fail(SessionError::NoScans { patience: SCAN_PATIENCE }),
            step => {
                let command = self.command(step).map_or(Symbol::LaserOff, |it| it.symbol());
                self.fail(SessionError::Silent { command, patience: PATIENCE });
            }
        }
    }

    fn wrong(&mut self, error: ReplyError) {
        self.counters.wrong += 1;
        self.wrong_in_a_row += 1;
        if self.wrong_in_a_row >= MOST_WRONG {
            self.fail(SessionError::Garbage { count: self.wrong_in_a_row, last: error });
        } else {
            self.events.push_back(Event::Wrong(error));
        }
    }

    fn fail(&mut self, why: SessionError) {
        self.step = Step::Over;
        self.out = None;
        self.events.push_back(Event::Failed(why));
    }

    /// Is it the answer to what is out? Scans carry the tag of their MD.
    fn is_asked_for(&self, reply: &Reply) -> bool {
        let symbol = self.command(self.step).map(|it| it.symbol());
        symbol == Some(reply.echo.symbol)
            && (reply.echo.symbol == Symbol::Scip2 || reply.echo.tag == Some(self.tag))
    }

    fn reply(&mut self, reply: Reply, now_ns: u64) {
        if !self.is_asked_for(&reply) {
            self.counters.unasked += 1;
            return;
        }
        self.wrong_in_a_row = 0;
        let done = reply.status == Status::DONE;
        match (self.step, reply.content) {
            (Step::Scans, Content::Scan { time, ranges }) => {
                self.counters.scans += 1;
                self.deadline_ns = after(now_ns, SCAN_PATIENCE);
                let stamp_ns = self.clock.host_ns(time, now_ns);
                let scanned = Scanned { stamp_ns, sector: reply.echo.sector, ranges };
                self.events.push_back(Event::Scan(scanned));
            }
            (Step::Quiet, _) => self.enter(Step::Scip2, now_ns),
            // A sensor that speaks nothing else does not know the command.
            (Step::Scip2, _) => self.enter(Step::Version, now_ns),
            (Step::Version, Content::Version(version)) => {
                self.version = version;
                self.enter(Step::Parameters, now_ns);
            }
            (Step::Parameters, Content::Parameters(parameters)) => self.parameters(parameters, now_ns),
            // Some models tell no time, and one may have been left telling it: scans set the clock, too.
            (Step::TimeOn, _) if done || reply.status.0 == *b"02" => self.enter(Step::TimeAsk(0), now_ns),
            (Step::TimeOn, _) => self.enter(Step::LaserOn, now_ns),
            (Step::TimeAsk(asked), Content::Time(time)) => {
                self.clock.host_ns(time, now_ns);
                let next = if asked + 1 < TIMES { Step::TimeAsk(asked + 1) } else { Step::TimeOff };
                self.enter(next, now_ns);
            }
            (Step::TimeAsk(_), _) => self.enter(Step::TimeOff, now_ns),
            (Step::TimeOff, _) => self.enter(Step::LaserOn, now_ns),
            // On already is on.
            (Step::LaserOn, _) if done || reply.status.0 == *b"02" => self.enter(Step::Begin, now_ns),
            (Step::Begin, Content::Nothing) if done => {
                self.enter(Step::Scans, now_ns);
                let told = (self.version.clone(), self.parameters.clone());
                self.events.push_back(Event::Ready(Box::new(told)));
            }
            _ => self.fail(SessionError::Refused { command: reply.echo.symbol, status: reply.status }),
        }
    }

    fn parameters(&mut self, parameters: Parameters, now_ns: u64) {
        let turn = parameters.steps_per_turn;
        let sensible = parameters.first <= parameters.last
            && turn > 0
            && u32::from(parameters.last - parameters.first) <= turn
            && parameters.shortest < parameters.longest;
        if !sensible {
            return self.fail(SessionError::Parameters(Box::new(parameters)));
        }
        self.encoding = if parameters.longest < 4_096 { Encoding::Short } else { Encoding::Long };
        self.parameters = parameters;
        self.enter(Step::TimeOn, now_ns);
    }

    fn command(&self, step: Step) -> Option<Command> {
        let Parameters { first, last, .. } = self.parameters;
        Some(match step {
            Step::Quiet => Command::LaserOff,
            Step::Scip2 => Command::Scip2,
            Step::Version => Command::Version,
            Step::Parameters => Command::Parameters,
            Step::TimeOn => Command::Time(TimeControl::On),
            Step::TimeAsk(_) => Command::Time(TimeControl::Ask),
            Step::TimeOff => Command::Time(TimeControl::Off),
            Step::LaserOn => Command::LaserOn,
            Step::Begin | Step::Scans => {
                let sector = Sector { first, last, cluster: 1 };
                Command::Stream { sector, encoding: self.encoding, skip: 0, scans: 0 }
            }
            Step::Over => return None,
        })
    }

    fn enter(&mut self, step: Step, now_ns: u64) {
        self.step = step;
        let patience = if step == Step::Scans { SCAN_PATIENCE } else { PATIENCE };
        self.deadline_ns = after(now_ns, patience);
        if step == Step::Scans {
            return;
        }
        self.tag = self.tag % 9_999 + 1;
        let Some(command) = self.command(step) else { return };
        let mut line = Vec::new();
        command.emit(Some(self.tag), &mut line);
        self.out = Some(line);
    }
}

fn after(now_ns: u64, patience: Duration) -> u64 {
    now_ns.saturating_add(patience.as_nanos() as u64)
}

#[cfg(test)]
mod tests;
