//! Any text gives a robot or one error that points into the text; never a panic.
//!
//! Absurdly large numbers in a robot file, and their error messages.

use onbeat_robot::RobotConfig;

const EXAMPLES: [&str; 6] = [
    include_str!("../../../examples/six-axis.toml"),
    include_str!("../../../examples/io-station.toml"),
    include_str!("../../../examples/humanoid-59.toml"),
    include_str!("../../../examples/m4k.toml"),
    include_str!("../../../examples/omni.toml"),
    include_str!("../../../examples/arm.toml"),
];

/// Pieces of TOML that change what the text around them means.
const PIECES: [&str; 24] = [
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    ",",
    "#",
    "-1",
    "0",
    "1e400",
    "nan",
    "-inf",
    "0xFFFFFFFFFFFF",
    "true",
    "{}",
    "\"\"",
    "\"1ms\"",
    "65535",
    "\u{0}",
    "\u{fffd}µ",
    "1979-05-27",
];

/// Reproducible pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit.max(1)
    }

    /// A place between two characters of `text`.
    fn place(&mut self, text: &str) -> usize {
        let mut place = self.below(text.len() + 1);
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        place
    }
}

fn spoil(text: &mut String, random: &mut Random) {
    let (start, end) = (random.place(text), random.place(text));
    let (start, end) = (start.min(end), start.max(end));
    // Long cuts leave little to check: most are short.
    let end = if random.below(4) > 0 {
        text.floor_boundary(start + random.below(8).min(end - start))
    } else {
        end
    };
    match random.below(4) {
        0 => text.replace_range(start..end, ""),
        1 => text.replace_range(start..end, PIECES[random.below(PIECES.len())]),
        2 => text.insert_str(start, PIECES[random.below(PIECES.len())]),
        _ => replace_value(text, random),
    }
}

/// Replaces the value behind one `=`: the file stays TOML, the value becomes strange.
fn replace_value(text: &mut String, random: &mut Random) {
    let places: Vec<usize> = text.match_indices("= ").map(|(place, _)| place + 2).collect();
    if places.is_empty() {
        return;
    }
    let start = places[random.below(places.len())];
    let end = text[start..].find([',', ' ', '\n', '}', ']']).map_or(text.len(), |length| start + length);
    text.replace_range(start..end, PIECES[random.below(PIECES.len())]);
}

trait FloorBoundary {
    fn floor_boundary(&self, place: usize) -> usize;
}

impl FloorBoundary for String {
    fn floor_boundary(&self, place: usize) -> usize {
        (0..=place.min(self.len())).rev().find(|&it| self.is_char_boundary(it)).unwrap_or(0)
    }
}

fn judge(text: &str) -> bool {
    match RobotConfig::parse(text, "any.toml") {
        Ok(_) => true,
        Err(error) => {
            let (line, column) = error.place.expect("a place in the text");
            let there = text.split('\n').nth(line - 1).expect("a line of the text");
            assert!(column <= there.chars().count() + 1, "{error}");
            let parts = [&error.found, &error.expected, &error.remedy];
            assert!(parts.iter().all(|part| !part.is_empty() && !part.contains('\n')), "{error:?}");
            false
        }
    }
}

#[test]
fn spoilt_examples_are_robots_or_errors() {
    let mut random = Random(0x0000_0B0E_A7B0_0715);
    let (mut robots, mut errors) = (0, 0);
    for round in 0..6000 {
        let mut text = EXAMPLES[round % EXAMPLES.len()].to_owned();
        for _ in 0..=random.below(3) {
            spoil(&mut text, &mut random);
        }
        if judge(&text) { robots += 1 } else { errors += 1 }
    }
    assert!(robots > 100 && errors > 1000, "both outcomes are reached: {robots} robots, {errors} errors");
}

#[test]
fn every_beginning_of_an_example_is_a_robot_or_an_error() {
    for example in EXAMPLES {
        for (end, _) in example.char_indices() {
            judge(&example[..end]);
        }
    }
}

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
