//! Lock-free cell shared across processes: a reader gets one publication as a whole, or none.
//!
//! ```text
//! word 0           number of the newest whole publication, 0 for none; also the heartbeat
//! words 1..8       reserved
//! slot 0, 1, ...   a sequence word, then a publication; starts on a cache line
//! ```
//!
//! Publication `n` (from 1) goes into slot `n` modulo the number of slots. Its sequence word is
//! `2 n - 1` while it is written and `2 n` once it is whole; only then does word 0 become `n`. So:
//!
//! * The writer never waits, and nothing a reader does can be seen by it.
//! * A writer that dies at any instruction leaves publication `n` whole: it was at work in another
//!   slot. The next writer continues from word 0.
//! * A read is torn only when the writer laps the reader, that is, comes round to the same slot
//!   during the copy. The reader then tries again, a bounded number of times.
//! * With any content of the words, a read ends and stays within them.
//!
//! Each slot is a sequence lock over atomic words, after Boehm, "Can seqlocks get along with
//! programming language memory models?" (MSPC 2012). The same code runs over [`std`]'s atomics in
//! memory that processes share, and over loom's in its models (`tests/loom.rs`), where a variant
//! without the fences is seen to fail.

use std::sync::atomic::{self, AtomicU64, Ordering};

use crate::sys;

/// An atomic word.
pub trait Word {
    /// Loads as [`AtomicU64::load`] does. Memory that is mapped read-only allows
    /// [`Ordering::Relaxed`] only.
    fn load(&self, order: Ordering) -> u64;
    /// Stores as [`AtomicU64::store`] does.
    fn store(&self, value: u64, order: Ordering);
    /// Fences as [`atomic::fence`] does.
    fn fence(order: Ordering);
}

// Inlined into the cycle: a call for each word would take four times as long.
impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        match order {
            Ordering::Relaxed => sys::word::load(self),
            order => self.load(order),
        }
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn fence(order: Ordering) {
        atomic::fence(order);
    }
}

/// Memory that holds a cell's words; always the same words.
pub trait Words {
    /// Type of a word.
    type Word: Word;

    /// All words of the memory.
    fn words(&self) -> &[Self::Word];
}

impl<M: Words> Words for &M {
    type Word = M::Word;

    #[inline]
    fn words(&self) -> &[M::Word] {
        (**self).words()
    }
}

impl<W: Word> Words for std::sync::Arc<[W]> {
    type Word = W;

    fn words(&self) -> &[W] {
        self
    }
}

/// Dimensions of a cell: slots, and words of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    slots: usize,
    words: usize,
}

impl Shape {
    /// Creates a shape of 2 to 64 slots of 1 to 2^20 words; `None` outside these ranges.
    #[must_use]
    pub const fn new(slots: usize, words: usize) -> Option<Self> {
        if slots >= 2 && slots <= 64 && words >= 1 && words <= 1 << 20 {
            Some(Self { slots, words })
        } else {
            None
        }
    }

    /// Number of slots. The writer laps a reader after one publication fewer than this.
    #[must_use]
    #[inline]
    pub const fn slots(self) -> usize {
        self.slots
    }

    /// Words of a publication.
    #[must_use]
    #[inline]
    pub const fn words(self) -> usize {
        self.words
    }

    /// Words of the whole cell.
    #[must_use]
    #[inline]
    pub const fn total(self) -> usize {
        LINE + self.slots * self.stride()
    }

    #[inline]
    const fn stride(self) -> usize {
        (1 + self.words).next_multiple_of(LINE)
    }

    /// Sequence word and words of the slot of a publication. `words` must be at least
    /// [`Shape::total`] long.
    #[inline]
    fn slot<W>(self, words: &[W], number: u64) -> (&W, &[W]) {
        let start = LINE + (number % self.slots as u64) as usize * self.stride();
        let slot = &words[start..=start + self.words];
        (&slot[0], &slot[1..])
    }
}

/// Words of a cache line of 64 bytes.
const LINE: usize = 8;

/// The only writer of a cell.
#[derive(Debug)]
pub struct Writer<M> {
    memory: M,
    shape: Shape,
    newest: u64,
}

impl<M: Words> Writer<M> {
    /// Creates a writer that continues from the state of the words; zeroed words are a cell without
    /// a publication. `None` if there are fewer words than [`Shape::total`].
    pub fn new(memory: M, shape: Shape) -> Option<Self> {
        let words = memory.words();
        // Relaxed: the former writer has finished; whatever made this the only writer orders its
        // stores before this load.
        let newest = (words.len() >= shape.total()).then(|| words[0].load(Ordering::Relaxed))?;
        Some(Self { memory, shape, newest })
    }

    /// Publishes these words. Words missing to a publication's length keep an old value; words
    /// beyond it are ignored.
    ///
    /// Never waits, makes no system call and allocates nothing.
    #[inline]
    pub fn publish(&mut self, publication: &[u64]) {
        let number = self.newest.wrapping_add(1);
        let words = self.memory.words();
        let (sequence, slot) = self.shape.slot(words, number);
        // Relaxed: ordered by the fence below.
        sequence.store(whole(number).wrapping_sub(1), Ordering::Relaxed);
        // Partner: the last Acquire fence in `read_number`. A reader that copied one of the words
        // below sees the sequence above.
        M::Word::fence(Ordering::Release);
        for (word, &value) in slot.iter().zip(publication) {
            word.store(value, Ordering::Relaxed);
        }
        // Partner: the Acquire fence after the load of the sequence in `read_number`. A reader that
        // sees it sees all words of the publication.
        sequence.store(whole(number), Ordering::Release);
        // Partner: the Acquire fence after the load of word 0 in `read`. A reader that sees it sees
        // the sequence above, or a later one.
        words[0].store(number, Ordering::Release);
        self.newest = number;
    }

    /// Number of the newest publication, 0 for none.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Memory of the words.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

/// Reader of a cell; any number may exist.
#[derive(Clone, Debug)]
pub struct Reader<M> {
    memory: M,
    shape: Shape,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was published yet.
    Nothing,
    /// The copy holds the publication of this number.
    Whole(u64),
    /// No attempt gave a whole publication; this was the newest number at the last attempt.
    Torn(u64),
}

impl<M: Words> Reader<M> {
    /// Creates a reader; `None` if there are fewer words than [`Shape::total`].
    pub fn new(memory: M, shape: Shape) -> Option<Self> {
        (memory.words().len() >= shape.total()).then_some(Self { memory, shape })
    }

    /// Number of the newest publication, 0 for none.
    pub fn newest(&self) -> u64 {
        // Relaxed: only the number is used; `read` orders the words that belong to it.
        self.memory.words()[0].load(Ordering::Relaxed)
    }

    /// Copies the newest publication, cut to the length of `copy`, in at most this many attempts.
    #[inline]
    pub fn read(&self, copy: &mut [u64], attempts: u32) -> Found {
        let words = self.memory.words();
        let mut number = 0;
        for _ in 0..attempts {
            // Relaxed, for the memory may be mapped read-only; ordered by the fence.
            number = words[0].load(Ordering::Relaxed);
            // Partner: the Release store of word 0 in `publish`.
            M::Word::fence(Ordering::Acquire);
            if number == 0 {
                return Found::Nothing;
            }
            if self.read_number(number, copy) {
                return Found::Whole(number);
            }
            std::hint::spin_loop();
        }
        Found::Torn(number)
    }

    /// Copies the publication of this number, cut to the length of `copy`, if its slot still holds
    /// it; one attempt. The writer keeps the newest, and as many before it as there are slots less
    /// two.
    #[inline]
    pub fn read_number(&self, number: u64, copy: &mut [u64]) -> bool {
        if number == 0 {
            return false;
        }
        let (sequence, slot) = self.shape.slot(self.memory.words(), number);
        // Relaxed, for the memory may be mapped read-only; ordered by the fence.
        if sequence.load(Ordering::Relaxed) != whole(number) {
            return false;
        }
        // Partner: the Release store of the sequence in `publish`.
        M::Word::fence(Ordering::Acquire);
        for (value, word) in copy.iter_mut().zip(slot) {
            *value = word.load(Ordering::Relaxed);
        }
        // Partner: the Release fence in `publish`.
        M::Word::fence(Ordering::Acquire);
        sequence.load(Ordering::Relaxed) == whole(number)
    }

    /// Dimensions of the cell.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Memory of the words.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

/// Sequence word of a whole publication.
#[inline]
const fn whole(number: u64) -> u64 {
    number.wrapping_mul(2)
}

#[cfg(test)]
mod tests;
