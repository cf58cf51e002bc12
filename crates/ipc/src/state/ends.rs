//! Both ends of the state region.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::words::{self, Rows};
use super::{Axis, Signal, State};
use crate::cell::{self, Found};
use crate::region::{self, Region, RegionError, Written};
use crate::sys::mapping::Use;

/// The cycle's end.
#[derive(Debug)]
pub struct Writer {
    cell: cell::Writer<Region>,
    scratch: Box<[u64]>,
    rows: Rows,
}

impl Writer {
    /// Makes the region, and the descriptor its readers map it by.
    pub(crate) fn make(axes: usize, signals: usize) -> io::Result<(Self, OwnedFd)> {
        let rows = Rows { axes, signals };
        let length = words::length(rows);
        let (region, file) = Region::make(words::REGION, length, Written::ByMaker)?;
        Ok((Self { cell: region::writer(region)?, scratch: vec![0; length].into(), rows }, file))
    }

    /// A state with as many axes and signals as the description has.
    #[must_use]
    pub fn blank(&self) -> State {
        let Rows { axes, signals } = self.rows;
        State {
            axes: vec![Axis::default(); axes],
            signals: vec![Signal::default(); signals],
            ..State::default()
        }
    }

    /// Publishes a state to all readers, in place of the former one. Axes and signals beyond those of the description
    /// are left out; missing ones are zeros.
    ///
    /// Never waits, never notices a reader, makes no system call and allocates nothing.
    pub fn publish(&mut self, state: &State) {
        words::encode(state, self.rows, &mut self.scratch);
        self.cell.publish(&self.scratch);
    }
}

/// A reader's end, for any number of threads and processes.
#[derive(Clone, Debug)]
pub struct Reader {
    cell: cell::Reader<Arc<Region>>,
}

impl Reader {
    pub(crate) fn open(file: BorrowedFd<'_>) -> Result<Self, RegionError> {
        let region = Region::open(words::REGION, file, Use::Load)?;
        let shape = region.shape();
        let least = words::length(Rows::default());
        if shape.words() < least {
            return Err(RegionError::Other(region::Other {
                region: words::REGION.name,
                what: "publication's words, at least",
                expected: least as u64,
                found: shape.words() as u64,
            }));
        }
        Ok(Self { cell: region::reader(Arc::new(region), shape)? })
    }

    /// Reads the newest state, all of one cycle. After the cycle's end or death it is the last one
    /// published.
    ///
    /// # Errors
    /// No whole state could be read.
    pub fn read(&self) -> Result<State, ReadError> {
        let mut state = State::default();
        self.read_into(&mut state).map(|()| state)
    }

    /// Reads as [`Reader::read`] does, into an existing state, which is unchanged on an error.
    ///
    /// # Errors
    /// No whole state could be read.
    pub fn read_into(&self, state: &mut State) -> Result<(), ReadError> {
        let length = self.cell.memory().shape().words();
        // On the stack for a robot of up to 24 axes with 100 signals.
        let mut few = [0; 412];
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

    /// Number of states published so far; if it no longer grows, the cycle has stopped.
    #[must_use]
    pub fn heartbeat(&self) -> u64 {
        self.cell.newest()
    }
}

/// Reason for a missing state or missing diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing was published yet.
    #[error("the cycle has published nothing yet: wait for its first cycle")]
    Nothing,
    /// No attempt gave a whole publication.
    #[error(
        "no whole publication in {ATTEMPTS} attempts: this process gets too little of the CPU; try again"
    )]
    Torn,
}

/// Attempts of one read. The writer laps a reader only once in as many cycles as there are slots, less one.
pub(super) const ATTEMPTS: u32 = 64;
