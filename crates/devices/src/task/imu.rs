//! Real-time task of the IMU.

use ipc::sensor::{Head, Imu};

use crate::imu::mpu6050::{ACCELERATION_VARIANCE, ANGULAR_VELOCITY_VARIANCE, Raw};
use crate::imu::{Motion, Orientation};
use crate::pair::datagram::{Poke, Put, Take};
use crate::pair::{Datagram, Moment, Work};

/// Values of the unit's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time of the reading, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
    /// Register values.
    pub raw: Raw,
}

impl Datagram for Sample {
    const LARGEST: usize = 8 + 14;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        let numbers = self.raw.acceleration.iter().chain([&self.raw.temperature]);
        let numbers = numbers.chain(&self.raw.angular_velocity);
        numbers.fold(Put::new(bytes).u64(self.stamp_ns), |put, &it| put.u16(it as u16)).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let mut read = || {
            self.stamp_ns = take.u64()?;
            for number in &mut self.raw.acceleration {
                *number = take.u16()? as i16;
            }
            self.raw.temperature = take.u16()? as i16;
            for number in &mut self.raw.angular_velocity {
                *number = take.u16()? as i16;
            }
            Some(())
        };
        read().and_then(|()| take.end()).is_some()
    }
}

/// Requests a sample each period and tracks the orientation.
#[derive(Clone, Debug, Default)]
pub struct ImuWork {
    orientation: Orientation,
    motion: Motion,
    last_ns: u64,
}

impl Work for ImuWork {
    type Sample = Sample;
    type Request = Poke;
    const PUBLISHED: usize = Imu::SIZE;

    fn take(&mut self, sample: &Sample) -> u64 {
        // Intervals come from the samples' own stamps, not from their arrival.
        let seconds = sample.stamp_ns.saturating_sub(self.last_ns) as f64 * 1e-9;
        let seconds = if self.last_ns == 0 { 0.0 } else { seconds };
        self.last_ns = sample.stamp_ns;
        self.motion = sample.raw.motion();
        self.orientation.update(&self.motion, seconds);
        sample.stamp_ns
    }

    fn step(&mut self, _moment: &Moment, _request: &mut Poke) -> bool {
        true
    }

    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize> {
        let bias = self.orientation.bias();
        let angular_velocity = [0, 1, 2].map(|axis| self.motion.angular_velocity[axis] - bias[axis]);
        let imu = Imu {
            head,
            orientation: self.orientation.rotation(),
            angular_velocity,
            linear_acceleration: self.motion.acceleration,
            tilt_variance: self.orientation.tilt_variance(),
            yaw_variance: self.orientation.yaw_variance(),
            angular_velocity_variance: ANGULAR_VELOCITY_VARIANCE,
            linear_acceleration_variance: ACCELERATION_VARIANCE,
            temperature: self.motion.temperature,
        };
        imu.encode(bytes)
    }
}
