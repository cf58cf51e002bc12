//! Driver of a LED strip on an SPI bus.

use std::time::Duration;

use rt::clock::now_ns;
use types::LedChip;

use super::spi::{Mode, Wire};
use crate::led;
use crate::pair::{DeviceError, Driver};
use crate::task::led_strip::{Frame, Taken};

/// Driver of a LED strip. A strip does not answer, so a missing one is not detected.
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
        self.wire.open(speed, Mode::RestsLow)?;
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
