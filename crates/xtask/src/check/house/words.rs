//! Listed words, which hide an actor or have a term of the field, in headings
//! and in names of tests.

use super::comments;
use super::prose;
use super::ratchet::{Figure, Figures, Rule};
use super::tracked::Tracked;

pub(super) const HEADINGS: Rule = Rule {
    name: "headings: listed words",
    key: "heading-words",
    unit: "listed words in headings",
    allowed: 0,
    remedy: "use the term of docs/writing.md",
};
pub(super) const TEST_NAMES: Rule = Rule {
    name: "names of tests: listed words",
    key: "test-words",
    unit: "names of tests with a listed word",
    allowed: 0,
    remedy: "use the term of docs/writing.md",
};
pub(super) const TEST_LENGTHS: Rule = Rule {
    name: "names of tests: length",
    key: "long-tests",
    unit: "names of tests above 60 letters",
    allowed: 0,
    remedy: "shorten them",
};

/// Letters of the name of a test.
const LETTERS: usize = 60;

/// The list. `tests/messages.rs` applies it to messages and help, and its second part only
/// there.
const LIST: &str = include_str!("../../../words.txt");

/// Begins the second part of the list.
const SECOND: &str = "# Messages and help alone";

/// Listed words in a text, outside of code in backticks.
pub(super) fn listed(text: &str) -> Vec<&'static str> {
    let plain: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" X ");
    let letters = plain.to_lowercase();
    let is_letter = |letter: char| letter.is_alphanumeric() || "_'-".contains(letter);
    let words: Vec<&str> = letters.split(|it| !is_letter(it)).filter(|it| !it.is_empty()).collect();
    let text = format!(" {} ", words.join(" "));
    let first = LIST.lines().take_while(|line| !line.starts_with(SECOND));
    let list = first.filter(|line| !line.starts_with('#') && !line.is_empty());
    list.filter(|word| text.contains(&format!(" {word} "))).collect()
}

pub(super) fn headings(tracked: &Tracked) -> Figures {
    let mut figures = Figures::new();
    for (path, text) in tracked.texts(".md") {
        for (number, line) in prose::body(&text).filter(|(_, line)| line.starts_with('#')) {
            for word in listed(line) {
                figures.entry(path.to_owned()).or_default().add(format!("line {number}: `{word}`: {line}"));
            }
        }
    }
    figures
}

pub(super) fn test_names(tracked: &Tracked) -> Figures {
    let has_word = |name: &str| !listed(&name.replace('_', " ")).is_empty();
    tests_with(tracked, has_word)
}

pub(super) fn test_lengths(tracked: &Tracked) -> Figures {
    tests_with(tracked, |name| name.len() > LETTERS)
}

fn tests_with(tracked: &Tracked, is_wrong: impl Fn(&str) -> bool) -> Figures {
    let mut figures = Figures::new();
    for (path, text) in tracked.texts(".rs") {
        for (number, name) in names_of_tests(&text).filter(|(_, name)| is_wrong(name)) {
            let figure: &mut Figure = figures.entry(comments::group(path)).or_default();
            figure.add(format!("{path}:{number}: {name}"));
        }
    }
    figures
}

/// Names of functions below `#[test]`, with their lines.
fn names_of_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let line = line.trim();
        is_test |= line == "#[test]";
        let name = line.strip_prefix("fn ")?.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
        std::mem::take(&mut is_test).then_some((number, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_words_are_found_whole_and_outside_code() {
        assert_eq!(listed("The drive is Told, and comes to\trest."), ["told", "comes to rest"]);
        assert_eq!(listed("`told` whosever, retold, given up"), [""; 0]);
        assert!(LIST.contains(SECOND));
    }

    #[test]
    fn only_functions_below_the_attribute_are_tests() {
        let text = "fn helper() {}\n#[test]\n#[ignore]\nfn one_test() {\n    fn inner() {}\n";
        assert_eq!(names_of_tests(text).collect::<Vec<_>>(), [(4, "one_test")]);
    }
}
