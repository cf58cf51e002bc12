//! Session with a sensor: from an unknown state to a stream of scans, as bytes and time, without
//! I/O or clock.
//!
//! The state of a sensor is unknown at first: it may be streaming, in SCIP 1.1, or in time mode. A
//! session therefore ends whatever is in progress, and accepts only replies that carry its own
//! tags.

use std::time::Duration;

use thiserror::Error;

use super::command::{Command, Encoding, Sector, Symbol, TimeControl};
use super::reply::{Content, Parameters, Reply, ReplyError, Status, Version};
use super::sensor_clock::SensorClock;
use super::stream::Replies;

/// Session with one sensor. Feed it with [`Session::handle_bytes`] and [`Session::handle_timeout`];
/// after each of them call [`Session::poll_transmit`], [`Session::poll_event`] and
/// [`Session::poll_timeout`]. A session that failed cannot be resumed; create another one later.
#[derive(Debug)]
pub struct Session {
    replies: Replies,
    clock: SensorClock,
    step: SessionStep,
    /// Tag of the command in flight.
    tag: u16,
    /// Line to be sent.
    out: Option<Vec<u8>>,
    deadline_ns: u64,
    version: Version,
    parameters: Parameters,
    events: std::collections::VecDeque<Event>,
    encoding: Encoding,
    wrong_in_a_row: u32,
    counters: Counters,
}

/// Event of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The sensor answered, is in order and was requested to stream.
    Ready(Box<(Version, Parameters)>),
    /// A scan.
    Scan(Scanned),
    /// A reply was invalid; the session continues with the next one.
    Wrong(ReplyError),
    /// The session has failed.
    Failed(SessionError),
}

/// Scan with its time on the host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Start of the scan, host's clock.
    pub stamp_ns: u64,
    /// Sector of the scan.
    pub sector: Sector,
    /// Ranges, mm.
    pub ranges: Vec<u32>,
}

/// Reason for a failed session.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No reply came in time.
    #[error("no reply to {command} for {} ms: is it the right port, powered, and not in use by another program?", timeout.as_millis())]
    Silent {
        /// Command in flight.
        command: Symbol,
        /// Time waited.
        timeout: Duration,
    },
    /// The sensor refused a command.
    #[error("{command} refused with status {status}: {}", status.meaning(*command))]
    Refused {
        /// Command in flight.
        command: Symbol,
        /// Status of its reply.
        status: Status,
    },
    /// Scans stopped coming.
    #[error("no scan for {} ms", timeout.as_millis())]
    NoScans {
        /// Time waited.
        timeout: Duration,
    },
    /// The sensor sends bytes, but no valid replies.
    #[error("{count} wrong replies in a row, the last one: {last}")]
    Garbage {
        /// Number of invalid replies.
        count: u32,
        /// Error of the last one.
        last: ReplyError,
    },
    /// The sensor's parameters are impossible.
    #[error("its parameters make no sense: steps {first} to {last} of {turn} a turn, {longest} mm", first = .0.first, last = .0.last, turn = .0.steps_per_turn, longest = .0.longest)]
    Parameters(Box<Parameters>),
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans read.
    pub scans: u64,
    /// Invalid replies.
    pub wrong: u64,
    /// Replies to no command of the session.
    pub unasked: u64,
    /// Bytes that belonged to no reply.
    pub lost_bytes: u64,
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionStep {
    /// QT was sent; replies to other commands are ignored.
    Quiet,
    /// SCIP2.0 was sent; it need not be understood.
    Scip2,
    Version,
    Parameters,
    /// TM0, then TM1 several times, then TM2.
    TimeOn,
    TimeAsk(u8),
    TimeOff,
    LaserOn,
    /// MD was sent.
    Begin,
    Scans,
    Over,
}

/// Longest wait for a reply: at 19 200 bit/s a sensor may need more than a second to finish the
/// scan in progress.
pub const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Longest pause between scans. A turn takes at most 100 ms.
pub const SCAN_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of times the sensor's clock is read.
const TIMES: u8 = 3;

/// Consecutive invalid replies after which the session fails.
const MOST_WRONG: u32 = 20;

impl Session {
    /// Starts a session, at `now_ns` of any monotonic clock.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        let mut session = Self {
            replies: Replies::new(),
            clock: SensorClock::default(),
            step: SessionStep::Quiet,
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
        session.enter(SessionStep::Quiet, now_ns);
        session
    }

    /// Next bytes to be sent.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.take()
    }

    /// Next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Instant at which [`Session::handle_timeout`] is due; `None` once the session has failed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        (self.step != SessionStep::Over).then_some(self.deadline_ns)
    }

    /// Counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { lost_bytes: self.replies.lost(), ..self.counters }
    }

    /// Handles bytes that arrived at `now_ns`.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        self.replies.push(bytes);
        while let Some(reply) = self.replies.next_reply() {
            match reply {
                _ if self.step == SessionStep::Over => {}
                Ok(reply) => self.reply(reply, now_ns),
                // Before the sensor has been silenced, garbage is expected.
                Err(_) if matches!(self.step, SessionStep::Quiet | SessionStep::Scip2) => {
                    self.counters.unasked += 1
                }
                Err(error) => self.wrong(error),
            }
        }
    }

    /// Handles the instant given by [`Session::poll_timeout`].
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        match self.step {
            SessionStep::Over => {}
            // SCIP 1.1 has no QT.
            SessionStep::Quiet => self.enter(SessionStep::Scip2, now_ns),
            SessionStep::Scans => self.fail(SessionError::NoScans { timeout: SCAN_TIMEOUT }),
            step => {
                let command = self.command(step).map_or(Symbol::LaserOff, |it| it.symbol());
                self.fail(SessionError::Silent { command, timeout: TIMEOUT });
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
        self.step = SessionStep::Over;
        self.out = None;
        self.events.push_back(Event::Failed(why));
    }

    /// True if the reply answers the command in flight. Scans carry the tag of their MD.
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
            (SessionStep::Scans, Content::Scan { time, ranges }) => {
                self.counters.scans += 1;
                self.deadline_ns = after(now_ns, SCAN_TIMEOUT);
                let stamp_ns = self.clock.host_ns(time, now_ns);
                let scanned = Scanned { stamp_ns, sector: reply.echo.sector, ranges };
                self.events.push_back(Event::Scan(scanned));
            }
            (SessionStep::Quiet, _) => self.enter(SessionStep::Scip2, now_ns),
            // A sensor that supports only SCIP 2.0 does not know the command.
            (SessionStep::Scip2, _) => self.enter(SessionStep::Version, now_ns),
            (SessionStep::Version, Content::Version(version)) => {
                self.version = version;
                self.enter(SessionStep::Parameters, now_ns);
            }
            (SessionStep::Parameters, Content::Parameters(parameters)) => {
                self.parameters(parameters, now_ns)
            }
            // Some models have no time mode, and some may have been left in it; scans set the
            // clock, too.
            (SessionStep::TimeOn, _) if done || reply.status.0 == *b"02" => {
                self.enter(SessionStep::TimeAsk(0), now_ns)
            }
            (SessionStep::TimeOn, _) => self.enter(SessionStep::LaserOn, now_ns),
            (SessionStep::TimeAsk(asked), Content::Time(time)) => {
                self.clock.host_ns(time, now_ns);
                let next =
                    if asked + 1 < TIMES { SessionStep::TimeAsk(asked + 1) } else { SessionStep::TimeOff };
                self.enter(next, now_ns);
            }
            (SessionStep::TimeAsk(_), _) => self.enter(SessionStep::TimeOff, now_ns),
            (SessionStep::TimeOff, _) => self.enter(SessionStep::LaserOn, now_ns),
            // A laser that is on already is accepted.
            (SessionStep::LaserOn, _) if done || reply.status.0 == *b"02" => {
                self.enter(SessionStep::Begin, now_ns)
            }
            (SessionStep::Begin, Content::Nothing) if done => {
                self.enter(SessionStep::Scans, now_ns);
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
        self.enter(SessionStep::TimeOn, now_ns);
    }

    fn command(&self, step: SessionStep) -> Option<Command> {
        let Parameters { first, last, .. } = self.parameters;
        Some(match step {
            SessionStep::Quiet => Command::LaserOff,
            SessionStep::Scip2 => Command::Scip2,
            SessionStep::Version => Command::Version,
            SessionStep::Parameters => Command::Parameters,
            SessionStep::TimeOn => Command::Time(TimeControl::On),
            SessionStep::TimeAsk(_) => Command::Time(TimeControl::Ask),
            SessionStep::TimeOff => Command::Time(TimeControl::Off),
            SessionStep::LaserOn => Command::LaserOn,
            SessionStep::Begin | SessionStep::Scans => {
                let sector = Sector { first, last, cluster: 1 };
                Command::Stream { sector, encoding: self.encoding, skip: 0, scans: 0 }
            }
            SessionStep::Over => return None,
        })
    }

    fn enter(&mut self, step: SessionStep, now_ns: u64) {
        self.step = step;
        let timeout = if step == SessionStep::Scans { SCAN_TIMEOUT } else { TIMEOUT };
        self.deadline_ns = after(now_ns, timeout);
        if step == SessionStep::Scans {
            return;
        }
        self.tag = self.tag % 9_999 + 1;
        let Some(command) = self.command(step) else { return };
        let mut line = Vec::new();
        command.emit(Some(self.tag), &mut line);
        self.out = Some(line);
    }
}

fn after(now_ns: u64, timeout: Duration) -> u64 {
    now_ns.saturating_add(timeout.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::range_finder::{Faults, Sensor, Settings};

    const MS: u64 = 1_000_000;

    /// Events of a session, and its final state.
    struct Talk {
        events: Vec<Event>,
        session: Session,
        /// Time of each event, ms.
        at: Vec<u64>,
    }

    impl Talk {
        fn scans(&self) -> usize {
            self.events.iter().filter(|event| matches!(event, Event::Scan(_))).count()
        }

        fn failure(&self) -> Option<String> {
            self.events.iter().find_map(|event| match event {
                Event::Failed(error) => Some(error.to_string()),
                _ => None,
            })
        }

        fn ready_at_ms(&self) -> Option<u64> {
            let place = self.events.iter().position(|event| matches!(event, Event::Ready(_)))?;
            Some(self.at[place])
        }
    }

    fn talk(faults: Faults, milliseconds: u64) -> Talk {
        let noise = 0;
        let mut sensor = Sensor::new(Settings { faults, noise, ..Settings::default() }, 5_000 * MS);
        let begin = 7_000 * MS;
        let mut session = Session::new(begin);
        let (mut events, mut at) = (Vec::new(), Vec::new());
        for millisecond in 0..milliseconds {
            let now = begin + millisecond * MS;
            if let Some(line) = session.poll_transmit() {
                sensor.handle_bytes(&line, now);
            }
            let said = sensor.poll_transmit(now);
            session.handle_bytes(&said, now);
            if session.poll_timeout().is_some_and(|deadline| deadline <= now) {
                session.handle_timeout(now);
            }
            while let Some(event) = session.poll_event() {
                events.push(event);
                at.push(millisecond);
            }
        }
        Talk { events, session, at }
    }

    #[test]
    fn sensor_identifies_itself_and_streams() {
        let talk = talk(Faults::default(), 2_000);
        assert_eq!(talk.failure(), None);
        assert!(talk.ready_at_ms().unwrap() < 20);
        assert!((18..=20).contains(&talk.scans()), "{}", talk.scans());
        let Some(Event::Ready(told)) = talk.events.first() else { panic!("{:?}", talk.events) };
        assert_eq!((told.1.first, told.1.last, told.1.longest), (44, 725, 5_600));
        let Some(Event::Scan(scan)) = talk.events.get(3) else { panic!() };
        // Ahead, at step 384, is a wall at 3 m; stamps are in virtual time.
        assert_eq!(scan.ranges[384 - 44], 3_000);
        assert!(scan.stamp_ns % (100 * MS) < 20 * MS, "{}", scan.stamp_ns);
        assert_eq!(talk.session.counters().wrong, 0);
    }

    #[test]
    fn old_protocol_or_streaming_sensor_is_reset() {
        let old = talk(Faults { old_protocol: true, ..Faults::default() }, 4_000);
        assert_eq!((old.failure(), old.scans() > 15), (None, true), "{:?}", old.events.first());
        let streaming = talk(Faults { streams_already: true, ..Faults::default() }, 2_000);
        assert_eq!((streaming.failure(), streaming.scans() > 15), (None, true));
    }

    #[test]
    fn scans_with_wrong_sums_or_cut_short_cost_no_others() {
        let faults = Faults { wrong_sum_in: 5, half_in: 7, ..Faults::default() };
        let talk = talk(faults, 4_000);
        assert_eq!(talk.failure(), None);
        let wrong = talk.events.iter().filter(|event| matches!(event, Event::Wrong(_))).count();
        // Of 40 scans every fifth has a wrong sum; every seventh has no end and is found in front
        // of the next.
        assert!(talk.scans() >= 25 && wrong >= 6, "{} scans, {wrong} wrong", talk.scans());
        assert!(talk.session.counters().lost_bytes > 0);
        assert!(talk.events.iter().all(|event| match event {
            Event::Scan(scan) => scan.ranges.len() == 682 && scan.ranges[340] == 3_000,
            _ => true,
        }));
    }

    #[test]
    fn silence_garbage_and_a_broken_laser_end_it_with_a_reason() {
        let mute = talk(Faults { mute: true, ..Faults::default() }, 8_000);
        assert_eq!(
            mute.failure().unwrap(),
            "no reply to SCIP2.0 for 1500 ms: is it the right port, powered, and not in use by another program?"
        );
        let garbage = talk(Faults { garbage: true, ..Faults::default() }, 8_000);
        assert!(garbage.failure().unwrap().starts_with("no reply to SCIP2.0"), "{:?}", garbage.failure());
        let broken = talk(Faults { broken_laser: true, ..Faults::default() }, 2_000);
        assert_eq!(broken.failure().unwrap(), "BM refused with status 01: its laser is broken");
        let silent = talk(Faults { silent_after: 5, ..Faults::default() }, 4_000);
        assert_eq!((silent.scans(), silent.failure().unwrap()), (5, "no scan for 1000 ms".to_owned()));
    }

    #[test]
    fn garbage_without_end_ends_it_too() {
        let mut session = Session::new(0);
        session.step = SessionStep::Version;
        for number in 0..30 {
            session.handle_bytes(b"VV\n00P\nwrong\n\n", number);
        }
        let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
        assert!(
            matches!(events.last(), Some(Event::Failed(SessionError::Garbage { count: 20, .. }))),
            "{events:?}"
        );
        assert_eq!((events.len(), session.poll_timeout()), (20, None));
    }

    #[test]
    fn parameters_that_make_no_sense_end_it() {
        let settings = Settings { sector: [700, 44, 384], ..Settings::default() };
        let mut sensor = Sensor::new(settings, 0);
        let mut session = Session::new(0);
        for now in 0..2_000 {
            if let Some(line) = session.poll_transmit() {
                sensor.handle_bytes(&line, now * MS);
            }
            session.handle_bytes(&sensor.poll_transmit(now * MS), now * MS);
        }
        let failed = std::iter::from_fn(|| session.poll_event()).last();
        let Some(Event::Failed(error)) = failed else { panic!("{failed:?}") };
        assert_eq!(
            error.to_string(),
            "its parameters make no sense: steps 700 to 44 of 1024 a turn, 5600 mm"
        );
    }
}
