//! Simulated LED strip: the far end of its wire.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::driver::spi::{Mode, Wire};
use crate::pair::DeviceError;

/// Strip that keeps the last bytes it was sent.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    speed: u32,
    last: Arc<Mutex<Vec<u8>>>,
}

impl Strip {
    /// Bytes it was sent last.
    #[must_use]
    pub fn last(&self) -> Vec<u8> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Wire for Strip {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self, speed: u32, _mode: Mode) -> Result<(), DeviceError> {
        self.speed = speed;
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        // Takes as long as the bits take on the wire.
        let bits = bytes.len() as u64 * 8;
        thread::sleep(Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.speed.max(1))));
        bytes.clone_into(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// A strip gives no answer.
    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        bytes.fill(0);
        Ok(())
    }

    fn close(&mut self) {}
}
