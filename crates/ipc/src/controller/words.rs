//! Encoding of requests and answers in words. `docs/controller-process.md` has the tables for other
//! languages.

use super::{Answer, AxisAnswer, DriveRequest, ExternalCommand, Request, Wrong};
use crate::command;
use crate::region::{Kind, magic};
use crate::state::region as state;
use crate::state::{Base, Clamped, Limit, Refusal};
use types::CyclicMode;

/// Region of requests, written by the cycle.
pub(crate) const REQUEST: Kind =
    Kind { name: "onbeat-request", magic: magic(*b"RQ"), version: super::VERSION as u64, slots: 4 };

/// Region of answers, written by the controller process.
pub(crate) const ANSWER: Kind =
    Kind { name: "onbeat-answer", magic: magic(*b"AN"), version: super::VERSION as u64, slots: 4 };

/// Axes and signals of the robot.
pub(crate) use crate::state::region::Rows;

/// Words of a request.
pub(crate) const fn request_length(rows: Rows) -> usize {
    REQUEST_HEAD + rows.axes * REQUEST_AXIS + rows.signals * state::SIGNAL
}

/// Words of an answer.
pub(crate) const fn answer_length(rows: Rows) -> usize {
    ANSWER_HEAD + (rows.axes + rows.signals) * ROW
}

/// Encodes a request into words of its length; axes and signals without a row are left out, missing
/// ones are zeros.
pub(crate) fn encode_request(request: &Request, rows: Rows, words: &mut [u64]) {
    let Some((head, rest)) = words.split_first_chunk_mut::<REQUEST_HEAD>() else { return };
    head[..8].copy_from_slice(&[
        request.cycle,
        request.release_ns,
        request.deadline_ns,
        request.period_ns,
        request.periods,
        request.stopping.into(),
        rows.axes as u64,
        rows.signals as u64,
    ]);
    let ExternalCommand { freshness, twist, pose, axes: targets } = &request.command;
    head[8] = *freshness as u64;
    head[9..13].copy_from_slice(&command::twist_words(*twist));
    head[13..21].copy_from_slice(&command::pose_words(*pose));
    head[21..].fill(0);
    let (axes, rest) = rest.split_at_mut((rows.axes * state::AXIS).min(rest.len()));
    state::put(axes, &request.axes, state::axis_words);
    let (commands, signals) = rest.split_at_mut((rows.axes * ROW).min(rest.len()));
    state::put(commands, targets, |target| command::target_words(*target));
    state::put(signals, &request.signals, state::signal_words);
}

/// Decodes a request, without allocating if `request` has had as many axes and signals before.
pub(crate) fn decode_request(words: &[u64], rows: Rows, request: &mut Request) {
    let Some((head, rest)) = words.split_first_chunk::<REQUEST_HEAD>() else { return };
    let &[cycle, release_ns, deadline_ns, period_ns, periods, flags, _, _, code, ..] = head;
    (request.cycle, request.release_ns, request.deadline_ns) = (cycle, release_ns, deadline_ns);
    (request.period_ns, request.periods, request.stopping) = (period_ns, periods, flags & 1 != 0);
    let asked = &mut request.command;
    asked.freshness = state::freshness(code as u8);
    asked.twist = head[9..].first_chunk().and_then(command::twist).flatten();
    asked.pose = head[13..].first_chunk().and_then(command::pose).flatten();
    let (axes, rest) = rest.split_at((rows.axes * state::AXIS).min(rest.len()));
    request.axes.clear();
    request.axes.extend(axes.chunks_exact(state::AXIS).map(state::axis));
    let (targets, signals) = rest.split_at((rows.axes * ROW).min(rest.len()));
    asked.axes.clear();
    asked.axes.extend(targets.chunks_exact(ROW).map(|row| command::target(row[0], row[1]).flatten()));
    request.signals.clear();
    request.signals.extend(signals.chunks_exact(state::SIGNAL).map(state::signal));
}

/// Encodes an answer into words of its length; missing rows are zeros.
pub(crate) fn encode_answer(answer: &Answer, rows: Rows, words: &mut [u64]) {
    let Some((head, rest)) = words.split_first_chunk_mut::<ANSWER_HEAD>() else { return };
    let refusal = answer.refused.map_or(0, |refusal| refusal as u64);
    head[..4].copy_from_slice(&[
        answer.cycle,
        rows.axes as u64,
        rows.signals as u64,
        u64::from(answer.commanded) | refusal << 8 | clamped_bits(answer.clamped),
    ]);
    head[4..7].copy_from_slice(&answer.base.pose.map(f64::to_bits));
    head[7..10].copy_from_slice(&answer.base.twist.map(f64::to_bits));
    head[10..].fill(0);
    let (axes, outputs) = rest.split_at_mut((rows.axes * ROW).min(rest.len()));
    state::put(axes, &answer.axes, axis_words);
    state::put(outputs, &answer.outputs, |output| output.map_or([0, 0], |word| [1, word]));
}

/// Decodes an answer from words with any content: every code is known, and every number finite. On
/// an error `answer` has any content.
///
/// Does not allocate if `answer` has space for as many axes and outputs.
pub(crate) fn decode_answer(words: &[u64], rows: Rows, answer: &mut Answer) -> Result<(), Wrong> {
    let (head, rest) = words.split_first_chunk::<ANSWER_HEAD>().ok_or(Wrong::Rows)?;
    let &[cycle, axes, signals, codes, px, py, pyaw, vx, vy, vyaw, ref unused @ ..] = head;
    if (axes, signals) != (rows.axes as u64, rows.signals as u64)
        || rest.len() != (rows.axes + rows.signals) * ROW
    {
        return Err(Wrong::Rows);
    }
    let refused = Refusal::from_code((codes >> 8) as u8);
    let clamped = clamped(codes, rows).ok_or(Wrong::Code)?;
    let is_known = refused.is_some() == (codes as u16 >> 8 != 0) && codes & 0xFE == 0;
    if !is_known || unused.iter().any(|&word| word != 0) {
        return Err(Wrong::Code);
    }
    let base = Base { pose: [px, py, pyaw].map(f64::from_bits), twist: [vx, vy, vyaw].map(f64::from_bits) };
    if !base.pose.iter().chain(&base.twist).all(|number| number.is_finite()) {
        return Err(Wrong::NotFinite);
    }
    (answer.cycle, answer.commanded, answer.base) = (cycle, codes & 1 != 0, base);
    (answer.refused, answer.clamped) = (refused, clamped);
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

/// Bits 16 and up of the codes: the limit, and the axis.
fn clamped_bits(clamped: Option<Clamped>) -> u64 {
    let Some(Clamped { limit, axis }) = clamped else { return 0 };
    let axis = axis.and_then(|axis| u16::try_from(axis).ok()).unwrap_or(u16::MAX);
    (limit as u64) << 16 | u64::from(axis) << 32
}

/// Clamp of such bits; `None` if they are none.
fn clamped(codes: u64, rows: Rows) -> Option<Option<Clamped>> {
    let (code, axis) = ((codes >> 16) as u16, (codes >> 32) as u32);
    if (code, axis) == (0, 0) {
        return Some(None);
    }
    let limit = u8::try_from(code).ok().and_then(Limit::from_code)?;
    let axis = if axis == u32::from(u16::MAX) { None } else { Some(axis as usize) };
    axis.is_none_or(|axis| axis < rows.axes).then_some(Some(Clamped { limit, axis }))
}

fn axis_words(axis: &AxisAnswer) -> [u64; ROW] {
    let [kind, number] = command::target_words(axis.target);
    let request = axis.request.map_or(0, |request| request as u64);
    let ignored = axis.ignored.and_then(|mode| CyclicMode::ALL.iter().position(|&it| it == mode));
    let ignored = ignored.map_or(0, |place| place as u64 + 1);
    [kind | request << 8 | u64::from(axis.home) << 16 | ignored << 24, number]
}

fn axis(codes: u64, bits: u64) -> Result<AxisAnswer, Wrong> {
    let target = command::target(codes & 0xFF, bits);
    // A jog is no set-point of a controller.
    let target = target.filter(|it| !matches!(it, Some(command::AxisTarget::Jog(_)))).ok_or(Wrong::Code)?;
    let request = match (codes >> 8) as u8 {
        0 => None,
        code => Some(DriveRequest::from_code(code).ok_or(Wrong::Code)?),
    };
    let ignored = match codes >> 24 {
        0 => None,
        place => Some(
            *usize::try_from(place - 1).ok().and_then(|it| CyclicMode::ALL.get(it)).ok_or(Wrong::Code)?,
        ),
    };
    if codes >> 17 & 0x7F != 0 {
        return Err(Wrong::Code);
    }
    if target.is_some() && !f64::from_bits(bits).is_finite() {
        return Err(Wrong::NotFinite);
    }
    Ok(AxisAnswer { request, home: codes >> 16 & 1 != 0, target, ignored })
}

/// Words before the axes of a request.
const REQUEST_HEAD: usize = 24;

/// Words of an axis in a request: its state, its target of the command.
const REQUEST_AXIS: usize = state::AXIS + ROW;

/// Words before the axes of an answer.
const ANSWER_HEAD: usize = 16;

/// Words of a target, and of an axis or an output in an answer.
const ROW: usize = 2;

#[cfg(test)]
mod tests {
    use types::units::{Metres, NewtonMetres, Radians, RadiansPerSecond};

    use super::*;
    use crate::command::{AxisTarget, ToolPose, Twist};
    use crate::state::{Axis, Freshness, Signal};

    #[test]
    fn the_page_for_other_languages_has_this_version_and_layout() {
        let page = include_str!("../../../../docs/controller-process.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let version = crate::controller::VERSION;
        let axis = state::AXIS;
        let lines = [
            format!("then a u16: version {version} of this page"),
            format!("in word 0, version {version} in word 1, {} slots", REQUEST.slots),
            format!("| {REQUEST_HEAD} + {axis} i | axis i,"),
            format!("| {REQUEST_HEAD} + {axis} A + {ROW} i | command for axis i:"),
            format!("| {REQUEST_HEAD} + {REQUEST_AXIS} A + {} i | signal i,", state::SIGNAL),
            format!("| {ANSWER_HEAD} + {ROW} i | axis i:"),
            format!("| {ANSWER_HEAD} + {ROW} A + {ROW} i | signal i:"),
        ];
        for line in lines {
            assert!(page.contains(&line), "docs/controller-process.md lacks: {line}");
        }
    }

    const ROWS: Rows = Rows { axes: 5, signals: 3, interlocks: 0 };

    fn every_answer() -> Answer {
        let axis = |request, home, target| AxisAnswer { request, home, target, ignored: None };
        Answer {
            cycle: 7,
            commanded: true,
            refused: Some(Refusal::Singular),
            clamped: Some(Clamped { limit: Limit::Effort, axis: Some(4) }),
            base: Base { pose: [1.0, 2.0, 3.0], twist: [4.0, 5.0, 6.0] },
            axes: vec![
                axis(None, true, None),
                axis(Some(DriveRequest::Disable), false, Some(AxisTarget::Position(Radians(1.5)))),
                axis(Some(DriveRequest::Enable), false, Some(AxisTarget::Velocity(RadiansPerSecond(-2.5)))),
                axis(Some(DriveRequest::QuickStop), true, Some(AxisTarget::Effort(NewtonMetres(3.5)))),
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
        for ignored in CyclicMode::ALL.map(Some) {
            let answer = AxisAnswer { ignored, ..halt };
            let [codes, bits] = axis_words(&answer);
            assert_eq!(axis(codes, bits), Ok(answer));
        }
        for clamped in [None, Some(Clamped { limit: Limit::Velocity, axis: None })] {
            let answer = Answer { clamped, ..every_answer() };
            let mut words = vec![u64::MAX; answer_length(ROWS)];
            encode_answer(&answer, ROWS, &mut words);
            assert_eq!(decode_answer(&words, ROWS, &mut back), Ok(()));
            assert_eq!(back, answer);
        }
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
            command: ExternalCommand {
                freshness: Freshness::Stale,
                twist: Some(Twist::new(1.5, 2.5, 3.5)),
                pose: Some(ToolPose {
                    position: [1.0, 2.0, 3.0].map(Metres),
                    orientation: [0.5, -0.5, 0.5, -0.5],
                }),
                axes: vec![
                    None,
                    Some(AxisTarget::Position(Radians(1.0))),
                    Some(AxisTarget::Velocity(RadiansPerSecond(2.0))),
                    Some(AxisTarget::Effort(NewtonMetres(3.0))),
                    None,
                ],
            },
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
            (3, 2, Wrong::Code),
            (3, 23 << 8, Wrong::Code),
            (3, 4 << 16, Wrong::Code),
            (3, 1 << 24, Wrong::Code),
            (3, 1 << 32, Wrong::Code),
            (3, 1 << 16 | 5 << 32, Wrong::Code),
            (3, 1 << 16 | 1 << 48, Wrong::Code),
            (4, nan, Wrong::NotFinite),
            (9, f64::INFINITY.to_bits(), Wrong::NotFinite),
            (10, 1, Wrong::Code),
            (15, 1, Wrong::Code),
            (16, 4, Wrong::Code),
            (16, 6 << 8, Wrong::Code),
            (16, 1 << 17, Wrong::Code),
            (16, 4 << 24, Wrong::Code),
            (16, 1 << 63, Wrong::Code),
            (19, nan, Wrong::NotFinite),
            (21, f64::INFINITY.to_bits(), Wrong::NotFinite),
            (23, f64::NEG_INFINITY.to_bits(), Wrong::NotFinite),
            (26, 2, Wrong::Code),
        ];
        for (index, value, why) in rows {
            let mut words = answer_words();
            words[index] = value;
            let found = decode_answer(&words, ROWS, &mut Answer::default());
            assert_eq!(found, Err(why), "word {index} is {value:#x}");
        }
        // A number without a set-point is none.
        let mut words = answer_words();
        words[17] = nan;
        assert_eq!(decode_answer(&words, ROWS, &mut Answer::default()), Ok(()));
        assert_eq!(decode_answer(&words[..15], ROWS, &mut Answer::default()), Err(Wrong::Rows));
    }
}
