//! RustDDS as published, with the patches of `ros2/patches`, in `target/ros2/rustdds`.
//!
//! To take a new version: change [`PACKAGE`] and [`SHA256`] here, the version in `ros2/Cargo.toml`,
//! and leave out the patches that the new version contains.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;

/// Package of crates.io.
const PACKAGE: (&str, &str) = ("rustdds", "0.15.1");

/// Checksum of its file, as crates.io lists it.
const SHA256: &str = "42683a88b9dc025d7d45771b88d20846443b4901ec4b045ca78b8dd316ab616f";

/// File in the prepared folder with what it was made of.
const MADE_OF: &str = "MADE_OF";

/// Prepares the library, unless it was already made of the same package and patches.
///
/// # Errors
/// The package cannot be fetched or has another checksum, or a patch does not apply.
pub(crate) fn prepare(root: &Path) -> Result<(), String> {
    let patches = patches(&root.join("ros2/patches"))?;
    let parts: Vec<String> = patches.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let made_of = format!("{SHA256}\n{}", parts.concat());
    let folder = root.join("target/ros2");
    let library = folder.join(PACKAGE.0);
    if fs::read_to_string(library.join(MADE_OF)).is_ok_and(|it| it == made_of) {
        return Ok(());
    }
    let package = package(&folder)?;
    let sum = command::output(Command::new("sha256sum").arg("--").arg(&package))?;
    checked(&package, &sum)?;
    let new = folder.join(format!("new-{}", std::process::id()));
    unpacked(&package, &new)?;
    for patch in &patches {
        apply(patch, &new)?;
    }
    write(&new.join(MADE_OF), &made_of)?;
    let _ = fs::remove_dir_all(&library);
    fs::rename(&new, &library).map_err(|error| format!("{}: {error}", library.display()))
}

/// Files of the patches, in the order in which they apply.
fn patches(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "patch")).collect();
    found.sort();
    Ok(found)
}

/// The package's file in cargo's cache; cargo downloads it if it is not there.
fn package(folder: &Path) -> Result<PathBuf, String> {
    let (name, version) = PACKAGE;
    let file = format!("{name}-{version}.crate");
    if let Some(found) = cached(&file) {
        return Ok(found);
    }
    println!("downloading {name} {version} (cargo fetch)");
    let manifest = format!(
        "[package]\nname = \"fetch\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
         [dependencies]\n{name} = \"={version}\"\n"
    );
    let fetch = folder.join("fetch");
    write(&fetch.join("lib.rs"), "")?;
    write(&fetch.join("Cargo.toml"), &manifest)?;
    command::run(&mut command::cargo(&fetch, &["fetch", "--quiet"]))?;
    cached(&file).ok_or_else(|| {
        format!("{file} is not in the cache of cargo's registry, expected it there after `cargo fetch`")
    })
}

/// A file in the cache of any registry: crates.io, or a mirror of it.
fn cached(file: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/cache")).ok()?.flatten();
    registries.map(|registry| registry.path().join(file)).find(|path| path.is_file())
}

/// Checks the line that sha256sum printed of `package`.
fn checked(package: &Path, line: &str) -> Result<(), String> {
    match line.split_whitespace().next() {
        Some(SHA256) => Ok(()),
        found => Err(format!(
            "{}: the SHA-256 is {}, expected {SHA256}: delete the file, and try again",
            package.display(),
            found.unwrap_or("missing")
        )),
    }
}

/// Unpacks the package's only folder as `to`.
fn unpacked(package: &Path, to: &Path) -> Result<(), String> {
    let made = fs::remove_dir_all(to).or(Ok(())).and_then(|()| fs::create_dir_all(to));
    made.map_err(|error| format!("{}: {error}", to.display()))?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "-xzf"]).arg(package).arg("-C").arg(to);
    command::output(&mut tar).map(drop)
}

/// Applies a patch; every line of its context has to match.
fn apply(patch: &Path, folder: &Path) -> Result<(), String> {
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn"]).arg(patch).current_dir(folder);
    // The folder may lie in the working tree of a repository, and is no part of it.
    git.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder)).env_remove("GIT_DIR");
    command::output(&mut git).map(drop)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of patches, and their lines, at most: what is more goes upstream or out of the
    /// library.
    const FILES: usize = 5;
    const LINES: usize = 300;

    #[test]
    fn the_patches_are_few_and_each_has_its_reason() {
        let patches = patches(&crate::workspace_root().join("ros2/patches")).unwrap();
        let texts: Vec<String> = patches.iter().map(|path| read(path).unwrap()).collect();
        assert!((1..=FILES).contains(&texts.len()), "{patches:?}");
        let lines: usize = texts.iter().map(|text| text.lines().count()).sum();
        assert!(lines <= LINES, "{lines} lines");
        for (path, text) in patches.iter().zip(&texts) {
            let (head, _) = text.split_once("\ndiff --git ").expect("a patch");
            let reason = head.split_once("\nSubject: [PATCH] ").expect("a subject").1;
            assert!(reason.lines().count() > 2, "{}: no reason", path.display());
        }
    }

    #[test]
    fn the_manifest_asks_for_the_version_that_is_patched() {
        let manifest = read(&crate::workspace_root().join("ros2/Cargo.toml")).unwrap();
        let (name, version) = PACKAGE;
        assert!(manifest.contains(&format!("\n{name} = {{ version = \"={version}\"")), "{manifest}");
        assert!(manifest.contains(&format!("\n{name} = {{ path = \"../target/ros2/{name}\" }}")));
    }

    #[test]
    fn another_checksum_is_refused() {
        let package = Path::new("p.crate");
        assert_eq!(checked(package, &format!("{SHA256}  p.crate\n")), Ok(()));
        let why = checked(package, &format!("{}  p.crate\n", SHA256.replace('4', "5"))).unwrap_err();
        assert!(why.contains("p.crate: the SHA-256 is 52683a88") && why.contains(SHA256), "{why}");
        assert!(checked(package, "").is_err());
    }

    #[test]
    fn a_patch_applies_as_a_whole_or_not_at_all() {
        // Below target/, as the library: inside the working tree of the repository, which git
        // ignores there.
        let folder = crate::workspace_root().join(format!("target/xtask-patch-{}", std::process::id()));
        let patch = folder.join("one.patch");
        let text = "--- a/it.txt\n+++ b/it.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
        write(&patch, text).unwrap();
        write(&folder.join("it.txt"), "one\ntwo\n").unwrap();
        let first = apply(&patch, &folder);
        let patched = read(&folder.join("it.txt")).unwrap();
        let again = apply(&patch, &folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((first, patched.as_str()), (Ok(()), "one\nthree\n"));
        assert!(again.unwrap_err().contains("patch does not apply"));
    }
}
