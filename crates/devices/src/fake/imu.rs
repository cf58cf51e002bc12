//! Simulated MPU-6050: its registers and its measurements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rt::clock::now_ns;

use crate::driver::imu::Registers;
use crate::pair::DeviceError;

/// Simulated MPU-6050, level and at 26 degrees Celsius, on a robot that turns to and fro; with bias
/// and noise.
#[derive(Clone, Debug)]
pub struct Unit {
    registers: [u8; 128],
    /// Disconnected while set.
    gone: Arc<AtomicBool>,
    /// Duration of a transfer: 18 bytes at 400 kbit/s.
    pub transfer: Duration,
}

impl Default for Unit {
    fn default() -> Self {
        let mut unit =
            Self { registers: [0; 128], gone: Arc::default(), transfer: Duration::from_micros(400) };
        unit.power_on();
        unit
    }
}

impl Unit {
    /// Flag that disconnects the unit while it is set.
    #[must_use]
    pub fn plug(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }

    /// Sets the registers to their values after power-on: sleep mode, all others 0 (register map,
    /// 3).
    fn power_on(&mut self) {
        self.registers = [0; 128];
        self.registers[0x6b] = 0x40;
        self.registers[0x75] = 0x68;
    }

    fn measure(&mut self) {
        if self.registers[0x6b] & 0x40 != 0 {
            return;
        }
        let seconds = now_ns() as f64 * 1e-9;
        let noise = |width: f64| (fastrand::f64() - 0.5) * width;
        // Full scale by bits 4..3 of registers 0x1c and 0x1b: 2 g and 250 degrees a second, doubled
        // with each step.
        let gravity = 16_384.0 / f64::from(1 << (self.registers[0x1c] >> 3 & 3));
        let degree = 131.0 / f64::from(1 << (self.registers[0x1b] >> 3 & 3));
        let turning = 20.0 * (seconds * 0.5).sin();
        let numbers = [
            noise(0.01) * gravity,
            noise(0.01) * gravity,
            (1.0 + noise(0.01)) * gravity,
            (26.0 - 36.53) * 340.0,
            (0.8 + noise(0.1)) * degree,
            (-0.4 + noise(0.1)) * degree,
            (turning + noise(0.1)) * degree,
        ];
        for (place, number) in numbers.into_iter().enumerate() {
            let value = number.round().clamp(-32_768.0, 32_767.0) as i32;
            self.registers[0x3b + 2 * place] = (value >> 8) as u8;
            self.registers[0x3c + 2 * place] = value as u8;
        }
    }

    fn transfer(&self) -> Result<(), DeviceError> {
        if !self.transfer.is_zero() {
            std::thread::sleep(self.transfer);
        }
        // The kernel's error for a missing acknowledge.
        let gone = self.gone.load(Ordering::Relaxed);
        if gone { Err(DeviceError("no device answers (simulated)".into())) } else { Ok(()) }
    }
}

impl Registers for Unit {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        if self.gone.load(Ordering::Relaxed) {
            // Reconnected, it is in its state after power-on.
            self.power_on();
        }
        self.transfer()
    }

    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), DeviceError> {
        self.transfer()?;
        self.measure();
        for (value, register) in values.iter_mut().zip(usize::from(register)..) {
            *value = self.registers.get(register).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write(&mut self, register: u8, value: u8) -> Result<(), DeviceError> {
        self.transfer()?;
        if register == 0x6b && value & 0x80 != 0 {
            self.power_on();
        } else if let Some(place) = self.registers.get_mut(usize::from(register)) {
            *place = value;
        }
        Ok(())
    }

    fn close(&mut self) {}
}
