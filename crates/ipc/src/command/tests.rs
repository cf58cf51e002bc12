//! Commands to words and back.

use types::Value;

use super::*;

const ROWS: Rows = Rows { axes: 4, signals: 3, interlocks: 0 };

fn every_field() -> Command {
    Command {
        sequence: 1,
        stamp_ns: 2,
        time_to_live_ns: 3,
        twist: Some(Twist::new(4.5, 5.5, 6.5)),
        pose: Some(ToolPose {
            position: [10.5, 11.5, 12.5].map(Metres),
            orientation: [13.5, 14.5, 15.5, f64::NEG_INFINITY],
        }),
        axes: vec![
            None,
            Some(AxisTarget::Position(Radians(7.5))),
            Some(AxisTarget::Velocity(RadiansPerSecond(8.5))),
            Some(AxisTarget::Effort(NewtonMetres(f64::INFINITY))),
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
    // Flags of twist and pose that are neither 0 nor 1, more axes or signals than there is space
    // for, a target of an unknown kind, a value of an unknown kind, a bit that is neither 0 nor 1.
    let wrong = [
        (3, 2),
        (7, 2),
        (15, 5),
        (15, u64::MAX),
        (16, 4),
        (16, u64::MAX),
        (17, 5),
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
