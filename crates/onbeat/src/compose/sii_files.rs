//! SIIs that survive a restart: a file for each SubDevice of a simulation, in a folder.
//!
//! A separate thread writes them, each completely before it replaces the previous one, so that the
//! simulation waits for no disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use ethercat::sii::Image;
use simulator::SiiStore;

use crate::SimulationError;

/// Largest SII: 64 Ki words.
const LARGEST: u64 = 128 * 1024;

/// Bytes of the longest EEPROM that can be: 65536 times 1 Kibit.
const LONGEST_IMAGE: u64 = 8 << 20;

/// Contents of a file that is to be an SII image.
///
/// # Errors
/// A file that is not regular: a FIFO would block, and a device may have no end. A file longer than
/// any EEPROM.
pub fn image_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_IMAGE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_IMAGE {
        return Err(io::Error::other(format!("more than {LONGEST_IMAGE} bytes")));
    }
    Ok(bytes)
}

/// True of text in angle brackets, whatever its encoding.
#[must_use]
pub fn is_xml(bytes: &[u8]) -> bool {
    let plain = bytes.iter().filter(|byte| !matches!(byte, 0x00 | 0xEF | 0xBB | 0xBF | 0xFE | 0xFF));
    let mut letters = plain.skip_while(|byte| byte.is_ascii_whitespace());
    letters.next() == Some(&b'<')
        && letters.next().is_some_and(|it| it.is_ascii_alphabetic() || b"?!".contains(it))
}

/// Folder with a file for each SubDevice, and the thread that writes them.
pub struct SiiFiles {
    folder: PathBuf,
    changes: Sender<Change>,
    writer: JoinHandle<Result<(), SimulationError>>,
}

/// SII of a SubDevice, and the keeper of its later changes.
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
    pub(super) image: Image,
    pub(super) store: Box<dyn SiiStore>,
}

/// Contents of a file from now on.
struct Change {
    path: PathBuf,
    image: Vec<u8>,
}

impl SiiFiles {
    /// Files in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// A folder that cannot be made, no thread.
    pub fn open(folder: &Path) -> Result<Self, SimulationError> {
        let not_written = |source| SimulationError::SiiNotKept { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(not_written)?;
        let (changes, received) = mpsc::channel();
        let writer = thread::Builder::new().name("sii".to_owned()).spawn(move || write_all(&received));
        Ok(Self { folder: folder.to_owned(), changes, writer: writer.map_err(not_written)? })
    }

    /// Contents kept for the SubDevice `name`, and the keeper of later contents. A SubDevice
    /// without a file yet starts with `fresh`, which is written at once.
    pub(super) fn keep(
        &self,
        name: &str,
        fresh: impl FnOnce() -> Vec<u8>,
    ) -> Result<Kept, SimulationError> {
        let path = self.folder.join(file_name(name));
        let unreadable = |source| SimulationError::ImageFile { path: path.clone(), source };
        let bytes = match fs::metadata(&path) {
            Ok(kept) if kept.is_file() => read(&path).map_err(unreadable)?,
            Ok(_) => return Err(unreadable(io::Error::other("it is no regular file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let bytes = fresh();
                write(&path, &bytes)?;
                bytes
            }
            Err(error) => return Err(unreadable(error)),
        };
        if bytes.len() as u64 > LARGEST {
            return Err(SimulationError::KeptTooLong { path, most: LARGEST });
        }
        let image = Image::parse(&bytes)
            .map_err(|source| SimulationError::KeptImage { path: path.clone(), source })?;
        let store = Box::new(Store { path, changes: self.changes.clone() });
        Ok(Kept { bytes, image, store })
    }

    /// Writes the remaining changes, after the simulation has ended.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn finish(self) -> Result<(), SimulationError> {
        drop(self.changes);
        self.writer.join().unwrap_or(Ok(()))
    }
}

/// File of a SubDevice: its name, with letters that may have another meaning in a path as `%` and
/// their number, so that no two names have one file.
fn file_name(name: &str) -> String {
    let mut file = String::new();
    for letter in name.chars() {
        if letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' ') {
            file.push(letter);
        } else {
            file.push_str(&format!("%{:02X}", u32::from(letter)));
        }
    }
    file + ".sii"
}

/// Hands changes over to the thread that writes them.
struct Store {
    path: PathBuf,
    changes: Sender<Change>,
}

impl SiiStore for Store {
    fn store(&mut self, image: &[u8]) {
        // Without the thread nothing writes it, as finish() reports.
        let _ = self.changes.send(Change { path: self.path.clone(), image: image.to_vec() });
    }
}

/// Writes changes until the last store is gone. Changes that came meanwhile are written once.
fn write_all(received: &Receiver<Change>) -> Result<(), SimulationError> {
    let mut outcome = Ok(());
    while let Ok(first) = received.recv() {
        let mut latest = vec![first];
        for change in received.try_iter() {
            latest.retain(|it| it.path != change.path);
            latest.push(change);
        }
        for Change { path, image } in latest {
            let written = write(&path, &image);
            outcome = outcome.and(written);
        }
    }
    outcome
}

/// Contents of a file, up to one byte more than the largest SII has.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that is there as a whole, or as it was before.
fn write(path: &Path, image: &[u8]) -> Result<(), SimulationError> {
    let temporary = path.with_extension("sii.new");
    let written = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(image)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        SimulationError::SiiNotKept { path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use ethercat::sii::{Builder, Identity};

    use super::*;

    /// Folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("onbeat-sii-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn image(alias: u16) -> Vec<u8> {
        Builder::new(Identity::default(), "device").alias(alias).build().emit()
    }

    fn alias(files: &SiiFiles) -> u16 {
        files.keep("left/arm", || image(7)).unwrap().image.header.alias()
    }

    #[test]
    fn what_was_written_last_is_there_at_the_next_start() {
        let folder = Folder::new("kept");
        let files = SiiFiles::open(&folder.0).unwrap();
        let Kept { image: fresh, mut store, .. } = files.keep("left/arm", || image(7)).unwrap();
        assert_eq!(fresh.header.alias(), 7);
        (8..100).for_each(|alias| store.store(&image(alias)));
        drop(store);
        files.finish().unwrap();
        let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["left%2Farm.sii"]);
        let files = SiiFiles::open(&folder.0).unwrap();
        assert_eq!(alias(&files), 99);
        files.finish().unwrap();
    }

    #[test]
    fn sii_that_cannot_be_kept_leaves_no_other_file() {
        let folder = Folder::new("not-kept");
        let files = SiiFiles::open(&folder.0).unwrap();
        let Kept { mut store, .. } = files.keep("arm", || image(7)).unwrap();
        let path = folder.0.join("arm.sii");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        store.store(&image(8));
        drop(store);
        assert!(matches!(files.finish(), Err(SimulationError::SiiNotKept { .. })));
        let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["arm.sii"]);
    }

    #[test]
    fn a_broken_file_and_a_folder_that_is_none_are_a_sentence() {
        let folder = Folder::new("broken");
        let files = SiiFiles::open(&folder.0).unwrap();
        let path = folder.0.join("arm.sii");
        fs::write(&path, &image(7)[..100]).unwrap();
        let error = files.keep("arm", || image(7)).err().unwrap().to_string();
        let tail = "SII image cut short: 100 bytes, expected at least 128, the header: remove the file to begin with a new SII";
        assert!(error == format!("{}: {tail}", path.display()), "{error}");
        fs::write(&path, vec![0; 200_000]).unwrap();
        let error = files.keep("arm", || image(7)).err().unwrap().to_string();
        assert!(error.contains("more than 131072 bytes"), "{error}");
        let error = SiiFiles::open(&path).err().unwrap().to_string();
        assert!(error.contains("cannot be written"), "{error}");
    }
}
