//! Devices over a shared-memory interface of their own.
#![allow(dead_code, reason = "not every test needs all of it")]

pub(crate) mod cp2112;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ipc::channel::Channel;
use ipc::client::Client;
use ipc::description::Description;
use ipc::sensor::{LedRequest, Pattern, WheelRequest};
use ipc::server::{Builder, Endpoints, Server};
use onbeat_devices::{Kind, Peripheral, Prepared, Running, service_robot};
use rt::profile::RealTimeProfile;

/// Devices over an interface of their own, and their remarks.
pub(crate) struct Robot {
    pub(crate) running: Running,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    pub(crate) ipc: Client,
    _door: Server,
    _ends: Endpoints,
    folder: PathBuf,
}

impl Robot {
    pub(crate) fn start(name: &str, peripherals: &[Peripheral]) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-devices-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut builder = Builder::new(name, &Description::default());
        builder.folder(&folder);
        let prepared = Prepared::new(peripherals, &mut builder).unwrap();
        let (ends, server) = builder.open().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let say = Arc::clone(&said);
        let running = prepared
            .measured()
            .start(server.path(), move |line| say.lock().unwrap().push(line.to_owned()))
            .unwrap();
        let ipc = Client::open(server.path()).unwrap();
        Self { running, said, ipc, _door: server, _ends: ends, folder }
    }

    /// Reads messages of a port until one is accepted.
    pub(crate) fn until<T: std::fmt::Debug>(
        &self,
        channel: &Channel,
        wanted: impl Fn(&[u8]) -> Option<T>,
    ) -> T {
        let begin = Instant::now();
        let mut bytes = vec![0; 65_536];
        while begin.elapsed() < TIMEOUT {
            if let Some(length) = channel.recv_timeout(&mut bytes, Duration::from_millis(100)).unwrap() {
                if let Some(found) = wanted(&bytes[..length]) {
                    return found;
                }
            }
        }
        panic!("not seen; status {:?}, said {:?}", self.running.status(), self.said.lock().unwrap());
    }

    pub(crate) fn said(&self, words: &str) -> bool {
        self.said.lock().unwrap().iter().any(|line| line.contains(words))
    }

    pub(crate) fn wait_for(&self, what: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !what(self) {
            assert!(
                begin.elapsed() < TIMEOUT,
                "status {:?}, said {:?}",
                self.running.status(),
                self.said.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Longest wait, generous because other tests load the machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// The five devices of the service robot, simulated, without real-time settings.
pub(crate) fn ordinary() -> Vec<Peripheral> {
    service_robot(RealTimeProfile::ORDINARY, 50)
}

/// A robot with one device.
pub(crate) fn only(kind: Kind) -> Vec<Peripheral> {
    let (name, port) = (kind.bare().name().to_owned(), kind.bare().port().to_owned());
    let period = Duration::from_millis(20);
    vec![Peripheral { name, port, period, profile: RealTimeProfile::ORDINARY, kind }]
}

/// The same five, all with this period, for many jobs in a short time.
pub(crate) fn five_every(period: Duration) -> Vec<Peripheral> {
    ordinary().into_iter().map(|it| Peripheral { period, ..it }).collect()
}

/// All ports of the five in use: read as messages come, with a constant stream of valid and invalid
/// requests.
pub(crate) struct Users {
    channels: Vec<Channel>,
    rounds: u32,
}

impl Users {
    pub(crate) fn of(robot: &Robot) -> Self {
        let ports = ["sonar", "scan", "led", "imu", "wheels"];
        Self { channels: ports.map(|port| robot.ipc.port(port).unwrap()).into(), rounds: 0 }
    }

    /// Reads and requests until each task has done this many more jobs; returns the number of each.
    pub(crate) fn for_jobs(&mut self, robot: &Robot, jobs: u64) -> Vec<u64> {
        let done = || robot.running.tasks().iter().map(|task| task.live().jobs).collect::<Vec<_>>();
        let (begin, before) = (Instant::now(), done());
        loop {
            let now = done();
            let more: Vec<u64> = now.iter().zip(&before).map(|(now, before)| now - before).collect();
            if more.iter().all(|more| *more >= jobs) {
                return more;
            }
            assert!(begin.elapsed() < TIMEOUT, "{more:?} jobs");
            self.round();
        }
    }

    fn round(&mut self) {
        self.rounds += 1;
        let mut bytes = vec![0; 65_536];
        for channel in &self.channels {
            while channel.recv_timeout(&mut bytes, Duration::ZERO).unwrap().is_some() {}
        }
        let (mut led, mut wheels) = ([0; LedRequest::SIZE], [0; WheelRequest::SIZE]);
        let pattern = if self.rounds % 2 == 0 { Pattern::Chase } else { Pattern::Blink };
        LedRequest { pattern, colour: [1, 2, 3], round_ms: 100 }.encode(&mut led).unwrap();
        let velocity = if self.rounds % 20 < 10 { 3.0 } else { -3.0 };
        WheelRequest { velocities: [velocity; 2], holds_ms: 50 }.encode(&mut wheels).unwrap();
        // Requests that do not fit are dropped.
        let nonsense = self.rounds.to_le_bytes();
        let _ = self.channels[2].send_timeout(&led, Duration::ZERO);
        let _ = self.channels[4].send_timeout(&wheels, Duration::ZERO);
        let _ = self.channels[self.rounds as usize % 5].send_timeout(&nonsense, Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
    }
}
