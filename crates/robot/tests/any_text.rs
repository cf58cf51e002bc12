//! Any text gives a robot or one error that points into the text; never a panic.

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
