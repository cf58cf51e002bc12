//! SPI buses.

use std::io::{Read, Write};
use std::path::PathBuf;

use spidev::{SpiModeFlags, Spidev, SpidevOptions};

use crate::pair::DeviceError;

/// Interface between drivers and a bus: a wire to one part, which is selected during each call.
pub trait Wire: Send + 'static {
    /// Location of the wire, for messages.
    fn place(&self) -> String;

    /// Opens the wire at this speed, bit/s, in this mode.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(&mut self, speed: u32, mode: Mode) -> Result<(), DeviceError>;

    /// Sends all bytes without a gap.
    ///
    /// # Errors
    /// The operating system's error.
    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads as many bytes without a gap.
    ///
    /// # Errors
    /// The operating system's error.
    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Closes the wire.
    fn close(&mut self);
}

/// Polarity and phase of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Mode 0: the clock idles low, bits are taken with its rising edge.
    RestsLow,
    /// Mode 2: the clock idles high, bits are taken with its falling edge.
    RestsHigh,
}

/// SPI bus of this machine.
#[derive(Debug)]
pub struct Spi {
    path: PathBuf,
    device: Option<Spidev>,
}

impl Spi {
    /// Creates a wire over this device, for example `/dev/spidev0.0`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), device: None }
    }

    fn device(&mut self) -> Result<&mut Spidev, DeviceError> {
        self.device.as_mut().ok_or_else(|| DeviceError("it is not open".into()))
    }
}

impl Wire for Spi {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&mut self, speed: u32, mode: Mode) -> Result<(), DeviceError> {
        let wrong = |error| DeviceError::new("opening", error);
        let mut device = Spidev::open(&self.path).map_err(wrong)?;
        let mode = match mode {
            Mode::RestsLow => SpiModeFlags::SPI_MODE_0,
            Mode::RestsHigh => SpiModeFlags::SPI_MODE_2,
        };
        let options = SpidevOptions::new().bits_per_word(8).max_speed_hz(speed).mode(mode).build();
        device.configure(&options).map_err(|error| DeviceError::new("setting it up", error))?;
        self.device = Some(device);
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        let written = self.device()?.write(bytes).map_err(|error| DeviceError::new("sending", error))?;
        whole("sending: it took", written, bytes.len())
    }

    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let read = self.device()?.read(bytes).map_err(|error| DeviceError::new("receiving", error))?;
        whole("receiving: it gave", read, bytes.len())
    }

    fn close(&mut self) {
        self.device = None;
    }
}

/// The kernel cuts off a transfer longer than its buffer.
fn whole(what: &str, found: usize, expected: usize) -> Result<(), DeviceError> {
    if found == expected {
        return Ok(());
    }
    Err(DeviceError(format!("{what} {found} of {expected} bytes: raise spidev.bufsiz")))
}
