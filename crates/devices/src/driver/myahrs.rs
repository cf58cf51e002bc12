//! Driver of a myAHRS+ on an I2C bus.

use std::time::Duration;

use rt::clock::now_ns;
use types::ImuOutput;

use super::imu::Registers;
use crate::imu::myahrs::{ATTITUDE, Attitude, IDENTITY, MOTION, READY, motion, register};
use crate::pair::{DeviceError, Driver, Poke, Remarks};
use crate::task::imu::Sample;

/// Driver of a myAHRS+.
#[derive(Debug)]
pub struct MyAhrs<R> {
    registers: R,
    output: ImuOutput,
    remarks: Remarks,
}

impl<R: Registers> MyAhrs<R> {
    /// Creates a driver over these registers, with this output of the unit in its samples.
    #[must_use]
    pub fn new(registers: R, output: ImuOutput) -> Self {
        Self { registers, output, remarks: Remarks::default() }
    }

    /// Checks that it is a myAHRS+ that measures; returns its revision.
    fn identify(&mut self) -> Result<[u8; 2], DeviceError> {
        let mut found = [0; 4];
        self.registers.read(register::IDENTITY, &mut found)?;
        let [identity, major, minor, status] = found;
        if identity != IDENTITY {
            return Err(DeviceError(format!(
                "expected a myAHRS+ (register 0x01 holds {IDENTITY:#04x}), found {identity:#04x} there"
            )));
        }
        if status != READY {
            return Err(DeviceError(format!(
                "expected a myAHRS+ that measures (status {READY:#04x}), found status {status:#04x}"
            )));
        }
        Ok([major, minor])
    }

    /// The orientation that the unit reports; `None` if it is invalid or not requested.
    fn orientation(&mut self, attitude: &Attitude) -> Option<[f64; 4]> {
        let (told, what) = match self.output {
            ImuOutput::Quaternion => (attitude.from_quaternion(), "quaternion"),
            ImuOutput::Euler => (attitude.from_euler(), "roll, pitch and yaw"),
            ImuOutput::Raw => return None,
        };
        if told.is_none() {
            self.remarks
                .count(|times| format!("a {what} that is no orientation, not used, {times} times so far"));
        }
        told
    }
}

impl<R: Registers> Driver for MyAhrs<R> {
    type Request = Poke;
    type Sample = Sample;
    const ASKED: bool = true;

    fn device(&self) -> String {
        self.registers.place()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        self.registers.open()?;
        let [major, minor] = self.identify()?;
        Ok(format!("myAHRS+ of revision {major}.{minor}, {}", self.output.name()))
    }

    fn exchange(
        &mut self,
        _request: &Poke,
        sample: &mut Sample,
        _timeout: Duration,
    ) -> Result<bool, DeviceError> {
        let begin = now_ns();
        self.identify()?;
        let (mut moved, mut attitude) = ([0; MOTION], [0; ATTITUDE]);
        let raw = self.output == ImuOutput::Raw;
        self.registers.read(if raw { register::RAW } else { register::COMPENSATED }, &mut moved)?;
        self.registers.read(register::ATTITUDE, &mut attitude)?;
        // The middle of the transfers.
        sample.stamp_ns = begin + (now_ns() - begin) / 2;
        let attitude = Attitude::parse(&attitude);
        sample.motion = motion(&moved, attitude.temperature);
        sample.orientation = self.orientation(&attitude);
        Ok(raw || sample.orientation.is_some())
    }

    fn close(&mut self) {
        self.registers.close();
    }

    fn remark(&mut self) -> Option<String> {
        self.remarks.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Registers as a test writes them.
    #[derive(Clone)]
    struct Memory(Arc<Mutex<[u8; 128]>>);

    impl Registers for Memory {
        fn place(&self) -> String {
            "memory".into()
        }

        fn open(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }

        fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), DeviceError> {
            let first = usize::from(register);
            values.copy_from_slice(&self.0.lock().unwrap()[first..first + values.len()]);
            Ok(())
        }

        fn write(&mut self, register: u8, _value: u8) -> Result<(), DeviceError> {
            panic!("register {register:#04x} of a unit that needs no setting up")
        }

        fn close(&mut self) {}
    }

    impl Memory {
        fn new() -> Self {
            let mut registers = [0; 128];
            registers[1..5].copy_from_slice(&[0xb1, 1, 4, 0x80]);
            Self(Arc::new(Mutex::new(registers)))
        }

        fn set(&self, register: usize, numbers: &[i16]) {
            for (place, byte) in numbers.iter().flat_map(|it| it.to_le_bytes()).enumerate() {
                self.0.lock().unwrap()[register + place] = byte;
            }
        }
    }

    fn sample(driver: &mut MyAhrs<Memory>) -> Result<Option<Sample>, DeviceError> {
        let mut sample = Sample::default();
        let any = driver.exchange(&Poke, &mut sample, Duration::ZERO)?;
        Ok(any.then_some(sample))
    }

    #[test]
    fn each_output_comes_from_its_own_registers() {
        let memory = Memory::new();
        // 1 g downwards of the uncorrected sensor, half a g of the corrected one.
        memory.set(0x10, &[0, 0, -2_048, 0, 0, 0]);
        memory.set(0x22, &[0, 0, -1_024, 0, 0, 0]);
        // Pitched by a right angle says the quaternion; rolled, the angles; both with yaw 90
        // degrees.
        memory.set(0x36, &[16_384, 0, 16_384]);
        memory.set(0x3c, &[-16_384, 16_384, 16_384, 16_384]);
        let open = |output| {
            let mut driver = MyAhrs::new(memory.clone(), output);
            assert_eq!(driver.open().unwrap(), format!("myAHRS+ of revision 1.4, {}", output.name()));
            sample(&mut driver).unwrap().unwrap()
        };
        let near =
            |found: [f64; 4], expected: [f64; 4]| (0..4).all(|at| (found[at] - expected[at]).abs() < 1e-3);
        let root = std::f64::consts::FRAC_1_SQRT_2;
        let quaternion = open(ImuOutput::Quaternion);
        assert!(near(quaternion.orientation.unwrap(), [0.0, -root, 0.0, root]), "{quaternion:?}");
        assert!((quaternion.motion.acceleration[2] - 4.9).abs() < 0.01, "{quaternion:?}");
        let euler = open(ImuOutput::Euler);
        assert!(near(euler.orientation.unwrap(), [root, 0.0, 0.0, root]), "{euler:?}");
        let raw = open(ImuOutput::Raw);
        assert!(raw.orientation.is_none() && (raw.motion.acceleration[2] - 9.8).abs() < 0.01, "{raw:?}");
    }

    #[test]
    fn what_the_unit_says_is_not_valid_is_not_used() {
        let memory = Memory::new();
        let mut driver = MyAhrs::new(memory.clone(), ImuOutput::Quaternion);
        driver.open().unwrap();
        assert_eq!(sample(&mut driver).unwrap(), None, "a quaternion of length 0");
        assert_eq!(
            driver.remark().unwrap(),
            "a quaternion that is no orientation, not used, 1 times so far"
        );
        memory.set(0x3c, &[0, 0, 0, i16::MAX]);
        assert!(sample(&mut driver).unwrap().is_some());
        memory.0.lock().unwrap()[4] = 0x00;
        let expected = "expected a myAHRS+ that measures (status 0x80), found status 0x00";
        assert_eq!(sample(&mut driver).unwrap_err().0, expected);
        memory.0.lock().unwrap()[1] = 0x68;
        let expected = "expected a myAHRS+ (register 0x01 holds 0xb1), found 0x68 there";
        assert_eq!(driver.open().unwrap_err().0, expected);
    }
}
