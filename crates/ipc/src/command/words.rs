//! Encoding of a command in words. `docs/ipc.md` has the table for other languages.

use super::{AxisTarget, Command, Pose, Twist};
use crate::region::{Kind, magic};
use crate::state::words::Rows;
use crate::value;

/// Region of a holder's commands.
pub(crate) const REGION: Kind = Kind { name: "onbeat-command", magic: magic(*b"CO"), version: 3, slots: 4 };

/// Words of a command with these rows.
pub(crate) const fn length(rows: Rows) -> usize {
    FIXED + rows.axes * AXIS + rows.signals * SIGNAL
}

/// Encodes a command into words of these rows; axes and signals without a row are left out, missing ones are zeros.
pub(crate) fn encode(command: &Command, rows: Rows, words: &mut [u64]) {
    let head = [command.sequence, command.stamp_ns, command.time_to_live_ns];
    let fixed = head.into_iter().chain(twist_words(command.twist)).chain(pose_words(command.pose));
    let fixed = fixed.chain([rows.axes as u64, rows.signals as u64]);
    let axes = command.axes.iter().flat_map(|&axis| target_words(axis));
    let axes = axes.chain(std::iter::repeat(0)).take(rows.axes * AXIS);
    let signals = command.signals.iter().flat_map(|&signal| value::encode(signal));
    let all = fixed.chain(axes).chain(signals).chain(std::iter::repeat(0));
    for (word, value) in words.iter_mut().zip(all) {
        *word = value;
    }
}

/// Decodes a command from words that a peer may have filled with anything. Numbers are not checked: they
/// may be NaN or infinite. `None` if the words are no command; then `command` is unchanged.
///
/// Does not allocate if `command` has room for these rows.
pub(crate) fn decode(words: &[u64], rows: Rows, command: &mut Command) -> Option<()> {
    let (fixed, rest) = words.split_at_checked(FIXED)?;
    let &[sequence, stamp_ns, time_to_live_ns, ref fixed @ .., axes, signals] = fixed else { return None };
    let (twist_words, pose_words) = fixed.split_first_chunk()?;
    let (twist, pose) = (twist(twist_words)?, pose(pose_words.first_chunk()?)?);
    let count = |told: u64, most: usize| usize::try_from(told).ok().filter(|&count| count <= most);
    let (axis_rows, signal_rows) = rest.split_at_checked(rows.axes * AXIS)?;
    let axes = axis_rows.chunks_exact(AXIS).take(count(axes, rows.axes)?);
    let signals = signal_rows.chunks_exact(SIGNAL).take(count(signals, rows.signals)?);
    let signals = signals.map(|row| value::decode(row[0], row[1]));
    if axes.clone().any(|axis| target(axis[0], axis[1]).is_none())
        || signals.clone().any(|signal| signal.is_err())
    {
        return None;
    }
    command.sequence = sequence;
    command.stamp_ns = stamp_ns;
    command.time_to_live_ns = time_to_live_ns;
    command.twist = twist;
    command.pose = pose;
    command.axes.clear();
    command.axes.extend(axes.map(|axis| target(axis[0], axis[1]).flatten()));
    command.signals.clear();
    command.signals.extend(signals.map(|signal| signal.unwrap_or_default()));
    Some(())
}

/// Words of a twist: whether there is one, and its numbers.
pub(crate) fn twist_words(twist: Option<Twist>) -> [u64; 4] {
    let Twist { x, y, yaw } = twist.unwrap_or_default();
    [twist.is_some().into(), x.to_bits(), y.to_bits(), yaw.to_bits()]
}

/// Twist of such words, unchecked; `None` if they are none.
pub(crate) fn twist(&[has, x, y, yaw]: &[u64; 4]) -> Option<Option<Twist>> {
    let [x, y, yaw] = [x, y, yaw].map(f64::from_bits);
    (has <= 1).then(|| (has == 1).then_some(Twist { x, y, yaw }))
}

/// Words of a pose: whether there is one, and its numbers.
pub(crate) fn pose_words(pose: Option<Pose>) -> [u64; 8] {
    let Pose { position: [px, py, pz], orientation: [qx, qy, qz, qw] } =
        pose.unwrap_or(Pose { position: [0.0; 3], orientation: [0.0; 4] });
    let [px, py, pz, qx, qy, qz, qw] = [px, py, pz, qx, qy, qz, qw].map(f64::to_bits);
    [pose.is_some().into(), px, py, pz, qx, qy, qz, qw]
}

/// Pose of such words, unchecked; `None` if they are none.
pub(crate) fn pose(&[has, px, py, pz, qx, qy, qz, qw]: &[u64; 8]) -> Option<Option<Pose>> {
    let position = [px, py, pz].map(f64::from_bits);
    let orientation = [qx, qy, qz, qw].map(f64::from_bits);
    (has <= 1).then(|| (has == 1).then_some(Pose { position, orientation }))
}

/// Words of a target: its kind, 0 for none, and its number.
pub(crate) fn target_words(target: Option<AxisTarget>) -> [u64; 2] {
    match target {
        None => [0, 0],
        Some(AxisTarget::Position(number)) => [1, number.to_bits()],
        Some(AxisTarget::Velocity(number)) => [2, number.to_bits()],
        Some(AxisTarget::Effort(number)) => [3, number.to_bits()],
    }
}

/// Target of such words, unchecked; `None` if they are none.
pub(crate) fn target(kind: u64, bits: u64) -> Option<Option<AxisTarget>> {
    let number = f64::from_bits(bits);
    Some(match kind {
        0 => None,
        1 => Some(AxisTarget::Position(number)),
        2 => Some(AxisTarget::Velocity(number)),
        3 => Some(AxisTarget::Effort(number)),
        _ => return None,
    })
}

/// Words before the axes.
const FIXED: usize = 17;

/// Words of an axis.
const AXIS: usize = 2;

/// Words of a signal.
const SIGNAL: usize = 2;

#[cfg(test)]
mod tests {
    use types::Value;

    use super::*;

    const ROWS: Rows = Rows { axes: 4, signals: 3 };

    fn every_field() -> Command {
        Command {
            sequence: 1,
            stamp_ns: 2,
            time_to_live_ns: 3,
            twist: Some(Twist { x: 4.5, y: 5.5, yaw: 6.5 }),
            pose: Some(Pose {
                position: [10.5, 11.5, 12.5],
                orientation: [13.5, 14.5, 15.5, f64::NEG_INFINITY],
            }),
            axes: vec![
                None,
                Some(AxisTarget::Position(7.5)),
                Some(AxisTarget::Velocity(8.5)),
                Some(AxisTarget::Effort(f64::INFINITY)),
            ],
            signals: vec![None, Some(Value::Bool(true)), Some(Value::Real(-9.5))],
        }
    }

    #[test]
    fn every_field_comes_back() {
        let Command { twist, pose, .. } = every_field();
        for (twist, pose) in [(None, pose), (twist, None), (twist, pose)] {
            let command = Command { twist, pose, ..every_field() };
            let mut words = vec![u64::MAX; length(ROWS)];
            encode(&command, ROWS, &mut words);
            let mut back = Command::default();
            assert_eq!(decode(&words, ROWS, &mut back), Some(()));
            assert_eq!(back, command);
        }
        // No axes and no signals are none of each.
        let command = Command { axes: Vec::new(), signals: Vec::new(), ..every_field() };
        let mut words = vec![u64::MAX; length(ROWS)];
        encode(&command, ROWS, &mut words);
        let mut back = every_field();
        assert_eq!(decode(&words, ROWS, &mut back), Some(()));
        assert_eq!(back, Command { axes: vec![None; 4], signals: vec![None; 3], ..every_field() });
    }

    // feature(signals): values from outside that cannot be are refused with the signal and the reason
    #[test]
    fn words_that_are_no_command_are_refused_and_change_nothing() {
        let mut good = vec![0; length(ROWS)];
        encode(&every_field(), ROWS, &mut good);
        // Flags of twist and pose that are neither 0 nor 1, more axes or signals than there is room for, a target of an
        // unknown kind, a value of an unknown kind, a bit that is neither 0 nor 1.
        let wrong = [
            (3, 2),
            (7, 2),
            (15, 5),
            (15, u64::MAX),
            (16, 4),
            (16, u64::MAX),
            (17, 4),
            (23, u64::MAX),
            (25, 5),
            (27, 9),
            (28, 2),
        ];
        for (index, value) in wrong {
            let mut words = good.clone();
            words[index] = value;
            let mut command = every_field();
            assert_eq!(decode(&words, ROWS, &mut command), None, "word {index} is {value}");
            assert_eq!(command, every_field());
        }
        for length in [7, 10, 16, 24] {
            assert_eq!(decode(&good[..length], ROWS, &mut Command::default()), None);
        }
    }
}
