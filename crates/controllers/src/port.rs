//! Ports by which a [`crate::ControllerManager`] receives messages and answers them.

use ipc::channel::{self, Full};
use ipc::force::Client;

/// Real-time end of a port of messages. No method waits, allocates or makes a system call.
pub trait Port: Send {
    /// Binds the port to the real-time thread; called there once, before the first message is read.
    fn bind(&mut self);

    /// Reads the oldest message, cut to `buffer`, and returns its length; `None` where there is
    /// none.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize>;

    /// Sends a message.
    ///
    /// # Errors
    /// The port is full: the message is dropped and counted.
    fn send(&mut self, bytes: &[u8]) -> Result<(), Full>;

    /// Client that has opened it last, where that is known.
    fn client(&self) -> Option<Client> {
        None
    }
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

    fn client(&self) -> Option<Client> {
        Self::client(self)
    }
}
