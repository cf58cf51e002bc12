//! Texts that a person can read, messages and help, have no word of `words.txt`, and are listed in
//! `tests/messages/`, a file for each crate: a review sees each text that changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Words and phrases that hide an actor or have a term of the field: a line each.
const PRIVATE: &str = include_str!("../words.txt");

/// Texts with such a word that stay: part of the text, and the reason.
const ALLOWED: [(&str, &str); 2] = [
    ("ethercat::main_device::judge", "the path of a module"),
    ("cargo xtask judges", "the name of a command"),
];

/// Crates without texts for users.
const NOT_FOR_USERS: [&str; 2] = ["testkit", "xtask"];

/// Writes the lists.
const RENEW: &str = "ONBEAT_MESSAGES=write cargo test -p xtask --test messages";

#[test]
fn no_message_has_a_private_word() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for folder in folders() {
        for (file, texts) in texts_of(&folder) {
            count += texts.len();
            for text in texts {
                let is_allowed = ALLOWED.iter().any(|(part, _)| text.contains(part));
                let word = private_word(&text).filter(|_| !is_allowed);
                complaints.extend(word.map(|word| format!("{file}: `{word}` in: {text}")));
            }
        }
    }
    assert!(count > 3000, "{count} texts");
    assert!(complaints.is_empty(), "{} texts:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn the_lists_have_each_message_once() {
    let lists = lists();
    let folder = root().join("crates/xtask/tests/messages");
    if std::env::var_os("ONBEAT_MESSAGES").is_some_and(|it| it == "write") {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("the folder is made");
        for (name, list) in &lists {
            fs::write(folder.join(name), list).expect("the list is written");
        }
    }
    let kept = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| {
        let name = entry.file_name().into_string().expect("UTF-8");
        (name, fs::read_to_string(entry.path()).expect("UTF-8"))
    });
    let changes = changes(&kept.collect(), &lists);
    assert!(changes.is_empty(), "texts changed; read them, then run `{RENEW}`:\n{changes}");
}

#[test]
fn added_and_removed_texts_are_named() {
    let list = |text: &str| BTreeMap::from([("a.txt".to_owned(), text.to_owned())]);
    let changes = changes(&list("one.rs  same\none.rs  old\n"), &list("one.rs  new\none.rs  same\n"));
    assert_eq!(changes, "- a.txt: one.rs  old\n+ a.txt: one.rs  new\n");
}

/// Lines that only one side has.
fn changes(kept: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> String {
    let lines = |lists: &BTreeMap<String, String>| -> BTreeSet<(String, String)> {
        let of = |(name, list): (&String, &String)| -> Vec<_> {
            list.lines().map(|line| (name.clone(), line.to_owned())).collect()
        };
        lists.iter().flat_map(of).collect()
    };
    let (kept, found) = (lines(kept), lines(found));
    let mut text = String::new();
    for (sign, (name, line)) in
        kept.difference(&found).map(|it| ("-", it)).chain(found.difference(&kept).map(|it| ("+", it)))
    {
        let _ = writeln!(text, "{sign} {name}: {line}");
    }
    text
}

/// The list of each crate: a line is a file's name and a text. A text of several files is listed
/// once, in the first.
fn lists() -> BTreeMap<String, String> {
    let mut seen = BTreeSet::new();
    let mut lists = BTreeMap::new();
    for folder in folders() {
        let name = folder.file_name().and_then(|it| it.to_str()).expect("UTF-8").to_owned();
        let mut list = String::new();
        for (file, texts) in texts_of(&folder) {
            let file = file.rsplit('/').next().unwrap_or(&file);
            for text in texts.into_iter().filter(|text| has_a_word(text)) {
                if seen.insert(text.clone()) {
                    let _ = writeln!(list, "{file}  {}", text.trim());
                }
            }
        }
        if !list.is_empty() && !NOT_FOR_USERS.contains(&&*name) {
            lists.insert(format!("{name}.txt"), list);
        }
    }
    lists
}

/// True if the text has two words outside of its placeholders: others are parts of a table.
fn has_a_word(text: &str) -> bool {
    let mut outside = String::new();
    let mut inside = false;
    for letter in text.chars() {
        inside = letter == '{' || (inside && letter != '}');
        outside.push(if inside { ' ' } else { letter });
    }
    let is_word = |word: &&str| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
    outside.split_whitespace().filter(is_word).count() > 1
}

/// Folders of the crates, in the order of their names.
fn folders() -> Vec<PathBuf> {
    let entries = ["crates", "lab"].map(|it| fs::read_dir(root().join(it)).expect("crates"));
    let mut folders: Vec<PathBuf> =
        entries.into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect();
    folders.push(root().join("ros2"));
    folders.sort();
    folders
}

#[test]
fn texts_are_found_in_code_and_help_alone() {
    let code = r##"
        // "a comment with \" quotes"
        /* "another comment" */
        let letter = ('"', '\'', b'"');
        fn one<'a>(text: &'a str) -> &'a str { "two \"quoted\" words" }
        #[allow(dead_code, reason = "not for the user")]
        let long = "a line \
                    and its second half";
        let raw = r#"raw "text" here"#;
        /// Says it in
        /// two lines
        #[arg(long)]
        help: bool,
        /// A comment on a field
        field: bool,
        #[cfg(test)]
        mod tests { const TEST: &str = "a text of a test"; }
    "##;
    let found: Vec<String> = texts(code).into_iter().collect();
    assert_eq!(
        found,
        [
            "Says it in two lines",
            "a line and its second half",
            "raw \"text\" here",
            "two \\\"quoted\\\" words"
        ]
    );
    assert_eq!(private_word("the drive is TOLD {whose}, once"), Some("told"));
    assert_eq!(private_word("a {told} cable comes with whosever"), None);
    assert_eq!(private_word("axes come to\\nrest, so"), Some("come to rest"));
}

/// Texts by file, of files that have some; in order.
fn texts_of(folder: &Path) -> Vec<(String, BTreeSet<String>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join("src")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let is_test = path.file_stem().is_some_and(|it| it == "tests");
            match path.is_dir() {
                _ if is_test => {}
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.retain(|path| path.extension().is_some_and(|it| it == "rs"));
    files.sort();
    let of = |path: &PathBuf| {
        let file = path.strip_prefix(root()).expect("a file of the workspace").display().to_string();
        (file, texts(&fs::read_to_string(path).expect("text")))
    };
    files.iter().map(of).filter(|(_, texts)| !texts.is_empty()).collect()
}

/// String literals with a space and help texts of a source file without its tests.
fn texts(source: &str) -> BTreeSet<String> {
    let end = source.match_indices("#[cfg(test)]\n").find(|(start, _)| {
        let mut lines = source[*start..].lines().map(str::trim_start).skip_while(|it| it.starts_with("#["));
        lines.next().is_some_and(|line| line.starts_with("mod "))
    });
    let source = &source[..end.map_or(source.len(), |(start, _)| start)];
    let mut found = help_texts(source);
    let mut rest = source;
    while let Some(start) = rest.find(['"', '/', '\'']) {
        let (before, here) = rest.split_at(start);
        let is_word = |text: &str| text.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let hashes = before.len() - before.trim_end_matches('#').len();
        let is_raw = before[..before.len() - hashes].ends_with('r')
            && !is_word(before[..before.len() - hashes - 1].trim_end_matches('b'));
        let (literal, length) = match here.as_bytes() {
            [b'/', b'/', ..] => (None, here.find('\n').unwrap_or(here.len())),
            [b'/', b'*', ..] => (None, here.find("*/").map_or(here.len(), |end| end + 2)),
            [b'/', ..] => (None, 1),
            [b'\'', ..] => (None, letter_length(here)),
            _ if is_raw => {
                let end = format!("\"{}", "#".repeat(hashes));
                let length = here[1..].find(&end).expect("the end of a raw string") + 1;
                (Some(&here[1..length]), length + end.len())
            }
            _ => {
                let length = quoted_length(here);
                (Some(&here[1..length - 1]), length)
            }
        };
        let is_for_users = !before.trim_end().ends_with("reason =") && !before.ends_with('b');
        if let Some(literal) = literal.filter(|it| is_for_users && it.contains(' ')) {
            found.insert(one_line(literal));
        }
        rest = &here[length..];
    }
    found
}

/// Doc comments that clap shows.
fn help_texts(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut words = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            words.push(text.trim());
            continue;
        }
        if ["#[arg(", "#[command(", "#[derive(Args"].iter().any(|it| line.starts_with(it))
            && !words.is_empty()
        {
            found.insert(words.join(" "));
        }
        words.clear();
    }
    found
}

/// Length of a string literal with its quotes.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character literal, or of the quote of a lifetime.
fn letter_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    let (first, second) = (letters.next(), letters.next());
    match (first, second) {
        (Some((_, '\\')), Some((place, _))) => {
            text[place + 1..].find('\'').map_or(1, |end| place + end + 2)
        }
        (_, Some((place, '\''))) => place + 1,
        _ => 1,
    }
}

/// A literal as one line.
fn one_line(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let joined = lines.fold(first, |all, line| all + line.trim_start());
    joined.replace('\n', "\\n")
}

/// First of the private words in a text, outside of placeholders.
fn private_word(text: &str) -> Option<&'static str> {
    let mut words = String::from(" ");
    let mut inside = false;
    for letter in text.replace("\\n", " ").to_lowercase().chars() {
        match letter {
            '{' => inside = true,
            '}' => inside = false,
            _ if inside => {}
            _ if letter.is_alphanumeric() || matches!(letter, '_' | '\'' | '-') => words.push(letter),
            _ if words.ends_with(' ') => {}
            _ => words.push(' '),
        }
    }
    words.push(' ');
    PRIVATE.lines().find(|word| words.contains(&format!(" {word} ")))
}

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
