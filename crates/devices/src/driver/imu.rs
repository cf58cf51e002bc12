//! Driver of an MPU-6050 on an I2C bus.

use std::path::PathBuf;
use std::time::Duration;

use i2cdev::core::I2CDevice;
use i2cdev::linux::LinuxI2CDevice;
use rt::clock::now_ns;

use crate::imu::mpu6050::{IDENTITY, MEASURED, Raw, SET_UP, register};
use crate::pair::{DeviceError, Driver, Poke, Remarks};
use crate::task::imu::Sample;

/// Interface between the driver and a bus: registers that are read and written in sequence.
pub trait Registers: Send + 'static {
    /// Location of the registers, for messages.
    fn place(&self) -> String;

    /// Opens the bus.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(&mut self) -> Result<(), DeviceError>;

    /// Reads consecutive registers, starting at `register`.
    ///
    /// # Errors
    /// No device answers.
    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes a register.
    ///
    /// # Errors
    /// No device answers.
    fn write(&mut self, register: u8, value: u8) -> Result<(), DeviceError>;

    /// Closes the bus.
    fn close(&mut self);
}

/// Registers on an I2C bus of this machine, through the SMBus transfers that every adapter
/// supports.
pub struct I2c {
    bus: PathBuf,
    address: u16,
    device: Option<LinuxI2CDevice>,
}

impl I2c {
    /// Creates registers of the device with this address on this bus, for example `/dev/i2c-1`.
    #[must_use]
    pub fn new(bus: impl Into<PathBuf>, address: u16) -> Self {
        Self { bus: bus.into(), address, device: None }
    }

    fn device(&mut self) -> Result<&mut LinuxI2CDevice, DeviceError> {
        self.device.as_mut().ok_or_else(|| DeviceError("it is not open".into()))
    }
}

impl Registers for I2c {
    fn place(&self) -> String {
        format!("{} address {:#04x}", self.bus.display(), self.address)
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        let device = LinuxI2CDevice::new(&self.bus, self.address);
        self.device = Some(device.map_err(|error| DeviceError::new("opening", error))?);
        Ok(())
    }

    fn read(&mut self, register: u8, values: &mut [u8]) -> Result<(), DeviceError> {
        let length = u8::try_from(values.len()).unwrap_or(u8::MAX);
        let wrong = |error| DeviceError::new(format_args!("reading register {register:#04x}"), error);
        let read = self.device()?.smbus_read_i2c_block_data(register, length).map_err(wrong)?;
        if read.len() != values.len() {
            let (found, expected) = (read.len(), values.len());
            let error =
                format!("reading register {register:#04x}: expected {expected} bytes, found {found}");
            return Err(DeviceError(error));
        }
        values.copy_from_slice(&read);
        Ok(())
    }

    fn write(&mut self, register: u8, value: u8) -> Result<(), DeviceError> {
        let wrong = |error| DeviceError::new(format_args!("writing register {register:#04x}"), error);
        self.device()?.smbus_write_byte_data(register, value).map_err(wrong)
    }

    fn close(&mut self) {
        self.device = None;
    }
}

/// Driver of an MPU-6050.
#[derive(Debug)]
pub struct Mpu6050<R> {
    registers: R,
    remarks: Remarks,
}

impl<R: Registers> Mpu6050<R> {
    /// Creates a driver over these registers.
    #[must_use]
    pub fn new(registers: R) -> Self {
        Self { registers, remarks: Remarks::default() }
    }

    fn set_up(&mut self) -> Result<(), DeviceError> {
        for (register, value) in SET_UP {
            self.registers.write(register, value)?;
            let mut read = [0];
            self.registers.read(register, &mut read)?;
            if read[0] != value {
                return Err(DeviceError(format!(
                    "register {register:#04x}: expected {value:#04x} as it was written, found {:#04x}",
                    read[0]
                )));
            }
        }
        Ok(())
    }
}

impl<R: Registers> Driver for Mpu6050<R> {
    type Request = Poke;
    type Sample = Sample;
    const ASKED: bool = true;

    fn device(&self) -> String {
        self.registers.place()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        self.registers.open()?;
        let mut identity = [0];
        self.registers.read(register::IDENTITY, &mut identity)?;
        if identity[0] != IDENTITY {
            return Err(DeviceError(format!(
                "expected an MPU-6050 (register 0x75 holds {IDENTITY:#04x}), found {:#04x} there",
                identity[0]
            )));
        }
        self.set_up()?;
        Ok("MPU-6050, 500 degrees a second, 4 g".into())
    }

    fn exchange(
        &mut self,
        _request: &Poke,
        sample: &mut Sample,
        _timeout: Duration,
    ) -> Result<bool, DeviceError> {
        let mut measured = [0; MEASURED];
        let begin = now_ns();
        self.registers.read(register::MEASURED, &mut measured)?;
        // A unit that lost its power meanwhile is in sleep mode, and its registers stay zero.
        if measured == [0; MEASURED] {
            let mut power = [0];
            self.registers.read(register::POWER, &mut power)?;
            if power[0] & 0x40 != 0 {
                return Err(DeviceError("it sleeps: it must have lost its power".into()));
            }
        }
        // The middle of the transfer.
        sample.stamp_ns = begin + (now_ns() - begin) / 2;
        let raw = Raw::parse(&measured);
        (sample.motion, sample.orientation) = (raw.motion(), None);
        if raw.is_saturated() {
            self.remarks
                .count(|times| format!("at the end of its scale, {times} times so far: it moves too fast"));
        }
        Ok(true)
    }

    fn close(&mut self) {
        self.registers.close();
    }

    fn remark(&mut self) -> Option<String> {
        self.remarks.take()
    }
}
