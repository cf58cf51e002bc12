//! Signals and axes of every cycle, for a recording: rows of words in a ring that never waits. A
//! row without space is dropped; its reader misses its number.

use std::iter;

use motion::AxisSetpoint;
use rtrb::{Consumer, Producer, RingBuffer};
use types::signal::Flow;
use types::{Signal, Value};

use crate::controller::AxisReport;
use crate::signal::{FORCED, FRESH, Signals};

/// The real-time side's end.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Places of the signals.
    places: Vec<usize>,
    /// Words of a row.
    width: usize,
    ring: Producer<u64>,
}

/// Signals and axes of a running cycle, a row for each cycle from Op on, oldest first.
///
/// The ring holds 16 MiB, and half a minute at 1 kHz at most.
#[derive(Debug)]
pub struct Samples {
    signals: Vec<Signal>,
    ring: Consumer<u64>,
    /// The row that was found last.
    row: Vec<u64>,
    found: bool,
}

/// Both ends, for the signals at these places and this many axes.
pub(crate) fn sampling(signals: &Signals, mut places: Vec<usize>, axes: usize) -> (Sampler, Samples) {
    places.retain(|&place| signals.at(place).is_some());
    let width = 1 + 2 * places.len() + AXIS_WORDS * axes;
    let rows = (BYTES / (8 * width)).clamp(1, ROWS);
    let (mut sender, mut ring) = RingBuffer::new(rows * width);
    // All of its pages are there before the first cycle.
    if let Ok(chunk) = sender.write_chunk(rows * width) {
        chunk.commit_all();
    }
    if let Ok(chunk) = ring.read_chunk(rows * width) {
        chunk.commit_all();
    }
    let chosen = places.iter().filter_map(|&place| signals.at(place).cloned()).collect();
    let samples = Samples { signals: chosen, ring, row: vec![0; width], found: false };
    (Sampler { places, width, ring: sender }, samples)
}

impl Sampler {
    /// True while half of the ring is free.
    pub(crate) fn has_room(&self) -> bool {
        self.ring.slots() >= self.ring.buffer().capacity() / 2
    }

    /// Hands a row over, or drops it. Allocates nothing and makes no system call.
    pub(crate) fn write<'a>(
        &mut self,
        cycle: u64,
        signals: &Signals,
        axes: impl Iterator<Item = (&'a AxisReport, AxisSetpoint)>,
    ) {
        let Ok(row) = self.ring.write_chunk_uninit(self.width) else { return };
        let of_signals = self.places.iter().flat_map(|&place| signals.sample(place));
        let words = iter::once(cycle).chain(of_signals).chain(axes.flat_map(of_axis));
        // A row is whole: the next begins behind it.
        row.fill_from_iter(words.chain(iter::repeat(0)));
    }
}

impl Samples {
    /// Signals of a row, in their order.
    #[must_use]
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Advances to the row of this cycle, which [`Samples::values`] returns; false if it was
    /// dropped. Earlier rows are discarded.
    pub fn go_to(&mut self, cycle: u64) -> bool {
        self.found = false;
        while let Ok(&next) = self.ring.peek() {
            if next > cycle {
                break;
            }
            let Ok(chunk) = self.ring.read_chunk(self.row.len()) else { break };
            let (front, back) = chunk.as_slices();
            let (to_front, to_back) = self.row.split_at_mut(front.len());
            to_front.copy_from_slice(front);
            to_back.copy_from_slice(back);
            chunk.commit_all();
            if next == cycle {
                self.found = true;
                break;
            }
        }
        self.found
    }

    /// Values of the cycle that was gone to: number of forced signals; of each signal its value,
    /// and 1 if it is forced; of each axis position, velocity and torque, then its targets of them,
    /// the state of its drive, the reason of its stop (0 of none) and its error code. `None` is
    /// what did not come in with this cycle; all are, if its row was dropped.
    pub fn values(&self) -> impl Iterator<Item = Option<Value>> + '_ {
        let (of_signals, of_axes) = self.row[1..].split_at(2 * self.signals.len());
        let of_signals = of_signals.chunks_exact(2);
        let forced = of_signals.clone().filter(|words| words[1] & FORCED != 0).count();
        let signals = self.signals.iter().zip(of_signals).flat_map(|(signal, words)| {
            // An output has the sent value, whether or not it was received.
            let known = words[1] != 0 || signal.flow != Flow::Input;
            let forced = u64::from(words[1] & FORCED != 0);
            [known.then(|| signal.value(words[0])), Some(Value::Unsigned(forced))]
        });
        let axes = of_axes.chunks_exact(AXIS_WORDS).flat_map(|words| {
            let real = |&word: &u64| Value::Real(f64::from_bits(word));
            let fresh = words[0] & FRESH != 0;
            let feedback = words[1..4].iter().map(move |word| fresh.then(|| real(word)));
            feedback.chain(words[4..].iter().map(move |word| Some(real(word)))).chain(state(words[0]))
        });
        let forced = iter::once(Some(Value::Unsigned(forced as u64)));
        let found = self.found;
        forced.chain(signals).chain(axes).map(move |value| value.filter(|_| found))
    }
}

/// State of the drive, reason of the stop and error code, out of the first word of an axis.
fn state(word: u64) -> [Option<Value>; 3] {
    let byte = |place: usize| u64::from(word.to_le_bytes()[place]);
    let drive = Some(byte(DRIVE_STATE)).filter(|state| *state != 0).map(Value::Unsigned);
    let error_code = byte(ERROR_CODE) | byte(ERROR_CODE + 1) << 8;
    [drive, Some(Value::Unsigned(byte(STOP))), Some(Value::Unsigned(error_code))]
}

/// Words of an axis: flags and state, feedback, targets.
fn of_axis((report, sent): (&AxisReport, AxisSetpoint)) -> [u64; AXIS_WORDS] {
    let feedback = report.feedback;
    let numbers = [
        feedback.position.0,
        feedback.velocity.0,
        feedback.torque.0,
        sent.position.0,
        sent.velocity.0,
        sent.torque.0,
    ];
    let [a, b, c, d, e, f] = numbers.map(f64::to_bits);
    let mut first = (if feedback.fresh { FRESH } else { 0 }).to_le_bytes();
    first[DRIVE_STATE] = report.state.map_or(0, |state| state as u8);
    first[STOP] = report.stop.map_or(0, |stop| stop as u8);
    first[ERROR_CODE..][..2].copy_from_slice(&report.error_code.to_le_bytes());
    [u64::from_le_bytes(first), a, b, c, d, e, f]
}

/// Bytes of the first word of an axis; flags are in byte 0.
const DRIVE_STATE: usize = 2;
const STOP: usize = 3;
const ERROR_CODE: usize = 4;

const AXIS_WORDS: usize = 7;

/// Rows at most.
const ROWS: usize = 1 << 15;

/// Bytes of a ring at most, unless that is less than a row.
const BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use ipc::state::{DriveState, StopReason};
    use motion::{AxisFeedback, NewtonMetres, Radians, RadiansPerSecond};

    use super::*;

    fn report(number: f64, fresh: bool) -> AxisReport {
        let feedback = AxisFeedback {
            position: Radians(number),
            velocity: RadiansPerSecond(number + 0.25),
            torque: NewtonMetres(number + 0.5),
            fresh,
            ..AxisFeedback::default()
        };
        AxisReport {
            feedback,
            state: fresh.then_some(DriveState::Fault),
            stop: Some(StopReason::Fault),
            error_code: 0x7500,
            ..AxisReport::default()
        }
    }

    fn write(sampler: &mut Sampler, cycle: u64, fresh: bool) {
        let report = report(cycle as f64, fresh);
        let sent = AxisSetpoint { position: Radians(-(cycle as f64)), ..AxisSetpoint::default() };
        sampler.write(cycle, &Signals::default(), iter::once((&report, sent)));
    }

    // feature(measure): recordings with signals and axes, cycle by cycle
    #[test]
    fn a_full_ring_drops_rows_and_the_others_stay_of_their_cycles() {
        let (mut sampler, mut samples) = sampling(&Signals::default(), vec![7], 1);
        let room = ROWS as u64;
        (0..room + 10).for_each(|cycle| write(&mut sampler, cycle, true));
        assert!((0..room).all(|cycle| samples.go_to(cycle)
            && samples.values().nth(1) == Some(Some(Value::Real(cycle as f64)))));
        for cycle in room..room + 10 {
            assert!(!samples.go_to(cycle));
            assert!(samples.values().count() == 10 && samples.values().all(|it| it.is_none()));
        }
        // A later reader finds the rows from there on, across the end of the ring too.
        (room + 10..2 * room).for_each(|cycle| write(&mut sampler, cycle, cycle % 2 == 0));
        assert!(!samples.go_to(room + 9), "the next is kept");
        for cycle in [room + 10, room + 11, room + 500, 2 * room - 1] {
            assert!(samples.go_to(cycle));
            let number = cycle as f64;
            let feedback = [number, number + 0.25, number + 0.5].map(|it| (cycle % 2 == 0).then_some(it));
            let targets = [-number, 0.0, 0.0].map(Some);
            let expected = feedback.into_iter().chain(targets).map(|it| it.map(Value::Real));
            let drive = (cycle % 2 == 0).then_some(DriveState::Fault as u64);
            let state = [drive, Some(StopReason::Fault as u64), Some(0x7500)];
            let expected = expected.chain(state.map(|it| it.map(Value::Unsigned)));
            assert!(samples.values().skip(1).eq(expected), "{:?}", samples.values().collect::<Vec<_>>());
        }
        assert!(!samples.go_to(2 * room));
    }
}
