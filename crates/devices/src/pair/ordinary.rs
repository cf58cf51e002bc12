//! Ordinary task of a device, which owns the driver.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ipc::channel::Channel;
use rt::clock::now_ns;
use thiserror::Error;

use super::{Datagram, Shared, Stage};

/// Driver of a device. It may wait, allocate and make system calls, but must return within about
/// the `timeout` it is given.
pub trait Driver: Send + 'static {
    /// Request of the real-time task.
    type Request: Datagram + Default + Send;
    /// Sample of the device.
    type Sample: Datagram + Default + Send;

    /// True if each exchange answers a request; false if the device sends by itself.
    const ASKED: bool;

    /// Connection of the device, for messages: usually a path.
    fn device(&self) -> String;

    /// Opens and identifies the device; returns a description of it, for messages.
    ///
    /// # Errors
    /// The expected and the found device or answer.
    fn open(&mut self) -> Result<String, DeviceError>;

    /// Carries out a request, or waits for a sample that the device sends by itself; false if there
    /// is no sample.
    ///
    /// # Errors
    /// The device has failed and must be opened again.
    fn exchange(
        &mut self,
        request: &Self::Request,
        sample: &mut Self::Sample,
        timeout: Duration,
    ) -> Result<bool, DeviceError>;

    /// No request has arrived for [`UNASKED`]: drivers of motors stop them. Devices without motion
    /// keep the default.
    ///
    /// # Errors
    /// The device has failed and must be opened again.
    fn unasked(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Closes the device.
    fn close(&mut self);

    /// Remark since the last call, for messages, though the device works.
    fn remark(&mut self) -> Option<String> {
        None
    }
}

/// Remarks of a driver.
#[derive(Debug, Default)]
pub struct Remarks {
    count: u64,
    last: Option<String>,
}

impl Remarks {
    /// Remarks this.
    pub fn say(&mut self, words: &str) {
        self.last = Some(words.to_owned());
    }

    /// Counts an event that may come often: the first is remarked, with how many there were, and
    /// then ever fewer, as they would flood the output.
    pub fn count(&mut self, words: impl FnOnce(u64) -> String) {
        self.count += 1;
        if self.count.is_power_of_two() {
            self.last = Some(words(self.count));
        }
    }

    /// The newest one since the last call.
    pub fn take(&mut self) -> Option<String> {
        self.last.take()
    }
}

/// Reason for a failure of a device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

impl DeviceError {
    /// Creates an error from the operation and its failure.
    pub fn new(doing: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}

/// Begin and end of each exchange with a device, CLOCK_MONOTONIC ns, for measurements.
pub type Exchanges = Arc<Mutex<Vec<[u64; 2]>>>;

/// Environment of an ordinary task, in addition to its driver.
pub(crate) struct Surroundings {
    pub(crate) channel: Channel,
    pub(crate) status: Shared,
    pub(crate) stop: Arc<AtomicBool>,
    /// Prints a line for the user.
    pub(crate) say: Arc<dyn Fn(&str) + Send + Sync>,
    /// Record of exchanges, if one is kept.
    pub(crate) exchanges: Option<Exchanges>,
}

/// Runs the ordinary task on its thread until it is stopped or the cycle has ended.
pub(crate) fn run<D: Driver>(mut driver: D, around: &Surroundings) {
    let mut post = Post::<D>::new();
    let mut pause = Pause::default();
    while !around.stop.load(Ordering::Relaxed) {
        let failed = match driver.open() {
            Ok(found) => {
                {
                    let mut status = around.status.lock();
                    status.opened += 1;
                    status.stage = Stage::Working;
                    if status.found != found || status.failures > 0 {
                        (around.say)(&format!("{}: {found} ({})", status.name, status.device));
                    }
                    status.found = found;
                }
                post.work(&mut driver, around, &mut pause)
            }
            Err(error) => Some(error),
        };
        driver.close();
        let Some(error) = failed else { break };
        let wait = pause.next();
        {
            let mut status = around.status.lock();
            status.failures += 1;
            status.stage = Stage::Failed;
            if status.last_error != error.0 {
                let (name, device) = (&status.name, &status.device);
                (around.say)(&format!("{name} ({device}): {error}; tried again"));
            }
            status.last_error = error.0;
        }
        if !post.rest(wait, around) {
            break;
        }
    }
    around.status.lock().stage = Stage::Ended;
}

/// Ordinary end of the channel.
struct Post<D: Driver> {
    request: D::Request,
    sample: D::Sample,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

/// Time without a request after which the driver is notified.
pub const UNASKED: Duration = Duration::from_millis(50);

/// Longest wait of the task before it checks for a stop.
const LOOK: Duration = UNASKED;

/// Most exchanges recorded: three hours of the fastest device.
const MOST_EXCHANGES: usize = 1_000_000;

impl<D: Driver> Post<D> {
    fn new() -> Self {
        Self {
            request: D::Request::default(),
            sample: D::Sample::default(),
            inbox: vec![0; D::Request::LARGEST],
            outbox: vec![0; D::Sample::LARGEST],
        }
    }

    /// Exchanges samples until the device fails; `None` when the task is to end.
    fn work(&mut self, driver: &mut D, around: &Surroundings, pause: &mut Pause) -> Option<DeviceError> {
        while !around.stop.load(Ordering::Relaxed) {
            let asked = match self.newest(&around.channel, if D::ASKED { LOOK } else { Duration::ZERO }) {
                Err(Over) => return None,
                Ok(asked) => asked,
            };
            if D::ASKED && !asked {
                if let Err(error) = driver.unasked() {
                    return Some(error);
                }
            } else {
                let begin = now_ns();
                match driver.exchange(&self.request, &mut self.sample, LOOK) {
                    Err(error) => return Some(error),
                    Ok(false) => {}
                    Ok(true) => {
                        pause.over();
                        self.tell(around);
                        note(around, begin);
                    }
                }
            }
            if let Some(remark) = driver.remark() {
                (around.say)(&format!("{}: {remark}", around.status.lock().name));
            }
        }
        None
    }

    /// Takes the newest request and discards older ones; true if there was one.
    fn newest(&mut self, channel: &Channel, longest: Duration) -> Result<bool, Over> {
        let mut any = false;
        loop {
            let longest = if any { Duration::ZERO } else { longest };
            match channel.recv_timeout(&mut self.inbox, longest) {
                Ok(Some(length)) => any |= self.request.decode(&self.inbox[..length]),
                Ok(None) => return Ok(any),
                Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                Err(_) => return Err(Over),
            }
        }
    }

    fn tell(&mut self, around: &Surroundings) {
        let length = self.sample.encode(&mut self.outbox);
        let told = around.channel.send_timeout(&self.outbox[..length], LOOK);
        let mut status = around.status.lock();
        match told {
            Ok(_) => status.samples += 1,
            Err(_) => status.dropped += 1,
        }
    }

    /// Waits with the device closed, and discards the requests of that time. False when the task is
    /// to end.
    fn rest(&mut self, wait: Duration, around: &Surroundings) -> bool {
        let begin = Instant::now();
        while !around.stop.load(Ordering::Relaxed) {
            let left = wait.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return true;
            }
            if self.newest(&around.channel, Duration::ZERO).is_err() {
                return false;
            }
            thread::sleep(left.min(LOOK));
        }
        false
    }
}

fn note(around: &Surroundings, begin: u64) {
    if let Some(exchanges) = &around.exchanges {
        let mut exchanges = exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if exchanges.len() < MOST_EXCHANGES {
            exchanges.push([begin, now_ns()]);
        }
    }
}

/// End of the cycle.
struct Over;

/// Pause before a failed device is retried: 250 ms, doubled each time, up to 8 s. A sample resets
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    failures: u32,
}

impl Pause {
    fn next(&mut self) -> Duration {
        let wait = Duration::from_millis(250 << self.failures.min(5));
        self.failures += 1;
        wait
    }

    fn over(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use ipc::channel::Kind;
    use ipc::client::Client;
    use ipc::description::Description;
    use ipc::server::Builder;

    use super::*;
    use crate::task::actuators::{Feedback, Velocities};

    /// A driver of a motor that moves on request.
    struct Moving {
        moves: Arc<AtomicBool>,
        remarks: Remarks,
    }

    impl Driver for Moving {
        type Request = Velocities;
        type Sample = Feedback;
        const ASKED: bool = true;

        fn device(&self) -> String {
            "a double".into()
        }

        fn open(&mut self) -> Result<String, DeviceError> {
            Ok("one that moves".into())
        }

        fn exchange(
            &mut self,
            _request: &Velocities,
            _sample: &mut Feedback,
            _timeout: Duration,
        ) -> Result<bool, DeviceError> {
            self.moves.store(true, Ordering::Relaxed);
            Ok(false)
        }

        fn unasked(&mut self) -> Result<(), DeviceError> {
            if self.moves.swap(false, Ordering::Relaxed) {
                self.remarks.say("stopped");
            }
            Ok(())
        }

        fn remark(&mut self) -> Option<String> {
            self.remarks.take()
        }

        fn close(&mut self) {}
    }

    // feature(devices): what moves is stopped when its real-time task asks nothing any more, and that is said
    #[test]
    fn silent_real_time_task_stops_the_motors() {
        let folder = std::env::temp_dir().join(format!("onbeat-devices-unasked-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut builder = Builder::new("unasked", &Description::default());
        builder.folder(&folder);
        let mut port = builder.port("wheels.device", Kind::Message { size: 64, depth: 4 }).unwrap();
        let (_ends, server) = builder.open().unwrap();
        port.bind();
        let channel = Client::open(server.path()).unwrap().port("wheels.device").unwrap();
        let (stop, moves, said) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default(), Arc::<Mutex<String>>::default());
        let words = Arc::clone(&said);
        let around = Surroundings {
            channel,
            status: Shared::new("wheels", "a double".into()),
            stop: Arc::clone(&stop),
            say: Arc::new(move |line| line.clone_into(&mut words.lock().unwrap())),
            exchanges: None,
        };
        let driver = Moving { moves: Arc::clone(&moves), remarks: Remarks::default() };
        let task = thread::spawn(move || run(driver, &around));
        let wait = |what: &str, seen: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while !seen() {
                assert!(begin.elapsed() < Duration::from_secs(40), "{what}: {}", said.lock().unwrap());
                thread::sleep(Duration::from_millis(1));
            }
        };
        let mut bytes = [0; Velocities::LARGEST];
        let length = Velocities { stamp_ns: 1, wheels: [1.0; 2] }.encode(&mut bytes);
        port.send(&bytes[..length]).unwrap();
        wait("stopped", &|| *said.lock().unwrap() == "wheels: stopped");
        assert!(!moves.load(Ordering::Relaxed));
        stop.store(true, Ordering::Relaxed);
        task.join().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn events_that_come_often_are_remarked_ever_more_rarely() {
        let mut remarks = Remarks::default();
        let told: Vec<u64> = (1..=20)
            .filter(|_| {
                remarks.count(|times| format!("{times} times"));
                remarks.take().is_some()
            })
            .collect();
        assert_eq!(told, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn a_device_that_keeps_failing_is_left_alone_longer_and_longer() {
        let mut pause = Pause::default();
        let waits: Vec<u64> = (0..8).map(|_| pause.next().as_millis() as u64).collect();
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        pause.over();
        assert_eq!(pause.next(), Duration::from_millis(250));
    }
}
