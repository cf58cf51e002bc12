//! Position of an axis over a restart of Onbeat (`position_memory`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use control::axis::memory::{self, MemoryGate, Place};
use motion::supervision::StopReason;
use serde::{Deserialize, Serialize};

use super::folder::{Folder, StateError, file_name};

/// File of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PositionMemory {
    /// Vendor, product code and serial number of the drive.
    pub drive: [u32; 3],
    /// Kind of the encoder.
    pub encoder: String,
    /// SHA-256 of scale and offset of the axis.
    pub scale: String,
    /// The flag `at_rest`, standstill with the drive disabled: position actual value 0x6064 of the
    /// drive. `None` while the drive may be enabled, or the axis moves.
    pub at_rest: Option<i32>,
}

impl PositionMemory {
    /// Position of the axis at standstill in the previous run, if its drive, encoder and scale are
    /// the same as in `now`; else the reason that the position is not known.
    fn position_in(&self, now: &Self) -> Result<i32, StopReason> {
        match AxisMemory::differs(self, now) {
            true => Err(StopReason::UnreferencedMemory),
            false => self.at_rest.ok_or(StopReason::UnreferencedInUse),
        }
    }
}

/// Memory of one axis, as the writer keeps it.
#[derive(Debug)]
pub(crate) struct AxisMemory {
    file: String,
    now: PositionMemory,
    gate: Arc<MemoryGate>,
    /// Noise of a position at standstill, counts.
    noise: i64,
    /// Position that is being watched, and consecutive polls at which the axis was there.
    watched: (i32, u32),
    /// Time of the last attempt that failed, or of the last flag that was written.
    last: Option<Instant>,
    /// The file is still to be written with the drive, encoder and scale of now.
    is_new: bool,
}

impl AxisMemory {
    /// Opens the memory of the axis `name`; with the part for its cycle, and the sentence of a file
    /// that cannot be read.
    pub(crate) fn open(
        folder: &Folder,
        name: &str,
        now: PositionMemory,
        noise: i64,
    ) -> (Self, memory::PositionMemory, Option<StateError>) {
        let file = format!("position-{}.json", file_name(name));
        let (kept, error) = match folder.read::<PositionMemory>(&file) {
            Ok(kept) => (kept, None),
            Err(error) => (None, Some(error)),
        };
        let is_new = kept.as_ref().is_none_or(|it| Self::differs(it, &now));
        let last = kept.as_ref().map_or(Err(StopReason::UnreferencedMemory), |it| it.position_in(&now));
        let gate = Arc::new(MemoryGate::default());
        let at_rest = last.ok();
        let axis = Self {
            file,
            now: PositionMemory { at_rest, ..now },
            gate: Arc::clone(&gate),
            noise: noise.max(1),
            watched: (0, 0),
            last: None,
            is_new,
        };
        (axis, memory::PositionMemory { last, gate }, error)
    }

    fn differs(kept: &PositionMemory, now: &PositionMemory) -> bool {
        (kept.drive, &kept.encoder, &kept.scale) != (now.drive, &now.encoder, &now.scale)
    }

    /// Looks what the axis does, and keeps the memory on the disk right.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn look(&mut self, folder: &Folder) -> Result<(), StateError> {
        if self.is_new && !self.has_just_failed() {
            self.write(folder, None)?;
        }
        if self.gate.is_wanted() {
            if self.has_just_failed() {
                return Ok(());
            }
            self.write(folder, None)?;
            self.gate.removed();
            return Ok(());
        }
        let Some(Place { counts, rests }) = self.gate.place() else { return Ok(()) };
        let away = |from: i32| i64::from(counts.wrapping_sub(from)).abs() > self.noise;
        if self.now.at_rest.is_some_and(|at_rest| !rests || away(at_rest)) {
            // Moved by hand, or by its load.
            self.watched = (counts, 0);
            return self.write(folder, None);
        }
        self.watched = match rests && !away(self.watched.0) {
            true => (self.watched.0, self.watched.1.saturating_add(1)),
            false => (counts, 0),
        };
        let due = self.watched.1 >= LOOKS && self.now.at_rest.is_none() && !self.has_just_failed();
        if due && self.gate.store() {
            self.write(folder, Some(counts))?;
            self.last = Some(Instant::now());
        }
        Ok(())
    }

    /// Keeps the position at the end of the run, after its cycle has ended.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn finish(&mut self, folder: &Folder) -> Result<(), StateError> {
        let place = self.gate.place();
        match place.filter(|it| it.rests && self.now.at_rest != Some(it.counts)) {
            Some(Place { counts, .. }) if self.gate.store() => self.write(folder, Some(counts)),
            _ => Ok(()),
        }
    }

    fn write(&mut self, folder: &Folder, at_rest: Option<i32>) -> Result<(), StateError> {
        let next = PositionMemory { at_rest, ..self.now.clone() };
        match folder.write(&self.file, &next) {
            Ok(()) => {
                (self.now, self.is_new) = (next, false);
                self.gate.note(Ok(()));
                Ok(())
            }
            Err(error) => {
                self.last = Some(Instant::now());
                self.gate.note(Err(error.number().unwrap_or(-1)));
                Err(error)
            }
        }
    }

    /// A disk that refuses a file is not asked all the time, and an axis that creeps is not written
    /// all the time.
    fn has_just_failed(&self) -> bool {
        self.last.is_some_and(|at| at.elapsed() < AGAIN)
    }
}

/// Consecutive polls at standstill before a position is kept: 100 ms.
const LOOKS: u32 = 5;

/// Time between two attempts.
const AGAIN: Duration = Duration::from_secs(1);
