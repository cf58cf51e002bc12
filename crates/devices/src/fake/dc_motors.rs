//! Simulated DC motors: the far ends of the wires to their converter and their encoders.

use std::f64::consts::TAU;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rt::clock::now_ns;
use types::DacChip;

use crate::driver::dc_motors::DcMotors;
use crate::driver::spi::{Mode, Wire};
use crate::motor::WheelSettings;
use crate::pair::DeviceError;

/// Two motors with a converter and encoders, as a test can alter and look at them. The converter
/// takes words of 12 bits; in words for a 10-bit converter the two unused bits are 0.
#[derive(Clone, Debug)]
pub struct Motors(Arc<Mutex<MotorsState>>);

#[derive(Debug)]
struct MotorsState {
    /// Velocity at the end of the converter's range, rad/s.
    full_scale: f64,
    /// Numbers of the converter's channels.
    numbers: [u16; 2],
    positions: [f64; 2],
    velocities: [f64; 2],
    at_ns: u64,
    faults: [Fault; 2],
    /// Positions at the last change of a fault.
    stuck_at: [f64; 2],
    /// Velocity of each motor per velocity of its output.
    gains: [f64; 2],
    encoders_reversed: [bool; 2],
}

/// Behaviour of an encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// It works.
    #[default]
    None,
    /// Unplugged: the wire idles low.
    Low,
    /// Unplugged: the wire idles high.
    High,
    /// Its parity is wrong in one of this many readings.
    Parity(u32),
    /// Its magnet has fallen off.
    Overflow,
    /// It says the same angle again and again.
    Stuck,
    /// Its angles are a third of a turn away.
    Leap,
}

/// Far end of one of the wires.
#[derive(Clone, Debug)]
pub struct End {
    motors: Motors,
    /// The encoder's number; `None` for the converter.
    encoder: Option<usize>,
    readings: u32,
    mode: Option<Mode>,
}

/// Drives of motors that are wired as these settings say.
#[must_use]
pub fn drives(chip: DacChip, settings: [WheelSettings; 2]) -> DcMotors<End> {
    let motors = Motors::of(&settings);
    DcMotors::new(chip, motors.converter(), motors.encoders(), settings)
}

/// Time constant of a motor with its wheel, s.
const TIME_CONSTANT: f64 = 0.08;

/// Share of the velocity that is left under load.
const LOADED: f64 = 0.9;

/// Middle of the converter's range.
const MIDDLE: u16 = 2_048;

impl Motors {
    /// Creates motors that turn at this velocity, rad/s, without load at the end of the converter's
    /// range.
    #[must_use]
    pub fn new(full_scale: f64) -> Self {
        Self(Arc::new(Mutex::new(MotorsState {
            full_scale,
            numbers: [MIDDLE; 2],
            positions: [0.3, 4.0],
            velocities: [0.0; 2],
            at_ns: now_ns(),
            faults: [Fault::None; 2],
            stuck_at: [0.0; 2],
            gains: [LOADED; 2],
            encoders_reversed: [false; 2],
        })))
    }

    /// Creates motors and encoders that are wired as these settings say.
    #[must_use]
    pub fn of(settings: &[WheelSettings; 2]) -> Self {
        let motors = Self::new(settings[0].full_scale);
        {
            let mut state = motors.lock();
            state.gains = settings.map(|it| if it.motor_reversed { -LOADED } else { LOADED });
            state.encoders_reversed = settings.map(|it| it.encoder_reversed);
        }
        motors
    }

    /// The converter's end.
    #[must_use]
    pub fn converter(&self) -> End {
        End { motors: self.clone(), encoder: None, readings: 0, mode: None }
    }

    /// The encoders' ends.
    #[must_use]
    pub fn encoders(&self) -> [End; 2] {
        [0, 1].map(|encoder| End { encoder: Some(encoder), ..self.converter() })
    }

    /// Alters an encoder.
    pub fn misbehave(&self, encoder: usize, fault: Fault) {
        let mut state = self.lock();
        state.advance();
        state.stuck_at = state.positions;
        state.faults[encoder] = fault;
    }

    /// Alters a motor: its velocity as a factor of its output's; 0 for a blocked motor.
    pub fn load(&self, motor: usize, gain: f64) {
        self.lock().gains[motor] = gain;
    }

    /// Outputs as shares of the range.
    #[must_use]
    pub fn outputs(&self) -> [f64; 2] {
        self.lock().numbers.map(share)
    }

    /// Velocities of the wheels, rad/s.
    #[must_use]
    pub fn velocities(&self) -> [f64; 2] {
        let mut state = self.lock();
        state.advance();
        state.velocities
    }

    fn lock(&self) -> MutexGuard<'_, MotorsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MotorsState {
    /// Exact solution of a first-order lag with the outputs since the last look.
    fn advance(&mut self) {
        let now = now_ns();
        let seconds = (now - self.at_ns) as f64 * 1e-9;
        let rest = (-seconds / TIME_CONSTANT).exp();
        for motor in 0..2 {
            let driven = share(self.numbers[motor]) * self.full_scale * self.gains[motor];
            let before = self.velocities[motor];
            self.velocities[motor] = driven + (before - driven) * rest;
            self.positions[motor] += driven * seconds + (before - driven) * TIME_CONSTANT * (1.0 - rest);
        }
        self.at_ns = now;
    }

    /// The three bytes of an encoder.
    fn reading(&mut self, encoder: usize, reading: u32) -> [u8; 3] {
        let fault = self.faults[encoder];
        self.advance();
        let position = if fault == Fault::Stuck { self.stuck_at } else { self.positions }[encoder];
        let position = if fault == Fault::Leap { position + TAU / 3.0 } else { position };
        let position = if self.encoders_reversed[encoder] { -position } else { position };
        let angle = ((position / TAU).rem_euclid(1.0) * 4_096.0) as u32 % 4_096;
        // Offset compensated; overflowed or not; the field is right.
        let flags = if fault == Fault::Overflow { "11000" } else { "10000" };
        let word = format!("{angle:012b}{flags}");
        let odd = word.matches('1').count() % 2 == 1;
        let wrong = matches!(fault, Fault::Parity(every) if reading % every == 0);
        let bits = format!("1{word}{}00000", u8::from(odd != wrong));
        match fault {
            Fault::Low => [0; 3],
            Fault::High => [0xff; 3],
            _ => [0, 8, 16].map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap_or_default()),
        }
    }
}

fn share(number: u16) -> f64 {
    (f64::from(number) - f64::from(MIDDLE)) / f64::from(MIDDLE - 1)
}

impl Wire for End {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self, _speed: u32, mode: Mode) -> Result<(), DeviceError> {
        self.mode = Some(mode);
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        thread::sleep(TRANSFER);
        let &[high, low] = bytes else { return Ok(()) };
        let word = u16::from_be_bytes([high, low]);
        let mut state = self.motors.lock();
        state.advance();
        // The output is on, its gain 1.
        if self.encoder.is_none() && self.mode == Some(Mode::RestsLow) && word >> 12 & 0b011 == 0b011 {
            state.numbers[usize::from(word >> 15)] = word & 0xfff;
        }
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        thread::sleep(TRANSFER);
        bytes.fill(0);
        let Some(encoder) = self.encoder.filter(|_| self.mode == Some(Mode::RestsHigh)) else {
            return Ok(());
        };
        self.readings += 1;
        let reading = self.motors.lock().reading(encoder, self.readings);
        for (byte, read) in bytes.iter_mut().zip(reading) {
            *byte = read;
        }
        Ok(())
    }

    fn close(&mut self) {
        self.mode = None;
    }
}

/// Duration of a transfer: 24 bits at 1 Mbit/s.
const TRANSFER: Duration = Duration::from_micros(24);
