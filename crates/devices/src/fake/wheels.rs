//! Simulated drives: two velocities followed with a first-order lag.

use rt::clock::now_ns;

use crate::driver::actuators::Drives;
use crate::pair::DeviceError;
use crate::task::actuators::Feedback;

/// Simulated drives.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    now: Feedback,
    commanded: [f64; 2],
}

/// Time constant of a drive, s.
const TIME_CONSTANT: f64 = 0.03;

impl Drives for Pair {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        self.now.stamp_ns = now_ns();
        Ok("two simulated drives".into())
    }

    fn exchange(&mut self, velocities: [f64; 2], feedback: &mut Feedback) -> Result<bool, DeviceError> {
        let now = now_ns();
        let seconds = (now - self.now.stamp_ns) as f64 * 1e-9;
        // Exact solution of a first-order lag for a constant command since the last update.
        let rest = (-seconds / TIME_CONSTANT).exp();
        for wheel in 0..2 {
            let (commanded, before) = (self.commanded[wheel], self.now.velocities[wheel]);
            self.now.velocities[wheel] = commanded + (before - commanded) * rest;
            self.now.positions[wheel] +=
                commanded * seconds + (before - commanded) * TIME_CONSTANT * (1.0 - rest);
        }
        self.now.stamp_ns = now;
        self.commanded = velocities;
        *feedback = self.now;
        Ok(true)
    }

    fn close(&mut self) {
        self.commanded = [0.0; 2];
    }
}
