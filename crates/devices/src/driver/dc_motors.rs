//! Two DC motors: their amplifiers behind one digital-to-analogue converter, an absolute encoder on
//! the axle of each wheel.
//!
//! The middle of the converter's range stops the motors. It is set first, whenever no command
//! arrives, when a reading is not valid or a wheel does not turn as commanded, at the end, and when
//! the driver is dropped, also by a panic. A killed process sets nothing any more, and a converter
//! keeps its output: an amplifier needs a separate input that stops it.

use rt::clock::now_ns;
use types::DacChip;

use super::actuators::Drives;
use super::spi::{Mode, Wire};
use crate::motor;
use crate::motor::{Fault, Wheel, WheelSettings, as5045};
use crate::pair::{DeviceError, Remarks};
use crate::task::actuators::Feedback;

/// Two wheels, left and right.
#[derive(Debug)]
pub struct DcMotors<W: Wire> {
    chip: DacChip,
    converter: W,
    encoders: [W; 2],
    wheels: [Wheel; 2],
    /// No zero command has arrived since it was opened: nothing moves until then.
    held: bool,
    stops: u32,
    remarks: Remarks,
}

const NAMES: [&str; 2] = ["left", "right"];

/// Consecutive readings of an encoder; one of them must be valid.
const READINGS: usize = 3;

impl<W: Wire> DcMotors<W> {
    /// Creates drives behind the channels 0 and 1 of this converter, with these encoders.
    #[must_use]
    pub fn new(chip: DacChip, converter: W, encoders: [W; 2], settings: [WheelSettings; 2]) -> Self {
        Self {
            chip,
            converter,
            encoders,
            wheels: settings.map(Wheel::new),
            held: true,
            stops: 0,
            remarks: Remarks::default(),
        }
    }

    fn set(&mut self, channel: usize, share: f64) -> Result<(), DeviceError> {
        let word = motor::mcp49x2_word(self.chip, channel, share);
        self.converter.send(&word).map_err(|error| DeviceError::new("the converter", error))
    }

    /// Sets both outputs to zero, the second one also if the first one fails.
    fn stop(&mut self) -> Result<(), DeviceError> {
        self.wheels.iter_mut().for_each(Wheel::rest);
        let [left, right] = [0, 1].map(|channel| self.set(channel, 0.0));
        left.and(right)
    }

    /// Reads an encoder: an angle that is valid and `plausible`, and when.
    fn read(
        &mut self,
        wheel: usize,
        plausible: fn(&Wheel, u16, u64) -> bool,
    ) -> Result<(u16, u64), DeviceError> {
        let mut why = String::new();
        for _ in 0..READINGS {
            let mut reading = [0; as5045::LENGTH];
            let received = self.encoders[wheel].receive(&mut reading);
            let now = now_ns();
            match received
                .map_err(|error| error.0)
                .and_then(|()| as5045::angle(reading).map_err(|it| it.to_string()))
            {
                Ok(angle) if plausible(&self.wheels[wheel], angle, now) => return Ok((angle, now)),
                Ok(_) => why = "its angle leaps further than the wheel can turn".into(),
                Err(invalid) => why = invalid,
            }
            self.remarks
                .count(|times| format!("readings of an encoder that are not valid, {times} times so far"));
        }
        let (name, place) = (NAMES[wheel], self.encoders[wheel].place());
        Err(DeviceError(format!("the {name} encoder ({place}): {why}")))
    }

    /// One turn of the loop.
    fn turn(&mut self, velocities: [f64; 2], feedback: &mut Feedback) -> Result<(), DeviceError> {
        let readings = [self.read(0, Wheel::can_be_at)?, self.read(1, Wheel::can_be_at)?];
        self.held &= velocities != [0.0; 2];
        let asked = if self.held { [0.0; 2] } else { velocities };
        let mut outputs = [0.0; 2];
        for (wheel, (angle, now)) in readings.into_iter().enumerate() {
            outputs[wheel] = self.wheels[wheel].step(asked[wheel], angle, now).map_err(|fault| {
                // A task that came too late is no fault of the wheel's.
                self.stops += u32::from(!matches!(fault, Fault::Unseen(_)));
                DeviceError(format!("the {} wheel is stopped: {fault}", NAMES[wheel]))
            })?;
        }
        self.set(0, outputs[0])?;
        self.set(1, outputs[1])?;
        *feedback = Feedback {
            stamp_ns: readings[0].1,
            positions: [0, 1].map(|wheel| self.wheels[wheel].position()),
            velocities: [0, 1].map(|wheel| self.wheels[wheel].velocity()),
            stops: self.stops,
        };
        Ok(())
    }
}

impl<W: Wire> Drives for DcMotors<W> {
    fn place(&self) -> String {
        let [left, right] = &self.encoders;
        format!("{}, encoders {} and {}", self.converter.place(), left.place(), right.place())
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        let wrong = |error| DeviceError::new("the converter", error);
        self.converter.open(motor::MCP49X2_SPEED, Mode::RestsLow).map_err(wrong)?;
        self.held = true;
        self.stop()?;
        for (encoder, name) in self.encoders.iter_mut().zip(NAMES) {
            let opened = encoder.open(as5045::SPEED, Mode::RestsHigh);
            let place = encoder.place();
            opened.map_err(|error| DeviceError(format!("the {name} encoder ({place}): {error}")))?;
        }
        let readings = [self.read(0, |_, _, _| true)?, self.read(1, |_, _, _| true)?];
        for (wheel, (angle, now)) in self.wheels.iter_mut().zip(readings) {
            wheel.start(angle, now);
        }
        Ok(format!("DC motors behind an {}, two encoders of {} angles", self.chip.name(), as5045::ANGLES))
    }

    fn exchange(&mut self, velocities: [f64; 2], feedback: &mut Feedback) -> Result<bool, DeviceError> {
        let turned = self.turn(velocities, feedback);
        if turned.is_err() {
            // At once; `close` does it again.
            let _ = self.stop();
        }
        turned.map(|()| true)
    }

    fn rest(&mut self) -> Result<(), DeviceError> {
        if self.wheels.iter().any(|wheel| !wheel.is_at_rest()) {
            self.remarks.say("stopped: no command came from its real-time task");
        }
        self.stop()
    }

    fn remark(&mut self) -> Option<String> {
        self.remarks.take()
    }

    fn close(&mut self) {
        // No receiver is left for the error of a converter that takes nothing; opening it again
        // reports it.
        let _ = self.stop();
        self.converter.close();
        self.encoders.iter_mut().for_each(Wire::close);
    }
}

impl<W: Wire> Drop for DcMotors<W> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::fake::dc_motors::{End, Fault as Broken, Motors};
    use crate::task::actuators::WheelLimits;

    fn motors() -> (Motors, DcMotors<End>) {
        let motors = Motors::new(25.0);
        let settings = WheelSettings {
            full_scale: 25.0,
            limits: WheelLimits { velocity: 10.0, acceleration: 100.0 },
            motor_reversed: false,
            encoder_reversed: false,
        };
        let driver = DcMotors::new(DacChip::Mcp4912, motors.converter(), motors.encoders(), [settings; 2]);
        (motors, driver)
    }

    /// Turns of the loop until one fails, or the feedback is as wanted. A delayed test starts
    /// again.
    fn drive(
        driver: &mut DcMotors<End>,
        velocities: [f64; 2],
        wanted: impl Fn(&Feedback) -> bool,
    ) -> Result<Feedback, DeviceError> {
        let begin = Instant::now();
        let mut feedback = Feedback::default();
        loop {
            assert!(begin.elapsed() < Duration::from_secs(40), "{feedback:?}");
            match driver.exchange(velocities, &mut feedback) {
                Err(error) if error.0.contains("not read for") => {
                    driver.open()?;
                    driver.exchange([0.0; 2], &mut feedback)?;
                }
                Err(error) => return Err(error),
                Ok(_) if wanted(&feedback) => return Ok(feedback),
                Ok(_) => {}
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn turns(feedback: &Feedback) -> bool {
        (feedback.velocities[0] - 5.0).abs() < 0.5 && (feedback.velocities[1] + 3.0).abs() < 0.5
    }

    /// Opened, and turning at 5 and -3 rad/s.
    fn turning() -> (Motors, DcMotors<End>) {
        let (motors, mut driver) = motors();
        driver.open().unwrap();
        drive(&mut driver, [0.0; 2], |_| true).unwrap();
        drive(&mut driver, [5.0, -3.0], turns).unwrap();
        (motors, driver)
    }

    // feature(devices): DC motors by an SPI converter (MCP4912, MCP4922), SPI absolute encoders (AS5045)
    #[test]
    fn two_motors_turn_as_commanded_after_a_stop_command() {
        let (motors, mut driver) = motors();
        assert_eq!(driver.place(), "simulated, encoders simulated and simulated");
        assert_eq!(driver.open().unwrap(), "DC motors behind an mcp4912, two encoders of 4096 angles");
        let mut count = std::cell::Cell::new(0);
        drive(&mut driver, [5.0, -3.0], |_| count.replace(count.get() + 1) == 5).unwrap();
        assert_eq!((*count.get_mut(), motors.outputs()), (6, [0.0; 2]), "rest has not been asked for");
        drive(&mut driver, [0.0; 2], |_| true).unwrap();
        let first = drive(&mut driver, [5.0, -3.0], turns).unwrap();
        let later =
            drive(&mut driver, [5.0, -3.0], |it| it.positions[0] > first.positions[0] + 7.0).unwrap();
        assert!(later.positions[1] < first.positions[1] - 3.0, "{later:?}");
        assert!(motors.outputs()[0] > 0.15 && motors.outputs()[1] < -0.1, "{:?}", motors.outputs());
        // Commands end.
        driver.rest().unwrap();
        assert_eq!(motors.outputs(), [0.0; 2]);
        assert_eq!(driver.remark().unwrap(), "stopped: no command came from its real-time task");
    }

    // feature(devices): motors that are stopped when an encoder is lost, a wheel turns wrongly, the driver ends or panics
    #[test]
    fn invalid_encoder_or_wrong_direction_stops_motors() {
        for (broken, gain, told, stops) in [
            (Broken::Low, 0.9, "the right encoder (simulated): no encoder answers", 0),
            (Broken::High, 0.9, "the right encoder (simulated): no encoder answers", 0),
            (Broken::Parity(1), 0.9, "the right encoder (simulated): wrong parity", 0),
            (Broken::Overflow, 0.9, "the right encoder (simulated): its angle has overflowed", 0),
            (
                Broken::Leap,
                0.9,
                "the right encoder (simulated): its angle leaps further than the wheel can turn",
                0,
            ),
            (Broken::Stuck, 0.9, "the right wheel is stopped: it turned ", 1),
            (Broken::None, 0.0, "the right wheel is stopped: it turned ", 1),
            (Broken::None, -0.9, "the right wheel is stopped: it turned ", 1),
        ] {
            let (motors, mut driver) = turning();
            motors.misbehave(1, broken);
            motors.load(1, gain);
            let error = drive(&mut driver, [5.0, -3.0], |_| false).unwrap_err();
            assert!(error.0.starts_with(told), "{broken:?} {gain}: {error}");
            assert_eq!(motors.outputs(), [0.0; 2], "both of them: {broken:?} {gain}");
            // Fixed and opened again, they do not move until a zero command.
            driver.close();
            motors.misbehave(1, Broken::None);
            motors.load(1, 0.9);
            driver.open().unwrap();
            let found = drive(&mut driver, [5.0, -3.0], |_| true).unwrap();
            assert_eq!((motors.outputs(), found.stops), ([0.0; 2], stops), "{broken:?} {gain}");
            drive(&mut driver, [0.0; 2], |_| true).unwrap();
            drive(&mut driver, [5.0, -3.0], turns).unwrap();
        }
    }

    #[test]
    fn single_invalid_reading_is_ignored() {
        let (motors, mut driver) = turning();
        motors.misbehave(0, Broken::Parity(3));
        let far = drive(&mut driver, [5.0, -3.0], |_| true).unwrap().positions[0] + 3.0;
        drive(&mut driver, [5.0, -3.0], |it| it.positions[0] > far).unwrap();
        let remark = driver.remark().unwrap();
        assert!(remark.starts_with("readings of an encoder that are not valid, "), "{remark}");
    }

    #[test]
    fn silent_encoder_at_open_keeps_drives_stopped() {
        let (motors, mut driver) = motors();
        motors.misbehave(0, Broken::Low);
        // Remains of a killed process.
        let mut left = motors.converter();
        left.open(motor::MCP49X2_SPEED, Mode::RestsLow).unwrap();
        for channel in [0, 1] {
            left.send(&motor::mcp49x2_word(DacChip::Mcp4912, channel, 0.5)).unwrap();
        }
        assert!(motors.outputs().iter().all(|output| *output > 0.4), "{:?}", motors.outputs());
        let error = driver.open().unwrap_err();
        assert_eq!(error.0, "the left encoder (simulated): no encoder answers");
        assert_eq!(motors.outputs(), [0.0; 2]);
    }

    // feature(devices): motors that are stopped when an encoder is lost, a wheel turns wrongly, the driver ends or panics
    #[test]
    fn motors_are_stopped_when_their_driver_ends_and_when_it_panics() {
        let (motors, mut driver) = turning();
        driver.close();
        assert_eq!(motors.outputs(), [0.0; 2]);
        let (motors, driver) = turning();
        drop(driver);
        assert_eq!(motors.outputs(), [0.0; 2]);
        let (motors, driver) = turning();
        assert_ne!(motors.outputs(), [0.0; 2]);
        let panics = std::thread::spawn(move || {
            let _driver = driver;
            panic!("on purpose: a driver that panics");
        });
        assert!(panics.join().is_err());
        assert_eq!(motors.outputs(), [0.0; 2]);
    }
}
