//! Interface of a robot with two axes, in a folder of the test's own.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use onbeat_ipc::description::{AxisDescription, Description, OUTSIDE, SignalDescription};
use onbeat_ipc::server::Builder;
use onbeat_ipc::state::State;
use types::CyclicMode;
use types::signal::{Flow, OutputBehaviour, Writer};
use types::{Signal, ValueType};

/// Folder for sockets, removed on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onbeat-ipc-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.sock"))
    }

    pub(crate) fn builder(&self, name: &str) -> Builder {
        let mut builder = Builder::new(name, &description());
        builder.folder(&self.0).forces(&signals());
        builder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An input, and two outputs that are set from outside.
pub(crate) fn signals() -> Vec<Signal> {
    let outside = Flow::Output(OutputBehaviour { writer: Writer::Outside, ..OutputBehaviour::default() });
    let signal = |name: &str, value_type, flow: &Flow| Signal {
        name: name.to_owned(),
        sub_device: 0,
        bit_offset: 0,
        value_type,
        unit: String::new(),
        scaling: None,
        range: None,
        flow: flow.clone(),
    };
    vec![
        signal("lamp", ValueType::Bool, &outside),
        signal("door", ValueType::Bool, &Flow::Input),
        signal("valve", ValueType::Signed(16), &outside),
    ]
}

pub(crate) fn description() -> Description {
    let described = |signal: &Signal| SignalDescription {
        name: signal.name.clone(),
        kind: signal.kind(),
        writer: signal.is_commanded().then(|| OUTSIDE.to_owned()),
        ..SignalDescription::default()
    };
    let axis = |name: &str| AxisDescription::new(name, CyclicMode::Position, 1.0, 1.0);
    Description {
        robot: "two axes".into(),
        axes: vec![axis("left"), axis("right")],
        signals: signals().iter().map(described).collect(),
        ..Description::default()
    }
}

/// State in which every part encodes the number of its cycle.
pub(crate) fn state(cycle: u64) -> State {
    let mut state = State { cycle, release_ns: cycle.wrapping_mul(7), ..State::default() };
    state.bus.frames_sent = cycle ^ 0x5A5A;
    state.axes = vec![onbeat_ipc::state::Axis::default(); 2];
    state.signals = vec![onbeat_ipc::state::Signal::default(); 3];
    for axis in &mut state.axes {
        axis.position = cycle as f64;
        axis.target_effort = -(cycle as f64);
    }
    state
}

/// Waits for something that other threads or processes bring about.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "still not: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
