//! Diagnostics of a cycle, published a few times a second as a JSON document; the newest one
//! counts.

mod bus;
mod document;
mod figures;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::cell::{self, Found};
use crate::region::{self, Kind, Region, RegionError, Written, magic};
use crate::state::ReadError;
use crate::sys::mapping::Use;

pub use bus::{BusDiagnosis, MOST_TOLD, PortDiagnosis, SubDeviceDiagnosis};
pub use document::{
    Conditions, Diagnostics, DisturbanceCounts, LateCycles, TaskDiagnostics, WatchDiagnostics, Watched,
};
pub use figures::{BOUNDS, EventCounts, Figures, Histogram, SpreadNs};

/// Longest document, bytes.
pub const LONGEST: usize = 80 * 1024;

/// Writer of diagnostics, for an ordinary thread.
#[derive(Debug)]
pub(crate) struct Writer {
    cell: cell::Writer<Region>,
    scratch: Vec<u64>,
}

impl Writer {
    /// Makes the region, and the descriptor its readers map it by.
    pub(crate) fn make() -> io::Result<(Self, OwnedFd)> {
        let (region, file) = Region::make(REGION, WORDS, Written::ByMaker)?;
        Ok((Self { cell: region::writer(region)?, scratch: Vec::with_capacity(WORDS) }, file))
    }

    pub(crate) fn publish(&mut self, document: &str) -> Result<(), TooLong> {
        if document.len() > LONGEST {
            return Err(TooLong { found: document.len() });
        }
        self.scratch.clear();
        self.scratch.push(document.len() as u64);
        let words = document.as_bytes().chunks(size_of::<u64>()).map(|bytes| {
            let mut word = [0; size_of::<u64>()];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        self.scratch.extend(words);
        self.cell.publish(&self.scratch);
        Ok(())
    }
}

/// Document too long; the former one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the diagnostics are {found} bytes long, expected at most {LONGEST}: leave something out")]
pub struct TooLong {
    /// Length of the document, bytes.
    pub found: usize,
}

/// Reader of diagnostics.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    cell: cell::Reader<Arc<Region>>,
}

impl Reader {
    pub(crate) fn open(file: BorrowedFd<'_>) -> Result<Self, RegionError> {
        let region = Region::open(REGION, file, Use::Load)?;
        let shape = region.shape();
        Ok(Self { cell: region::reader(Arc::new(region), shape)? })
    }

    pub(crate) fn read(&self) -> Result<String, ReadError> {
        let mut words = vec![0; self.cell.memory().shape().words()];
        match self.cell.read(&mut words, 64) {
            Found::Nothing => return Err(ReadError::Nothing),
            Found::Torn(_) => return Err(ReadError::Torn),
            Found::Whole(_) => {}
        }
        let bytes = words[1..].iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.take(usize::try_from(words[0]).unwrap_or(usize::MAX)).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Region of diagnostics: the length in bytes, then the bytes, the first one lowest in its word.
const REGION: Kind = Kind { name: "onbeat-diagnostics", magic: magic(*b"DI"), version: 2, slots: 4 };

const WORDS: usize = 1 + LONGEST / size_of::<u64>();

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    // feature(ipc): a reader of diagnostics with other fields of late cycles is refused
    #[test]
    fn a_reader_of_version_1_is_refused_with_a_sentence() {
        let (_writer, file) = Writer::make().unwrap();
        let old = Kind { version: 1, ..REGION };
        assert_eq!(
            Region::open(old, file.as_fd(), Use::Load).unwrap_err().to_string(),
            "the region `onbeat-diagnostics` has another layout version: expected 0x1, found 0x2; use \
             programs of the same version of Onbeat on both sides"
        );
        assert!(Reader::open(file.as_fd()).is_ok());
    }
}
