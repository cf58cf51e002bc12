//! Comments of the Rust code: the length of their lines, and listed words.

use super::prose::COLUMNS;
use super::ratchet::{Figures, Rule};
use super::tracked::Tracked;
use super::words;

pub(super) const LINES: Rule = Rule {
    name: "comments: length of lines",
    key: "long-comments",
    unit: "comment lines above 100 columns",
    allowed: 0,
    remedy: "break them",
};
pub(super) const WORDS: Rule = Rule {
    name: "comments: listed words",
    key: "comment-words",
    unit: "listed words in comments",
    allowed: 0,
    remedy: "use the term of docs/writing.md",
};

pub(super) fn lines(tracked: &Tracked) -> Figures {
    let mut figures = Figures::new();
    each(tracked, |place, group, line, _| {
        if line.chars().count() > COLUMNS {
            figures.entry(group).or_default().add(place);
        }
    });
    figures
}

pub(super) fn words(tracked: &Tracked) -> Figures {
    let mut figures = Figures::new();
    each(tracked, |place, group, _, comment| {
        for word in words::listed(comment) {
            figures.entry(group.clone()).or_default().add(format!("{place}: `{word}`: {comment}"));
        }
    });
    figures
}

/// Calls `of` with the place, the group of figures, the line, and the comment of each comment line.
fn each(tracked: &Tracked, mut of: impl FnMut(String, String, &str, &str)) {
    for (path, text) in tracked.texts(".rs") {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(comment) = comment(line) {
                of(format!("{path}:{number}"), group(path), line, comment);
            }
        }
    }
}

/// The folder of a crate: two parts of the path below `crates` and `lab`, one elsewhere.
pub(super) fn group(path: &str) -> String {
    let parts = if path.starts_with("crates/") || path.starts_with("lab/") { 2 } else { 1 };
    path.split('/').take(parts).collect::<Vec<_>>().join("/")
}

/// The comment of a line, if it has one. `// feature(KEY): TEXT` is a row of a table.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start();
    if let Some(comment) = text.strip_prefix("//") {
        let comment = comment.trim_start_matches(['/', '!']).trim();
        return (!comment.starts_with("feature(")).then_some(comment);
    }
    let (_, comment) = text.split_once(" // ")?;
    (!comment.contains('"')).then_some(comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_at_the_start_and_behind_code() {
        assert_eq!(comment("    /// A doc."), Some("A doc."));
        assert_eq!(comment("let a = 1; // Why."), Some("Why."));
        assert_eq!(comment("let a = \"http://x // y\";"), None);
        assert_eq!(comment("// feature(bus): told"), None);
        assert_eq!(group("crates/cli/src/a.rs"), "crates/cli");
        assert_eq!(group("ros2/src/a.rs"), "ros2");
    }
}
