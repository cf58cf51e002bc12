//! Disk load: a file written in blocks as `dd if=/dev/zero of=bigfile bs=1024000 count=1024` does,
//! again and again; or a small one written, brought to the disk, and read again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Done, LoadError, Weight};

/// Writes a file in `directory` until `stop` is set: of the paper's 1.05 GB, or written and read
/// with at most 32 MiB. It is unlinked.
///
/// # Errors
/// The folder cannot be written to, or has no space.
pub fn run(weight: Weight, directory: &Path, stop: &AtomicBool) -> Result<Done, LoadError> {
    let named = |error: io::Error| LoadError(format!("{}: {error}", directory.display()));
    let mut file = unnamed(directory).map_err(named)?;
    if weight == Weight::Paper {
        return zeros(&mut file, directory, stop);
    }
    let blocks = blocks(directory);
    let mut count = 0;
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        write_and_read(&mut file, blocks).map_err(named)?;
        count += blocks;
    }
    Ok(Done { count, what: "blocks of 1 MiB" })
}

/// Writes the paper's file, which is cut to nothing before each round as `dd` does.
fn zeros(file: &mut File, directory: &Path, stop: &AtomicBool) -> Result<Done, LoadError> {
    let (free, needed) = (free(directory), PAPER_BLOCK as u64 * PAPER_BLOCKS);
    let place = directory.display();
    if free < needed {
        return Err(LoadError(format!(
            "{place}: the paper's file has {} MB, found {} MB of free space: choose another folder with --out, or the load light",
            needed / 1_000_000,
            free / 1_000_000
        )));
    }
    let block = vec![0; PAPER_BLOCK];
    let mut count = 0;
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        if count % PAPER_BLOCKS == 0 {
            file.set_len(0)
                .and_then(|()| file.rewind())
                .map_err(|error| LoadError(format!("{place}: {error}")))?;
        }
        file.write_all(&block).map_err(|error| LoadError(format!("{place}: {error}")))?;
        count += 1;
    }
    Ok(Done { count, what: "blocks of 1 024 000 bytes" })
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
    (free(folder) / 4 / BLOCK as u64).clamp(1, BLOCKS)
}

/// Free space, bytes.
fn free(folder: &Path) -> u64 {
    let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    // A file system without limits reports 0.
    if free == 0 { u64::MAX } else { free }
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

/// The humanoid paper's `bs=1024000 count=1024`.
const PAPER_BLOCK: usize = 1_024_000;
const PAPER_BLOCKS: u64 = 1024;

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
        for weight in [Weight::Paper, Weight::Light] {
            let error = run(weight, &folder, &AtomicBool::new(false)).unwrap_err().to_string();
            assert!(error.contains("onbeat-dd-test"), "{error}");
        }
    }

    // feature(measure): `tuning --load paper`: the humanoid paper's own parameters, `--load light` for small machines
    #[test]
    fn the_papers_file_is_a_round_of_1024_blocks_of_1_024_000_bytes() {
        let folder = std::env::temp_dir();
        if free(&folder) < 2 * PAPER_BLOCK as u64 * PAPER_BLOCKS {
            return testkit::skip!("needs 2.1 GB of free space in {}", folder.display());
        }
        let mut file = unnamed(&folder).unwrap();
        let stop = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let running = scope.spawn(|| zeros(&mut file, &folder, &stop));
            std::thread::sleep(std::time::Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap()
        });
        let length = done.count % PAPER_BLOCKS;
        let length = if length == 0 && done.count > 0 { PAPER_BLOCKS } else { length };
        assert_eq!(file.metadata().unwrap().len(), length * 1_024_000, "{done:?}");
    }
}
