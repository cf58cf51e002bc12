//! Words that one thread writes and any number read: always of one writing, and the writer never waits.
//!
//! A sequence lock over atomic words: the writer never waits and never notices its readers; a reader that
//! meets a write looks again. It follows Boehm, "Can seqlocks get along with programming language memory
//! models?" (MSPC 2012).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A writer and a reader of `length` words, which are zero.
pub(crate) fn words(length: usize) -> (WordWriter, WordReader) {
    let words = (0..length).map(|_| AtomicU64::new(0)).collect();
    let cell = Arc::new(Cell { sequence: AtomicU64::new(0), words });
    (WordWriter { cell: Arc::clone(&cell) }, WordReader { cell })
}

#[derive(Debug)]
struct Cell {
    /// Odd while the words are written.
    sequence: AtomicU64,
    words: Box<[AtomicU64]>,
}

/// The one writer.
#[derive(Debug)]
pub(crate) struct WordWriter {
    cell: Arc<Cell>,
}

impl WordWriter {
    /// Replaces the words; `values` are as many as the cell was made for.
    pub(crate) fn write(&mut self, values: &[u64]) {
        let cell = &*self.cell;
        // Relaxed: this is the only writer.
        let sequence = cell.sequence.load(Ordering::Relaxed);
        cell.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        // Partner: the Acquire fence in `read`. A reader that sees one of the words below also sees the odd
        // sequence above.
        fence(Ordering::Release);
        for (word, &value) in cell.words.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
        // Partner: the Acquire load in `read`. Who sees this even sequence sees all words of it.
        cell.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }
}

/// A reader, for any thread.
#[derive(Clone, Debug)]
pub(crate) struct WordReader {
    cell: Arc<Cell>,
}

impl WordReader {
    /// How many words there are.
    pub(crate) fn length(&self) -> usize {
        self.cell.words.len()
    }

    /// The newest words, all of one writing, into `copy`.
    pub(crate) fn read(&self, copy: &mut [u64]) {
        loop {
            // Partner: the Release store in `write`.
            let before = self.cell.sequence.load(Ordering::Acquire);
            for (copy, word) in copy.iter_mut().zip(&self.cell.words) {
                *copy = word.load(Ordering::Relaxed);
            }
            // Partner: the Release fence in `write`.
            fence(Ordering::Acquire);
            if before % 2 == 0 && self.cell.sequence.load(Ordering::Relaxed) == before {
                return;
            }
            // The writer may have been preempted in the middle.
            std::thread::yield_now();
        }
    }
}
