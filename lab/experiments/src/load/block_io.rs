//! IRQ load: blocks of 512 bytes read with direct I/O, as `dd bs=512 iflag=direct` does: each waits
//! for the disk, and causes an interrupt.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_setfl};

use super::{Done, LoadError};

/// Size of a block in the paper, bytes.
const BLOCK: usize = 512;

/// Size of a block for disks with larger sectors, bytes.
const LARGE_BLOCK: usize = 4096;

/// Size of the file, bytes: no more than a disk's own cache is needed, since the interrupts come
/// all the same.
const FILE: u64 = 16 << 20;

/// Memory aligned to a page, as direct I/O requires.
#[repr(align(4096))]
struct Page([u8; LARGE_BLOCK]);

/// Reads a temporary file below `directory` block by block, repeatedly, until `stop` is set; then
/// deletes the file.
///
/// # Errors
/// The file system does not support direct I/O, or the file cannot be made.
pub fn run(directory: &Path, stop: &AtomicBool) -> Result<Done, LoadError> {
    let path = directory.join(format!("onbeat-blocks-{}", std::process::id()));
    let fail = |error: io::Error| {
        LoadError(format!(
            "{}: blocks cannot be read with direct I/O ({error}): use a folder on a disk, with --out",
            path.display()
        ))
    };
    let file = create(&path).map_err(fail)?;
    read_until(&file, stop).map_err(fail)
}

/// Creates an unlinked file for direct I/O: it is freed with its last user, however that ends.
fn create(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    fs::remove_file(path)?;
    let chunk = vec![0x5A; 1 << 20];
    for _ in 0..FILE >> 20 {
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    fcntl_setfl(&file, OFlags::DIRECT)?;
    Ok(file)
}

fn read_until(file: &File, stop: &AtomicBool) -> io::Result<Done> {
    let mut page = Box::new(Page([0; LARGE_BLOCK]));
    let small = file.read_at(&mut page.0[..BLOCK], 0).is_ok();
    let (block, what) =
        if small { (BLOCK, "blocks of 512 bytes") } else { (LARGE_BLOCK, "blocks of 4096 bytes") };
    let (mut count, mut offset) = (0, 0);
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        file.read_exact_at(&mut page.0[..block], offset)?;
        offset = (offset + block as u64) % FILE;
        count += 1;
    }
    Ok(Done { count, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load may be killed at any time: nothing of it stays.
    #[test]
    fn the_file_has_no_name_and_is_read_past_the_cache() {
        let folder = std::env::temp_dir().join(format!("onbeat-blocks-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = create(&folder.join("file"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
        let file = match file {
            Ok(file) => file,
            Err(error) => return testkit::skip!("needs direct I/O: {error}"),
        };
        assert!(rustix::fs::fcntl_getfl(&file).unwrap().contains(OFlags::DIRECT));
        assert_eq!(file.metadata().unwrap().len(), FILE);
    }
}
