//! Words that one thread of this process writes and any number read: always of one writing, and the writer never waits.
//! The lock-free part is [`ipc::cell`], over memory that only threads share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ipc::cell::{Found, Reader, Shape, Writer};

/// A reader is torn only when the writer comes round to its slot while it copies.
const SLOTS: usize = 4;

/// Attempts before a reader lets others have the CPU.
const ATTEMPTS: u32 = 16;

/// A writer and a reader of `length` words (1 to 2^20), which are zero.
///
/// # Panics
/// Another length.
pub(crate) fn words(length: usize) -> (WordWriter, WordReader) {
    let shape = Shape::new(SLOTS, length).expect("1 to 2^20 words");
    let memory: Arc<[AtomicU64]> = (0..shape.total()).map(|_| AtomicU64::new(0)).collect();
    let ends = Writer::new(Arc::clone(&memory), shape).zip(Reader::new(memory, shape));
    let (writer, reader) = ends.expect("as many words as the shape has");
    (WordWriter { writer }, WordReader { reader, length })
}

/// The one writer.
#[derive(Debug)]
pub(crate) struct WordWriter {
    writer: Writer<Arc<[AtomicU64]>>,
}

impl WordWriter {
    /// Replaces the words; `values` are as many as the cell was made for.
    pub(crate) fn write(&mut self, values: &[u64]) {
        self.writer.publish(values);
    }
}

/// A reader, for any thread.
#[derive(Clone, Debug)]
pub(crate) struct WordReader {
    reader: Reader<Arc<[AtomicU64]>>,
    length: usize,
}

impl WordReader {
    /// Number of words.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The newest words, all of one writing, into `copy`; zeros before the first.
    pub(crate) fn read(&self, copy: &mut [u64]) {
        loop {
            match self.reader.read(copy, ATTEMPTS) {
                Found::Whole(_) => return,
                Found::Nothing => return copy.fill(0),
                // The writer laps this reader, again and again: it has lost its CPU in the middle.
                Found::Torn(_) => std::thread::yield_now(),
            }
        }
    }
}
