//! The newest value of a thread of this process, for any number of readers: each read is whole, and the writer never waits.

use std::sync::{Arc, Mutex, PoisonError};

use triple_buffer::{Input, Output, TripleBuffer};

/// A writer and a reader, which begin with `initial`.
pub(crate) fn newest<T: Clone + Send>(initial: &T) -> (Writer<T>, Reader<T>) {
    let (input, output) = TripleBuffer::new(initial).split();
    (Writer(input), Reader(Arc::new(Mutex::new(output))))
}

/// The one writer. It takes no lock.
#[derive(Debug)]
pub(crate) struct Writer<T: Send>(Input<T>);

impl<T: Send> Writer<T> {
    /// Replaces the value: `put` finds an older one, and leaves nothing of it.
    pub(crate) fn write(&mut self, put: impl FnOnce(&mut T)) {
        put(self.0.input_buffer_mut());
        self.0.publish();
    }
}

/// A reader, for any thread. Readers wait for each other, never for the writer.
#[derive(Clone, Debug)]
pub(crate) struct Reader<T: Send>(Arc<Mutex<Output<T>>>);

impl<T: Clone + Send> Reader<T> {
    /// The newest value.
    pub(crate) fn read(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read().clone()
    }
}
