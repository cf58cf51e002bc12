//! From a list of devices to running pairs of tasks.
//!
//! ```no_run
//! use onbeat_devices::{Prepared, service_robot};
//! use ipc::{description::Description, server::Builder};
//! use rt::profile::RealTimeProfile;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut ipc = Builder::new("m4k", &Description::default());
//! let devices = Prepared::new(&service_robot(RealTimeProfile::default(), 60), &mut ipc)?;
//! let (_ends, server) = ipc.open()?;
//! let running = devices.start(server.path(), |line| eprintln!("{line}"))?;
//! println!("{:?}", running.status());
//! # Ok(())
//! # }
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ipc::channel::{Kind as PortKind, Port};
use ipc::client::{AttachError, Client, PortError};
use ipc::server::{Builder, CreateError};
use rt::clock::{Clock, MonotonicClock};
use rt::task::{self, Records, Settings, Task};
use thiserror::Error;
use types::ImuUnit;

use crate::driver::actuators::{Actuators, OfCycle};
use crate::driver::dc_motors::DcMotors;
use crate::driver::imu::{I2c, Mpu6050};
use crate::driver::led_strip::LedStrip;
use crate::driver::myahrs::MyAhrs;
use crate::driver::range_finder::{BAUD, RangeFinder};
use crate::driver::sonar::{Gpio, HcSr04};
use crate::driver::spi::Spi;
use crate::fake::{self, scene::Scene};
use crate::motor::WheelSettings;
use crate::pair::ordinary::{self, Exchanges, Surroundings};
use crate::pair::real_time::{LONGEST_RECEIVED, RealTimeTask};
use crate::pair::{Datagram, DeviceStatus, Driver, Shared, Work};
use crate::peripheral::{Kind, Peripheral, WheelDrives};
use crate::task::actuators::ActuatorsWork;
use crate::task::imu::ImuWork;
use crate::task::led_strip::LedStripWork;
use crate::task::range_finder::RangeFinderWork;
use crate::task::sonar::SonarWork;

/// Devices with their ports; their tasks are not started yet.
pub struct Prepared {
    pairs: Vec<Pair>,
    measured: bool,
}

/// One of them.
struct Pair {
    peripheral: Peripheral,
    device: Port,
    world: Port,
}

/// Devices with running tasks. Dropped, all of them end.
#[derive(Debug)]
pub struct Running {
    tasks: Vec<Task>,
    records: Vec<Records>,
    ordinary: Vec<Ordinary>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Ordinary {
    status: Shared,
    exchanges: Option<Exchanges>,
    thread: Option<JoinHandle<()>>,
    /// Simulated range finder on its own thread.
    _fake: Option<fake::range_finder::RangeFinder>,
}

/// Reason that devices did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A port cannot be made.
    #[error("device \"{name}\": {error}")]
    Port {
        /// The device.
        name: String,
        /// Reason.
        error: CreateError,
    },
    /// A real-time task cannot be made.
    #[error(transparent)]
    Task(#[from] task::CreateError),
    /// The IPC does not answer.
    #[error("devices: {0}")]
    Attach(#[from] AttachError),
    /// The ordinary task cannot have its end of the channel.
    #[error("device \"{name}\": {error}")]
    Channel {
        /// The device.
        name: String,
        /// Reason.
        error: PortError,
    },
    /// A thread, or a simulated device, cannot be made.
    #[error("device \"{name}\": {error}")]
    System {
        /// The device.
        name: String,
        /// The system's error.
        error: io::Error,
    },
}

impl Prepared {
    /// Makes two ports for each device: one for clients, and one that joins its two tasks.
    ///
    /// # Errors
    /// A port that cannot be made: two devices must not have the same.
    pub fn new(peripherals: &[Peripheral], ipc: &mut Builder) -> Result<Self, StartError> {
        let mut pairs = Vec::new();
        for peripheral in peripherals {
            let (between, told) = sizes(&peripheral.kind);
            let mut port = |name: &str, size, depth| {
                let made = ipc.port(name, PortKind::Message { size, depth });
                made.map_err(|error| StartError::Port { name: peripheral.name.clone(), error })
            };
            let device = port(&format!("{}.device", peripheral.port), between, DEPTH)?;
            let world = port(&peripheral.port, told.max(LONGEST_RECEIVED), DEPTH)?;
            pairs.push(Pair { peripheral: peripheral.clone(), device, world });
        }
        Ok(Self { pairs, measured: false })
    }

    /// Notes when ordinary tasks use their devices, for [`Running::exchanges`].
    #[must_use]
    pub fn measured(self) -> Self {
        Self { measured: true, ..self }
    }

    /// Starts all tasks; the real-time ones are released together. `ipc` is the socket of the open
    /// IPC; `say` is called with messages about the devices. Call it from an ordinary thread: the
    /// ordinary tasks inherit its scheduling.
    ///
    /// A device that does not answer is no error: its ordinary task reports it and tries again.
    ///
    /// # Errors
    /// A thread that cannot be made, or an IPC that does not answer.
    pub fn start(
        self,
        ipc: &Path,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Running, StartError> {
        let Self { pairs, measured } = self;
        let start = Start { ipc, measured, say: Arc::new(say), stop: Arc::default() };
        let stop = Arc::clone(&start.stop);
        let mut running = Running { tasks: Vec::new(), records: Vec::new(), ordinary: Vec::new(), stop };
        let mut others = Vec::new();
        for pair in pairs {
            let (task, records, other) = start.pair(pair)?;
            running.tasks.push(task);
            running.records.push(records);
            others.push(other);
        }
        // A body binds its ports in its first job; only then can they be opened.
        let first = MonotonicClock.now() + LEAD;
        running.tasks.iter().for_each(|task| task.start_at(first));
        let client = Client::open(ipc)?;
        for other in others {
            running.ordinary.push(other(&client)?);
        }
        Ok(running)
    }
}

/// Messages that fit into a channel.
const DEPTH: usize = 8;

/// From the moment all tasks are there to their first release.
const LEAD: Duration = Duration::from_millis(20);

/// Bytes of the longest message between the two tasks, and to the world.
fn sizes(kind: &Kind) -> (usize, usize) {
    fn of<W: Work>() -> (usize, usize) {
        (W::Sample::LARGEST.max(W::Request::LARGEST), W::PUBLISHED)
    }
    match kind {
        Kind::Sonar { .. } => of::<SonarWork>(),
        Kind::RangeFinder { .. } => of::<RangeFinderWork>(),
        Kind::LedStrip { .. } => of::<LedStripWork>(),
        Kind::Imu { .. } => of::<ImuWork>(),
        Kind::Actuators { .. } => of::<ActuatorsWork>(),
    }
}

/// Opens an ordinary task's end of the channel and starts its thread.
type Other = Box<dyn FnOnce(&Client) -> Result<Ordinary, StartError>>;

struct Start<'a> {
    ipc: &'a Path,
    measured: bool,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    stop: Arc<AtomicBool>,
}

impl Start<'_> {
    fn pair(&self, pair: Pair) -> Result<(Task, Records, Other), StartError> {
        let kind = pair.peripheral.kind.clone();
        match kind {
            Kind::Sonar { gpio, temperature } => {
                let work = SonarWork::new(temperature);
                match gpio {
                    Some((chip, trigger, echo)) => {
                        self.join(pair, work, HcSr04::new(Gpio::new(chip, trigger, echo)), None)
                    }
                    None => {
                        self.join(pair, work, HcSr04::new(fake::sonar::Sensor::new(Scene::default())), None)
                    }
                }
            }
            Kind::RangeFinder { serial, watched } => {
                let work = RangeFinderWork::new(watched);
                let (path, baud, fake) = match serial {
                    Some((path, baud)) => (path, baud, None),
                    None => {
                        let fake = fake::range_finder::RangeFinder::plug_in(Default::default());
                        let name = pair.peripheral.name.clone();
                        let fake = fake.map_err(|error| StartError::System { name, error })?;
                        (fake.path().to_owned(), BAUD, Some(fake))
                    }
                };
                self.join(pair, work, RangeFinder::new(path, baud), fake)
            }
            Kind::LedStrip { spi, chip, leds, brightness } => {
                let work = LedStripWork::new(leds);
                match spi {
                    Some(path) => {
                        self.join(pair, work, LedStrip::new(Spi::new(path), chip, brightness), None)
                    }
                    None => {
                        let strip = fake::Strip::default();
                        self.join(pair, work, LedStrip::new(strip, chip, brightness), None)
                    }
                }
            }
            Kind::Imu { unit, output, i2c } => {
                let work = ImuWork::new(unit);
                let i2c = i2c.map(|(bus, address)| I2c::new(bus, address));
                match (unit, i2c) {
                    (ImuUnit::Mpu6050, Some(i2c)) => self.join(pair, work, Mpu6050::new(i2c), None),
                    (ImuUnit::Mpu6050, None) => {
                        self.join(pair, work, Mpu6050::new(fake::imu::Unit::default()), None)
                    }
                    (ImuUnit::MyAhrs, Some(i2c)) => self.join(pair, work, MyAhrs::new(i2c, output), None),
                    (ImuUnit::MyAhrs, None) => {
                        self.join(pair, work, MyAhrs::new(fake::myahrs::Unit::default(), output), None)
                    }
                }
            }
            Kind::Actuators { drives, limits } => {
                let work = ActuatorsWork::new(limits);
                match drives {
                    WheelDrives::Axes(axes) => {
                        self.join(pair, work, Actuators::new(OfCycle::new(self.ipc, axes)), None)
                    }
                    WheelDrives::Simulated => {
                        self.join(pair, work, Actuators::new(fake::wheels::Pair::default()), None)
                    }
                    WheelDrives::DcMotors { spi, dac, full_scale, motors_reversed, encoders_reversed } => {
                        let settings =
                            WheelSettings::pair(full_scale, limits, motors_reversed, encoders_reversed);
                        match spi {
                            Some([converter, left, right]) => {
                                let encoders = [Spi::new(left), Spi::new(right)];
                                let drives = DcMotors::new(dac, Spi::new(converter), encoders, settings);
                                self.join(pair, work, Actuators::new(drives), None)
                            }
                            None => {
                                let drives = fake::dc_motors::drives(dac, settings);
                                self.join(pair, work, Actuators::new(drives), None)
                            }
                        }
                    }
                }
            }
        }
    }

    /// Makes the real-time task, and the closure that makes the ordinary one.
    fn join<W, D>(
        &self,
        pair: Pair,
        work: W,
        driver: D,
        fake: Option<fake::range_finder::RangeFinder>,
    ) -> Result<(Task, Records, Other), StartError>
    where
        W: Work,
        D: Driver<Request = W::Request, Sample = W::Sample>,
    {
        let Pair { peripheral: Peripheral { name, period, profile, .. }, device, world } = pair;
        let channel = device.name().to_owned();
        let mut real_time = RealTimeTask::new(work, device, world, timeout(period));
        let settings = Settings::every(name.as_str(), period).with_profile(profile);
        let (task, records) = settings.create(move |job| {
            real_time.job(job.release.instant.as_nanos(), job.now().as_nanos(), job.period());
        })?;
        let status = Shared::new(&name, driver.device());
        let (say, stop) = (Arc::clone(&self.say), Arc::clone(&self.stop));
        let exchanges = self.measured.then(Exchanges::default);
        let other: Other = Box::new(move |client| {
            let channel =
                client.port(&channel).map_err(|error| StartError::Channel { name: name.clone(), error })?;
            let around =
                Surroundings { channel, status: status.clone(), stop, say, exchanges: exchanges.clone() };
            let thread = thread::Builder::new()
                .name(format!("{name} device"))
                .spawn(move || ordinary::run(driver, &around))
                .map_err(|error| StartError::System { name, error })?;
            Ok(Ordinary { status, exchanges, thread: Some(thread), _fake: fake })
        });
        Ok((task, records, other))
    }
}

/// Age from which a sample is stale: three periods; a tenth of a second at least, for an ordinary
/// task waits for its turn.
fn timeout(period: Duration) -> Duration {
    (3 * period).max(Duration::from_millis(100))
}

impl Running {
    /// The real-time tasks, in the order of the peripherals.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The records of their jobs, in the same order.
    pub fn records(&mut self) -> &mut [Records] {
        &mut self.records
    }

    /// Status of the devices, in the same order.
    #[must_use]
    pub fn status(&self) -> Vec<DeviceStatus> {
        self.ordinary.iter().map(|it| it.status.lock().clone()).collect()
    }

    /// Takes the exchanges with devices recorded since the last call, in the same order: begin and
    /// end, CLOCK_MONOTONIC ns. Nothing unless [`Prepared::measured`].
    #[must_use]
    pub fn exchanges(&self) -> Vec<Vec<[u64; 2]>> {
        let take = |exchanges: &Exchanges| {
            std::mem::take(&mut *exchanges.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
        };
        self.ordinary.iter().map(|it| it.exchanges.as_ref().map(take).unwrap_or_default()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.iter().for_each(Task::stop);
        join_within(self.ordinary.iter_mut().filter_map(|it| it.thread.take()), LAST_TIMEOUT);
    }
}

/// Time for the ordinary tasks to end: a driver may hang in its device, and then ends with the
/// process.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);

/// Joins the threads that end within `limit`, all together. Returns how many did not.
fn join_within(threads: impl Iterator<Item = JoinHandle<()>>, limit: Duration) -> usize {
    let end = MonotonicClock.now() + limit;
    let mut left: Vec<_> = threads.collect();
    loop {
        let (done, others): (Vec<_>, Vec<_>) = left.into_iter().partition(JoinHandle::is_finished);
        // A panic has been reported by its thread.
        done.into_iter().for_each(|thread| drop(thread.join()));
        left = others;
        if left.is_empty() || MonotonicClock.now() >= end {
            return left.len();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn hung_device_task_is_abandoned_and_the_others_are_joined() {
        let (hold, held) = mpsc::channel::<()>();
        let ended = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&ended);
        let hangs = thread::spawn(move || held.recv().unwrap_or_default());
        let ends = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            other.store(true, Ordering::Relaxed);
        });
        let limit = Duration::from_millis(500);
        assert_eq!(join_within([hangs, ends].into_iter(), limit), 1);
        assert!(ended.load(Ordering::Relaxed));
        drop(hold);
        assert_eq!(join_within(std::iter::empty(), limit), 0);
    }
}
