//! Real-time task of the actuators: two driven wheels.

use ipc::sensor::{Head, WheelRequest, Wheels};

use crate::pair::{Datagram, Moment, Put, Take, Work};

/// Commanded velocities of the wheels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Velocities {
    /// Release of the real-time task that commands them, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
    /// Left and right, rad/s.
    pub wheels: [f64; 2],
}

impl Datagram for Velocities {
    const LARGEST: usize = 24;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        Put::new(bytes).u64(self.stamp_ns).f64(self.wheels[0]).f64(self.wheels[1]).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let mut read = || Some(Self { stamp_ns: take.u64()?, wheels: [take.f64()?, take.f64()?] });
        let Some((read, ())) = read().zip(take.end()) else { return false };
        *self = read;
        self.wheels.iter().all(|it| it.is_finite())
    }
}

/// Positions and velocities of the wheels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Time of the feedback, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
    /// Positions, left and right, rad.
    pub positions: [f64; 2],
    /// Velocities, left and right, rad/s.
    pub velocities: [f64; 2],
    /// Number of times that the drives have stopped the wheels because of how they turned.
    pub stops: u32,
}

impl Datagram for Feedback {
    const LARGEST: usize = 44;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        let numbers = self.positions.iter().chain(&self.velocities);
        let put = numbers.fold(Put::new(bytes).u64(self.stamp_ns), |put, &it| put.f64(it));
        put.u32(self.stops).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let mut read = || {
            self.stamp_ns = take.u64()?;
            self.positions = [take.f64()?, take.f64()?];
            self.velocities = [take.f64()?, take.f64()?];
            self.stops = take.u32()?;
            Some(())
        };
        read().and_then(|()| take.end()).is_some()
    }
}

/// Brings the wheels to the requested velocities, within their limits. Without a valid request, or
/// without feedback, it stops them. Wheels that the drives stopped stay stopped until the request
/// for motion ends: it has expired, or is zero.
#[derive(Clone, Debug)]
pub struct ActuatorsWork {
    limits: WheelLimits,
    asked: [f64; 2],
    /// End of the request's time-to-live, CLOCK_MONOTONIC ns.
    holds_until_ns: u64,
    commanded: [f64; 2],
    feedback: Feedback,
    stopped: bool,
}

/// Limits of a wheel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WheelLimits {
    /// Highest velocity, rad/s.
    pub velocity: f64,
    /// Highest acceleration, rad/s^2.
    pub acceleration: f64,
}

impl Default for WheelLimits {
    /// 10 rad/s, 20 rad/s^2: 1 m/s and 2 m/s^2 on a wheel of 20 cm.
    fn default() -> Self {
        Self { velocity: 10.0, acceleration: 20.0 }
    }
}

impl ActuatorsWork {
    /// Creates the work with the wheels at standstill.
    #[must_use]
    pub fn new(limits: WheelLimits) -> Self {
        Self {
            limits,
            asked: [0.0; 2],
            holds_until_ns: 0,
            commanded: [0.0; 2],
            feedback: Feedback::default(),
            stopped: false,
        }
    }
}

impl Work for ActuatorsWork {
    type Sample = Feedback;
    type Request = Velocities;
    const PUBLISHED: usize = Wheels::SIZE;

    fn take(&mut self, sample: &Feedback) -> u64 {
        self.stopped |= sample.stops != self.feedback.stops;
        self.feedback = *sample;
        sample.stamp_ns
    }

    fn receive(&mut self, bytes: &[u8], moment: &Moment) -> bool {
        let Ok(request) = WheelRequest::decode(bytes) else { return false };
        if !request.velocities.iter().all(|it| it.is_finite()) {
            return false;
        }
        self.asked = request.velocities.map(|it| it.clamp(-self.limits.velocity, self.limits.velocity));
        self.holds_until_ns = moment.release_ns.saturating_add(u64::from(request.holds_ms) * 1_000_000);
        true
    }

    fn step(&mut self, moment: &Moment, request: &mut Velocities) -> bool {
        let asks = moment.release_ns < self.holds_until_ns && self.asked != [0.0; 2];
        self.stopped &= asks;
        let target = if asks && !self.stopped && !moment.stale { self.asked } else { [0.0; 2] };
        let step = self.limits.acceleration * moment.period_ns as f64 * 1e-9;
        for (commanded, target) in self.commanded.iter_mut().zip(target) {
            *commanded += (target - *commanded).clamp(-step, step);
        }
        *request = Velocities { stamp_ns: moment.release_ns, wheels: self.commanded };
        true
    }

    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize> {
        let Feedback { positions, velocities, .. } = self.feedback;
        Wheels { head, positions, velocities, commanded: self.commanded }.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ask(work: &mut ActuatorsWork, velocities: [f64; 2], at_ms: u64) -> bool {
        let mut bytes = [0; WheelRequest::SIZE];
        WheelRequest { velocities, holds_ms: 100 }.encode(&mut bytes).unwrap();
        work.receive(&bytes, &Moment { release_ns: at_ms * MS, ..Moment::default() })
    }

    fn commanded(work: &mut ActuatorsWork, at_ms: u64, stale: bool) -> [f64; 2] {
        let mut request = Velocities::default();
        let moment = Moment { release_ns: at_ms * MS, period_ns: 10 * MS, stale };
        assert!(work.step(&moment, &mut request));
        assert_eq!(request.stamp_ns, at_ms * MS);
        request.wheels
    }

    #[test]
    fn wheels_accelerate_within_limits_and_stop_without_commands() {
        let mut work = ActuatorsWork::new(WheelLimits { velocity: 1.0, acceleration: 20.0 });
        assert!(ask(&mut work, [0.5, -9.0], 0));
        assert_eq!(commanded(&mut work, 0, false), [0.2, -0.2]);
        let at_speed = (1..9).map(|cycle| commanded(&mut work, 10 * cycle, false)).last();
        assert_eq!(at_speed, Some([0.5, -1.0]));
        assert_eq!(commanded(&mut work, 100, false), [0.3, -0.8]);
        for cycle in 11..20 {
            commanded(&mut work, 10 * cycle, false);
        }
        assert_eq!(commanded(&mut work, 200, false), [0.0, 0.0]);
    }

    #[test]
    fn silent_wheels_and_invalid_numbers_move_nothing() {
        let mut work = ActuatorsWork::new(WheelLimits::default());
        ask(&mut work, [1.0, 1.0], 0);
        assert_eq!(commanded(&mut work, 0, true), [0.0, 0.0]);
        assert!(!ask(&mut work, [f64::NAN, 0.0], 0) && !ask(&mut work, [0.0, f64::INFINITY], 0));
        assert!(!work.receive(b"hello", &Moment::default()));
        assert!(!Velocities::default().decode(&[0xff; 24]), "NaN");
        assert!(!Velocities::default().decode(&[0; 16]) && Velocities::default().decode(&[0; 24]));
    }

    #[test]
    fn wheels_stopped_by_drives_wait_for_zero_command() {
        let limits = WheelLimits { velocity: 1.0, acceleration: 1_000.0 };
        for lets_go in [true, false] {
            let mut work = ActuatorsWork::new(limits);
            ask(&mut work, [0.5, 0.5], 0);
            assert_eq!(commanded(&mut work, 0, false), [0.5, 0.5]);
            let sample = Feedback { stops: 1, ..Feedback::default() };
            let mut bytes = [0; Feedback::LARGEST];
            let (length, mut read) = (sample.encode(&mut bytes), Feedback::default());
            assert!(read.decode(&bytes[..length]) && read == sample, "{read:?}");
            work.take(&sample);
            for at in [10, 20, 30] {
                ask(&mut work, [0.5, 0.5], at);
                work.take(&sample);
                assert_eq!(commanded(&mut work, at, false), [0.0, 0.0], "who asks on and on gets nothing");
            }
            if lets_go {
                ask(&mut work, [0.0, 0.0], 40);
                assert_eq!(commanded(&mut work, 40, false), [0.0, 0.0]);
            } else {
                // The request has expired.
                assert_eq!(commanded(&mut work, 140, false), [0.0, 0.0]);
            }
            ask(&mut work, [0.5, 0.5], 150);
            assert_eq!(commanded(&mut work, 150, false), [0.5, 0.5]);
        }
    }
}
