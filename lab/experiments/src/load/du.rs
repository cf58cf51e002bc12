//! File system load: the sizes of all files added up, as `du /` does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Done;

/// Walks from `/` until `stop` is set.
pub fn run(stop: &AtomicBool) -> Done {
    let mut count = 0;
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        count += below(Path::new("/"), stop).files;
    }
    Done { count, what: "files" }
}

/// Result of a walk.
struct DiskUsage {
    files: u64,
    bytes: u64,
}

/// Files, and bytes of disk, below `root`. Links are not followed; files that are gone or not
/// readable count nothing. Very deep folders are skipped, so that a folder mounted within itself
/// has an end.
fn below(root: &Path, stop: &AtomicBool) -> DiskUsage {
    let mut found = DiskUsage { files: 0, bytes: 0 };
    let mut folders: Vec<(PathBuf, u32)> = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            found.files += 1;
            found.bytes = found.bytes.saturating_add(metadata.blocks().saturating_mul(512));
            if metadata.is_dir() && depth < DEEPEST {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

const DEEPEST: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_are_found_and_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("onbeat-du-test-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        let below = |folder: &Path| below(folder, &AtomicBool::new(false));
        let empty = below(&folder).bytes;
        fs::write(folder.join("a/b/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", folder.join("a/link")).unwrap();
        let found = below(&folder);
        assert!((100_000..10_000_000).contains(&(found.bytes - empty)), "{} - {empty}", found.bytes);
        assert_eq!(found.files, 4);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(below(&folder).files, 0);
    }
}
