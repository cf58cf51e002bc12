//! Disk load: a file written, synced, and read again, as `dd` does with 1 MiB blocks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Done, LoadError};

/// Writes and reads a file in `directory` until `stop` is set. It is unlinked, and at most 32 MiB long.
///
/// # Errors
/// The folder cannot be written to, or has no space.
pub fn run(directory: &Path, stop: &AtomicBool) -> Result<Done, LoadError> {
    let named = |error: io::Error| LoadError(format!("{}: {error}", directory.display()));
    let mut file = unnamed(directory).map_err(named)?;
    let blocks = blocks(directory);
    let mut count = 0;
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        write_and_read(&mut file, blocks).map_err(named)?;
        count += blocks;
    }
    Ok(Done { count, what: "blocks of 1 MiB" })
}

/// Creates an unlinked file: its blocks are freed with the process, however it ends.
fn unnamed(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("onbeat-dd-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Number of blocks to write: at most a quarter of the free space, for file systems in memory.
fn blocks(folder: &Path) -> u64 {
    let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    // A file system without limits of its own reports 0.
    let free = if free == 0 { u64::MAX } else { free };
    (free / 4 / BLOCK as u64).clamp(1, BLOCKS)
}

fn write_and_read(file: &mut File, blocks: u64) -> io::Result<()> {
    let mut block = vec![0x5A; BLOCK];
    file.rewind()?;
    for _ in 0..blocks {
        file.write_all(&block)?;
    }
    file.sync_data()?;
    file.rewind()?;
    for _ in 0..blocks {
        file.read_exact(&mut block)?;
    }
    Ok(())
}

const BLOCK: usize = 1 << 20;
const BLOCKS: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_no_name_and_is_written_and_read() {
        let folder = std::env::temp_dir().join(format!("onbeat-dd-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut file = unnamed(&folder).unwrap();
        write_and_read(&mut file, 2).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 * BLOCK as u64);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        assert!((1..=BLOCKS).contains(&blocks(&folder)));
        fs::remove_dir(&folder).unwrap();
        assert!(run(&folder, &AtomicBool::new(false)).unwrap_err().to_string().contains("onbeat-dd-test"));
    }
}
