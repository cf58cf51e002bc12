//! Simulated myAHRS+: its registers and its measurements.

use std::time::Duration;

use rt::clock::now_ns;

use crate::driver::imu::Registers;
use crate::pair::DeviceError;

/// Simulated myAHRS+, level and at 26 degrees Celsius, on a robot that turns to and fro about
/// north; with noise.
#[derive(Clone, Debug)]
pub struct Unit {
    registers: [u8; 128],
    /// Duration of a transfer: 12 bytes at 400 kbit/s.
    pub transfer: Duration,
}

impl Default for Unit {
    fn default() -> Self {
        let mut registers = [0; 128];
        registers[1..5].copy_from_slice(&[0xb1, 1, 4, 0x80]);
        Self { registers, transfer: Duration::from_micros(270) }
    }
}

impl Unit {
    fn measure(&mut self) {
        let phase = now_ns() as f64 * 1e-9 * 0.5;
        let noise = |width: f64| (fastrand::f64() - 0.5) * width;
        // Degrees a second and degrees, clockwise from above: down is the positive axis.
        let (turning, yaw) = (20.0 * phase.sin(), -40.0 * phase.cos());
        let (gravity, degree, angle) = (32_767.0 / 16.0, 32_767.0 / 2_000.0, 32_767.0 / 180.0);
        let moved = [
            noise(0.01) * gravity,
            noise(0.01) * gravity,
            (noise(0.01) - 1.0) * gravity,
            noise(0.1) * degree,
            noise(0.1) * degree,
            (turning + noise(0.1)) * degree,
        ];
        let (sin, cos) = (yaw.to_radians() / 2.0).sin_cos();
        let temperature = 26.0 / 200.0 * 32_767.0;
        let attitude = [temperature, 0.0, 0.0, yaw * angle, 0.0, 0.0, sin * 32_767.0, cos * 32_767.0];
        self.put(0x10, &moved);
        self.put(0x22, &moved);
        self.put(0x34, &attitude);
    }

    fn put(&mut self, register: usize, numbers: &[f64]) {
        for (place, number) in numbers.iter().enumerate() {
            let bytes = (number.round().clamp(-32_768.0, 32_767.0) as i16).to_le_bytes();
            self.registers[register + 2 * place..][..2].copy_from_slice(&bytes);
        }
    }
}

impl Registers for Unit {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), DeviceError> {
        std::thread::sleep(self.transfer);
        self.measure();
        for (value, register) in values.iter_mut().zip(usize::from(register)..) {
            *value = self.registers.get(register).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write(&mut self, _register: u8, _value: u8) -> Result<(), DeviceError> {
        Ok(())
    }

    fn close(&mut self) {}
}
