//! Comparison of measured figures with the allowed ones.
//!
//! A line of `house.txt` is `KEY PLACE FIGURE [REASON]`. It allows the figure at that place, above
//! the limit of the rule. Such a line may only be lowered or deleted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::report::Outcome;

/// The ratchet file, below the root of the repository.
const FILE: &str = "crates/xtask/house.txt";

/// A rule of the repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Name of the step.
    pub(super) name: &'static str,
    /// First word of its lines in the ratchet file.
    pub(super) key: &'static str,
    /// Unit of its figures.
    pub(super) unit: &'static str,
    /// Figure that is allowed without a line in the ratchet file.
    pub(super) allowed: usize,
    pub(super) remedy: &'static str,
}

/// A measured figure.
#[derive(Debug, Default)]
pub(super) struct Figure {
    pub(super) value: usize,
    /// Where it comes from, one text for each place.
    pub(super) at: Vec<String>,
}

/// Figures by their place: a file, a crate, a name.
pub(super) type Figures = BTreeMap<String, Figure>;

impl Figure {
    /// Adds one at `place`.
    pub(super) fn add(&mut self, place: String) {
        self.value += 1;
        self.at.push(place);
    }
}

/// A line of the ratchet file.
#[derive(Debug)]
struct Line {
    number: usize,
    key: String,
    place: String,
    figure: usize,
}

/// The ratchet file.
#[derive(Debug)]
pub(super) struct Ratchet {
    lines: Vec<Line>,
}

impl Ratchet {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let is_line = |line: &str| !line.is_empty() && !line.starts_with('#');
        let lines = (1..).zip(text.lines()).filter(|(_, line)| is_line(line));
        let parse = |(number, line): (usize, &str)| {
            let mut words = line.split_whitespace();
            let (Some(key), Some(place), Some(Ok(figure))) =
                (words.next(), words.next(), words.next().map(str::parse))
            else {
                return Err(format!("{FILE}:{number}: expected KEY PLACE FIGURE [REASON], found `{line}`"));
            };
            Ok(Line { number, key: key.to_owned(), place: place.to_owned(), figure })
        };
        Ok(Self { lines: lines.map(parse).collect::<Result<_, _>>()? })
    }

    /// Fails if a figure is above the allowed one; prints the lines that can be lowered.
    pub(super) fn compare(&self, rule: &Rule, found: &Figures) -> Outcome {
        let (failures, hints) = self.compared(rule, found);
        hints.iter().for_each(|hint| println!("{hint}"));
        match failures.as_slice() {
            [] => Outcome::Passed,
            _ => Outcome::Failed(failures.join("\n")),
        }
    }

    fn compared(&self, rule: &Rule, found: &Figures) -> (Vec<String>, Vec<String>) {
        let (mut failures, mut hints) = (Vec::new(), Vec::new());
        let lines = || self.lines.iter().filter(|line| line.key == rule.key);
        for (place, figure) in found {
            let line = lines().find(|line| line.place == *place);
            let allowed = line.map_or(rule.allowed, |line| line.figure);
            if figure.value > allowed {
                let &Rule { unit, remedy, .. } = rule;
                let mut text = format!("{place}: {} {unit}, allowed {allowed}: {remedy}", figure.value);
                figure.at.iter().for_each(|it| {
                    let _ = write!(text, "\n    {it}");
                });
                failures.push(text);
            }
        }
        for line in lines() {
            let now = found.get(&line.place).map_or(0, |figure| figure.value);
            let Line { number, place, figure, .. } = line;
            if now <= rule.allowed {
                hints.push(format!("{FILE}:{number}: delete the line of {place}: {now} {}", rule.unit));
            } else if now < *figure {
                hints.push(format!("{FILE}:{number}: lower {figure} of {place} to {now}"));
            }
        }
        (failures, hints)
    }

    /// Fails if a line has a key that no rule has.
    pub(super) fn unknown(&self, keys: &[&str]) -> Outcome {
        let unknown = self.lines.iter().filter(|line| !keys.contains(&line.key.as_str()));
        let complaint = |line: &Line| {
            format!("{FILE}:{}: no rule `{}`, expected one of: {}", line.number, line.key, keys.join(", "))
        };
        let complaints: Vec<String> = unknown.map(complaint).collect();
        if complaints.is_empty() { Outcome::Passed } else { Outcome::Failed(complaints.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { name: "sizes", key: "size", unit: "lines", allowed: 10, remedy: "split it" };

    fn compared(file: &str, value: usize) -> (Vec<String>, Vec<String>) {
        let at = vec!["a.rs:3".to_owned()];
        let found = Figures::from([("a.rs".to_owned(), Figure { value, at })]);
        Ratchet::parse(file).expect("a ratchet file").compared(&RULE, &found)
    }

    #[test]
    fn figures_above_the_limit_or_their_line_fail() {
        let complaint = |allowed: u32| format!("a.rs: 12 lines, allowed {allowed}: split it\n    a.rs:3");
        assert_eq!(compared("", 10), (vec![], vec![]));
        assert_eq!(compared("", 12), (vec![complaint(10)], vec![]));
        assert_eq!(compared("size a.rs 11 why", 12), (vec![complaint(11)], vec![]));
        assert_eq!(compared("other a.rs 20\nsize b.rs 11", 12).0, [complaint(10)]);
    }

    #[test]
    fn lines_that_can_be_lowered_are_named() {
        let hints = |file: &str, value: usize| compared(file, value).1;
        assert_eq!(hints("# why\nsize a.rs 14", 14), [""; 0]);
        assert_eq!(hints("# why\nsize a.rs 14", 12), ["crates/xtask/house.txt:2: lower 14 of a.rs to 12"]);
        assert_eq!(
            hints("size a.rs 14", 10),
            ["crates/xtask/house.txt:1: delete the line of a.rs: 10 lines"]
        );
    }

    #[test]
    fn broken_lines_and_unknown_keys_are_reported() {
        assert!(Ratchet::parse("size a.rs many").is_err_and(|why| why.contains("house.txt:1")));
        let ratchet = Ratchet::parse("\nsice a.rs 3").expect("a ratchet file");
        assert!(matches!(ratchet.unknown(&["size"]), Outcome::Failed(why) if why.contains("house.txt:2")));
        assert!(matches!(ratchet.unknown(&["sice"]), Outcome::Passed));
    }
}
