//! Files that git tracks: their number, foreign code among them, and the size of the documents.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::ratchet::{Figure, Figures, Rule};

pub(super) const VENDORED: Rule = Rule {
    name: "no vendored code",
    key: "vendored",
    unit: "files of other projects",
    allowed: 0,
    remedy: "take the crate from the registry; see ros2/patches for a patched one",
};
pub(super) const SEEDS: Rule = Rule {
    name: "fuzz seeds",
    key: "seeds",
    unit: "files in fuzz/seeds",
    allowed: 20,
    remedy: "one archive a target: cargo xtask fuzz --keep TARGET FILE",
};
pub(super) const FILES: Rule = Rule {
    name: "tracked files",
    key: "files",
    unit: "tracked files",
    allowed: 1800,
    remedy: "join small files of one idea, or delete one",
};
pub(super) const MARKDOWN: Rule = Rule {
    name: "size of the documents",
    key: "markdown",
    unit: "bytes of Markdown outside lab/",
    allowed: 240_000,
    remedy: "shorten a page",
};
pub(super) const PAGES: [Rule; 3] = [
    Rule { allowed: 8000, ..page_rule("size of README.md") },
    Rule { allowed: 15_000, ..page_rule("size of ARCHITECTURE.md") },
    Rule { allowed: 8000, ..page_rule("size of FEATURES.md") },
];

const fn page_rule(name: &'static str) -> Rule {
    Rule { name, key: "page", unit: "bytes", allowed: 0, remedy: "move a part to docs/" }
}

/// The files that git tracks.
#[derive(Debug)]
pub(super) struct Tracked {
    root: PathBuf,
    /// Paths below the root, in order.
    pub(super) paths: Vec<String>,
}

impl Tracked {
    /// Nothing outside of a git checkout.
    ///
    /// # Errors
    /// git does not start.
    pub(super) fn read(root: &Path) -> Result<Option<Self>, String> {
        let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
        let output = output.map_err(|error| format!("`git ls-files` does not start: {error}"))?;
        if !output.status.success() {
            return Ok(None);
        }
        let listed = String::from_utf8_lossy(&output.stdout);
        // A file that is deleted but not yet committed is still listed.
        let exists = |path: &&str| !path.is_empty() && root.join(path).exists();
        let paths = listed.split('\0').filter(exists).map(str::to_owned).collect();
        Ok(Some(Self { root: root.to_owned(), paths }))
    }

    /// The files with names that end with `ending`, and their text.
    pub(super) fn texts(&self, ending: &str) -> impl Iterator<Item = (&str, String)> {
        let paths = self.paths.iter().filter(move |path| path.ends_with(ending));
        paths.map(|path| {
            let text = std::fs::read(self.root.join(path)).unwrap_or_default();
            (path.as_str(), String::from_utf8_lossy(&text).into_owned())
        })
    }
}

/// The only figure of a rule.
fn only<'a>(name: &str, paths: impl Iterator<Item = &'a String>) -> Figures {
    let at: Vec<String> = paths.cloned().collect();
    Figures::from([(name.to_owned(), Figure { value: at.len(), at })])
}

pub(super) fn vendored(tracked: &Tracked) -> Figures {
    let is_foreign = |path: &&String| {
        path.split('/')
            .any(|folder| matches!(folder, "third_party" | "third-party" | "vendor" | "vendored"))
    };
    only("all", tracked.paths.iter().filter(is_foreign))
}

pub(super) fn seeds(tracked: &Tracked) -> Figures {
    only("all", tracked.paths.iter().filter(|path| path.starts_with("fuzz/seeds/")))
}

pub(super) fn files(tracked: &Tracked) -> Figures {
    Figures::from([("all".to_owned(), Figure { value: tracked.paths.len(), at: Vec::new() })])
}

pub(super) fn markdown(tracked: &Tracked) -> Figures {
    let pages = tracked.texts(".md").filter(|(path, _)| !path.starts_with("lab/"));
    let value = pages.map(|(_, text)| text.len()).sum();
    Figures::from([("all".to_owned(), Figure { value, at: Vec::new() })])
}

pub(super) fn page(tracked: &Tracked, page: &str) -> Figures {
    let pages = tracked.texts(page).filter(|(path, _)| *path == page);
    pages.map(|(path, text)| (path.to_owned(), Figure { value: text.len(), at: Vec::new() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_code_and_seeds_are_counted() {
        let paths = ["fuzz/seeds/a.tar", "lab/vendor/a.rs", "third_party/x/y.c", "crates/vendors.rs"];
        let tracked = Tracked { root: PathBuf::new(), paths: paths.map(str::to_owned).to_vec() };
        assert_eq!(vendored(&tracked)["all"].at, ["lab/vendor/a.rs", "third_party/x/y.c"]);
        assert_eq!((seeds(&tracked)["all"].value, files(&tracked)["all"].value), (1, 4));
    }
}
