//! Signals and axes of every cycle, for a recording: words of its publication in a ring that never
//! waits. A row without space is dropped; its reader misses its number.

use std::iter;
use std::ops::Range;

use ipc::state::{Rows, State, decode};
use rtrb::{Consumer, Producer, RingBuffer};
use types::signal::Flow;
use types::{Signal, Value};

use crate::signal::Signals;

/// The real-time side's end.
#[derive(Debug)]
pub(crate) struct Sampler {
    places: Vec<usize>,
    parts: SampledWords,
    ring: Producer<u64>,
    /// Waits for space since there was some; at [`MOST_WAITS`] the reader is given up for good.
    waits: u32,
}

/// Signals and axes of a running cycle, a row for each cycle from Op on, oldest first.
///
/// The ring holds 16 MiB, and half a minute at 1 kHz at most.
#[derive(Debug)]
pub struct Samples {
    places: Vec<usize>,
    signals: Vec<Signal>,
    parts: SampledWords,
    ring: Consumer<u64>,
    /// Words of the row that was found last, at their places in a publication.
    words: Vec<u64>,
    row: Vec<u64>,
    state: State,
    found: bool,
}

/// SampledWords of a publication that a recording holds.
#[derive(Clone, Debug)]
struct SampledWords {
    list: Vec<Range<usize>>,
    /// Words of a row.
    width: usize,
    /// Words of the publication.
    whole: usize,
}

impl SampledWords {
    /// The number of the cycle, all axes, and the signals at these places.
    fn of(places: &[usize], rows: Rows) -> Self {
        let axes = (0..rows.axes).map(|axis| rows.of_axis(axis));
        let signals = places.iter().map(|&place| rows.of_signal(place));
        let mut list: Vec<Range<usize>> = Vec::new();
        for part in iter::once(0..1).chain(axes).chain(signals) {
            match list.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => list.push(part),
            }
        }
        Self { width: list.iter().map(Range::len).sum(), list, whole: rows.words() }
    }
}

/// Both ends, for the signals at these places of a publication with these rows.
pub(crate) fn sampling(signals: &Signals, mut places: Vec<usize>, rows: Rows) -> (Sampler, Samples) {
    places.retain(|&place| place < rows.signals && signals.at(place).is_some());
    let parts = SampledWords::of(&places, rows);
    let width = parts.width;
    let row_count = (BYTES / (8 * width)).clamp(1, ROWS);
    let (mut sender, mut ring) = RingBuffer::new(row_count * width);
    // All of its pages are there before the first cycle.
    if let Ok(chunk) = sender.write_chunk(row_count * width) {
        chunk.commit_all();
    }
    if let Ok(chunk) = ring.read_chunk(row_count * width) {
        chunk.commit_all();
    }
    let chosen = places.iter().filter_map(|&place| signals.at(place).cloned()).collect();
    let (state, words) = (rows.blank(), rows.blank_words());
    let sampler = Sampler { places: places.clone(), parts: parts.clone(), ring: sender, waits: 0 };
    let row = vec![0; width];
    let samples = Samples { places, signals: chosen, parts, ring, words, row, state, found: false };
    (sampler, samples)
}

impl Sampler {
    /// Finds its words in a publication of these rows. A row has the same words as before.
    ///
    /// # Panics
    /// If the publication has fewer signals than the recording.
    pub(crate) fn follow(&mut self, rows: Rows) {
        let fits = self.places.iter().all(|&place| place < rows.signals);
        assert!(fits, "the IPC was opened for {} signals: fewer than the cycle has", rows.signals);
        self.parts = SampledWords::of(&self.places, rows);
    }

    /// True if a patient cycle waits: half of the ring is not free. Counts each wait, and gives the
    /// reader up for good after too many in a row: its file may take nothing any more.
    pub(crate) fn waits(&mut self) -> bool {
        let has_room = self.ring.slots() >= self.ring.buffer().capacity() / 2;
        self.waits = match self.waits {
            MOST_WAITS => return false,
            _ if has_room => 0,
            waits => waits + 1,
        };
        !has_room
    }

    /// Hands the words of a publication over, or drops them. Allocates nothing and makes no system
    /// call.
    pub(crate) fn write(&mut self, words: &[u64]) {
        let SampledWords { list, width, whole } = &self.parts;
        if words.len() != *whole {
            return;
        }
        let Ok(row) = self.ring.write_chunk_uninit(*width) else { return };
        row.fill_from_iter(list.iter().flat_map(|part| &words[part.clone()]).copied());
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
                self.decode();
                self.found = true;
                break;
            }
        }
        self.found
    }

    /// Decodes the row; what it lacks stays blank.
    fn decode(&mut self) {
        let mut row = &self.row[..];
        for part in &self.parts.list {
            let (words, rest) = row.split_at(part.len());
            self.words[part.clone()].copy_from_slice(words);
            row = rest;
        }
        decode(&self.words, &mut self.state);
    }

    /// Values of the cycle that was gone to: number of forced signals; of each signal its value,
    /// and 1 if it is forced; of each axis position, velocity and torque, then its targets of them,
    /// the state of its drive, the reason of its stop (0 of none) and its error code. `None` is
    /// what did not come in with this cycle; all are, if its row was dropped.
    pub fn values(&self) -> impl Iterator<Item = Option<Value>> + '_ {
        let of_signals = self.places.iter().map(|&place| self.state.signals[place]);
        let forced = of_signals.clone().filter(|it| it.forced).count();
        let signals = self.signals.iter().zip(of_signals).flat_map(|(signal, it)| {
            // An output has the sent value, whether or not it was received.
            let known = it.fresh || it.forced || signal.flow != Flow::Input;
            let forced = u64::from(it.forced);
            [known.then(|| it.value(signal.kind())), Some(Value::Unsigned(forced))]
        });
        let axes = self.state.axes.iter().flat_map(|axis| {
            let feedback = [axis.position, axis.velocity, axis.effort].map(Value::Real);
            let targets = [axis.target_position, axis.target_velocity, axis.target_effort].map(Value::Real);
            let drive = (axis.drive_state != 0).then_some(Value::Unsigned(axis.drive_state.into()));
            let stop = Value::Unsigned(axis.stop.into());
            let error_code = Value::Unsigned(axis.error_code.into());
            let feedback = feedback.map(|number| axis.fresh.then_some(number));
            let state = [drive, Some(stop), Some(error_code)];
            feedback.into_iter().chain(targets.map(Some)).chain(state)
        });
        let forced = iter::once(Some(Value::Unsigned(forced as u64)));
        let found = self.found;
        forced.chain(signals).chain(axes).map(move |value| value.filter(|_| found))
    }
}

/// Waits for space in a row, at most: some seconds.
const MOST_WAITS: u32 = 15_000;

/// Rows at most.
const ROWS: usize = 1 << 15;

/// Bytes of a ring at most, unless that is less than a row.
const BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use ipc::state::{Axis, DriveState, StopReason, encode};

    use super::*;

    const ONE_AXIS: Rows = Rows { axes: 1, signals: 2, interlocks: 3 };

    fn write(sampler: &mut Sampler, cycle: u64, fresh: bool) {
        let number = cycle as f64;
        let axis = Axis {
            fresh,
            position: number,
            velocity: number + 0.25,
            effort: number + 0.5,
            target_position: -number,
            drive_state: if fresh { DriveState::Fault as u8 } else { 0 },
            stop: StopReason::Fault as u8,
            error_code: 0x7500,
            ..Axis::default()
        };
        let mut words = vec![0; ONE_AXIS.words()];
        encode(&State { cycle, axes: vec![axis], ..State::default() }, ONE_AXIS, &mut words);
        sampler.write(&words);
    }

    // feature(measure): recordings hold the words of the publication, of the signals only the chosen ones
    #[test]
    fn a_row_has_the_words_of_the_chosen_parts() {
        let rows = Rows { axes: 2, signals: 4, interlocks: 1 };
        let SampledWords { list, width, .. } = SampledWords::of(&[1, 2], rows);
        let [axis, other] = [0, 1].map(|axis| rows.of_axis(axis));
        let signals = rows.of_signal(1).start..rows.of_signal(2).end;
        assert_eq!(list, [0..1, axis, other, signals]);
        assert_eq!(width, 1 + 2 * 8 + 2 * 2);
    }

    #[test]
    fn a_reader_that_takes_no_rows_is_given_up_for_good() {
        let (mut sampler, mut samples) = sampling(&Signals::default(), vec![7], ONE_AXIS);
        let half = ROWS as u64 / 2;
        let fill = |sampler: &mut Sampler, from: u64| {
            (from..from + half + 1).for_each(|cycle| write(sampler, cycle, true));
        };
        fill(&mut sampler, 0);
        assert!((1..MOST_WAITS).all(|_| sampler.waits()));
        samples.go_to(half);
        assert!(!sampler.waits(), "there is space again");
        fill(&mut sampler, half + 1);
        assert_eq!((0..2 * MOST_WAITS).filter(|_| sampler.waits()).count(), MOST_WAITS as usize);
        samples.go_to(2 * half + 1);
        fill(&mut sampler, 2 * half + 2);
        assert!(!sampler.waits());
    }

    // feature(measure): recordings with signals and axes, cycle by cycle
    #[test]
    fn a_full_ring_drops_rows_and_the_others_stay_of_their_cycles() {
        let (mut sampler, mut samples) = sampling(&Signals::default(), vec![7], ONE_AXIS);
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
