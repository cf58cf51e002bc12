//! Dependencies that nothing uses, and crates of ours that another one re-exports.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::crates::{Crate, ident};
use super::ratchet::{Figures, Rule};
use crate::dist::licences::{metadata, text};
use crate::ros2;

pub(super) const DEAD: Rule = Rule {
    name: "dead edges",
    key: "dead-edges",
    unit: "dependencies that no file uses",
    allowed: 0,
    remedy: "delete them from Cargo.toml",
};
pub(super) const REEXPORTS: Rule = Rule {
    name: "re-exported crates",
    key: "re-exports",
    unit: "re-exports of other crates of ours",
    allowed: 0,
    remedy: "its users import the crate themselves; only `onbeat` re-exports",
};

/// The crate that gathers the others for its users.
const FACADE: &str = "crates/onbeat";

/// The crate of the types that all crates share: to re-export one of them adds no edge.
const SHARED: &str = "types";

pub(super) fn reexports(crates: &[Crate]) -> Figures {
    let mut ours: BTreeSet<String> = crates.iter().map(|code| short_name(&code.folder)).collect();
    ours.remove(SHARED);
    let mut figures = Figures::new();
    for code in crates.iter().filter(|code| code.folder != FACADE) {
        for module in &code.modules {
            for item in module.items.iter().filter(|item| item.keyword == "use" && item.is_public) {
                let first = ident(item.tokens.iter().find(|token| ident(Some(token)).is_some()));
                // A module of the crate may have the name of another crate.
                let is_module = first.as_ref().is_some_and(|it| module.children.contains_key(it));
                if first.as_ref().is_some_and(|it| ours.contains(it)) && !is_module {
                    let place = format!("{}:{}", code.files[module.file].path, item.line);
                    figures.entry(code.folder.clone()).or_default().add(place);
                }
            }
        }
    }
    figures
}

/// Name of a crate in the code: the name of its folder.
fn short_name(folder: &str) -> String {
    folder.rsplit('/').next().unwrap_or(folder).replace('-', "_")
}

/// Dependencies with a name that no file of the crate has. For a dependency of tests, its tests and
/// examples count too.
///
/// # Errors
/// cargo does not describe a workspace.
pub(super) fn dead(root: &Path, crates: &[Crate]) -> Result<Figures, String> {
    ros2::prepare(root)?;
    let mut figures = Figures::new();
    for folder in [root.to_owned(), root.join("ros2")] {
        let described = metadata(&folder, &["--no-deps"])?;
        for package in described["packages"].as_array().into_iter().flatten() {
            let manifest = Path::new(text(package, "manifest_path"));
            let manifest = manifest.strip_prefix(root).unwrap_or(manifest);
            let place = manifest.parent().unwrap_or(manifest).display().to_string();
            let Some(code) = crates.iter().find(|code| code.folder == place) else { continue };
            for name in unused(root, code, package)? {
                figures.entry(place.clone()).or_default().add(name);
            }
        }
    }
    Ok(figures)
}

fn unused(root: &Path, code: &Crate, package: &Value) -> Result<Vec<String>, String> {
    let product = words(root, code.files.iter().map(|file| root.join(&file.path)))?;
    let all = words(root, rust_files(&root.join(&code.folder)))?;
    let mut unused = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = dependency["rename"].as_str().unwrap_or_else(|| text(dependency, "name"));
        let used = if dependency["kind"].is_null() { &product } else { &all };
        if !used.contains(&name.replace('-', "_")) {
            unused.push(name.to_owned());
        }
    }
    Ok(unused)
}

/// All words of the files and of the pages that they include: tests compile the programs in them.
fn words(
    root: &Path,
    files: impl IntoIterator<Item = std::path::PathBuf>,
) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for file in files {
        let short = file.strip_prefix(root).unwrap_or(&file).display();
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{short}: {error}"))?;
        found.extend(words_of(&text));
        for page in text.split("include_str!(\"").skip(1).filter_map(|it| it.split('"').next()) {
            let page = file.parent().unwrap_or(root).join(page);
            let is_page = page.extension().is_some_and(|it| it == "md");
            found.extend(
                std::fs::read_to_string(page).ok().filter(|_| is_page).iter().flat_map(|it| words_of(it)),
            );
        }
    }
    Ok(found)
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned)
}

/// Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_re_exports_of_crates_count() {
        let code = "mod b; pub use b::X; pub(crate) use a::Y; use a::Z;\npub use a::{V, W};\n";
        let found = reexports(&[Crate::of(&[("lib.rs", code), ("b.rs", "")])]);
        assert_eq!(found["a"].at, ["a/src/lib.rs:2"]);
    }
}
