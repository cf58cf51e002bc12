//! Positions that the operator gives an axis: measured at the machine and accepted, or set.
//!
//! Only `onbeat control` asks for this. No port, no controller, no ROS node and no Python program
//! can: the client's call is behind the feature `person`, and the server accepts a measured
//! position only from a process with a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rtrb::{Consumer, Producer, RingBuffer};
use types::codes;

use crate::force::Client;

/// Purpose of a position that the operator gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The axis was measured to be there: its reading is right.
    Accept,
    /// The axis is to count from there.
    Set,
}

/// A position for an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// Place of the axis, from 0.
    pub axis: usize,
    /// The position, rad.
    pub position: f64,
    /// Its purpose.
    pub purpose: Purpose,
}

codes! {
    /// Reason that a position is refused.
    Refusal: u32 {
        /// There is no such axis.
        NoSuchAxis = 1, "there is no axis of that index";
        /// NaN or infinite.
        NotFinite = 2, "the position is no finite number";
        /// The drive does not report a position.
        NoReading = 3, "its drive reports no position at the moment";
        /// The drive is enabled.
        Enabled = 4, "its drive is enabled; use `onbeat control disable` first";
        /// The axis moves.
        Moving = 5, "the axis is moving; wait for standstill";
        /// It has no position limits.
        NoLimits = 6, "it has no position limits, and is never unreferenced; use `onbeat control set-position`";
        /// It is referenced.
        Referenced = 7, "it is not unreferenced: there is nothing to accept";
        /// An incremental encoder.
        Incremental = 8, "its encoder is incremental, or the robot file does not name it; home the axis on a switch";
        /// The reading lies outside the limits.
        OutsideLimits = 9, "its reading lies outside its position limits; correct the drive's count or homing.offset";
        /// Both differ.
        Differs = 10, "the measured position and its reading differ by more than position_tolerance; correct the drive's count or homing.offset";
        /// It is unreferenced.
        Unreferenced = 11, "it is unreferenced; home it on a switch, or use `onbeat control accept-position`";
        /// Its encoder or its homing knows the position.
        KnowsBetter = 12, "it has position limits, and its absolute encoder or its homing method gives its position";
        /// Beyond the resolution of its drive's counts.
        TooFar = 13, "the position is farther than 1e8 rad from zero, where the counts of its drive cannot be resolved";
        /// Nothing makes it ready in this run: neither a homing on a switch, nor an absolute
        /// encoder.
        NoWayBack = 14, "its encoder is not absolute, and no homing of it finds a switch: add `homing` with a switch, or `encoder` and `encoder_range`, to the robot file; until then only a new start of `onbeat run` ends this, and takes the present reading as its position";
    }
}

impl std::error::Error for Refusal {}

/// The position before, rad, or the reason for a refusal.
pub type Outcome = Result<f64, Refusal>;

/// The cycle's end. Nothing here waits, allocates or makes a system call.
#[derive(Debug)]
pub struct Reader {
    asked: Consumer<(u64, Given, Client)>,
    answers: Producer<(u64, Outcome)>,
    open: Arc<AtomicU64>,
}

impl Reader {
    /// Takes the next request, with its number and its client; none for which the server has given
    /// up waiting.
    pub fn poll(&mut self) -> Option<(u64, Given, Client)> {
        while let Ok(asked) = self.asked.pop() {
            if close(&self.open, asked.0) {
                return Some(asked);
            }
        }
        None
    }

    /// Answers a request.
    pub fn answer(&mut self, number: u64, outcome: Outcome) {
        // As long as the ring of requests: a full one was abandoned by the server.
        let _ = self.answers.push((number, outcome));
    }
}

/// The server's end.
#[derive(Debug)]
pub(crate) struct References {
    asks: Producer<(u64, Given, Client)>,
    answered: Consumer<(u64, Outcome)>,
    number: u64,
    /// When the last request was passed on, or found to be taken by the cycle.
    begin: Instant,
    is_taken: bool,
    /// Number of the request that neither the cycle has taken nor the server given up; 0 for none.
    open: Arc<AtomicU64>,
}

/// Makes both ends.
pub(crate) fn pair() -> (References, Reader) {
    let ((asks, asked), (answers, answered)) = (RingBuffer::new(WAITING), RingBuffer::new(WAITING));
    let open = Arc::new(AtomicU64::new(0));
    let (begin, is_taken) = (Instant::now(), false);
    let server = References { asks, answered, number: 0, begin, is_taken, open: Arc::clone(&open) };
    (server, Reader { asked, answers, open })
}

/// True for the first of both ends that takes the request of this number, or gives it up.
fn close(open: &AtomicU64, number: u64) -> bool {
    // Relaxed: the rings carry all data; this decides only which end was first.
    open.compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

impl References {
    /// Passes a request on to the cycle, which answers it later: [`References::poll`]. False if
    /// there is no space.
    pub(crate) fn ask(&mut self, given: Given, by: Client) -> bool {
        self.number += 1;
        (self.begin, self.is_taken) = (Instant::now(), false);
        // Before the request: the cycle takes no other one.
        self.open.store(self.number, Ordering::Relaxed);
        self.asks.push((self.number, given, by)).is_ok()
    }

    /// Answer to the last request.
    pub(crate) fn poll(&mut self) -> Answer {
        while let Ok((number, outcome)) = self.answered.pop() {
            if number == self.number {
                return Answer::Outcome(outcome);
            }
        }
        if self.begin.elapsed() < PATIENCE {
            return Answer::Pending;
        }
        // The cycle carries out a request taken at the last moment: this waits for its answer.
        if !self.is_taken && !close(&self.open, self.number) {
            (self.begin, self.is_taken) = (Instant::now(), true);
            return Answer::Pending;
        }
        Answer::None
    }
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    /// It has not come yet.
    Pending,
    /// The cycle has decided.
    Outcome(Outcome),
    /// The cycle did not take the request in time: it is not carried out later.
    None,
}

/// Requests that wait for the cycle.
const WAITING: usize = 4;

/// Longest wait for the cycle, and interval at which its answer is looked for.
const PATIENCE: Duration = Duration::from_millis(200);
pub(crate) const LOOK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_gets_its_own_answer() {
        let (mut server, mut cycle) = pair();
        let by = Client { user: 1, process: 2 };
        let given = |axis| Given { axis, position: 0.5, purpose: Purpose::Set };
        let outcome = |server: &mut References, axis| {
            assert!(server.ask(given(axis), by));
            loop {
                match server.poll() {
                    Answer::Pending => std::thread::sleep(LOOK),
                    answer => return answer,
                }
            }
        };
        assert_eq!(outcome(&mut server, 0), Answer::None, "the cycle does not run");
        assert!(cycle.poll().is_none(), "a request that was refused is not carried out later");
        cycle.answer(1, Ok(9.0));
        let thread = std::thread::spawn(move || {
            loop {
                if let Some((number, asked, _)) = cycle.poll() {
                    assert_eq!(asked, given(3));
                    return cycle.answer(number, Err(Refusal::Moving));
                }
                std::thread::yield_now();
            }
        });
        let refused = Answer::Outcome(Err(Refusal::Moving));
        assert_eq!(outcome(&mut server, 3), refused, "not the late one");
        thread.join().unwrap();
    }
}
