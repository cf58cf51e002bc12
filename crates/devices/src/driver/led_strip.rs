//! Driver of a LED strip on an SPI bus.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use control::clock::now_ns;
use spidev::{SpiModeFlags, Spidev, SpidevOptions};
use types::LedChip;

use crate::led;
use crate::pair::{DeviceError, Driver};
use crate::task::led_strip::{Frame, Taken};

/// Interface between the driver and a bus: a wire that takes bytes.
pub trait Wire: Send + 'static {
    /// Location of the wire, for people.
    fn place(&self) -> String;

    /// Opens the wire at this speed, bit/s.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(&mut self, speed: u32) -> Result<(), DeviceError>;

    /// Sends all bytes without a gap.
    ///
    /// # Errors
    /// The operating system's error.
    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Closes the wire.
    fn close(&mut self);
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
}

impl Wire for Spi {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&mut self, speed: u32) -> Result<(), DeviceError> {
        let wrong = |error| DeviceError::new("opening", error);
        let mut device = Spidev::open(&self.path).map_err(wrong)?;
        let options = SpidevOptions::new()
            .bits_per_word(8)
            .max_speed_hz(speed)
            .mode(SpiModeFlags::SPI_MODE_0)
            .build();
        device.configure(&options).map_err(|error| DeviceError::new("setting it up", error))?;
        self.device = Some(device);
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        let device = self.device.as_mut().ok_or_else(|| DeviceError("it is not open".into()))?;
        let written = device.write(bytes).map_err(|error| DeviceError::new("sending", error))?;
        if written == bytes.len() {
            return Ok(());
        }
        let length = bytes.len();
        Err(DeviceError(format!("sending: it took {written} of {length} bytes: raise spidev.bufsiz")))
    }

    fn close(&mut self) {
        self.device = None;
    }
}

/// Driver of a LED strip. A strip gives no answer: a missing one cannot be told from a present one.
#[derive(Debug)]
pub struct LedStrip<W> {
    wire: W,
    chip: LedChip,
    brightness: u8,
    bytes: Vec<u8>,
}

impl<W: Wire> LedStrip<W> {
    /// Creates a driver on this wire, with this brightness out of 31.
    #[must_use]
    pub fn new(wire: W, chip: LedChip, brightness: u8) -> Self {
        Self { wire, chip, brightness, bytes: Vec::new() }
    }
}

impl<W: Wire> Driver for LedStrip<W> {
    type Request = Frame;
    type Sample = Taken;
    const ASKED: bool = true;

    fn device(&self) -> String {
        self.wire.place()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        let speed = led::speed(self.chip);
        self.wire.open(speed)?;
        Ok(format!("an SPI bus for {:?} at {speed} bit/s", self.chip))
    }

    fn exchange(
        &mut self,
        request: &Frame,
        sample: &mut Taken,
        _timeout: Duration,
    ) -> Result<bool, DeviceError> {
        led::encode(self.chip, &request.leds[..request.count], self.brightness, &mut self.bytes);
        self.wire.send(&self.bytes)?;
        sample.stamp_ns = now_ns();
        Ok(true)
    }

    fn close(&mut self) {
        self.wire.close();
    }
}
