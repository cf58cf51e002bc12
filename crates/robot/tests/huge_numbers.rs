//! Absurdly large numbers in a robot file, and their error messages.
use onbeat_robot::RobotConfig;

/// Places of the numbers of a robot file: behind a space, a bracket or a comma, outside of quotes
/// and comments.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (mut quoted, mut before, mut start) = (false, ' ', None);
        for (place, letter) in line.char_indices() {
            quoted ^= letter == '"';
            let is_part = !quoted && (letter.is_ascii_alphanumeric() || "+-._".contains(letter));
            match (start, is_part) {
                (None, true) if letter.is_ascii_digit() && " [,-".contains(before) => start = Some(place),
                (Some(first), false) => {
                    found.push(at + first..at + place);
                    start = None;
                }
                _ => {}
            }
            if letter == '#' && !quoted {
                break;
            }
            before = letter;
        }
        at += line.len();
    }
    found
}

/// Digits of the longest number in a sentence.
fn longest(sentence: &str) -> usize {
    sentence.split(|letter: char| !letter.is_ascii_digit()).map(str::len).max().unwrap_or(0)
}

/// A huge or a tiny number for any key of any example is accepted, or refused in a sentence in
/// which no number has more than twenty digits.
// feature(program): errors with place, expected, found
#[test]
fn a_huge_number_is_not_written_out() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut refused = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|it| it != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if RobotConfig::parse(&text, "r.toml").is_err() {
            continue;
        }
        for place in numbers(&text) {
            for huge in ["1e300", "1e-300", "9223372036854775807", "1e19"] {
                let spoiled = format!("{}{huge}{}", &text[..place.start], &text[place.end..]);
                let Err(error) = RobotConfig::parse(&spoiled, "r.toml") else { continue };
                refused += 1;
                assert!(longest(&error.to_string()) <= 20, "{huge} at {place:?} of {path:?}: {error}");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

/// A byte-order mark, as some editors write it, is no part of a robot file.
// feature(program): errors with place, expected, found
#[test]
fn a_byte_order_mark_is_passed_over() {
    let path = std::env::temp_dir().join(format!("onbeat-mark-{}.toml", std::process::id()));
    let read = |text: &str| {
        std::fs::write(&path, format!("\u{feff}{text}")).unwrap();
        let read = RobotConfig::read(&path, onbeat_robot::Overrides::default());
        std::fs::remove_file(&path).unwrap();
        read
    };
    assert_eq!(read(include_str!("../../../examples/six-axis.toml")).unwrap().axes.len(), 6);
    let refused = read("[cicle]").unwrap_err();
    assert_eq!(refused.place, Some((1, 2)), "{refused}");
}
