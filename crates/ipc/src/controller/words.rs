//! Encoding of requests and answers in words. `docs/controller-process.md` has the tables for other languages.

use super::{Answer, AxisAnswer, DriveRequest, Request, Wrong};
use crate::command::AxisTarget;
use crate::region::{Kind, magic};
use crate::state::words as state;

/// Region of requests, written by the cycle.
pub(crate) const REQUEST: Kind =
    Kind { name: "onbeat-request", magic: magic(*b"RQ"), version: super::VERSION as u64, slots: 4 };

/// Region of answers, written by the controller process.
pub(crate) const ANSWER: Kind =
    Kind { name: "onbeat-answer", magic: magic(*b"AN"), version: super::VERSION as u64, slots: 4 };

/// Axes and signals of the robot.
pub(crate) use crate::state::words::Rows;

/// Words of a request.
pub(crate) const fn request_length(rows: Rows) -> usize {
    FIXED + rows.axes * state::AXIS + rows.signals * state::SIGNAL
}

/// Words of an answer.
pub(crate) const fn answer_length(rows: Rows) -> usize {
    FIXED + (rows.axes + rows.signals) * ROW
}

/// Encodes a request into words of its length; axes and signals without a row are left out, missing ones are zeros.
pub(crate) fn encode_request(request: &Request, rows: Rows, words: &mut [u64]) {
    let fixed = [
        request.cycle,
        request.release_ns,
        request.deadline_ns,
        request.period_ns,
        request.periods,
        request.stopping.into(),
        rows.axes as u64,
        rows.signals as u64,
    ];
    let Some((head, rest)) = words.split_first_chunk_mut::<FIXED>() else { return };
    *head = fixed;
    let (axes, signals) = rest.split_at_mut((rows.axes * state::AXIS).min(rest.len()));
    state::put(axes, &request.axes, state::axis_words);
    state::put(signals, &request.signals, state::signal_words);
}

/// Decodes a request, without allocating if `request` has had as many axes and signals before.
pub(crate) fn decode_request(words: &[u64], rows: Rows, request: &mut Request) {
    let Some((fixed, rest)) = words.split_first_chunk::<FIXED>() else { return };
    let &[cycle, release_ns, deadline_ns, period_ns, periods, flags, _, _] = fixed;
    (request.cycle, request.release_ns, request.deadline_ns) = (cycle, release_ns, deadline_ns);
    (request.period_ns, request.periods, request.stopping) = (period_ns, periods, flags & 1 != 0);
    let (axes, signals) = rest.split_at((rows.axes * state::AXIS).min(rest.len()));
    request.axes.clear();
    request.axes.extend(axes.chunks_exact(state::AXIS).map(state::axis));
    request.signals.clear();
    request.signals.extend(signals.chunks_exact(state::SIGNAL).map(state::signal));
}

/// Encodes an answer into words of its length; missing rows are zeros.
pub(crate) fn encode_answer(answer: &Answer, rows: Rows, words: &mut [u64]) {
    let Some((head, rest)) = words.split_first_chunk_mut::<FIXED>() else { return };
    *head = [answer.cycle, rows.axes as u64, rows.signals as u64, 0, 0, 0, 0, 0];
    let (axes, outputs) = rest.split_at_mut((rows.axes * ROW).min(rest.len()));
    state::put(axes, &answer.axes, axis_words);
    state::put(outputs, &answer.outputs, |output| output.map_or([0, 0], |word| [1, word]));
}

/// Decodes an answer from words that a peer may have filled with anything: every code is known, and every number finite.
/// On an error `answer` has any content.
///
/// Does not allocate if `answer` has room for as many axes and outputs.
pub(crate) fn decode_answer(words: &[u64], rows: Rows, answer: &mut Answer) -> Result<(), Wrong> {
    let (fixed, rest) = words.split_first_chunk::<FIXED>().ok_or(Wrong::Rows)?;
    if (fixed[1], fixed[2]) != (rows.axes as u64, rows.signals as u64)
        || rest.len() != (rows.axes + rows.signals) * ROW
    {
        return Err(Wrong::Rows);
    }
    if fixed[3..].iter().any(|&word| word != 0) {
        return Err(Wrong::Code);
    }
    answer.cycle = fixed[0];
    let (axes, outputs) = rest.split_at(rows.axes * ROW);
    answer.axes.clear();
    for row in axes.chunks_exact(ROW) {
        answer.axes.push(axis(row[0], row[1])?);
    }
    answer.outputs.clear();
    for row in outputs.chunks_exact(ROW) {
        answer.outputs.push(match row[0] {
            0 => None,
            1 => Some(row[1]),
            _ => return Err(Wrong::Code),
        });
    }
    Ok(())
}

fn axis_words(axis: &AxisAnswer) -> [u64; ROW] {
    let (kind, number) = match axis.target {
        None => (0, 0),
        Some(AxisTarget::Position(number)) => (1, number.to_bits()),
        Some(AxisTarget::Velocity(number)) => (2, number.to_bits()),
        Some(AxisTarget::Effort(number)) => (3, number.to_bits()),
    };
    let request = axis.request.map_or(0, |request| request as u64);
    [kind | request << 8 | u64::from(axis.home) << 16, number]
}

fn axis(codes: u64, bits: u64) -> Result<AxisAnswer, Wrong> {
    let number = f64::from_bits(bits);
    let target = match codes as u8 {
        0 => None,
        1 => Some(AxisTarget::Position(number)),
        2 => Some(AxisTarget::Velocity(number)),
        3 => Some(AxisTarget::Effort(number)),
        _ => return Err(Wrong::Code),
    };
    let request = match (codes >> 8) as u8 {
        0 => None,
        1 => Some(DriveRequest::Disable),
        2 => Some(DriveRequest::Enable),
        3 => Some(DriveRequest::QuickStop),
        4 => Some(DriveRequest::Halt),
        5 => Some(DriveRequest::FaultReset),
        _ => return Err(Wrong::Code),
    };
    if codes >> 17 != 0 {
        return Err(Wrong::Code);
    }
    if target.is_some() && !number.is_finite() {
        return Err(Wrong::NotFinite);
    }
    Ok(AxisAnswer { request, home: codes >> 16 & 1 != 0, target })
}

/// Words before the axes.
const FIXED: usize = 8;

/// Words of an axis or an output in an answer.
const ROW: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Axis, Signal};

    const ROWS: Rows = Rows { axes: 5, signals: 3 };

    fn every_answer() -> Answer {
        let axis = |request, home, target| AxisAnswer { request, home, target };
        Answer {
            cycle: 7,
            axes: vec![
                axis(None, true, None),
                axis(Some(DriveRequest::Disable), false, Some(AxisTarget::Position(1.5))),
                axis(Some(DriveRequest::Enable), false, Some(AxisTarget::Velocity(-2.5))),
                axis(Some(DriveRequest::QuickStop), true, Some(AxisTarget::Effort(3.5))),
                axis(Some(DriveRequest::FaultReset), false, None),
            ],
            outputs: vec![None, Some(0), Some(u64::MAX)],
        }
    }

    fn answer_words() -> Vec<u64> {
        let mut words = vec![u64::MAX; answer_length(ROWS)];
        encode_answer(&every_answer(), ROWS, &mut words);
        words
    }

    #[test]
    fn every_field_of_an_answer_comes_back() {
        let mut back = Answer::default();
        assert_eq!(decode_answer(&answer_words(), ROWS, &mut back), Ok(()));
        assert_eq!(back, every_answer());
        let halt = AxisAnswer { request: Some(DriveRequest::Halt), ..AxisAnswer::default() };
        let [codes, bits] = axis_words(&halt);
        assert_eq!(axis(codes, bits), Ok(halt));
    }

    #[test]
    fn every_field_of_a_request_comes_back() {
        let request = Request {
            cycle: 1,
            release_ns: 2,
            deadline_ns: 3,
            period_ns: 4,
            periods: 5,
            stopping: true,
            axes: (0..5)
                .map(|axis| Axis { drive_state: axis, phase: 1, target_position: 6.5, ..Axis::default() })
                .collect(),
            signals: (0..3).map(|word| Signal { word, fresh: word > 1, forced: word == 2 }).collect(),
        };
        let mut words = vec![u64::MAX; request_length(ROWS)];
        encode_request(&request, ROWS, &mut words);
        let mut back = Request::default();
        decode_request(&words, ROWS, &mut back);
        assert_eq!(back, request);
    }

    // feature(ipc): one controller process of the same version; what is no answer is refused; a hostile one keeps no wait beyond its time
    #[test]
    fn words_that_are_no_answer_are_refused_with_the_reason() {
        let nan = f64::NAN.to_bits();
        let rows = [
            (1, 4, Wrong::Rows),
            (2, u64::MAX, Wrong::Rows),
            (3, 1, Wrong::Code),
            (8, 4, Wrong::Code),
            (8, 6 << 8, Wrong::Code),
            (8, 1 << 17, Wrong::Code),
            (8, 1 << 63, Wrong::Code),
            (11, nan, Wrong::NotFinite),
            (13, f64::INFINITY.to_bits(), Wrong::NotFinite),
            (15, f64::NEG_INFINITY.to_bits(), Wrong::NotFinite),
            (18, 2, Wrong::Code),
        ];
        for (index, value, why) in rows {
            let mut words = answer_words();
            words[index] = value;
            let found = decode_answer(&words, ROWS, &mut Answer::default());
            assert_eq!(found, Err(why), "word {index} is {value:#x}");
        }
        // A number without a set-point is none.
        let mut words = answer_words();
        words[9] = nan;
        assert_eq!(decode_answer(&words, ROWS, &mut Answer::default()), Ok(()));
        assert_eq!(decode_answer(&words[..7], ROWS, &mut Answer::default()), Err(Wrong::Rows));
    }
}
