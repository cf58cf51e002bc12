//! Suggested names for an unknown one.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use strsim::{osa_distance, sorensen_dice};

/// Names to suggest in place of an unknown one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Similar names, the nearest first; if there are none, the first names of all.
    pub names: Vec<String>,
    /// True if they are like it.
    pub alike: bool,
    /// Number of names in all.
    pub all: usize,
}

impl Near {
    /// Names among these with pairs of letters in common with `name`, or that begin with it.
    #[must_use]
    pub fn to<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let wanted = name.to_lowercase();
        let names: Vec<&str> = names.collect();
        let mut near: Vec<(f64, &str)> =
            names.iter().map(|name| (likeness(&wanted, &name.to_lowercase()), *name)).collect();
        near.retain(|&(likeness, _)| likeness >= LEAST);
        near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let alike = !near.is_empty();
        let shown: Vec<&str> =
            if alike { near.into_iter().map(|it| it.1).collect() } else { names.clone() };
        let shown = shown.into_iter().take(MOST).map(str::to_owned).collect();
        Self { names: shown, alike, all: names.len() }
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self.names.iter().map(|name| format!("\"{name}\"")).collect();
        let listed = quoted.join(", ");
        match (self.alike, self.all.saturating_sub(self.names.len())) {
            (true, _) => write!(f, "near it: {listed}"),
            _ if quoted.is_empty() => f.write_str("there is none"),
            (false, 0) => write!(f, "there is {listed}"),
            (false, more) => write!(f, "there is {listed}, and {more} more"),
        }
    }
}

/// Candidate with the fewest edits from `word`, if they are few enough for a typing error.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = cut(word);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((edits(&word, &cut(candidate))?, candidate)))
        // Of equally near ones the alphabetically first, for any order of candidates.
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits that make one of the other, if they leave most of it as it is.
fn edits(word: &str, candidate: &str) -> Option<usize> {
    let [letters, others] = [word, candidate].map(|it| it.chars().count());
    let allowed = match letters {
        // With another letter it is another word; one may be missing.
        0..=2 => usize::from(letters == 2 && others == 3),
        _ => letters / 3,
    };
    Some(osa_distance(word, candidate)).filter(|&edits| edits <= allowed)
}

/// Its first letters, so that no text makes the comparison slow, and all of them small.
fn cut(text: &str) -> String {
    text.chars().take(64).flat_map(char::to_lowercase).collect()
}

/// From 0 for another word to 1 for the same. A few letters have hardly a pair.
fn likeness(wanted: &str, name: &str) -> f64 {
    let begins = !wanted.is_empty() && name.starts_with(wanted);
    sorensen_dice(wanted, name).max(if begins { 0.5 } else { 0.0 })
}

/// Likeness below which a name is another word.
const LEAST: f64 = 0.2;

/// Names shown.
const MOST: usize = 5;

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    fn near(name: &str, names: &[&str]) -> String {
        Near::to(name, names.iter().copied()).to_string()
    }

    #[test]
    fn what_is_like_it_is_near_it() {
        let names = ["pressure", "door closed", "level"];
        assert_eq!(near("presure", &names), "near it: \"pressure\"");
        assert_eq!(near("Door", &names), "near it: \"door closed\"");
        assert_eq!(near("l", &names), "near it: \"level\"");
    }

    #[test]
    fn short_name_with_another_letter_is_only_listed() {
        assert_eq!(near("di", &["do", "ai"]), "there is \"do\", \"ai\"");
        assert_eq!(
            near("q", &["a", "b", "c", "d", "e", "f", "g"]).split("\"e\"").nth(1),
            Some(", and 2 more")
        );
        assert_eq!(near("q", &[]), "there is none");
        assert_eq!(near("", &["do"]), "there is \"do\"");
        assert_eq!(near("di1", &["do1", "di"]), "near it: \"di\"");
    }

    #[test]
    fn slips_of_the_finger_are_found_and_other_words_are_not() {
        let keys = ["period", "priority", "cpu"];
        assert_eq!(nearest("perod", keys), Some("period"));
        assert_eq!(nearest("preiod", keys), Some("period"));
        assert_eq!(nearest("cpus", keys), Some("cpu"));
        assert_eq!(nearest("gear", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("Cpu", keys), Some("cpu"));
    }

    #[test]
    fn a_short_word_with_another_letter_is_another_word() {
        let names = ["do", "top", "x"];
        assert_eq!(nearest("di", names), None);
        assert_eq!(nearest("y", names), None);
        assert_eq!(nearest("tip", ["do", "in"]), None);
        assert_eq!(nearest("tp", names), Some("top"));
        assert_eq!(nearest("tpo", names), Some("top"));
        assert_eq!(nearest("topp", names), Some("top"));
        assert_eq!(nearest("DO", names), Some("do"));
    }
}
