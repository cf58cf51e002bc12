//! Words of the code: doc comments begin with the noun or the verb of the thing, and no identifier
//! is of the private language of the first version.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that no sentence at the beginning of a doc comment begins with: it would speak around the
/// thing.
const NO_BEGINNING: [&str; 13] = [
    "What",
    "How",
    "Who",
    "Whom",
    "Whose",
    "Whoever",
    "Whatever",
    "Whether",
    "Which",
    "Somebody",
    "Something",
    "Nobody",
    "Everybody",
];

/// Types and functions that have a word of the field.
const NO_ITEM: [&str; 12] = [
    "Asked", "Beat", "Bridge", "Course", "Guard", "Mover", "Patience", "Seam", "Teller", "Told", "hear",
    "patience",
];

/// The same of fields and arguments.
const NO_FIELD: [&str; 6] = ["heard", "patience", "seam", "told", "told_ns", "unheard"];

/// Places where such a word is one of the field.
const EXCEPTIONS: [(&str, &str); 1] = [("experiments/src/navigation", "Course")];

#[test]
fn doc_comments_name_the_thing_and_identifiers_are_field_words() {
    let mut found = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).expect("text");
        let name = path.display();
        let mut before = "";
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_start();
            let complaint = match doc(line) {
                // A paragraph continues over several lines.
                Some(words) if doc(before).is_none_or(str::is_empty) => begins_around(words),
                Some(_) => None,
                None => identifier(&path, line),
            };
            found.extend(complaint.map(|what| format!("{name}:{number}: {what}: {line}")));
            before = line;
        }
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn what_is_looked_for_is_found() {
    assert!(begins_around("What it is.").is_some() && begins_around("How, and why").is_some());
    assert!(begins_around("Whole cycles.").is_none() && begins_around("Howling").is_none());
    let path = Path::new("crates/control/src/bus.rs");
    for line in
        ["pub struct Guard {", "enum Told {", "fn hear(&mut self)", "pub told_ns: u64,", "heard: bool,"]
    {
        assert!(identifier(path, line).is_some(), "{line}");
    }
    for line in
        ["struct Guards;", "let told = 3;", "MutexGuard<'_>", "hearts: u8", "(told, heard): (u8, u8)"]
    {
        assert!(identifier(path, line).is_none(), "{line}");
    }
    let course = "pub struct Course {";
    assert!(identifier(path, course).is_some());
    assert!(identifier(Path::new("lab/experiments/src/navigation/course.rs"), course).is_none());
}

/// Words of a doc comment.
fn doc(line: &str) -> Option<&str> {
    line.strip_prefix("///").or(line.strip_prefix("//!")).map(str::trim)
}

fn begins_around(words: &str) -> Option<&'static str> {
    let first = words.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    NO_BEGINNING.contains(&first).then_some("a doc comment does not begin with the thing")
}

/// A complaint about the item or the field that a line declares.
fn identifier(path: &Path, line: &str) -> Option<&'static str> {
    if !line.starts_with(char::is_alphabetic) {
        return None;
    }
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let item = words.by_ref().skip_while(|word| {
        matches!(*word, "pub" | "crate" | "super" | "in" | "const" | "unsafe" | "extern" | "")
    });
    let declared: Vec<&str> = item.take(2).collect();
    let is_item =
        matches!(declared.first(), Some(&("struct" | "enum" | "type" | "trait" | "fn" | "mod" | "union")));
    let name = declared.get(usize::from(is_item)).copied().unwrap_or_default();
    let is_excepted =
        |&(place, word): &(&str, &str)| name == word && path.to_string_lossy().contains(place);
    let is_field = !is_item && line.trim_start_matches("pub ").starts_with(&format!("{name}: "));
    let is_found = is_item && NO_ITEM.contains(&name) || is_field && NO_FIELD.contains(&name);
    (is_found && !EXCEPTIONS.iter().any(is_excepted)).then_some("a word of a private language")
}

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust files of the workspace, of the ROS 2 node and of the fuzz targets.
fn sources() -> Vec<PathBuf> {
    let mut folders = ["crates", "lab", "ros2", "fuzz/fuzz_targets"].map(|name| root().join(name)).to_vec();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 500, "{} files", found.len());
    found
}
