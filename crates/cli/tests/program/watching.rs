//! Long-running printing programs next to a cycle: a stop or a closed reader ends them; a stuck
//! reader delays nothing else.
//!
//! The live line of `onbeat run` in a terminal that changes its size.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ipc::description::{Description, SignalDescription};
use ipc::server::Builder;
use ipc::state::{Signal, State};
use rustix::fs::OFlags;

use crate::common::{Running, file, onbeat, run, shared};
use crate::signals::{Station, interrupt};
use crate::tmux::Tmux;

/// Time a program may take to end, less than its cycle runs: the end of that would end it, too.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Exit code of a program that is to end by itself.
fn end_of(mut child: Child) -> Option<i32> {
    let begin = Instant::now();
    while child.try_wait().expect("status").is_none() {
        if begin.elapsed() > TIMEOUT {
            child.kill().expect("kill");
            child.wait().expect("its end");
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait().expect("its end").code()
}

fn interrupted(child: Child) -> Option<i32> {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    end_of(child)
}

/// A pipe that is full, and its reader, which never reads.
fn full_pipe() -> (File, Stdio) {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    let mut filler = File::from(writer.try_clone().expect("another descriptor"));
    rustix::fs::fcntl_setfl(&filler, OFlags::NONBLOCK).expect("a flag");
    while filler.write(&[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&filler, OFlags::empty()).expect("a flag");
    (File::from(reader), writer.into())
}

// feature(program): `io watch`, `io set` and `events --follow` stop at once, end without a reader, and are not delayed by a slow one
#[test]
fn watching_notices_stop_and_end_at_any_interval() {
    let _shared = shared();
    let station = Station::start("watch-seldom", "");
    let watch = || Running::start(station.io(&["watch", "lamp green", "--every", "999h"]));
    let (stopped, left) = (watch(), watch());
    // What they print is at the pipe's other end, they wait.
    std::thread::sleep(Duration::from_millis(500));
    let stopped = interrupt(stopped);
    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(0), "lamp green  true\n"),
        "{}",
        stopped.stderr
    );
    interrupt(station.cycle);
    assert_eq!(left.finish().code, Some(0));
}

/// Inputs that only become old, and fresh again, are no line with `--values`.
// feature(signals): `io watch --values` prints changes of values, and none of freshness alone
#[test]
fn watching_values_is_silent_about_freshness() {
    let folder = std::env::temp_dir().join(format!("onbeat-watch-values-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let door = SignalDescription { name: "door".into(), ..SignalDescription::default() };
    let description = Description { robot: "played".into(), signals: vec![door], ..Description::default() };
    let mut ipc = Builder::new("played", &description);
    ipc.folder(&folder);
    let (mut ends, server) = ipc.open().expect("an IPC");
    let mut state =
        State { signals: vec![Signal { word: 1, fresh: true, forced: false }], ..State::default() };
    let mut play = |word, fresh| {
        state.cycle += 1;
        state.signals[0] = Signal { word, fresh, forced: false };
        ends.state.publish(&state);
    };
    play(1, true);
    let mut command = onbeat();
    command.args(["io", "watch", "--values", "--every", "1ms", "--cycle"]).arg(server.path());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert_eq!(next(), "door  true");
    for fresh in [false, true, false] {
        play(1, fresh);
        // Time to see it, however busy the machine is: a line of it would be the next.
        std::thread::sleep(Duration::from_millis(200));
    }
    play(0, false);
    assert_eq!(next(), "door  false (old)");
    drop(server);
    assert_eq!(end_of(child), Some(0));
    let _ = std::fs::remove_dir_all(&folder);
}

// feature(program): `io watch`, `io set` and `events --follow` stop at once, end without a reader, and are not delayed by a slow one
#[test]
fn a_closed_reader_ends_a_watch_without_changes() {
    let _shared = shared();
    let station = Station::start("watch-head", "");
    let mut events = onbeat();
    events.args(["events", "--follow", "--json", "--cycle"]).arg(&station.socket);
    for mut command in [station.io(&["watch", "lamp green"]), events] {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program");
        let mut reader = BufReader::new(child.stdout.take().expect("stdout"));
        assert!(reader.read_line(&mut String::new()).expect("a line") > 0);
        // The rest of its output fits into the pipe now.
        std::thread::sleep(Duration::from_millis(500));
        drop(reader);
        assert_eq!(end_of(child), Some(0), "{command:?}");
    }
    interrupt(station.cycle);
}

// feature(program): `io watch`, `io set` and `events --follow` stop at once, end without a reader, and are not delayed by a slow one
#[test]
fn a_stuck_reader_delays_neither_stops_nor_commands() {
    let _shared = shared();
    let station = Station::start("watch-full", "");
    for arguments in [&["watch"][..], &["watch", "--json"], &["list"]] {
        let (_reader, writer) = full_pipe();
        let child = station.io(arguments).stdout(writer).spawn().expect("the program");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(interrupted(child), Some(0), "{arguments:?}");
    }
    let (_reader, writer) = full_pipe();
    let setting = station.io(&["set", "lamp red", "true"]).stdout(writer).spawn().expect("the program");
    station.await_value("lamp red", "true");
    // Longer than a command lasts.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(station.said(&["get", "lamp red"]).trim_end(), "true");
    assert_eq!(interrupted(setting), Some(0));
    station.await_value("lamp red", "false");
    interrupt(station.cycle);
}

/// A fault script takes the power of a drive: an error among notices.
// feature(program): `run -q` writes errors and the result only
#[test]
fn a_quiet_run_writes_errors_and_the_result_only() {
    let quiet = run(&["run", "-q", "--no-ipc", "--cycles", "200"]);
    assert!(quiet.stdout.contains(" velocity "), "{}", quiet.stdout);
    assert!(quiet.code != Some(0) || quiet.stderr.is_empty(), "{}", quiet.stderr);
    let script = file("quiet.faults", "100ms drive fault drive-3 0x7500\n");
    let script = script.to_str().expect("UTF-8");
    let mut said = [vec!["run"], vec!["run", "-q"]].map(|command| {
        run(&[&command[..], &["--no-ipc", "--cycles", "1000", "--faults", script]].concat()).stderr
    });
    let [loud, quiet] = &mut said;
    assert!(loud.contains("fault at ") && loud.contains("0x7500"), "{loud}");
    assert!(!quiet.contains("fault at ") && quiet.contains("0x7500"), "{quiet}");
}

/// It is one line at any width, and nothing is left of it where it was wider.
// feature(program): the live line of `run` follows its terminal at 40, 80 and 200 columns
#[test]
fn the_live_line_follows_its_terminal_and_leaves_nothing_over() {
    let _shared = shared();
    let onbeat = env!("CARGO_BIN_EXE_onbeat");
    let script =
        format!("trap : INT; stty -echoctl; {onbeat} run --no-ipc --for 300s >/dev/null; echo over; cat");
    let Some(tmux) = Tmux::start("live-line", (200, 24), &script) else { return };
    for (columns, last) in
        [(200, "us"), (40, "…"), (200, "us"), (80, "…"), (40, "…"), (80, "…"), (200, "us"), (39, "…")]
    {
        tmux.resize(columns, 24);
        let before = cycles(&tmux.screen()).unwrap_or_default();
        let screen = tmux.until(&format!("drawn at {columns} columns"), |screen| {
            let drawn = cycles(screen).is_some_and(|cycles| cycles > before + 200);
            // A terminal has its new size before the program in it knows.
            let letters = |line: &String| line.chars().count();
            let fits = |line: &String| match last {
                "…" => letters(line) == usize::from(columns) - 1,
                _ => letters(line) < usize::from(columns),
            };
            // A machine that was late is remarked upon behind the rest.
            let is_whole = |line: &String| line.ends_with(last) || last == "us" && line.ends_with("late");
            drawn && screen.last().is_some_and(|line| is_whole(line) && fits(line))
        });
        assert_eq!(told(&screen), 1, "{columns} columns:\n{}", screen.join("\n"));
    }
    tmux.press("C-c");
    // The last line stays, and later output is below it.
    let screen = tmux.until("over", |screen| screen.last().is_some_and(|line| line == "over"));
    let last = screen.iter().rposition(|line| line.starts_with("stopping, bus in phase"));
    let last = last.unwrap_or_else(|| panic!("{screen:#?}"));
    assert!(screen[last].chars().count() < 39, "{screen:#?}");
    assert_eq!(screen[last + 1..].concat(), "over", "{screen:#?}");
    assert_eq!(told(&screen), 0, "{screen:#?}");
}

/// Cycles in the last line, if it has a number of them.
fn cycles(screen: &[String]) -> Option<u64> {
    screen.last()?.split_once(" cycles, ")?.0.parse().ok()
}

/// Lines, or rests of lines, that tell how the run goes.
fn told(screen: &[String]) -> usize {
    let parts = [" cycles, ", "WKC errors", "Operation enabled", "jitter <="];
    screen.iter().filter(|line| parts.iter().any(|part| line.contains(part))).count()
}
