//! Real-time task of the IMU.

use ipc::sensor::{Head, Imu};
use types::ImuUnit;

use crate::imu::{Motion, Orientation, mpu6050, myahrs};
use crate::pair::{Datagram, Moment, Poke, Put, Take, Work};

/// Measurement of the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time of the reading, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
    /// Angular velocity, acceleration, temperature.
    pub motion: Motion,
    /// Rotation from the unit's frame to east, north, up, a unit quaternion x, y, z, w, of a unit
    /// that knows it.
    pub orientation: Option<[f64; 4]>,
}

impl Datagram for Sample {
    const LARGEST: usize = 8 + 7 * 8 + 4 * 8;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        let Motion { angular_velocity, acceleration, temperature } = &self.motion;
        let numbers = angular_velocity.iter().chain(acceleration).chain([temperature]);
        let numbers = numbers.chain(self.orientation.iter().flatten());
        numbers.fold(Put::new(bytes).u64(self.stamp_ns), |put, &it| put.f64(it)).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let mut read = || {
            self.stamp_ns = take.u64()?;
            let motion = &mut self.motion;
            let numbers = motion.angular_velocity.iter_mut().chain(&mut motion.acceleration);
            for number in numbers.chain([&mut motion.temperature]) {
                *number = take.f64()?;
            }
            self.orientation = None;
            if let Some(x) = take.f64() {
                self.orientation = Some([x, take.f64()?, take.f64()?, take.f64()?]);
            }
            Some(())
        };
        read().and_then(|()| take.end()).is_some()
    }
}

/// Requests a sample each period and tracks the orientation, unless the unit reports it.
#[derive(Clone, Debug, Default)]
pub struct ImuWork {
    unit: ImuUnit,
    /// Computed here.
    orientation: Orientation,
    /// By the unit itself.
    measured: Option<[f64; 4]>,
    motion: Motion,
    last_ns: u64,
}

impl ImuWork {
    /// Creates the work for this unit.
    #[must_use]
    pub fn new(unit: ImuUnit) -> Self {
        Self { unit, ..Self::default() }
    }
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
        self.motion = sample.motion;
        self.measured = sample.orientation;
        if self.measured.is_none() {
            self.orientation.update(&self.motion, seconds);
        }
        sample.stamp_ns
    }

    fn step(&mut self, _moment: &Moment, _request: &mut Poke) -> bool {
        true
    }

    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize> {
        let computed = &self.orientation;
        let (orientation, bias, tilt_variance, yaw_variance) = match self.measured {
            Some(told) => (told, [0.0; 3], myahrs::ORIENTATION_VARIANCE, myahrs::ORIENTATION_VARIANCE),
            None => {
                (computed.rotation(), computed.bias(), computed.tilt_variance(), computed.yaw_variance())
            }
        };
        let (angular_velocity_variance, linear_acceleration_variance) = match self.unit {
            ImuUnit::Mpu6050 => (mpu6050::ANGULAR_VELOCITY_VARIANCE, mpu6050::ACCELERATION_VARIANCE),
            ImuUnit::MyAhrs => (myahrs::ANGULAR_VELOCITY_VARIANCE, myahrs::ACCELERATION_VARIANCE),
        };
        let imu = Imu {
            head,
            orientation,
            angular_velocity: [0, 1, 2].map(|axis| self.motion.angular_velocity[axis] - bias[axis]),
            linear_acceleration: self.motion.acceleration,
            tilt_variance,
            yaw_variance,
            angular_velocity_variance,
            linear_acceleration_variance,
            temperature: self.motion.temperature,
        };
        imu.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientation_of_the_unit_is_used_else_computed() {
        let mut work = ImuWork::new(ImuUnit::MyAhrs);
        let motion = Motion { acceleration: [0.0, 0.0, 9.8], ..Motion::default() };
        let told = [0.5, -0.5, 0.5, 0.5];
        let mut bytes = [0; Sample::LARGEST];
        let mut imu_of = |orientation| {
            let sample = Sample { stamp_ns: 7, motion, orientation };
            let length = sample.encode(&mut bytes);
            let mut read = Sample::default();
            assert!(read.decode(&bytes[..length]) && read == sample, "{read:?}");
            assert!(!read.decode(&bytes[..length - 1]) && !read.decode(&[]));
            work.take(&sample);
            let mut message = [0; Imu::SIZE];
            work.encode(Head::default(), &mut message).unwrap();
            Imu::decode(&message).unwrap()
        };
        let imu = imu_of(Some(told));
        assert_eq!((imu.orientation, imu.yaw_variance), (told, myahrs::ORIENTATION_VARIANCE));
        let imu = imu_of(None);
        assert_eq!(imu.orientation, [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(imu.angular_velocity_variance, myahrs::ANGULAR_VELOCITY_VARIANCE);
    }
}
