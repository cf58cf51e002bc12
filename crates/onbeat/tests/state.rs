//! Positions and history that a robot keeps over restarts, in its state directory.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onbeat::ipc::state::DriveState;
use onbeat::motion::supervision::StopReason;
use onbeat::state::{Folder, History, Kept, KeptKind, PositionMemory};
use onbeat::{
    Control, Controller, CycleInfo, Finding, Io, Notice, Progress, Reporter, Request, Robot, StopHandle,
    Summary,
};

/// One drive with limits and a position memory.
fn text(keys: &str) -> String {
    let target = "{ index = 0x607A, bits = 32, name = \"target position\" },";
    // A homing needs the mode of operation.
    let mode = "{ index = 0x6060, bits = 8, name = \"modes of operation\" },";
    let text = include_str!("../../../examples/first-drive.toml");
    let text = text.replace(target, &format!("{target}\n{mode}"));
    let actual = "{ index = 0x6064, bits = 32, name = \"position actual value\" },";
    let shown = "{ index = 0x6061, bits = 8, name = \"modes of operation display\" },";
    let text = text.replace(actual, &format!("{actual}\n{shown}"));
    let limits = "limits = { velocity = 6.0,";
    assert!(text.contains(limits));
    let memory = "position_memory = true\nlimits = { position = [-3.0, 3.0], velocity = 6.0,";
    format!(
        "{}\n",
        text.replace(limits, memory).replace("mode = \"csp\"", &format!("mode = \"csp\"\n{keys}"))
    )
}

const MULTI_TURN: &str = "encoder = \"multi_turn\"\nencoder_range = 4096\nhoming = { offset = 0.0 }";

const INCREMENTAL: &str = "encoder = \"incremental\"\nencoder_side = \"load\"\nhoming = { method = 33, position = 0.0, required = false }";

/// A state directory of one test, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onbeat-kept-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn robot(&self) -> PathBuf {
        Folder::path_of(&self.0, "first-drive", true)
    }

    fn memory_file(&self) -> PathBuf {
        self.robot().join("position-shaft.json")
    }

    fn memory(&self) -> PositionMemory {
        serde_json::from_str(&fs::read_to_string(self.memory_file()).unwrap()).unwrap()
    }

    /// Puts the flag `at_rest` with this position into the memory.
    fn remember(&self, counts: i32) {
        let memory = PositionMemory { at_rest: Some(counts), ..self.memory() };
        fs::write(self.memory_file(), serde_json::to_string(&memory).unwrap()).unwrap();
    }

    fn history(&self) -> Vec<Kept> {
        let folder = Folder::look(&self.0, "first-drive", true).unwrap().unwrap();
        History::read(&folder).unwrap().events().cloned().collect()
    }

    fn kinds(&self) -> Vec<KeptKind> {
        self.history().iter().map(|it| it.event).collect()
    }

    fn run(&self, keys: &str) -> Summary {
        self.run_text(&text(keys))
    }

    fn run_text(&self, text: &str) -> Summary {
        let robot = Robot::parse(text, "memory.toml").unwrap().without_ipc().cycles(400);
        robot.state_directory(&self.0).run(Holds { wish: Arc::new(AtomicBool::new(true)) }).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Enables the axis at its position, while commanded to.
struct Holds {
    wish: Arc<AtomicBool>,
}

impl Controller for Holds {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let wish = self.wish.load(Ordering::Relaxed);
        commands[0].request = if wish { Request::Enable } else { Request::Disable };
        if let onbeat::AxisPhase::HoldingAt(place) = reports[0].feedback.phase {
            commands[0].setpoint.position = place;
        }
    }
}

/// Reason that its axis is unreferenced, with the positions before and now.
fn unreferenced(summary: &Summary) -> Option<(StopReason, Option<[f64; 2]>)> {
    summary.findings.iter().find_map(|it| match *it {
        Finding::AxisStopped { axis: 0, reason, because, .. } if reason.is_unreferenced() => {
            Some((reason, because.moved.map(|it| it.map(|it| it.0))))
        }
        _ => None,
    })
}

fn is_unreferenced(summary: &Summary) -> bool {
    unreferenced(summary).is_some()
}

// feature(axes): `position_memory`: a position saved at standstill is compared at the next start
#[test]
fn a_position_that_matches_its_memory_is_known() {
    for (name, keys) in [("multi", MULTI_TURN), ("incremental", INCREMENTAL)] {
        let directory = Directory::new(&format!("matches-{name}"));
        let first = directory.run(keys);
        assert!(is_unreferenced(&first), "{name}: no memory yet: {:?}", first.findings);
        assert_eq!(directory.memory().at_rest, None, "an unknown position is not kept");
        let position = 0;
        directory.remember(position);
        for _ in 0..2 {
            let ran = directory.run(keys);
            assert!(ran.went_well(), "{name}: {:?}", ran.findings);
            let axis = ran.axis("shaft").unwrap();
            assert!(axis.was_enabled, "{name}");
            assert_eq!(axis.homed, name == "multi", "a memory homes no incremental encoder");
            // It is kept again at the end.
            assert!(directory.memory().at_rest.is_some_and(|it| (it - position).abs() < 100), "{name}");
        }
    }
}

// feature(axes): an absolute encoder gives the position within the limits, whatever turn its drive counts from
#[test]
fn a_run_begins_at_the_position_within_the_limits() {
    // The drive reads 0, and its encoder one turn of the load.
    let axis = |offset: f64| {
        let keys = "encoder = \"single_turn\"\nencoder_side = \"load\"\nhoming = { offset = OFFSET }";
        let text = text(&keys.replace("OFFSET", &format!("{offset:?}")));
        let limited = text.replace("position = [-3.0, 3.0]", "position = [0.0, 5.5]");
        assert!(limited != text);
        limited
    };
    let counts = 131_072;
    let turn = std::f64::consts::TAU;
    for (offset, position) in [(-0.83, turn - 0.83), (0.5, 0.5), (8.0, 8.0 - turn)] {
        let without_memory = axis(offset).replace("position_memory = true", "");
        let directory = Directory::new(&format!("within-{offset}"));
        let alone = directory.run_text(&without_memory);
        directory.run_text(&axis(offset));
        directory.remember(counts);
        let kept = [(), ()].map(|()| directory.run_text(&axis(offset)));
        for ran in std::iter::once(&alone).chain(&kept) {
            let shaft = ran.axis("shaft").unwrap();
            assert!(ran.went_well() && shaft.homed && shaft.was_enabled, "{offset}: {:?}", ran.findings);
            let away = (shaft.feedback.position.0 - position).abs();
            assert!(away < 1e-3, "{offset}: {:?}", shaft.feedback.position);
        }
    }
    // Between the limits lies no position: the axis may be beyond either of them.
    let outside = Directory::new("within-none").run_text(&axis(-0.4).replace("position_memory = true", ""));
    let shaft = outside.axis("shaft").unwrap();
    assert_eq!((shaft.stop, shaft.homed), (Some(StopReason::UnreferencedStart), false));
    assert!(!shaft.was_enabled && !outside.went_well());
}

// feature(axes): `position_memory`: another position, serial number or scale, or no flag, is unreferenced
#[test]
fn a_memory_that_does_not_match_leaves_it_unreferenced() {
    let directory = Directory::new("differs");
    directory.run(MULTI_TURN);
    let counts = 131_072;
    let spoil = |change: &dyn Fn(&mut PositionMemory)| {
        directory.remember(0);
        let mut memory = directory.memory();
        change(&mut memory);
        fs::write(directory.memory_file(), serde_json::to_string(&memory).unwrap()).unwrap();
        directory.run(MULTI_TURN)
    };
    assert!(spoil(&|_| ()).went_well());
    type Change<'a> = &'a dyn Fn(&mut PositionMemory);
    use StopReason::{UnreferencedInUse, UnreferencedMemory, UnreferencedMoved};
    let changes: [(&str, StopReason, Change<'_>); 6] = [
        ("half a turn", UnreferencedMoved, &|it| it.at_rest = Some(counts / 2)),
        ("one turn", UnreferencedMoved, &|it| it.at_rest = Some(counts)),
        ("no flag", UnreferencedInUse, &|it| it.at_rest = None),
        ("another serial number", UnreferencedMemory, &|it| it.drive[2] ^= 1),
        ("another encoder", UnreferencedMemory, &|it| it.encoder = "single_turn".to_owned()),
        ("another scale", UnreferencedMemory, &|it| it.scale = "0".repeat(64)),
    ];
    for (what, expected, change) in changes {
        let ran = spoil(change);
        let (reason, moved) = unreferenced(&ran).unwrap_or_else(|| panic!("{what}: {:?}", ran.findings));
        assert_eq!(reason, expected, "{what}");
        assert!(!ran.axis("shaft").unwrap().was_enabled, "{what}");
        let turns = match what {
            "half a turn" => Some(0.5),
            "one turn" => Some(1.0),
            _ => None,
        };
        let before_and_now = moved.zip(turns).map(|([before, now], turns)| {
            (before - turns * std::f64::consts::TAU).abs() < 0.01 && now.abs() < 0.01
        });
        assert_eq!(before_and_now, turns.map(|_| true), "{what}: {moved:?}");
    }
    // The file of the robot itself, with another gear and another offset.
    for (from, to) in [("gear_ratio = 1.0 ", "gear_ratio = 2.0 "), ("offset = 0.0", "offset = 0.1")] {
        directory.run(MULTI_TURN);
        directory.remember(0);
        let changed = text(MULTI_TURN).replace(from, to);
        assert!(changed.contains(to));
        assert!(is_unreferenced(&directory.run_text(&changed)), "{to}");
    }
}

#[test]
fn a_broken_memory_is_a_sentence_and_leaves_it_unreferenced() {
    let directory = Directory::new("broken");
    directory.run(MULTI_TURN);
    for garbage in ["", "{", "null", "[1,2]", "\u{0}\u{0}", "{\"drive\":[1,2,3]}"] {
        fs::write(directory.memory_file(), garbage).unwrap();
        let (ran, sentences) = with_sentences(&directory.0);
        assert!(is_unreferenced(&ran), "{garbage:?}: {:?}", ran.findings);
        assert!(
            sentences.iter().any(|it| it.contains("position-shaft.json")),
            "{garbage:?}: {sentences:?}"
        );
    }
}

struct Sentences(Vec<String>);

impl Reporter for Sentences {
    fn notice(&mut self, notice: &Notice) {
        if let Notice::State(sentence) = notice {
            self.0.push(sentence.clone());
        }
    }
}

fn with_sentences(directory: &Path) -> (Summary, Vec<String>) {
    let mut reporter = Sentences(Vec::new());
    let robot = Robot::parse(&text(MULTI_TURN), "memory.toml").unwrap().without_ipc().cycles(200);
    let holds = Holds { wish: Arc::new(AtomicBool::new(true)) };
    let ran = robot.state_directory(directory).run_by(Control::own(holds), &mut reporter).unwrap();
    (ran, reporter.0)
}

// feature(program): a state directory that cannot be used is reported, and the run continues
#[test]
fn a_directory_that_cannot_be_used_stops_no_run() {
    let (ran, sentences) = with_sentences(Path::new("/dev/null/kept"));
    assert!(is_unreferenced(&ran), "its position is not known: {:?}", ran.findings);
    assert_eq!(ran.cycles(), 200);
    assert!(sentences.len() == 1 && sentences[0].starts_with("/dev/null/kept"), "{sentences:?}");
    let directory = Directory::new("in-use");
    let _held = Folder::open(&directory.0, "first-drive", true).unwrap();
    let (_, sentences) = with_sentences(&directory.0);
    assert!(sentences.iter().any(|it| it.contains("another run")), "{sentences:?}");
}

/// Copies the memory while the drive is enabled, and while it is disabled, as a loss of power of
/// the computer would leave it.
struct PowerLosses {
    file: PathBuf,
    wish: Arc<AtomicBool>,
    stop: StopHandle,
    /// Looks since the wish was changed.
    looks: u64,
    changes: u64,
    copies: Arc<AtomicU64>,
    wrong: Vec<String>,
    disabled: Vec<String>,
}

impl Reporter for PowerLosses {
    fn progress(&mut self, progress: &Progress<'_>) {
        let Some(axis) = progress.status.axes.first() else { return };
        let wish = self.wish.load(Ordering::Relaxed);
        let enabled = axis.state == Some(DriveState::OperationEnabled);
        self.looks += 1;
        if let Ok(copy) = fs::read_to_string(&self.file) {
            let at_rest = serde_json::from_str::<PositionMemory>(&copy).map(|it| it.at_rest);
            match &at_rest {
                Err(error) => self.wrong.push(format!("torn: {error}: {copy:?}")),
                // It stays enabled: only here is the wish changed.
                Ok(Some(_)) if wish && enabled => self.wrong.push("a flag while enabled".to_owned()),
                Ok(_) => {}
            }
            if !wish && at_rest.is_ok_and(|it| it.is_some()) {
                self.disabled.push(copy);
            }
            self.copies.fetch_add(1, Ordering::Relaxed);
        }
        if self.looks > 12 && enabled == wish {
            (self.looks, self.changes) = (0, self.changes + 1);
            self.wish.store(!wish, Ordering::Relaxed);
        }
        if self.changes >= 10 {
            self.stop.stop();
        }
    }
}

// feature(axes): `position_memory` never records "at rest, disabled" while the drive is enabled
#[test]
fn the_memory_is_right_at_every_loss_of_power() {
    let directory = Directory::new("power");
    directory.run(MULTI_TURN);
    directory.remember(0);
    let (wish, stop) = (Arc::new(AtomicBool::new(true)), StopHandle::new());
    let mut reporter = PowerLosses {
        file: directory.memory_file(),
        wish: Arc::clone(&wish),
        stop: stop.clone(),
        looks: 0,
        changes: 0,
        copies: Arc::new(AtomicU64::new(0)),
        wrong: Vec::new(),
        disabled: Vec::new(),
    };
    let robot = Robot::parse(&text(MULTI_TURN), "memory.toml").unwrap().without_ipc().stop(&stop);
    let robot = robot.state_directory(&directory.0);
    let ran = robot.run_by(Control::own(Holds { wish }), &mut reporter).unwrap();
    assert!(reporter.wrong.is_empty(), "{:?}", reporter.wrong);
    assert!(reporter.copies.load(Ordering::Relaxed) > 50 && !reporter.disabled.is_empty());
    assert!(ran.findings.is_empty(), "{:?}", ran.findings);
    // What is left of a loss of power while disabled is a known position.
    let kept = reporter.disabled.last().unwrap();
    fs::write(directory.memory_file(), kept).unwrap();
    assert!(directory.run(MULTI_TURN).went_well());
}

// feature(program): the state directory keeps the first cause of a stop, and a changed robot file, over restarts
#[test]
fn the_history_is_kept_over_restarts() {
    use KeptKind::{FileChanged, NotEnded, RunBegan, RunEnded, Stop};
    let directory = Directory::new("history");
    directory.run(MULTI_TURN);
    assert_eq!(directory.kinds(), [RunBegan, Stop, RunEnded]);
    let history = directory.history();
    assert!(history[1].sentence.contains("position memory is missing"), "{}", history[1].sentence);
    // A run that was killed leaves its mark.
    let run = directory.robot().join("run.json");
    let mark = fs::read_to_string(&run).unwrap();
    fs::write(&run, mark.replace("true", "false")).unwrap();
    directory.remember(0);
    directory.run_text(&format!("# changed\n{}", text(MULTI_TURN)));
    assert_eq!(directory.kinds()[3..], [NotEnded, FileChanged, RunBegan, RunEnded]);
    let changed = &directory.history()[4].sentence;
    assert!(changed.starts_with("the robot file was changed: SHA-256 "), "{changed}");
    // It stays bounded, whatever happens.
    let lines: String = (0..5_000).map(|_| serde_json::to_string(&history[0]).unwrap() + "\n").collect();
    fs::write(directory.robot().join("history.jsonl"), &lines[..60_000]).unwrap();
    let (_, sentences) = with_sentences(&directory.0);
    assert!(sentences.iter().any(|it| it.contains("history.jsonl")), "a torn line: {sentences:?}");
    let folder = Folder::look(&directory.0, "first-drive", true).unwrap().unwrap();
    assert!(History::read(&folder).unwrap().events().count() <= 200);
}
