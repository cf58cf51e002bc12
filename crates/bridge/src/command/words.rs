//! Encoding of a command in words. `docs/seam.md` has the table for other languages.

use super::{AxisTarget, Command, Twist};
use crate::region::{Kind, magic};

/// Region of a holder's commands.
pub(crate) const REGION: Kind = Kind { name: "onbeat-command", magic: magic(*b"CO"), version: 1, slots: 4 };

/// Words of a command for this many axes.
pub(crate) const fn length(axes: usize) -> usize {
    FIXED + axes * AXIS
}

/// Axes of a command of this many words; `None` if the rest is no multiple of an axis.
pub(crate) const fn axes(words: usize) -> Option<usize> {
    if words >= FIXED && (words - FIXED) % AXIS == 0 { Some((words - FIXED) / AXIS) } else { None }
}

/// Encodes a command into words of its length.
pub(crate) fn encode(command: &Command, words: &mut [u64]) {
    let twist = command.twist.unwrap_or_default();
    let fixed = [
        command.sequence,
        command.stamp_ns,
        command.time_to_live_ns,
        u64::from(command.twist.is_some()),
        twist.x.to_bits(),
        twist.y.to_bits(),
        twist.yaw.to_bits(),
        command.axes.len() as u64,
    ];
    let axes = command.axes.iter().flat_map(|axis| match axis {
        None => [0, 0],
        Some(AxisTarget::Position(value)) => [1, value.to_bits()],
        Some(AxisTarget::Velocity(value)) => [2, value.to_bits()],
        Some(AxisTarget::Effort(value)) => [3, value.to_bits()],
    });
    for (word, value) in words.iter_mut().zip(fixed.into_iter().chain(axes)) {
        *word = value;
    }
}

/// Decodes a command from words that a peer may have filled with anything. Numbers are not checked: they
/// may be NaN or infinite. `None` if the words are no command; then `command` is unchanged.
///
/// Does not allocate if `command.axes` has room for as many axes as the words hold.
pub(crate) fn decode(words: &[u64], command: &mut Command) -> Option<()> {
    let (fixed, axes) = words.split_at_checked(FIXED)?;
    let &[sequence, stamp_ns, time_to_live_ns, has_twist, x, y, yaw, count] = fixed else { return None };
    let twist = match has_twist {
        0 => None,
        1 => Some(Twist { x: f64::from_bits(x), y: f64::from_bits(y), yaw: f64::from_bits(yaw) }),
        _ => return None,
    };
    let count = usize::try_from(count).ok().filter(|&count| count <= axes.len() / AXIS)?;
    let axes = axes.chunks_exact(AXIS).take(count);
    if axes.clone().any(|axis| axis[0] > 3) {
        return None;
    }
    command.sequence = sequence;
    command.stamp_ns = stamp_ns;
    command.time_to_live_ns = time_to_live_ns;
    command.twist = twist;
    command.axes.clear();
    command.axes.extend(axes.map(|axis| {
        let value = f64::from_bits(axis[1]);
        match axis[0] {
            1 => Some(AxisTarget::Position(value)),
            2 => Some(AxisTarget::Velocity(value)),
            3 => Some(AxisTarget::Effort(value)),
            _ => None,
        }
    }));
    Some(())
}

/// Words before the axes.
const FIXED: usize = 8;

/// Words of an axis.
const AXIS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn every_field() -> Command {
        Command {
            sequence: 1,
            stamp_ns: 2,
            time_to_live_ns: 3,
            twist: Some(Twist { x: 4.5, y: 5.5, yaw: 6.5 }),
            axes: vec![
                None,
                Some(AxisTarget::Position(7.5)),
                Some(AxisTarget::Velocity(8.5)),
                Some(AxisTarget::Effort(f64::INFINITY)),
            ],
        }
    }

    #[test]
    fn every_field_comes_back() {
        for twist in [None, every_field().twist] {
            let command = Command { twist, ..every_field() };
            let mut words = vec![u64::MAX; length(4)];
            encode(&command, &mut words);
            let mut back = Command::default();
            assert_eq!(decode(&words, &mut back), Some(()));
            assert_eq!(back, command);
        }
        assert_eq!(axes(length(4)), Some(4));
        assert_eq!(axes(length(4) + 1), None);
        assert_eq!(axes(1), None);
    }

    #[test]
    fn words_that_are_no_command_are_refused_and_change_nothing() {
        let mut good = vec![0; length(4)];
        encode(&every_field(), &mut good);
        // A twist flag that is neither 0 nor 1, more axes than there is room for, a target of an unknown
        // kind.
        for (index, value) in [(3, 2), (7, 5), (7, u64::MAX), (8, 4), (14, u64::MAX)] {
            let mut words = good.clone();
            words[index] = value;
            let mut command = every_field();
            assert_eq!(decode(&words, &mut command), None, "word {index} is {value}");
            assert_eq!(command, every_field());
        }
        assert_eq!(decode(&good[..7], &mut Command::default()), None);
    }
}
