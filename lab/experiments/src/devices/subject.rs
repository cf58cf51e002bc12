//! A device of any kind, as bytes: the work of its real-time task, and its driver.

use std::time::Duration;

use ::devices::driver::actuators::Actuators;
use ::devices::driver::imu::{I2c, Mpu6050};
use ::devices::driver::led_strip::LedStrip;
use ::devices::driver::myahrs::MyAhrs;
use ::devices::driver::range_finder::{BAUD, RangeFinder};
use ::devices::driver::sonar::{Gpio, HcSr04};
use ::devices::driver::spi::Spi;
use ::devices::fake::{self, scene::Scene};
use ::devices::motor::WheelSettings;
use ::devices::pair::{Datagram, DeviceError, Driver, Moment, Work};
use ::devices::task::actuators::ActuatorsWork;
use ::devices::task::imu::ImuWork;
use ::devices::task::led_strip::LedStripWork;
use ::devices::task::range_finder::RangeFinderWork;
use ::devices::task::sonar::SonarWork;
use ::devices::{Kind, Peripheral, WheelDrives};

use types::ImuUnit;

use crate::Error;

/// Device under test.
pub(super) struct Subject {
    pub(super) compute: Box<dyn Compute>,
    pub(super) drive: Box<dyn Drive>,
    /// Bytes of the longest command or answer.
    pub(super) longest: usize,
    /// A simulated range finder has a dedicated thread.
    pub(super) fake: Option<fake::range_finder::RangeFinder>,
}

/// Work of the real-time task.
pub(super) trait Compute: Send {
    /// Encodes the command of a period; returns its length.
    fn command(&mut self, moment: &Moment, bytes: &mut [u8]) -> usize;

    /// Takes the driver's answer; false if it is none.
    fn answer(&mut self, bytes: &[u8]) -> bool;
}

/// Driver, without its types.
pub(super) trait Drive: Send {
    /// Name of the connection.
    fn device(&self) -> String;

    /// Opens the device.
    fn open(&mut self) -> Result<String, DeviceError>;

    /// Carries out a command; returns the length of the answer, `None` without one.
    fn exchange(&mut self, command: &[u8], answer: &mut [u8]) -> Result<Option<usize>, DeviceError>;

    /// Closes the device.
    fn close(&mut self);
}

impl Subject {
    /// The device of a peripheral; actuators are simulated.
    ///
    /// # Errors
    /// A simulated range finder without a terminal.
    pub(super) fn new(peripheral: &Peripheral) -> Result<Self, Error> {
        let scene = Scene::default;
        Ok(match peripheral.kind.clone() {
            Kind::Sonar { gpio, temperature } => {
                let work = SonarWork::new(temperature);
                match gpio {
                    Some((chip, trigger, echo)) => {
                        Self::of(work, HcSr04::new(Gpio::new(chip, trigger, echo)))
                    }
                    None => Self::of(work, HcSr04::new(fake::sonar::Sensor::new(scene()))),
                }
            }
            Kind::RangeFinder { serial, watched } => {
                let work = RangeFinderWork::new(watched);
                match serial {
                    Some((path, baud)) => Self::of(work, RangeFinder::new(path, baud)),
                    None => {
                        let name = &peripheral.name;
                        let fake = fake::range_finder::RangeFinder::plug_in(Default::default())
                            .map_err(|error| Error::other(format_args!("devices: {name}: {error}")))?;
                        let driver = RangeFinder::new(fake.path().to_owned(), BAUD);
                        Self { fake: Some(fake), ..Self::of(work, driver) }
                    }
                }
            }
            Kind::LedStrip { spi, chip, leds, brightness } => {
                let work = LedStripWork::new(leds);
                match spi {
                    Some(path) => Self::of(work, LedStrip::new(Spi::new(path), chip, brightness)),
                    None => Self::of(work, LedStrip::new(fake::Strip::default(), chip, brightness)),
                }
            }
            Kind::Imu { unit, output, i2c } => {
                let work = ImuWork::new(unit);
                match (unit, i2c.map(|(bus, address)| I2c::new(bus, address))) {
                    (ImuUnit::Mpu6050, Some(i2c)) => Self::of(work, Mpu6050::new(i2c)),
                    (ImuUnit::Mpu6050, None) => Self::of(work, Mpu6050::new(fake::imu::Unit::default())),
                    (ImuUnit::MyAhrs, Some(i2c)) => Self::of(work, MyAhrs::new(i2c, output)),
                    (ImuUnit::MyAhrs, None) => {
                        Self::of(work, MyAhrs::new(fake::myahrs::Unit::default(), output))
                    }
                }
            }
            Kind::Actuators { drives, limits } => {
                let work = ActuatorsWork::new(limits);
                match drives {
                    WheelDrives::DcMotors {
                        dac, full_scale, motors_reversed, encoders_reversed, ..
                    } => {
                        let settings =
                            WheelSettings::pair(full_scale, limits, motors_reversed, encoders_reversed);
                        Self::of(work, Actuators::new(fake::dc_motors::drives(dac, settings)))
                    }
                    _ => Self::of(work, Actuators::new(fake::wheels::Pair::default())),
                }
            }
        })
    }

    fn of<W, D>(work: W, driver: D) -> Self
    where
        W: Work,
        D: Driver<Request = W::Request, Sample = W::Sample>,
    {
        let longest = W::Request::LARGEST.max(W::Sample::LARGEST);
        let working = Working { work, request: W::Request::default(), sample: W::Sample::default() };
        let driving = Driving { driver, request: D::Request::default(), sample: D::Sample::default() };
        Self { compute: Box::new(working), drive: Box::new(driving), longest, fake: None }
    }
}

struct Working<W: Work> {
    work: W,
    request: W::Request,
    sample: W::Sample,
}

impl<W: Work> Compute for Working<W> {
    fn command(&mut self, moment: &Moment, bytes: &mut [u8]) -> usize {
        // Polled also for a device that could send unprompted: this task asks in every period.
        let _asks = self.work.step(moment, &mut self.request);
        self.request.encode(bytes)
    }

    fn answer(&mut self, bytes: &[u8]) -> bool {
        let is_answer = self.sample.decode(bytes);
        if is_answer {
            self.work.take(&self.sample);
        }
        is_answer
    }
}

struct Driving<D: Driver> {
    driver: D,
    request: D::Request,
    sample: D::Sample,
}

/// Longest wait of a driver for its device.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Wait for an already received sample of a device that sends unprompted.
const AT_ONCE: Duration = Duration::from_micros(1);

impl<D: Driver> Drive for Driving<D> {
    fn device(&self) -> String {
        self.driver.device()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        self.driver.open()
    }

    fn exchange(&mut self, command: &[u8], answer: &mut [u8]) -> Result<Option<usize>, DeviceError> {
        if !self.request.decode(command) {
            return Ok(None);
        }
        let mut any = self.driver.exchange(&self.request, &mut self.sample, TIMEOUT)?;
        if !D::ASKED {
            // The newest: the others have been waiting since the last command.
            while self.driver.exchange(&self.request, &mut self.sample, AT_ONCE)? {
                any = true;
            }
        }
        Ok(any.then(|| self.sample.encode(answer)))
    }

    fn close(&mut self) {
        self.driver.close();
    }
}
