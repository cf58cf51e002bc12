//! A base of two wheels behind a real shared-memory interface, which is all the node sees of any
//! robot, and a ROS 2 peer made of RustDDS. Other DDS implementations, and robots with simulated
//! drives, are in `cargo xtask judges`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ipc::bus::{
    self, Backend, BusStatus, Bytes, ErrorCounters, Event, Outcome, Service, SubDeviceStatus, Ticket,
};
use ipc::channel::Kind;
use ipc::command::Read;
use ipc::description::{
    AxisDescription, BaseDescription, ControllerDescription, Description, FrameDescription, OUTSIDE,
    SensorDescription, SignalDescription,
};
use ipc::message::control;
use ipc::server::{Builder, Server};
use ipc::state::{Axis, DriveState, Freshness, NO_CONTROLLER, Signal, State};
use rustdds::no_key::{DataReaderCdr, DataWriterCdr};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{
    DataWriterStatus, DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder,
    StatusEvented, TopicKind,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use types::signal::Direction;
use types::{BaseKind, ControllerKind, CyclicMode, SensorKind, ValueKind};

/// Folder of one test; dropping it removes it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onbeat-ros2-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A cycle; dropping it ends it.
pub struct Cycle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
    _server: Server,
    bus: bus::Server,
}

/// A SubDevice `drive` in Op with one object, 0x6065, of 32 bits.
#[derive(Default)]
struct Objects {
    window: [u8; 4],
    done: VecDeque<(Ticket, Outcome)>,
}

impl Backend for Objects {
    fn submit(&mut self, ticket: Ticket, service: &Service, _: Option<&str>) -> bool {
        let outcome = match service {
            Service::Upload { index: 0x6065, .. } => Outcome::Data(Bytes(self.window.into())),
            Service::Download { index: 0x6065, data, .. } => {
                self.window = data.0.as_slice().try_into().unwrap();
                Outcome::Done(true)
            }
            Service::ObjectList { list: 1, .. } => data("0100 1810 6560"),
            Service::DescribeObject { index: 0x6065, .. } => data("6560 0700 00 07 57696e646f77"),
            Service::DescribeEntry { index: 0x6065, sub_index: 0, .. } => {
                data("6560 00 00 0700 2000 bf00 57696e646f77")
            }
            Service::Status { errors, .. } => {
                let counted = ErrorCounters { pdi_errors: 3, ..ErrorCounters::default() };
                let drive = SubDeviceStatus {
                    state: "Op".into(),
                    errors: errors.then_some(counted),
                    ..SubDeviceStatus::default()
                };
                Outcome::Status(Box::new(BusStatus { sub_devices: vec![drive], ..BusStatus::default() }))
            }
            _ => Outcome::error("object does not exist"),
        };
        self.done.push_back((ticket, outcome));
        true
    }

    fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        self.done.pop_front()
    }
}

/// Bytes of a mailbox, in hexadecimal digits.
fn data(digits: &str) -> Outcome {
    let digits: String = digits.split(' ').collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    Outcome::Data(Bytes((0..digits.len()).step_by(2).map(byte).collect()))
}

impl Cycle {
    /// Publishes an event of its bus.
    pub fn publish(&self, event: Event) {
        self.bus.publisher().publish(event);
    }

    /// Starts the cycle, with its socket below `folder`.
    pub fn start(folder: &Path) -> Self {
        let state = DriveState::OperationEnabled as u8;
        Self::with_axis(folder, Axis { drive_state: state, ..Axis::default() })
    }

    /// Starts a cycle with a right axis that is in this state after each request.
    pub fn with_axis(folder: &Path, after: Axis) -> Self {
        let mut ipc = Builder::new("base", &description());
        ipc.folder(folder);
        let kind = Kind::Message { size: control::SIZE, depth: 8 };
        let mut ports = [control::PORT, control::STOP_PORT].map(|name| ipc.port(name, kind).unwrap());
        let guests = ipc.bus().unwrap();
        let (mut ends, server) = ipc.open().unwrap();
        let bus = bus::Server::start(guests, Box::new(Objects::default())).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            ports.iter_mut().for_each(|port| port.bind());
            let mut command = ends.command.blank();
            let mut state = State { axes: vec![Axis::default(); 2], ..State::default() };
            state.bus.phase = 7;
            // A lamp that is on, and a foot under load.
            let forces = [1.0, -2.0, 300.0, 0.25, 0.5, -0.75].map(f64::to_bits);
            let words = [1].into_iter().chain(forces);
            state.signals = words.map(|word| Signal { word, fresh: true, forced: false }).collect();
            while !stopped.load(Ordering::Relaxed) {
                let now = now_ns();
                if ends.command.newest(&mut command) == Read::New {
                    state.command.accepted += 1;
                    if let Some(Some(value)) = command.signals.first() {
                        state.signals[0].word = value.word();
                    }
                }
                let holds = now < command.stamp_ns + command.time_to_live_ns;
                let twist = command.twist.filter(|_| holds).unwrap_or_default();
                state.command.freshness = if holds { Freshness::Fresh } else { Freshness::Stale };
                state.cycle += 1;
                state.release_ns = now;
                state.base.twist = [twist.x.0, twist.y.0, twist.yaw.0];
                state.base.pose[0] += twist.x.0 * 1e-3;
                state.base.pose[2] += twist.yaw.0 * 1e-3;
                for axis in &mut state.axes {
                    axis.velocity = twist.x.0 / 0.1;
                    axis.position += axis.velocity * 1e-3;
                }
                let mut bytes = [0; control::SIZE];
                for port in &mut ports {
                    while let Some(length) = port.receive(&mut bytes) {
                        let asked = control::Request::decode(&bytes[..length]).unwrap();
                        let outcome = match asked.what {
                            control::Action::Home(_) => Err(control::Refusal::NotPossible),
                            _ => Ok(()),
                        };
                        match asked.what {
                            control::Action::Deactivate => state.control.active = NO_CONTROLLER,
                            control::Action::SwitchController(index) => state.control.active = index as u16,
                            control::Action::Enable => {
                                state.control.enabled = true;
                                state.axes[0].drive_state = DriveState::OperationEnabled as u8;
                                state.axes[1] = after;
                            }
                            control::Action::Disable => state.control.enabled = false,
                            control::Action::ResetFaults => state.axes[1] = after,
                            _ => {}
                        }
                        let length = control::Reply { id: asked.id, outcome }.encode(&mut bytes).unwrap();
                        port.send(&bytes[..length]).unwrap();
                    }
                }
                ends.state.publish(&state);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, thread: Some(thread), path: server.path().to_owned(), _server: server, bus }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Cycle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn description() -> Description {
    let axis = |name: &str| AxisDescription::new(name, CyclicMode::Velocity, 20.0, 5.0);
    let signal = |name: &str, sub_device: &str, kind, direction| SignalDescription {
        name: name.into(),
        sub_device: sub_device.into(),
        kind,
        direction,
        named: true,
        ..SignalDescription::default()
    };
    let forces = ["force.x", "force.y", "force.z", "torque.x", "torque.y", "torque.z"];
    let forces = forces.map(|name| signal(name, "foot", ValueKind::Real, Direction::Input));
    Description {
        sub_devices: vec!["drive".into()],
        signals: [SignalDescription {
            writer: Some(OUTSIDE.into()),
            ..signal("lamp", "lamps", ValueKind::Bool, Direction::Output)
        }]
        .into_iter()
        .chain(forces)
        .collect(),
        sensors: vec![SensorDescription {
            name: "left_foot".into(),
            kind: SensorKind::ForceTorque,
            frame: "sole".into(),
            signals: (1..7).collect(),
        }],
        robot: "base".into(),
        period_ns: 1_000_000,
        axes: ["left", "right"].map(axis).to_vec(),
        controllers: vec![ControllerDescription {
            name: "drive".into(),
            kind: Some(ControllerKind::DiffDrive),
            axes: vec![0, 1],
        }],
        frames: vec![FrameDescription {
            name: "laser".into(),
            parent: "base_link".into(),
            translation: [0.25, 0.0, 0.5],
            rotation: [0.0, 0.0, 1.0, 0.0],
        }],
        base: Some(BaseDescription {
            kind: BaseKind::Differential,
            velocity_limit: 1.0,
            yaw_limit: 2.0,
            odometry_frame: "odom".into(),
            base_frame: "base_link".into(),
            wheels: Vec::new(),
        }),
        ..Description::default()
    }
}

/// `onbeat-ros2`; dropping it kills it.
pub struct Node {
    process: Child,
    log: PathBuf,
}

impl Node {
    pub fn start(folder: &Path, ipc: &Path, domain: u16) -> Self {
        Self::with(folder, ipc, domain, &[])
    }

    /// Starts it with further arguments.
    pub fn with(folder: &Path, ipc: &Path, domain: u16, more: &[&str]) -> Self {
        Self::from_command(folder, Self::command(ipc, domain, more))
    }

    /// The command line that starts it.
    pub fn command(ipc: &Path, domain: u16, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat-ros2"));
        command.arg("--ipc").arg(ipc).args(["--domain", &domain.to_string()]).args(more);
        command
    }

    /// Starts it by this command line.
    pub fn from_command(folder: &Path, mut command: Command) -> Self {
        let log = folder.join("onbeat-ros2.log");
        let file = std::fs::File::create(&log).unwrap();
        let process = command.stdin(Stdio::null()).stderr(file).spawn().unwrap();
        Self { process, log }
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends SIGTERM; true if it ends without an error.
    pub fn ends(&mut self) -> bool {
        self.signal(rustix::process::Signal::TERM);
        until("the node's end", || self.process.try_wait().unwrap()).success()
    }

    /// Suspends it as Ctrl-Z, a debugger or a sleeping machine does, and resumes it.
    pub fn is_suspended(&self) {
        self.is_suspended_for(Duration::ZERO);
    }

    /// The same for some time.
    pub fn is_suspended_for(&self, time: Duration) {
        self.stops();
        std::thread::sleep(time);
        self.goes_on();
    }

    /// Stops it until [`Node::goes_on`].
    pub fn stops(&self) {
        self.signal(rustix::process::Signal::STOP);
        until("it stands", || self.about("stat").contains(") T ").then_some(()));
    }

    pub fn goes_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), signal).unwrap();
    }

    /// Clock ticks of CPU time that it has used.
    pub fn ticks(&self) -> u64 {
        let stat = self.about("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Resident memory, bytes.
    pub fn memory(&self) -> u64 {
        let status = self.about("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Contents of a file in its folder in /proc.
    pub fn about(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap()
    }

    /// Waits until it has logged these words so many times.
    pub fn says(&mut self, words: &str, times: usize) {
        until(&format!("{words:?}, {times} times"), || {
            assert_eq!(self.process.try_wait().unwrap(), None, "it ended by itself: {}", self.said());
            (self.said().matches(words).count() >= times).then_some(())
        });
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A ROS 2 peer.
pub struct Peer {
    pub participant: DomainParticipant,
    publisher: rustdds::Publisher,
    subscriber: rustdds::Subscriber,
}

impl Peer {
    pub fn join(domain: u16) -> Self {
        Self::join_over(domain, [127, 0, 0, 1])
    }

    /// A peer that uses the interface with this address only.
    pub fn join_over(domain: u16, address: [u8; 4]) -> Self {
        let networks = [std::net::IpAddr::from(address)];
        let participant =
            DomainParticipantBuilder::new(domain).with_only_networks(networks).build().unwrap();
        let default = QosPolicyBuilder::new().build();
        Self {
            publisher: participant.create_publisher(&default).unwrap(),
            subscriber: participant.create_subscriber(&default).unwrap(),
            participant,
        }
    }

    pub fn writer<T: Serialize>(&self, topic: &str, kind: &str) -> DataWriterCdr<T> {
        let qos = reliable();
        let topic =
            self.participant.create_topic(topic.into(), kind.into(), &qos, TopicKind::NoKey).unwrap();
        self.publisher.create_datawriter_no_key_cdr(&topic, Some(qos)).unwrap()
    }

    /// Writer of requests, once it knows the service: one request is enough.
    pub fn client<T: Serialize>(&self, topic: &str, kind: &str) -> DataWriterCdr<T> {
        let writer = self.writer(topic, kind);
        until("the service", || {
            matches!(writer.try_recv_status(), Some(DataWriterStatus::PublicationMatched { .. }))
                .then_some(())
        });
        writer
    }

    pub fn reader<T: DeserializeOwned + 'static>(&self, topic: &str, kind: &str) -> DataReaderCdr<T> {
        self.reader_of(topic, kind, reliable())
    }

    /// Reader that gets the last sample, however late it comes.
    pub fn latched_reader<T: DeserializeOwned + 'static>(
        &self,
        topic: &str,
        kind: &str,
    ) -> DataReaderCdr<T> {
        let latched = QosPolicyBuilder::new().durability(Durability::TransientLocal).build();
        self.reader_of(topic, kind, reliable().modify_by(&latched))
    }

    fn reader_of<T: DeserializeOwned + 'static>(
        &self,
        topic: &str,
        kind: &str,
        qos: QosPolicies,
    ) -> DataReaderCdr<T> {
        let topic =
            self.participant.create_topic(topic.into(), kind.into(), &qos, TopicKind::NoKey).unwrap();
        self.subscriber.create_datareader_no_key_cdr(&topic, Some(qos)).unwrap()
    }
}

/// Announces participants that do not exist to every port where a node of this host may listen.
/// Returns their bytes.
pub fn forge_participants(domain: u16, count: u32) -> u64 {
    let parameter = |id: u16, value: &[u8]| {
        let length = u16::try_from(value.len()).unwrap();
        [&id.to_le_bytes()[..], &length.to_le_bytes(), value].concat()
    };
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0;
    for number in 0..count {
        let prefix = [&number.to_le_bytes()[..], b"flooding"].concat();
        let locator =
            [&1_i32.to_le_bytes()[..], &7999_u32.to_le_bytes(), &[0; 12], &[127, 0, 0, 1]].concat();
        let forever = [&i32::MAX.to_le_bytes()[..], &u32::MAX.to_le_bytes()].concat();
        let data = [
            parameter(0x15, &[2, 3, 0, 0]),
            parameter(0x16, &[1, 15, 0, 0]),
            parameter(0x50, &[&prefix[..], &[0, 0, 1, 0xC1]].concat()),
            parameter(0x32, &locator),
            parameter(0x31, &locator),
            parameter(0x58, &0xFC3F_u32.to_le_bytes()),
            parameter(0x02, &forever),
            vec![1, 0, 0, 0],
        ]
        .concat();
        let heads = [&[0, 0, 16, 0][..], &[0, 0, 1, 0xC7], &[0, 1, 0, 0xC2], &[0, 0, 0, 0, 1, 0, 0, 0]];
        let body = [&heads.concat()[..], &[0, 3, 0, 0], &data].concat();
        let length = u16::try_from(body.len()).unwrap().to_le_bytes();
        let datagram = [&b"RTPS\x02\x03\x01\x0F"[..], &prefix, &[0x15, 5], &length, &body].concat();
        for participant in 0..3 {
            let port = 7410 + 250 * domain + 2 * participant;
            sent += socket.send_to(&datagram, ("127.0.0.1", port)).unwrap_or(0) as u64;
        }
        // A receiver that gets no turn at all proves nothing.
        if number % 256 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    sent
}

fn reliable() -> QosPolicies {
    QosPolicyBuilder::new()
        .reliability(Reliability::Reliable { max_blocking_time: rustdds::Duration::from_millis(100) })
        .durability(Durability::Volatile)
        .history(History::KeepLast { depth: 10 })
        .build()
}

/// Retries until `ready` returns a value, for a minute at most.
pub fn until<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
