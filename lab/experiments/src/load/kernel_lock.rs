//! K-lock load: reads `/proc` at full speed. Its files are generated while they are read, under the
//! kernel's own locks: of the list of processes, of each one's memory map, of interrupts and of
//! memory accounting.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Done, LoadError};

/// Files of the whole machine.
const MACHINE: [&str; 7] = ["stat", "meminfo", "vmstat", "interrupts", "softirqs", "slabinfo", "zoneinfo"];

/// Files of each process.
const PROCESS: [&str; 5] = ["stat", "status", "statm", "maps", "smaps_rollup"];

/// Reads until `stop` is set. Files that cannot be read, or are gone by then, are skipped.
///
/// # Errors
/// There is no `/proc`.
pub fn run(stop: &AtomicBool) -> Result<Done, LoadError> {
    let root = Path::new("/proc");
    let mut buffer = vec![0; 1 << 16];
    let mut count = 0;
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        for name in MACHINE {
            count += u64::from(read(&root.join(name), &mut buffer));
        }
        let entries = fs::read_dir(root)
            .map_err(|error| LoadError(format!("/proc cannot be read ({error}): it must be mounted")))?;
        for entry in entries.flatten() {
            let is_process =
                entry.file_name().to_string_lossy().starts_with(|first: char| first.is_ascii_digit());
            if !is_process || stop.load(Ordering::Relaxed) {
                continue;
            }
            for name in PROCESS {
                count += u64::from(read(&entry.path().join(name), &mut buffer));
            }
        }
    }
    Ok(Done { count, what: "files of /proc" })
}

/// Reads a file to its end; true on success.
fn read(path: &Path, buffer: &mut [u8]) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    loop {
        match file.read(buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
