//! Where a [`crate::Switch`] gets messages from, and answers them.

use bridge::channel::{self, Full};

/// The real-time end of a port of messages. No method waits, allocates or makes a system call.
pub trait Port: Send {
    /// The real-time thread is there; called once, before the first message is looked for.
    fn bind(&mut self);

    /// The oldest message, cut to `buffer`; its length. `None` where there is none.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize>;

    /// Puts a message on its way.
    ///
    /// # Errors
    /// There is no room: it is dropped and counted.
    fn send(&mut self, bytes: &[u8]) -> Result<(), Full>;
}

impl Port for channel::Port {
    fn bind(&mut self) {
        Self::bind(self);
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        Self::receive(self, buffer)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Full> {
        Self::send(self, bytes)
    }
}
