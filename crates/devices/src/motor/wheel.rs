//! A wheel on a DC motor: position and velocity from an absolute encoder on its axle, the output
//! that keeps its velocity, and conditions that stop it.

use std::f64::consts::{PI, TAU};
use std::fmt;

use super::as5045::ANGLES;
use crate::task::actuators::WheelLimits;

/// Settings of a wheel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WheelSettings {
    /// Velocity at the end of the converter's range, without load, rad/s.
    pub full_scale: f64,
    /// Limits.
    pub limits: WheelLimits,
    /// The motor turns the other way round.
    pub motor_reversed: bool,
    /// The encoder counts the other way round.
    pub encoder_reversed: bool,
}

impl WheelSettings {
    /// Settings of the left and the right wheel, which differ in their wiring only.
    #[must_use]
    pub fn pair(
        full_scale: f64,
        limits: WheelLimits,
        motors_reversed: [bool; 2],
        encoders_reversed: [bool; 2],
    ) -> [Self; 2] {
        [0, 1].map(|wheel| Self {
            full_scale,
            limits,
            motor_reversed: motors_reversed[wheel],
            encoder_reversed: encoders_reversed[wheel],
        })
    }
}

/// Reason to stop the wheels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It turned this far against its command, rad.
    Against(f64),
    /// It turned this far when it was commanded much further, rad.
    Still(f64, f64),
    /// It turns at this velocity, rad/s, beyond its limit.
    TooFast(f64, f64),
    /// Its encoder was not read for so long, s, that it may have made half a turn unseen.
    Unseen(f64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Against(turned) => {
                write!(f, "it turned {turned:.2} rad against its command: expected the same direction")
            }
            Self::Still(turned, asked) => {
                write!(
                    f,
                    "it turned {turned:.2} rad of {asked:.2} commanded: check whether it is \
                     blocked or its encoder is loose"
                )
            }
            Self::TooFast(found, limit) => {
                write!(f, "it turns at {found:.1} rad/s, expected at most {limit:.1} rad/s")
            }
            Self::Unseen(seconds) => {
                let milliseconds = seconds * 1e3;
                write!(f, "its encoder was not read for {milliseconds:.0} ms: it may have turned unseen")
            }
        }
    }
}

/// Wheel under control.
///
/// Its output is the commanded velocity as a share of the full scale, and a correction by the
/// integrated difference to the measured one. The output never has the other sign than the command:
/// a wheel commanded to stop gets none, and nothing holds it.
#[derive(Clone, Debug)]
pub struct Wheel {
    settings: WheelSettings,
    angle: u16,
    at_ns: u64,
    /// Position, rad since the first reading.
    position: f64,
    /// Velocity over some tens of milliseconds, rad/s.
    velocity: f64,
    commanded: f64,
    correction: f64,
    /// Way turned against the command, rad.
    against: f64,
    /// Ways commanded and turned since the last look, rad.
    asked: f64,
    turned: f64,
}

/// Time constant of the measured velocity, s: an angle in 10 ms is 0.15 rad/s.
const SMOOTHING: f64 = 0.05;

/// Time in which the correction would make up for the whole difference, s.
const CORRECTION_TIME: f64 = 0.4;

/// Output as a share of the one at the velocity limit, at most: the load needs a margin.
const MOST_OUTPUT: f64 = 1.25;

/// Velocity beyond the limit at which the wheel is stopped, as a multiple of it.
const TOO_FAST: f64 = 1.3;

/// Way that a wheel may turn against its command, rad: it coasts when it is reversed.
const MOST_AGAINST: f64 = 0.5;

/// Commanded angle after which the turned angle is checked, rad, and the least share of it.
const LOOK: f64 = 2.0;
/// The same.
const LEAST_TURNED: f64 = 0.1;

/// Longest time over which a command is ramped at once, s.
const LONGEST_STEP: f64 = 0.05;

impl Wheel {
    /// Creates a wheel at position 0.
    #[must_use]
    pub fn new(settings: WheelSettings) -> Self {
        Self {
            settings,
            angle: 0,
            at_ns: 0,
            position: 0.0,
            velocity: 0.0,
            commanded: 0.0,
            correction: 0.0,
            against: 0.0,
            asked: 0.0,
            turned: 0.0,
        }
    }

    /// Begins with this angle, at standstill. Whole turns since the last reading are not seen.
    pub fn start(&mut self, angle: u16, now_ns: u64) {
        let position = if self.at_ns == 0 { 0.0 } else { self.position + self.way_to(angle) };
        *self = Self { angle, at_ns: now_ns, position, ..Self::new(self.settings) };
    }

    /// True if the wheel can have turned to this angle since the last reading.
    #[must_use]
    pub fn can_be_at(&self, angle: u16, now_ns: u64) -> bool {
        let most = TOO_FAST * self.settings.limits.velocity * self.seconds_to(now_ns);
        // Some angles of noise.
        self.way_to(angle).abs() <= most + 4.0 * TAU / f64::from(ANGLES)
    }

    /// Takes a reading, and continues towards the commanded velocity within the limits. Returns the
    /// output, a share of the converter's range, -1 to 1.
    ///
    /// # Errors
    /// The wheel must be stopped.
    pub fn step(&mut self, asked: f64, angle: u16, now_ns: u64) -> Result<f64, Fault> {
        let limits = self.settings.limits;
        let (way, seconds) = (self.way_to(angle), self.seconds_to(now_ns));
        if TOO_FAST * limits.velocity * seconds >= PI {
            return Err(Fault::Unseen(seconds));
        }
        (self.angle, self.at_ns) = (angle, now_ns);
        self.position += way;
        if seconds > 0.0 {
            self.velocity += (way / seconds - self.velocity) * seconds / (SMOOTHING + seconds);
        }
        if self.velocity.abs() > TOO_FAST * limits.velocity {
            return Err(Fault::TooFast(self.velocity, limits.velocity));
        }
        self.judge(way, seconds)?;
        self.ramp(asked, seconds.min(LONGEST_STEP));
        let output = self.output(seconds.min(LONGEST_STEP));
        Ok(if self.settings.motor_reversed { -output } else { output })
    }

    /// Compares the way turned with the command that held meanwhile.
    fn judge(&mut self, way: f64, seconds: f64) -> Result<(), Fault> {
        if self.commanded == 0.0 {
            return Ok(());
        }
        let ahead = way * self.commanded.signum();
        self.against = (self.against - ahead).max(0.0);
        if self.against > MOST_AGAINST {
            return Err(Fault::Against(self.against));
        }
        self.asked += self.commanded.abs() * seconds;
        self.turned += ahead;
        if self.asked > LOOK {
            if self.turned < LEAST_TURNED * self.asked {
                return Err(Fault::Still(self.turned, self.asked));
            }
            (self.asked, self.turned) = (0.0, 0.0);
        }
        Ok(())
    }

    fn ramp(&mut self, asked: f64, seconds: f64) {
        let WheelLimits { velocity, acceleration } = self.settings.limits;
        // NaN is a stop command.
        let asked = if asked.is_nan() { 0.0 } else { asked.clamp(-velocity, velocity) };
        let most = acceleration * seconds;
        let next = self.commanded + (asked - self.commanded).clamp(-most, most);
        if next * self.commanded <= 0.0 {
            // At standstill and in the other direction the load differs.
            self.rest();
        }
        self.commanded = next;
    }

    fn output(&mut self, seconds: f64) -> f64 {
        if self.commanded == 0.0 {
            return 0.0;
        }
        let WheelSettings { full_scale, limits, .. } = self.settings;
        let most = (MOST_OUTPUT * limits.velocity / full_scale).min(1.0);
        let ahead = self.commanded / full_scale;
        // The correction stops where the output does.
        let (low, high) = if self.commanded > 0.0 { (0.0, most) } else { (-most, 0.0) };
        let difference = (self.commanded - self.velocity) / full_scale;
        self.correction =
            (self.correction + difference * seconds / CORRECTION_TIME).clamp(low - ahead, high - ahead);
        (ahead + self.correction).clamp(low, high)
    }

    /// Restarts from standstill: the output has been set to none.
    pub fn rest(&mut self) {
        (self.commanded, self.correction) = (0.0, 0.0);
        (self.against, self.asked, self.turned) = (0.0, 0.0, 0.0);
    }

    /// True if it is commanded to stop.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.commanded == 0.0
    }

    /// Position, rad since the first reading.
    #[must_use]
    pub fn position(&self) -> f64 {
        self.position
    }

    /// Velocity over the last 50 ms or so, rad/s.
    #[must_use]
    pub fn velocity(&self) -> f64 {
        self.velocity
    }

    /// Shorter way from the last angle to this one, rad.
    fn way_to(&self, angle: u16) -> f64 {
        let turns = f64::from(angle.wrapping_sub(self.angle) % ANGLES) / f64::from(ANGLES);
        let way = if turns >= 0.5 { turns - 1.0 } else { turns } * TAU;
        if self.settings.encoder_reversed { -way } else { way }
    }

    fn seconds_to(&self, now_ns: u64) -> f64 {
        now_ns.saturating_sub(self.at_ns) as f64 * 1e-9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = 0.01;

    /// A motor with its wheel in virtual time: a first-order lag, with a load that takes a share of
    /// the velocity.
    struct Plant {
        wheel: Wheel,
        now_ns: u64,
        position: f64,
        velocity: f64,
        output: f64,
        load: f64,
        /// Of the motor, of the encoder.
        turned_round: [bool; 2],
        encoder_stuck: bool,
        /// Reads the encoder once in this many steps.
        every: u32,
    }

    const SETTINGS: WheelSettings = WheelSettings {
        full_scale: 25.0,
        limits: WheelLimits { velocity: 10.0, acceleration: 20.0 },
        motor_reversed: false,
        encoder_reversed: false,
    };

    impl Plant {
        fn new(settings: WheelSettings) -> Self {
            let mut wheel = Wheel::new(settings);
            wheel.start(4_000, 1);
            let position = 4_000.0 / 4_096.0 * TAU;
            Self {
                wheel,
                now_ns: 1,
                position,
                velocity: 0.0,
                output: 0.0,
                load: 0.8,
                turned_round: [false; 2],
                encoder_stuck: false,
                every: 1,
            }
        }

        /// Commands a velocity for a time; returns the largest output.
        fn drive(&mut self, asked: f64, seconds: f64) -> Result<f64, Fault> {
            let mut largest: f64 = 0.0;
            for step in 0..(seconds / STEP).round() as u32 {
                let driven = if self.turned_round[0] { -self.output } else { self.output };
                self.velocity += (driven * 25.0 * self.load - self.velocity) * STEP / 0.08;
                self.position += self.velocity * STEP;
                self.now_ns += (STEP * 1e9) as u64;
                if step % self.every != 0 {
                    continue;
                }
                let seen = if self.turned_round[1] { -self.position } else { self.position };
                let seen = if self.encoder_stuck { 0.0 } else { seen };
                let angle = ((seen / TAU).rem_euclid(1.0) * 4_096.0) as u16 % 4_096;
                self.output = self.wheel.step(asked, angle, self.now_ns)?;
                largest = largest.max(self.output.abs());
            }
            Ok(largest)
        }
    }

    #[test]
    fn wheel_reaches_velocity_under_load_and_stops_without_output() {
        let mut plant = Plant::new(SETTINGS);
        for asked in [6.0, -6.0, 1.0, 10.0, -1_000.0] {
            let largest = plant.drive(asked, 3.0).unwrap();
            let expected = asked.clamp(-10.0, 10.0);
            assert!((plant.velocity - expected).abs() < 0.1, "{asked}: {}", plant.velocity);
            assert!((plant.wheel.velocity() - expected).abs() < 0.3, "{asked}: {}", plant.wheel.velocity());
            assert!(largest <= 1.25 * 10.0 / 25.0 + 1e-9, "{largest}");
        }
        let turned = plant.position - 4_000.0 / 4_096.0 * TAU;
        assert!((plant.wheel.position() - turned).abs() < 0.01, "over whole turns, both ways");
        plant.drive(0.0, 1.0).unwrap();
        assert_eq!(plant.output, 0.0);
        plant.drive(f64::NAN, 0.1).unwrap();
        assert_eq!(plant.output, 0.0);
        // A step of the request is a ramp of the output.
        plant.drive(10.0, STEP).unwrap();
        assert!(plant.output <= 20.0 * STEP / 25.0 * 1.1 && plant.output > 0.0, "{}", plant.output);
    }

    #[test]
    fn reversed_motors_or_encoders_need_settings_or_stop() {
        for turned_round in [[false, false], [true, false], [false, true], [true, true]] {
            let [motor_reversed, encoder_reversed] = turned_round;
            let right = WheelSettings { motor_reversed, encoder_reversed, ..SETTINGS };
            let mut plant = Plant::new(right);
            plant.turned_round = turned_round;
            plant.drive(5.0, 3.0).unwrap();
            assert!((plant.velocity - 5.0).abs() < 0.1, "{turned_round:?}: {}", plant.velocity);

            let mut plant = Plant::new(WheelSettings { motor_reversed: !motor_reversed, ..right });
            plant.turned_round = turned_round;
            let fault = plant.drive(5.0, 3.0).unwrap_err();
            assert!(matches!(fault, Fault::Against(_)), "{fault:?}");
            assert!(fault.to_string().contains("against its command"));
            // The wheel has not gone far.
            assert!((plant.position - 4_000.0 / 4_096.0 * TAU).abs() < 0.7, "{}", plant.position);
        }
    }

    #[test]
    fn wheel_ahead_of_its_command_gets_no_opposing_output() {
        // Downhill: it turns at 8 rad/s, 1 rad/s is commanded.
        let mut wheel = Wheel::new(SETTINGS);
        wheel.start(0, 1);
        let mut output = f64::NAN;
        for step in 1..300 {
            let seconds = f64::from(step) * STEP;
            let angle = ((8.0 * seconds / TAU).rem_euclid(1.0) * 4_096.0) as u16 % 4_096;
            output = wheel.step(1.0, angle, 1 + (seconds * 1e9) as u64).unwrap();
            assert!(output >= 0.0, "{output} after {seconds} s");
        }
        assert_eq!(output, 0.0);
    }

    #[test]
    fn reversing_at_full_speed_is_no_fault() {
        let mut plant = Plant::new(SETTINGS);
        for _ in 0..10 {
            plant.drive(10.0, 1.0).unwrap();
            plant.drive(-10.0, 1.0).unwrap();
        }
    }

    #[test]
    fn a_blocked_wheel_and_a_stuck_encoder_are_stopped() {
        let mut plant = Plant::new(SETTINGS);
        plant.load = 0.0;
        let fault = plant.drive(3.0, 3.0).unwrap_err();
        assert!(matches!(fault, Fault::Still(..)) && fault.to_string().contains("commanded"), "{fault}");
        let mut plant = Plant::new(SETTINGS);
        plant.encoder_stuck = true;
        plant.drive(10.0, 0.01).unwrap();
        let fault = plant.drive(10.0, 3.0).unwrap_err();
        assert!(matches!(fault, Fault::Still(..)), "{fault:?}");
        // Never beyond the limit by more than the load could want.
        assert!(plant.velocity <= 1.25 * 10.0, "{}", plant.velocity);
        // Slowly, too.
        let mut plant = Plant::new(SETTINGS);
        plant.load = 0.0;
        assert!(plant.drive(0.2, 20.0).is_err());
    }

    #[test]
    fn a_wheel_that_is_too_fast_or_was_not_seen_is_stopped() {
        let mut plant = Plant::new(SETTINGS);
        plant.drive(10.0, 2.0).unwrap();
        plant.load = 1.6;
        plant.output = 1.0;
        plant.velocity = 14.0;
        let fault = plant.drive(10.0, 1.0).unwrap_err();
        assert!(
            matches!(fault, Fault::TooFast(..)) && fault.to_string().contains("at most 10.0"),
            "{fault}"
        );
        let mut plant = Plant::new(SETTINGS);
        plant.drive(1.0, 1.0).unwrap();
        plant.now_ns += 250_000_000;
        let fault = plant.drive(1.0, 0.1).unwrap_err();
        assert!(matches!(fault, Fault::Unseen(_)) && fault.to_string().contains("260 ms"), "{fault}");
        // A reading that the wheel cannot have turned to.
        let mut wheel = Wheel::new(SETTINGS);
        wheel.start(4_090, 1);
        assert!(wheel.can_be_at(4_090 - 80, 10_000_001) && wheel.can_be_at(64, 10_000_001));
        assert!(!wheel.can_be_at(4_090 - 100, 10_000_001) && !wheel.can_be_at(2_000, 10_000_001));
    }

    #[test]
    fn wheel_continues_from_its_position_after_a_pause() {
        let mut plant = Plant::new(SETTINGS);
        plant.drive(5.0, 1.0).unwrap();
        let before = plant.wheel.position();
        let angle = plant.wheel.angle;
        plant.wheel.start((angle + 10) % ANGLES, plant.now_ns);
        assert!((plant.wheel.position() - before - 10.0 / 4_096.0 * TAU).abs() < 1e-9);
        assert_eq!(plant.wheel.velocity(), 0.0);
        plant.every = 2;
        plant.velocity = 0.0;
        plant.drive(5.0, 2.0).unwrap();
        assert!((plant.velocity - 5.0).abs() < 0.2, "at half the rate, too: {}", plant.velocity);
    }
}
