//! `onbeat top`, with a cycle simulated by this test.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ipc::description::{AxisDescription, Description};
use ipc::server::{Builder, Endpoints, Server};
use ipc::state::{Axis, Bus, State, StopReason};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::common::{Running, finished, onbeat};
use crate::tmux::Tmux;
use types::CyclicMode;

/// A cycle of two axes in a separate folder.
struct Played {
    folder: PathBuf,
    ends: Endpoints,
    server: Option<Server>,
    state: State,
}

impl Played {
    fn new(name: &str) -> Self {
        Self::with_axes(name, &["left".to_owned(), "right".to_owned()])
    }

    fn with_axes(name: &str, axes: &[String]) -> Self {
        let folder = folder(name);
        let axis = |name: &str| AxisDescription::new(name, CyclicMode::Position, 1.0, 1.0);
        let description = Description {
            robot: "played".into(),
            period_ns: 1_000_000,
            axes: axes.iter().map(|name| axis(name)).collect(),
            ..Description::default()
        };
        let mut ipc = Builder::new("played", &description);
        ipc.folder(&folder);
        let (ends, server) = ipc.open().expect("an IPC");
        let axis = Axis { drive_state: 5, fresh: true, position: 1.25, ..Axis::default() };
        let bus = Bus { phase: 7, all_fresh: true, ..Bus::default() };
        Self {
            folder,
            ends,
            server: Some(server),
            state: State { bus, axes: vec![axis; axes.len()], ..State::default() },
        }
    }

    fn step(&mut self) {
        self.state.cycle += 1;
        self.ends.state.publish(&self.state);
    }

    fn top(&self, arguments: &[&str]) -> Command {
        top(self.server().path(), arguments)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it has not ended")
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("onbeat-top-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn top(ipc: &Path, arguments: &[&str]) -> Command {
    let mut command = onbeat();
    command.arg("top").args(arguments).env("ONBEAT_IPC", ipc).env_remove("COLUMNS");
    command
}

// feature(ipc): `onbeat top`
#[test]
fn once_prints_axes_bus_and_reports_of_the_run() {
    let mut cycle = Played::new("once");
    cycle.step();
    cycle.server().diagnostics(r#"{"channels":[{"name":"scan","refused":4}]}"#).expect("room");
    let ran = finished(cycle.top(&["--once"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in ["played", "Op, all inputs fresh", "left", "right", "Operation enabled", "1.250", "scan"] {
        assert!(ran.stdout.contains(part), "{part} in\n{}", ran.stdout);
    }
}

/// Without a terminal a line is as long as it is, or as `COLUMNS` says.
#[test]
fn once_into_a_pipe_cuts_no_line_unless_columns_says_so() {
    let mut cycle = Played::new("whole");
    cycle.state.axes[1].stop = StopReason::Step as u8;
    cycle.step();
    let warning = format!("{} and that is all of it", "this machine is like no other, ".repeat(20));
    let diagnostics = serde_json::json!({ "warnings": [warning] }).to_string();
    cycle.server().diagnostics(&diagnostics).expect("room");
    let ran = finished(cycle.top(&["--once"]));
    for part in [warning.as_str(), "set-point step"] {
        assert!(ran.stdout.contains(part), "{part} in\n{}", ran.stdout);
    }
    for (columns, width) in [("90", 90), ("1", 80)] {
        let mut command = cycle.top(&["--once"]);
        command.env("COLUMNS", columns);
        let longest = finished(command).stdout.lines().map(|line| line.chars().count()).max();
        assert_eq!(longest, Some(width), "{columns}");
    }
}

#[test]
fn json_is_one_state_with_words_for_codes() {
    let mut cycle = Played::new("json");
    cycle.state.axes[1].stop = 5;
    cycle.step();
    let found = finished(cycle.top(&["--json"])).json();
    assert_eq!((found["cycle"].as_u64(), found["bus"]["phase"].as_str()), (Some(1), Some("Op")));
    assert_eq!(found["axes"][0]["stop"], serde_json::Value::Null);
    assert_eq!(found["axes"][1]["stop"], "the axis did not follow");
    assert_eq!(found["description"]["axes"][1]["name"], "right");
}

#[test]
fn without_a_cycle_one_sentence_says_what_to_do() {
    let folder = folder("nobody");
    let ran = finished(top(&folder.join("nobody.sock"), &["--once"]));
    assert!(ran.sentence().contains("no cycle answers at") && ran.sentence().contains("onbeat run"));
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn wait_waits_for_a_cycle_that_starts_later() {
    let folder = folder("wait");
    let waiting = Running::start(top(&folder.join("wait").join("played.sock"), &["--once", "--wait"]));
    std::thread::sleep(Duration::from_millis(300));
    std::fs::remove_dir_all(&folder).expect("an empty folder");
    let mut cycle = Played::new("wait");
    // The one that waits knows the socket by its path.
    let place = cycle.folder.join("wait");
    std::fs::create_dir(&place).expect("a folder");
    std::os::unix::fs::symlink(cycle.server().path(), place.join("played.sock")).expect("a link");
    cycle.step();
    let ran = waiting.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("waiting for one") && ran.stdout.contains("played"), "{}", ran.stderr);
}

#[test]
fn without_a_terminal_the_other_ways_are_named() {
    let mut cycle = Played::new("pipe");
    cycle.step();
    let ran = finished(cycle.top(&[]));
    assert!(ran.sentence().contains("--once or --json"), "{}", ran.stderr);
}

/// In a terminal: `top` draws, runs while the cycle does, reports the end of the cycle, and `q`
/// ends it.
// feature(ipc): `onbeat top`
#[test]
fn in_a_terminal_it_shows_the_cycle_and_its_end_until_q() {
    let terminal = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    if !terminal.is_ok_and(|status| status.success()) {
        testkit::skip!("it needs `script` for a terminal (Debian: bsdutils)");
        return;
    }
    let mut cycle = Played::new("terminal");
    cycle.step();
    let typescript = cycle.folder.join("typescript");
    let line = format!("stty rows 24 cols 80; exec {} top --every 20ms", env!("CARGO_BIN_EXE_onbeat"));
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-f", "-c", &line]).arg(&typescript).env("ONBEAT_IPC", cycle.server().path());
    command.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shown = command.spawn().expect("script");
    let mut keys = shown.stdin.take().expect("a pipe");

    await_text(&typescript, "enabled", || cycle.step());
    drop(cycle.server.take());
    await_text(&typescript, "closed", || ());
    std::io::Write::write_all(&mut keys, b"q").expect("the terminal");
    let status = shown.wait().expect("its end");
    assert!(status.success(), "{status}");
}

/// Waits until the terminal has shown these words: between words it receives cursor movements.
fn await_text(typescript: &Path, text: &str, mut meanwhile: impl FnMut()) {
    let begin = Instant::now();
    loop {
        meanwhile();
        let shown = std::fs::read(typescript).unwrap_or_default();
        if String::from_utf8_lossy(&shown).contains(text) {
            return;
        }
        let last = String::from_utf8_lossy(&shown[shown.len().saturating_sub(2_000)..]).into_owned();
        assert!(begin.elapsed() < Duration::from_secs(60), "{text:?} within a minute: {last}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A pseudo-terminal, and what was shown on it since its size changed last.
struct Pty {
    master: Option<File>,
    path: PathBuf,
    shown: Vec<u8>,
}

impl Pty {
    fn new(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pseudo-terminal");
        grantpt(&master).expect("a pseudo-terminal");
        unlockpt(&master).expect("a pseudo-terminal");
        fcntl_setfl(&master, OFlags::NONBLOCK).expect("a pseudo-terminal");
        let path = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
        let mut pty = Self { master: Some(master.into()), path: path.into(), shown: Vec::new() };
        pty.resize(columns, rows);
        pty
    }

    fn master(&self) -> &File {
        self.master.as_ref().expect("it is there")
    }

    /// Takes what was shown.
    fn drain(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = self.master().read(&mut bytes) {
            self.shown.extend(&bytes[..length]);
        }
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        self.drain();
        tcsetwinsize(self.master(), size).expect("a size");
        self.shown.clear();
    }

    fn stdio(&self) -> Stdio {
        let flags = OFlags::NOCTTY.bits() as i32;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path);
        file.expect("its far end").into()
    }

    /// `top` on it, which may be its controlling terminal.
    fn top(&self, cycle: &Played, controlling: bool) -> Child {
        let top = cycle.top(&["--every", "20ms"]);
        let mut command = Command::new("setsid");
        command
            .args(controlling.then_some("--ctty"))
            .arg("--wait")
            .arg(top.get_program())
            .args(top.get_args());
        command.env("ONBEAT_IPC", cycle.server().path()).env("TERM", "xterm").env_remove("COLUMNS");
        command.stdin(self.stdio()).stdout(self.stdio()).stderr(self.stdio());
        testkit::end_with_parent(&mut command);
        command.spawn().expect("setsid, of util-linux")
    }

    /// Waits until this is shown, and returns all that was since the last change of the size.
    fn until(&mut self, text: &str, mut meanwhile: impl FnMut()) -> String {
        let begin = Instant::now();
        loop {
            meanwhile();
            self.drain();
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if shown.contains(text) {
                return shown;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{text:?} within a minute: {shown}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// With the hang-up of its terminal, and with the end of its input alone.
// feature(ipc): `onbeat top` ends with its terminal
#[test]
fn it_ends_when_its_terminal_is_gone() {
    for controlling in [true, false] {
        let mut cycle = Played::new(if controlling { "hang-up" } else { "end-of-input" });
        cycle.step();
        let mut pty = Pty::new(80, 24);
        let mut shown = pty.top(&cycle, controlling);
        pty.until("enabled", || cycle.step());
        pty.master = None;
        let begin = Instant::now();
        while shown.try_wait().expect("status").is_none() {
            cycle.step();
            if begin.elapsed() > Duration::from_secs(60) {
                let _ = shown.kill();
                panic!("it goes on without its terminal (controlling: {controlling})");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

// feature(ipc): `onbeat top` in a large terminal, a small one, and one that changes
#[test]
fn a_resized_screen_is_redrawn() {
    let mut cycle = Played::new("resize");
    cycle.step();
    let mut pty = Pty::new(200, 50);
    let mut shown = pty.top(&cycle, true);
    // Where there is room a state has its whole name.
    pty.until("Operation", || cycle.step());
    pty.resize(80, 24);
    let narrow = pty.until("enabled", || cycle.step());
    assert!(!narrow.contains("Operation"), "{narrow}");
    pty.resize(30, 5);
    pty.until("small", || cycle.step());
    pty.resize(200, 50);
    pty.until("Operation", || cycle.step());
    std::io::Write::write_all(&mut pty.master(), b"q").expect("the terminal");
    assert!(shown.wait().expect("its end").success());
}

/// The humanoid's axes, one of them stopped, in a terminal resized again and again: each picture is
/// whole, its names are distinct, and nothing of the picture before is left.
// feature(ipc): `onbeat top` in a large terminal, a small one, and one that changes
#[test]
fn every_terminal_size_shows_whole_distinct_rows() {
    let joints =
        ["shoulder-pitch", "shoulder-roll", "shoulder-yaw", "elbow-pitch", "wrist-pitch", "wrist-roll"];
    let names: Vec<String> = ["left", "right"]
        .iter()
        .flat_map(|side| joints.map(|joint| format!("the-{side}-arm-{joint}-joint")))
        .collect();
    let mut cycle = Played::with_axes("tmux", &names);
    cycle.state.axes[1].stop = StopReason::FollowingError as u8;
    cycle.step();
    let (program, ipc) = (env!("CARGO_BIN_EXE_onbeat"), cycle.server().path().display().to_string());
    let script = format!("ONBEAT_IPC={ipc} exec {program} top --every 20ms");
    let Some(tmux) = Tmux::start("top", (200, 50), &script) else { return };
    for (columns, rows) in [(200, 50), (80, 24), (140, 30), (60, 16), (200, 50), (80, 24)] {
        tmux.resize(columns, rows);
        let before = cycle.state.cycle;
        let screen = tmux.until(&format!("whole at {columns} x {rows}"), |screen| {
            cycle.step();
            cycle.state.axes[0].position += 0.01;
            let drawn = screen
                .first()
                .and_then(|title| title.split_once("cycle ")?.1.split(' ').next()?.parse().ok());
            let is_new = drawn.is_some_and(|drawn: u64| drawn > before);
            // A curve has two points at least.
            let has_curves = columns < 200
                || screen.iter().any(|line| line.contains("the-left") && line.contains('\u{2588}'));
            let is_whole = screen.len() == usize::from(rows);
            is_new
                && is_whole
                && has_curves
                && screen.last().is_some_and(|keys| keys.starts_with(" q quit"))
        });
        let text = screen.join("\n");
        let titles = |title: &str| screen.iter().filter(|line| line.starts_with(title)).count();
        assert_eq!((titles(" played"), titles(" axes"), titles(" q quit")), (1, 1, 1), "{text}");
        let first = screen.iter().position(|line| line.contains("stopped")).expect("heads") + 1;
        let enabled = |line: &&String| line.contains("enabled") && !line.contains("drives");
        let axes: Vec<&String> = screen[first..].iter().take_while(enabled).collect();
        assert!(axes.len() == names.len() || usize::from(rows) < 24 + 2 && axes.len() >= 4, "{text}");
        let told: HashSet<&str> = axes.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(told.len(), axes.len(), "{text}");
        assert!(
            axes[1].contains("following error") && axes.iter().all(|line| line.contains(".")),
            "{text}"
        );
        // A wide terminal shows whole names, and curves next to the numbers.
        let whole = columns >= 140;
        assert_eq!(names.iter().take(axes.len()).all(|name| told.contains(name.as_str())), whole, "{text}");
        assert_eq!(axes[0].contains('\u{2588}'), columns == 200, "{text}");
    }
    tmux.press("q");
}
