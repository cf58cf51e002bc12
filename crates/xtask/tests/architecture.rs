//! Pages against the tree: files, names and flags that they mention exist. Walks of data through
//! files have no more than their number.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page for readers: its path in the repository, and its text.
struct Page {
    path: PathBuf,
    text: String,
}

/// The pages for readers; not CHANGELOG.md, which speaks of things that are gone.
fn pages() -> Vec<Page> {
    let top = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].into_iter().map(PathBuf::from);
    let docs = [files("docs/*.md"), files("lab/docs/*.md")].concat();
    assert!(docs.len() > 20, "{docs:?}");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).expect("a page is text");
        Page { path, text }
    };
    top.chain(docs).map(read).collect()
}

/// Files of the repository that match a pattern of git.
fn files(pattern: &str) -> Vec<PathBuf> {
    let mut listed = Command::new("git");
    listed.args(["ls-files", "--cached", "--others", "--exclude-standard", pattern]).current_dir(root());
    let listed = String::from_utf8(listed.output().expect("git runs").stdout).expect("names of files");
    listed.lines().map(PathBuf::from).filter(|path| root().join(path).exists()).collect()
}

impl Page {
    /// The text between backticks, blocks of code left out.
    fn quoted(&self) -> Vec<&str> {
        let lines = |block: &&str| block.lines().count() > 1;
        let prose: Vec<&str> = self.text.split("```").step_by(2).collect();
        prose
            .into_iter()
            .flat_map(|prose| prose.split('`').skip(1).step_by(2))
            .filter(|it| !lines(it))
            .collect()
    }
}

/// Targets of the links of a line that lead into the repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.starts_with("http"))
}

/// Anchors of a page's headings, as they are made where it is shown.
fn anchors(text: &str) -> HashSet<String> {
    let heading = |line: &str| {
        let kept = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(kept).map(|it| if it == ' ' { '-' } else { it }).collect()
    };
    text.lines().filter(|line| line.starts_with('#')).map(heading).collect()
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let mut count = 0;
    let mut missing = Vec::new();
    for page in pages() {
        let folder = root().join(page.path.parent().expect("a page lies in a folder"));
        for target in page.text.lines().flat_map(links) {
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root().join(&page.path) } else { folder.join(file) };
            let heads = || fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor));
            if !(path.exists() && (anchor.is_empty() || heads())) {
                missing.push(format!("{}: {target}", page.path.display()));
            }
        }
    }
    assert!(count > 200, "links are found: {count}");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A name in backticks is the end of a path, as `compose/link.rs`.
#[test]
fn source_files_named_in_the_text_are_there() {
    let files = files("*.rs");
    let mut count = 0;
    let mut missing = Vec::new();
    for page in pages() {
        // `NAME.rs` means a file to be created.
        let is_file = |name: &&str| {
            let stem = Path::new(name).file_stem().and_then(OsStr::to_str).unwrap_or_default();
            name.ends_with(".rs") && stem.chars().any(|it| it.is_ascii_lowercase())
        };
        for name in page.quoted().into_iter().filter(is_file) {
            count += 1;
            if !files.iter().any(|file| file.ends_with(name)) {
                missing.push(format!("{}: {name}", page.path.display()));
            }
        }
    }
    assert!(count > 20 && files.len() > 500, "{count} names, {} files", files.len());
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A file of source: its path, and its text.
struct Source {
    path: PathBuf,
    text: String,
}

/// Source of the workspace.
fn sources() -> Vec<Source> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).expect("source is text");
        Source { path, text }
    };
    ["crates/*.rs", "lab/*.rs", "ros2/*.rs"].into_iter().flat_map(files).map(read).collect()
}

/// True if `source` declares `name`: an item, a method, a variant or a field.
fn declares(source: &str, name: &str) -> bool {
    source.match_indices(name).any(|(start, _)| {
        let (before, after) = (&source[..start], &source[start + name.len()..]);
        if after.starts_with(|it: char| it.is_alphanumeric() || it == '_') {
            return false;
        }
        let line = before.rsplit('\n').next().unwrap_or_default();
        let items = [
            "fn ", "struct ", "enum ", "trait ", "const ", "type ", "mod ", "static ", "pub ", "impl ",
            "for ",
        ];
        items.iter().any(|item| line.ends_with(item))
            || line.trim().is_empty() && after.starts_with([',', '(', ' ', ':'])
    })
}

/// Folder of the crate that goes by `name` in paths, as `ethercat_linux` or `onbeat_ipc`.
fn crate_folder(name: &str) -> Option<PathBuf> {
    let name = name.trim_start_matches("onbeat_").replace('_', "-");
    let places = [Path::new("crates").join(&name), Path::new("lab").join(&name), name.into()];
    places.into_iter().find(|folder| root().join(folder).join("Cargo.toml").is_file())
}

/// True if each two neighbours of `a::B::c` are there: `a` is a crate and has B, or a module; a
/// file that declares B declares c.
fn is_there(path: &str, sources: &[Source]) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let is_module = |name: &str| sources.iter().any(|it| it.text.contains(&format!("mod {name};")));
    let begins = |name: &str| {
        name.starts_with(char::is_uppercase) || crate_folder(name).is_some() || is_module(name)
    };
    begins(parts[0])
        && parts.windows(2).all(|pair| match crate_folder(pair[0]) {
            // The library shows parts of other crates as its own.
            Some(folder) if pair[0] != "onbeat" => {
                sources.iter().any(|it| it.path.starts_with(&folder) && declares(&it.text, pair[1]))
            }
            Some(_) => sources.iter().any(|it| declares(&it.text, pair[1])),
            None if is_module(pair[0]) => sources.iter().any(|it| {
                let in_module = |part: &OsStr| Path::new(part).file_stem() == Some(OsStr::new(pair[0]));
                it.path.iter().any(in_module) && declares(&it.text, pair[1])
            }),
            // Shown under another name than it is declared by.
            None if sources.iter().any(|it| it.text.contains(&format!(" as {}", pair[0]))) => {
                sources.iter().any(|it| declares(&it.text, pair[1]))
            }
            None => sources.iter().any(|it| declares(&it.text, pair[0]) && declares(&it.text, pair[1])),
        })
}

/// Body of a method in a source: up to the brace that closes it.
fn body_of<'a>(source: &'a str, method: &str) -> &'a str {
    let (_, rest) = source.split_once(&format!("    fn {method}(")).expect("the method is there");
    rest.split_once("\n    }\n").expect("its end").0
}

/// True if a source calls a free function of this name.
fn calls(source: &str, function: &str) -> bool {
    let is_other = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
    source.match_indices(&format!("{function}(")).any(|(start, _)| {
        let before = &source[..start];
        !before.ends_with(is_other) && !before.ends_with("fn ")
    })
}

/// Status, clients of the IPC, recordings and metrics read the words that one encoder writes.
#[test]
fn the_cycle_encodes_its_state_once() {
    let sources = sources();
    let cycle = sources.iter().find(|it| it.path.ends_with("control/src/cycle.rs")).expect("the cycle");
    let publish = body_of(&cycle.text, "publish");
    assert_eq!(publish.matches("encode(").count(), 1, "encoders in `Cycle::publish`");
    let has_encoder = |it: &&Source| {
        let code = it.text.split("#[cfg(test)]").next().unwrap_or_default();
        it.path.starts_with("crates/control/src") && !it.path.ends_with("tests.rs") && calls(code, "encode")
    };
    let files: Vec<&Path> = sources.iter().filter(has_encoder).map(|it| it.path.as_path()).collect();
    assert_eq!(files, [Path::new("crates/control/src/publication.rs")], "another encoder in the cycle");
}

#[test]
fn names_with_a_path_in_the_text_are_declared() {
    let sources = sources();
    let is_path = |it: &&str| {
        let name = |part: &str| {
            part.starts_with(|it: char| it.is_ascii_alphabetic())
                && part.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        };
        it.contains("::") && it.split("::").all(name)
    };
    let (mut count, mut missing) = (0, Vec::new());
    for page in pages() {
        for path in page.quoted().into_iter().filter(is_path) {
            count += 1;
            if !is_there(path, &sources) {
                missing.push(format!("{}: {path}", page.path.display()));
            }
        }
    }
    assert!(count > 20, "names are found: {count}");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// `--flag` in backticks is a flag of Onbeat, or is in the source where another program is called.
#[test]
fn flags_in_the_text_are_taken() {
    let sources = sources();
    let python = fs::read_to_string(root().join("python/examples/dynamic_window.py")).unwrap_or_default();
    let taken = |flag: &str| {
        let field = format!("{}:", flag.replace('-', "_"));
        let (written, long) = (format!("--{flag}"), format!("\"{flag}\""));
        let in_source =
            |it: &Source| [&field, &written, &long].into_iter().any(|form| it.text.contains(form));
        python.contains(&written) || sources.iter().any(in_source)
    };
    let (mut flags, mut missing) = (HashSet::new(), Vec::new());
    for page in pages() {
        let words = page.quoted().into_iter().flat_map(|it| it.split([' ', '=', '[', ']', ',', '|', '\n']));
        for flag in words.filter_map(|word| word.strip_prefix("--")).filter(|flag| !flag.is_empty()) {
            let new = flags.insert(flag.to_owned());
            if new && !taken(flag) {
                missing.push(format!("{}: --{flag}", page.path.display()));
            }
        }
    }
    assert!(flags.len() > 50, "{flags:?}");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A walk: the files through which a datum passes, and how many there may be.
#[test]
fn each_walk_has_as_many_files_as_it_says_none_twice() {
    let walks = include_str!("walks.txt");
    let walks: Vec<&str> = walks.split("\n== ").skip(1).collect();
    assert_eq!(walks.len(), 4);
    for walk in walks {
        let (title, steps) = walk.split_once('\n').expect("a title");
        let most = title.rsplit(' ').nth(1).expect("a number of files");
        let files: Vec<&str> = steps.lines().filter_map(|step| Some(step.split_once(": ")?.0)).collect();
        assert_eq!(most, files.len().to_string(), "{title}");
        let different: HashSet<&str> = files.iter().copied().collect();
        assert_eq!(different.len(), files.len(), "{title}: a file twice");
        let missing: Vec<_> = files.iter().filter(|file| !root().join(file).is_file()).collect();
        assert!(missing.is_empty(), "{title}: {missing:?}");
    }
}
