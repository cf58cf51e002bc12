//! Memory shared across processes: a header that identifies it, then one [`cell`].
//!
//! ```text
//! word 0   "onbeat", then two letters for its kind
//! word 1   version of its layout
//! word 2   words of a publication
//! word 3   slots
//! word 4   process that made it
//! words 5..8   reserved
//! word 8.. the cell
//! ```
//!
//! It is a memfd: it has no name, and is freed when the last process closes it. Its size is sealed,
//! so that no peer can make an access fail with SIGBUS.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};

use crate::cell::{self, Shape, Words};
use crate::sys;
use crate::sys::mapping::{Mapping, Use};

/// Kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Name for people.
    pub(crate) name: &'static str,
    /// First word of the region.
    pub(crate) magic: u64,
    /// Version of the layout.
    pub(crate) version: u64,
    /// Slots of its cell.
    pub(crate) slots: usize,
}

/// Memory of this process, shared with others.
#[derive(Debug)]
pub(crate) struct Region {
    mapping: Mapping,
    shape: Shape,
}

/// Side that may write to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The process that made it; no other can, whatever it does with the descriptor.
    ByMaker,
    /// Any process with the descriptor; its maker only reads.
    ByPeer,
}

impl Region {
    /// Makes a region with publications of `words` words, and the descriptor that others map it by.
    pub(crate) fn make(kind: Kind, words: usize, written: Written) -> io::Result<(Self, OwnedFd)> {
        let shape = Shape::new(kind.slots, words).ok_or(io::ErrorKind::InvalidInput)?;
        let total = HEADER + shape.total();
        let file = memfd_create(kind.name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, (total * size_of::<u64>()) as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let mapping = Mapping::of(file.as_fd(), total, Use::Store)?;
        let header =
            [kind.magic, kind.version, words as u64, kind.slots as u64, u64::from(std::process::id())];
        for (word, value) in mapping.words().iter().zip(header) {
            // Relaxed: no other process has the descriptor yet.
            word.store(value, Ordering::Relaxed);
        }
        let mapping = match written {
            Written::ByMaker => {
                // The mapping above stays writable; from now on no other writable one can be made,
                // nor can the file be written.
                fcntl_add_seals(&file, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
                mapping
            }
            Written::ByPeer => {
                fcntl_add_seals(&file, SealFlags::SEAL)?;
                Mapping::of(file.as_fd(), total, Use::Load)?
            }
        };
        Ok((Self { mapping, shape }, file))
    }

    /// Maps a region that another process made.
    pub(crate) fn open(kind: Kind, file: BorrowedFd<'_>, purpose: Use) -> Result<Self, RegionError> {
        let refuse = |what, expected: u64, found: u64| {
            RegionError::Other(Other { region: kind.name, what, expected, found })
        };
        let sealed = fcntl_get_seals(file).map_err(io::Error::from)?;
        if !sealed.contains(SealFlags::SHRINK) {
            let (expected, found) = (SealFlags::SHRINK.bits(), sealed.bits());
            return Err(refuse("seals", u64::from(expected), u64::from(found)));
        }
        let bytes = fstat(file).map_err(io::Error::from)?.st_size as u64;
        if bytes < (HEADER * size_of::<u64>()) as u64 {
            return Err(refuse("bytes", (HEADER * size_of::<u64>()) as u64, bytes));
        }
        let header = Mapping::of(file, HEADER, Use::Load)?;
        let word = |index: usize| sys::word::load(&header.words()[index]);
        for (what, index, expected) in [
            ("magic number", 0, kind.magic),
            ("layout version", 1, kind.version),
            ("number of slots", 3, kind.slots as u64),
        ] {
            if word(index) != expected {
                return Err(refuse(what, expected, word(index)));
            }
        }
        let words = word(2);
        let shape = usize::try_from(words).ok().and_then(|words| Shape::new(kind.slots, words));
        let Some(shape) = shape else { return Err(refuse("publication's words, at most", 1 << 20, words)) };
        let total = HEADER + shape.total();
        if bytes != (total * size_of::<u64>()) as u64 {
            return Err(refuse("bytes", (total * size_of::<u64>()) as u64, bytes));
        }
        Ok(Self { mapping: Mapping::of(file, total, purpose)?, shape })
    }

    /// Shape of its cell.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}

impl Words for Region {
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        &self.mapping.words()[HEADER..]
    }
}

impl Words for std::sync::Arc<Region> {
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        (**self).words()
    }
}

/// Writer of the cell of a region.
pub(crate) fn writer(region: Region) -> io::Result<cell::Writer<Region>> {
    let shape = region.shape();
    cell::Writer::new(region, shape).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reader of the cell of a region.
pub(crate) fn reader<M: Words>(region: M, shape: Shape) -> io::Result<cell::Reader<M>> {
    cell::Reader::new(region, shape).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reason for a region that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The region has another layout than this program's.
    #[error(transparent)]
    Other(#[from] Other),
    /// A system call failed.
    #[error("the memory that is shared cannot be mapped: {0}")]
    System(#[from] io::Error),
}

/// Region with another layout than this program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Name of the region.
    pub region: &'static str,
    /// Field that differs.
    pub what: &'static str,
    /// Value of this program.
    pub expected: u64,
    /// Value found in the region.
    pub found: u64,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { region, what, expected, found } = self;
        write!(
            f,
            "the region `{region}` has another {what}: expected {expected:#x}, found {found:#x}; \
             use programs of the same version of Onbeat on both sides"
        )
    }
}

impl std::error::Error for Other {}

/// Words before the cell: one cache line.
const HEADER: usize = 8;

/// First word of a region: "onbeat" and two letters, in the order of bytes in memory.
pub(crate) const fn magic(letters: [u8; 2]) -> u64 {
    let [a, b] = letters;
    u64::from_le_bytes([b'o', b'n', b'b', b'e', b'a', b't', a, b])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { name: "test", magic: magic(*b"TE"), version: 3, slots: 4 };

    fn refusal(made: Kind) -> Other {
        let (_region, file) = Region::make(made, 5, Written::ByMaker).unwrap();
        match Region::open(KIND, file.as_fd(), Use::Load) {
            Err(RegionError::Other(other)) => other,
            other => panic!("{other:?}"),
        }
    }

    // feature(ipc): another layout is refused with expected and found
    #[test]
    fn foreign_region_is_refused_with_expected_and_found() {
        let other = refusal(Kind { version: 4, ..KIND });
        assert_eq!((other.what, other.expected, other.found), ("layout version", 3, 4));
        assert_eq!(
            other.to_string(),
            "the region `test` has another layout version: expected 0x3, found 0x4; use programs of the same version of \
             Onbeat on both sides"
        );
        let other = refusal(Kind { magic: 7, ..KIND });
        assert_eq!((other.what, other.expected, other.found), ("magic number", KIND.magic, 7));
        let other = refusal(Kind { slots: 8, ..KIND });
        assert_eq!((other.what, other.expected, other.found), ("number of slots", 4, 8));
    }

    #[test]
    fn a_region_that_lies_about_its_size_or_may_shrink_is_refused() {
        let (region, file) = Region::make(KIND, 5, Written::ByPeer).unwrap();
        drop(region);
        for words in [8, 100, 0, 1 << 20, u64::MAX] {
            rustix::io::pwrite(&file, &u64::to_ne_bytes(words), 16).unwrap();
            assert!(
                matches!(Region::open(KIND, file.as_fd(), Use::Load), Err(RegionError::Other(_))),
                "{words}"
            );
        }
        let plain = memfd_create("plain", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&plain, 4096).unwrap();
        let refused = Region::open(KIND, plain.as_fd(), Use::Load);
        assert!(matches!(refused, Err(RegionError::Other(Other { what: "seals", .. }))), "{refused:?}");
        fcntl_add_seals(&plain, SealFlags::SHRINK).unwrap();
        let refused = Region::open(KIND, plain.as_fd(), Use::Load);
        assert!(
            matches!(refused, Err(RegionError::Other(Other { what: "magic number", .. }))),
            "{refused:?}"
        );
    }
}
