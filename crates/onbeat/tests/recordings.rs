//! Recordings compared with the values that the controller had and set in each cycle.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use onbeat::ipc::client::Client;
use onbeat::{
    Control, Controller, ControllerOutput, CycleInfo, Error, ExternalCommand, FaultRates, Faults, Input,
    Io, Notice, Output, RecordedSignals, Reporter, Robot, SignalError, Signals, StopHandle, Value,
};
use record::process_data::{FORCED, of_axis};
use record::{Recording, cycles};

/// Values of one cycle by column; none, where one did not come in.
type Seen = BTreeMap<String, Option<f64>>;

/// Values of each cycle by its number.
type Log = Arc<Mutex<BTreeMap<u64, Seen>>>;

/// Notes what a controller within it has and sets.
struct Logging<C> {
    inner: C,
    /// Names, which are looked for as bits, else as numbers.
    inputs: &'static [&'static str],
    outputs: &'static [&'static str],
    /// Names of the axes.
    axes: Vec<String>,
    bits: (Vec<Input<bool>>, Vec<Output<bool>>),
    numbers: (Vec<Input<f64>>, Vec<Output<f64>>),
    log: Log,
}

impl<C> Logging<C> {
    fn new(
        inner: C,
        robot: &Robot,
        inputs: &'static [&'static str],
        outputs: &'static [&'static str],
    ) -> Self {
        let axes = robot.axes().map(str::to_owned).collect();
        let (bits, numbers) = Default::default();
        Self { inner, inputs, outputs, axes, bits, numbers, log: Log::default() }
    }
}

impl<C: Controller> Controller for Logging<C> {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.bits.0 = self.inputs.iter().filter_map(|name| signals.input(name).ok()).collect();
        self.bits.1 = self.outputs.iter().filter_map(|name| signals.output(name).ok()).collect();
        let is_bit =
            |name: &&&str| signals.input::<bool>(name).is_ok() || signals.output::<bool>(name).is_ok();
        let (inputs, outputs) = (self.inputs.iter(), self.outputs.iter());
        self.numbers.0 =
            inputs.filter(|it| !is_bit(it)).map(|it| signals.input(it)).collect::<Result<_, _>>()?;
        self.numbers.1 =
            outputs.filter(|it| !is_bit(it)).map(|it| signals.output(it)).collect::<Result<_, _>>()?;
        self.inner.init(signals)
    }

    fn command(&mut self, asked: &ExternalCommand) {
        self.inner.command(asked);
    }

    fn output(&self) -> ControllerOutput {
        self.inner.output()
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let number = |bit: bool| f64::from(u8::from(bit));
        // Set to something else in each cycle, and read back by a simulated input in one of the
        // next.
        for (index, &output) in self.bits.1.iter().enumerate() {
            io.set(output, info.cycle >> index & 1 != 0);
        }
        for &output in &self.numbers.1 {
            io.set(output, (info.cycle % 97) as f64 / 9.7);
        }
        self.inner.update(info, io);
        let mut seen = Seen::new();
        let (mut bits, mut numbers) = (self.bits.0.iter(), self.numbers.0.iter());
        for &name in self.inputs {
            let input = |value, fresh, forced| (fresh || forced).then_some(value);
            // Bits come first in a robot's list here.
            let value = match bits.next() {
                Some(&it) => input(number(io.get(it)), io.is_fresh(it), io.is_forced(it)),
                None => numbers.next().and_then(|&it| input(io.get(it), io.is_fresh(it), io.is_forced(it))),
            };
            seen.insert(format!("signal:{name}"), value);
        }
        let (mut bits, mut numbers) = (self.bits.0.iter(), self.numbers.0.iter());
        for &name in self.inputs {
            let forced = match bits.next() {
                Some(&it) => Some(io.is_forced(it)),
                None => numbers.next().map(|&it| io.is_forced(it)),
            };
            seen.insert(format!("forced:{name}"), forced.map(number));
        }
        let bits = self.bits.1.iter().map(|&it| number(io.sent(it)));
        let outputs: Vec<f64> = bits.chain(self.numbers.1.iter().map(|&it| io.sent(it))).collect();
        seen.extend(
            self.outputs.iter().zip(outputs).map(|(name, value)| (format!("signal:{name}"), Some(value))),
        );
        for (axis, name) in self.axes.iter().enumerate() {
            let feedback = io.axis(axis).unwrap().feedback;
            let numbers = [feedback.position.0, feedback.velocity.0, feedback.torque.0];
            seen.extend(of_axis(name).zip(numbers.map(|it| feedback.fresh.then_some(it))));
        }
        self.log.lock().unwrap().insert(info.cycle, seen);
    }
}

/// Does nothing more.
struct Nothing;

impl Controller for Nothing {}

fn example(name: &str) -> Robot {
    Robot::load(format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("onbeat-recordings-{}-{name}", std::process::id()))
}

fn read(path: &Path) -> Recording {
    let recording = Recording::read(BufReader::new(File::open(path).unwrap())).unwrap();
    fs::remove_file(path).unwrap();
    recording
}

/// Compares every row with the values seen in its cycle; returns the number of equal values, and of
/// missing ones.
fn compare(recording: &Recording, log: &Log) -> (usize, usize) {
    let log = log.lock().unwrap();
    let cycles: Vec<i64> = recording.column("cycle").unwrap().collect();
    let columns: Vec<&String> = recording.header.columns[cycles::COLUMNS.len()..].iter().collect();
    let (mut there, mut not) = (0, 0);
    for (cycle, row) in cycles.iter().zip(recording.process_data_rows()) {
        let seen = &log[&u64::try_from(*cycle).unwrap()];
        let found: BTreeMap<&String, f64> = columns.iter().copied().zip(row.iter().copied()).collect();
        for (column, value) in seen {
            assert_eq!(
                found[column].to_bits(),
                value.unwrap_or(f64::NAN).to_bits(),
                "{column} in cycle {cycle}"
            );
            there += usize::from(value.is_some());
            not += usize::from(value.is_none());
        }
    }
    (there, not)
}

/// A link that loses some replies.
fn lossy() -> Faults {
    let replies = FaultRates { loss: 0.05, ..FaultRates::default() };
    Faults { requests: FaultRates::default(), replies, seed: 3 }
}

// feature(measure): recordings with signals and axes, cycle by cycle
// feature(signals): in recordings, with units, fresh or not
#[test]
fn recording_has_the_controllers_signals_and_axes() {
    const INPUTS: [&str; 10] = [
        "door closed",
        "tank level",
        "valve pressure",
        "spindle turned",
        "force.x",
        "force.y",
        "force.z",
        "torque.x",
        "torque.y",
        "torque.z",
    ];
    let (robot, path) = (example("io-station").without_ipc().faults(lossy()), file("io-station"));
    let controller = Logging::new(robot.controllers().unwrap(), &robot, &INPUTS, &["lamp green", "valve"]);
    let log = Arc::clone(&controller.log);
    let summary = robot.cycles(600).record(&path).run(controller).unwrap();
    assert!(summary.files[0].is_ok(), "{:?}", summary.files);
    let recording = read(&path);
    assert_eq!(recording.len(), 600);
    let signals = INPUTS.into_iter().chain(["lamp green", "lamp red", "valve"]);
    let mut expected: Vec<String> =
        signals.flat_map(|name| [format!("signal:{name}"), format!("forced:{name}")]).collect();
    expected
        .extend(of_axis("spindle").chain([FORCED.to_owned()]).chain(cycles::COLUMNS.map(str::to_owned)));
    let mut columns = recording.header.columns.clone();
    columns.sort();
    expected.sort();
    assert_eq!(columns, expected);
    let (there, not) = compare(&recording, &log);
    assert!(there > 600 * 10 && not > 10, "{there} values, {not} that did not come in");
    // The valve changes, and what it does to the pressure is in the recording, too.
    for column in
        ["signal:valve", "signal:valve pressure", "axis:spindle.position", "axis:spindle.target_position"]
    {
        let values = || recording.process_data(column).unwrap().filter(|it| !it.is_nan());
        let span = values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min);
        assert!(span > 1e-3, "{column}: {span}");
    }
    let described = recording.header.facts["signals"].as_array().unwrap();
    let pressure = described.iter().find(|it| it["name"] == "valve pressure").unwrap();
    assert_eq!(
        (&pressure["unit"], &pressure["type"], &pressure["direction"]),
        (&"bar".into(), &"int16".into(), &"input".into())
    );
    assert_eq!((&pressure["scale"], &pressure["sub_device"]), (&0.000_305_185_09.into(), &"probes".into()));
    assert_eq!(recording.end["cycles_without_process_data"], 0);
}

// feature(measure): recordings with signals and axes, cycle by cycle
#[test]
fn the_last_row_is_of_the_last_cycle_before_the_stop() {
    for by_hand in [false, true] {
        let (robot, path, stop) = (example("io-station").without_ipc(), file("last"), StopHandle::new());
        let robot = robot.record(&path).stop(&stop);
        let robot = if by_hand { robot } else { robot.cycles(200) };
        let asking = thread::spawn(move || {
            thread::sleep(Duration::from_secs(2));
            stop.stop();
        });
        robot.run(Nothing).unwrap();
        asking.join().unwrap();
        let recording = read(&path);
        assert!(by_hand || recording.len() == 200, "{}", recording.len());
        // The valve is open at first, and closes with the stop.
        let valve: Vec<f64> = recording.process_data("signal:valve").unwrap().collect();
        assert!(valve.len() > 100 && valve.iter().all(|it| (it - 2.5).abs() < 0.01), "{valve:?}");
    }
}

// feature(measure): recordings with signals and axes, cycle by cycle
#[test]
fn machine_without_axes_is_recorded_with_forces() {
    const INPUTS: [&str; 3] = ["part at start", "part at end", "stop"];
    let (ipc, path) = (file("door"), file("conveyor"));
    fs::create_dir_all(&ipc).unwrap();
    let socket = ipc.join("conveyor.sock");
    let robot = example("conveyor").ipc(socket.to_str().unwrap());
    let controller = Logging::new(Nothing, &robot, &INPUTS, &["belt", "light green", "light red"]);
    let log = Arc::clone(&controller.log);
    let cycles = Arc::clone(&log);
    let forcing = thread::spawn(move || {
        // Forces the first input, whatever comes in.
        while cycles.lock().unwrap().len() < 600 {
            if let Ok(client) = Client::open(&socket) {
                let place =
                    client.description().signals.iter().position(|it| it.name == INPUTS[0]).unwrap();
                let _ = client.force(place, Value::Bool(true), Duration::from_millis(50));
            }
            thread::sleep(Duration::from_millis(150));
        }
    });
    robot.cycles(600).record(&path).run(controller).unwrap();
    forcing.join().unwrap();
    fs::remove_dir_all(&ipc).unwrap();
    let recording = read(&path);
    let (there, not) = compare(&recording, &log);
    assert!(there + not == 600 * (6 + 3) && there > 600 * 3, "{there} {not}");
    let forced: Vec<f64> = recording.process_data(FORCED).unwrap().collect();
    let start = recording.process_data("signal:part at start").unwrap();
    let of_start: Vec<f64> = recording.process_data("forced:part at start").unwrap().collect();
    assert_eq!(of_start, forced, "it is the one that is forced");
    assert!(recording.process_data("forced:stop").unwrap().all(|it| it == 0.0));
    let held = forced.iter().zip(start).filter(|(forced, _)| **forced == 1.0);
    let held: Vec<f64> = held.map(|(_, value)| value).collect();
    assert!(held.len() > 10 && held.len() < 600 && held.iter().all(|&value| value == 1.0), "{held:?}");
}

// feature(measure): recordings with signals and axes, cycle by cycle
#[test]
fn recording_has_requested_process_data() {
    let columns = |which| {
        let (robot, path) = (example("io-station").without_ipc(), file("which"));
        robot.cycles(20).record(&path).recorded_signals(which).run(Nothing).unwrap();
        let recording = read(&path);
        (recording.header.columns.clone(), recording.header.facts.get("signals").cloned(), recording.end)
    };
    let (none, described, end) = columns(RecordedSignals::None);
    assert_eq!((none, described), (cycles::COLUMNS.map(str::to_owned).to_vec(), None));
    assert!(!end.contains_key("cycles_without_process_data"));
    let (all, described, _) = columns(RecordedSignals::All);
    for column in
        ["signal:spindle.statusword", "signal:lamps.0x7000:01", "signal:force.x", "axis:spindle.torque"]
    {
        assert!(all.iter().any(|it| it == column), "{column}: {all:#?}");
    }
    let signals = all.iter().filter(|it| it.starts_with("signal:")).count();
    assert_eq!(described.unwrap().as_array().unwrap().len(), signals);
}

/// Counts its cycles.
struct Counting(Arc<AtomicU64>);

impl Controller for Counting {
    fn update(&mut self, _: CycleInfo, _: &mut Io<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// So many inputs that the ring for their values has space for some 1 600 cycles.
fn many_inputs() -> Robot {
    let mut text = "name = \"many\"\n[cycle]\nperiod = \"1ms\"\nprofile = \"none\"\n".to_owned();
    for sub_device in 0..10 {
        let simulate = "simulate = { kind = \"digital_inputs\", channels = 64 }";
        let _ = write!(text, "[[bus.sub_device]]\nname = \"inputs-{sub_device}\"\n{simulate}\n");
    }
    Robot::parse(&text, "many.toml").unwrap().without_ipc().recorded_signals(RecordedSignals::All)
}

// feature(measure): a slow disk costs signals of cycles, which are counted, and not the run
#[test]
fn slow_disk_drops_signals_but_keeps_timing() {
    const CYCLES: u64 = 3_000;
    let path = file("slow");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let cycles = Arc::new(AtomicU64::new(0));
    let (slow, from) = (Arc::clone(&cycles), path.clone());
    // A disk that takes nothing for most of the run, and then all.
    let disk = thread::spawn(move || {
        while slow.load(Ordering::Relaxed) < CYCLES - 300 {
            thread::sleep(Duration::from_millis(5));
        }
        Recording::read(BufReader::new(File::open(from).unwrap())).unwrap()
    });
    let summary = many_inputs().cycles(CYCLES).record(&path).run(Counting(cycles)).unwrap();
    let recording = disk.join().unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!((summary.cycles(), recording.len() as u64), (CYCLES, CYCLES));
    let forced: Vec<f64> = recording.process_data(FORCED).unwrap().collect();
    let without = forced.iter().filter(|it| it.is_nan()).count() as u64;
    assert!(without > 300 && without < CYCLES - 300, "{without}");
    assert!(forced[..300].iter().all(|it| !it.is_nan()), "the oldest are kept");
    assert_eq!(recording.end["cycles_without_process_data"], without);
    let empty = recording.process_data_rows().filter(|row| row.iter().all(|it| it.is_nan())).count() as u64;
    assert_eq!(empty, without, "all of a row or nothing");
    let Err(Error::Recording { source, .. }) = &summary.files[0] else { panic!("{:?}", summary.files) };
    let told = format!(
        "it was too slow; {CYCLES} cycles are in it ({without} without signals and axes), 0 are missing"
    );
    assert!(source.to_string().starts_with(&told), "{source}");
}

/// Panics with this when it is dropped, and before that in its last cycle, if it has one.
struct Panics {
    cycles: u64,
    last: Option<u64>,
    of: fn() -> Box<dyn std::any::Any + Send>,
}

impl Controller for Panics {
    fn update(&mut self, _: CycleInfo, _: &mut Io<'_>) {
        self.cycles += 1;
        if Some(self.cycles) == self.last {
            std::panic::resume_unwind((self.of)());
        }
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        std::panic::resume_unwind((self.of)());
    }
}

/// Panic with a value that panics in its turn.
struct Again;

impl Drop for Again {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("again"));
    }
}

struct Notices(Vec<Notice>);

impl Reporter for Notices {
    fn notice(&mut self, notice: &Notice) {
        self.0.push(notice.clone());
    }
}

// feature(measure): a recording is whole where the controller panics, in a cycle or when it is dropped
#[test]
fn a_recording_is_whole_where_the_controller_panics() {
    let words = || -> Box<dyn std::any::Any + Send> { Box::new("out of its depth") };
    let again = || -> Box<dyn std::any::Any + Send> { Box::new(Again) };
    for (name, last, of, message) in [
        ("panic", Some(400), words as fn() -> _, "out of its depth"),
        ("drop", None, words, "out of its depth"),
        ("again", Some(400), again, "without a word"),
        ("drop-again", None, again, "without a word"),
    ] {
        let path = file(name);
        let controller = Panics { cycles: 0, last, of };
        let mut notices = Notices(Vec::new());
        let robot = example("six-axis").without_ipc().cycles(1_000).record(&path);
        let Err(error) = robot.run_by(Control::own(controller), &mut notices) else { panic!("{name}") };
        assert!(
            matches!(&error, Error::ControllerPanicked { message: it } if it == message),
            "{name}: {error}"
        );
        let recording = read(&path);
        assert!(recording.complete && recording.len() > 100, "{name}: {}", recording.len());
        let told = format!("{} cycles recorded in {}", recording.len(), path.display());
        let is_told = |it: &Notice| matches!(it, Notice::Recording(words) if *words == told);
        assert!(notices.0.iter().any(is_told), "{name}: {:?}", notices.0);
    }
}
