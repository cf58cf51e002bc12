//! A LED strip on an SPI bus.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use spidev::{SpiModeFlags, Spidev, SpidevOptions};

use crate::clock::now_ns;
use crate::led::Chip;
use crate::pair::{DeviceError, Driver};
use crate::task::led_strip::{Frame, Taken};

/// A wire that takes bytes: what lies between the driver and a bus.
pub trait Wire: Send + 'static {
    /// Where it is, for people.
    fn place(&self) -> String;

    /// Makes it accessible, at so many bits a second.
    ///
    /// # Errors
    /// What the system says.
    fn open(&mut self, speed: u32) -> Result<(), DeviceError>;

    /// Sends all of it without a gap.
    ///
    /// # Errors
    /// What the system says.
    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Lets go of it.
    fn close(&mut self);
}

/// An SPI bus of this machine.
#[derive(Debug)]
pub struct Spi {
    path: PathBuf,
    device: Option<Spidev>,
}

impl Spi {
    /// As `/dev/spidev0.0`.
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

/// The driver. A strip tells nothing: what is not there takes frames like what is.
#[derive(Debug)]
pub struct LedStrip<W> {
    wire: W,
    chip: Chip,
    brightness: u8,
    bytes: Vec<u8>,
}

impl<W: Wire> LedStrip<W> {
    /// On this wire, as bright as `brightness` of 31.
    #[must_use]
    pub fn new(wire: W, chip: Chip, brightness: u8) -> Self {
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
        self.wire.open(self.chip.speed())?;
        Ok(format!("an SPI bus for {:?} at {} bit/s", self.chip, self.chip.speed()))
    }

    fn exchange(
        &mut self,
        request: &Frame,
        sample: &mut Taken,
        _patience: Duration,
    ) -> Result<bool, DeviceError> {
        self.chip.encode(&request.leds[..request.count], self.brightness, &mut self.bytes);
        self.wire.send(&self.bytes)?;
        sample.stamp_ns = now_ns();
        Ok(true)
    }

    fn close(&mut self) {
        self.wire.close();
    }
}
