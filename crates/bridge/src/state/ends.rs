//! The two ends of the region of states.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::{State, words};
use crate::cell::{self, Found};
use crate::region::{self, Region, RegionError, Written};
use crate::sys::mapping::Use;

/// The cycle's end.
#[derive(Debug)]
pub struct Writer {
    cell: cell::Writer<Region>,
    scratch: Box<[u64]>,
}

impl Writer {
    /// Makes the region, and the descriptor its readers map it by.
    pub(crate) fn make(axes: usize) -> io::Result<(Self, OwnedFd)> {
        let length = words::length(axes);
        let (region, file) = Region::make(words::REGION, length, Written::ByMaker)?;
        Ok((Self { cell: region::writer(region)?, scratch: vec![0; length].into() }, file))
    }

    /// Puts the state before every reader, in place of the one before. Of more axes than the description has the first
    /// ones; zeros for those that are missing.
    ///
    /// Never waits, never notices a reader, makes no system call, allocates nothing.
    pub fn publish(&mut self, state: &State) {
        words::encode(state, &mut self.scratch);
        self.cell.publish(&self.scratch);
    }
}

/// A reader's end: for any number of threads and processes.
#[derive(Clone, Debug)]
pub struct Reader {
    cell: cell::Reader<Arc<Region>>,
}

impl Reader {
    pub(crate) fn open(file: BorrowedFd<'_>) -> Result<Self, RegionError> {
        let region = Region::open(words::REGION, file, Use::Load)?;
        let shape = region.shape();
        if words::axes(shape.words()).is_none() {
            return Err(RegionError::Other(region::Other {
                region: words::REGION.name,
                what: "publication's words for no axis, and 7 more for each",
                expected: words::length(0) as u64,
                found: shape.words() as u64,
            }));
        }
        Ok(Self { cell: region::reader(Arc::new(region), shape)? })
    }

    /// The newest state, of one beat. After the cycle's end, or death, the last one it published.
    ///
    /// # Errors
    /// That there is none.
    pub fn read(&self) -> Result<State, ReadError> {
        let mut state = State::default();
        self.read_into(&mut state).map(|()| state)
    }

    /// As [`Reader::read`], into a state that is at hand; on an error that is as it was.
    ///
    /// # Errors
    /// That there is none.
    pub fn read_into(&self, state: &mut State) -> Result<(), ReadError> {
        let length = self.cell.memory().shape().words();
        // On the stack for a robot of up to 36 axes.
        let mut few = [0; 293];
        let mut many = Vec::new();
        let copy = match few.get_mut(..length) {
            Some(few) => few,
            None => {
                many.resize(length, 0);
                &mut many[..]
            }
        };
        match self.cell.read(copy, ATTEMPTS) {
            Found::Nothing => Err(ReadError::Nothing),
            Found::Torn(_) => Err(ReadError::Torn),
            Found::Whole(_) => {
                words::decode(copy, state);
                Ok(())
            }
        }
    }

    /// States published so far: one that no longer grows is that of a cycle that stands still.
    #[must_use]
    pub fn heartbeat(&self) -> u64 {
        self.cell.newest()
    }
}

/// Why there is no state, or no diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// None was published yet.
    #[error("the cycle has published nothing yet: wait for its first beat")]
    Nothing,
    /// No attempt gave a whole one.
    #[error(
        "no whole publication in {ATTEMPTS} attempts: this process gets too little of the CPU; try again"
    )]
    Torn,
}

/// The writer laps a reader only once in as many beats as there are slots, less one.
pub(super) const ATTEMPTS: u32 = 64;
