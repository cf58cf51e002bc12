//! Suggested names for an unknown one.

use std::fmt;

use strsim::sorensen_dice;

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
}
