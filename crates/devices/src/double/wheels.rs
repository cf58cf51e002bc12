//! Two drives that follow their velocities as a wheel with some inertia does.

use crate::clock::now_ns;
use crate::driver::actuators::Drives;
use crate::pair::DeviceError;
use crate::task::actuators::Feedback;

/// The drives.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    now: Feedback,
    told: [f64; 2],
}

/// How fast a drive follows, s.
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
        // Exact for a first-order lag with what they were told until now.
        let rest = (-seconds / TIME_CONSTANT).exp();
        for wheel in 0..2 {
            let (told, before) = (self.told[wheel], self.now.velocities[wheel]);
            self.now.velocities[wheel] = told + (before - told) * rest;
            self.now.positions[wheel] += told * seconds + (before - told) * TIME_CONSTANT * (1.0 - rest);
        }
        self.now.stamp_ns = now;
        self.told = velocities;
        *feedback = self.now;
        Ok(true)
    }

    fn close(&mut self) {
        self.told = [0.0; 2];
    }
}
