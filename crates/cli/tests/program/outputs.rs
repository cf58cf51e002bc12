//! Outputs that are closed, full, or take nothing: a run ends in order all the same, and nothing
//! panics.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::common::{Ran, Running, await_cycles, file, onbeat, run, shared};

/// A terminal that takes nothing, as one after Ctrl-S: it is full.
struct StoppedTerminal {
    _reader: OwnedFd,
    /// With the last far end closed the terminal would forget what it holds.
    _filler: File,
    path: PathBuf,
}

impl StoppedTerminal {
    fn new() -> Self {
        let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&reader).expect("a pseudo-terminal");
        unlockpt(&reader).expect("a pseudo-terminal");
        let path =
            PathBuf::from(ptsname(&reader, Vec::new()).expect("its name").into_string().expect("UTF-8"));
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let mut filler =
            OpenOptions::new().write(true).custom_flags(flags).open(&path).expect("its far end");
        // The kernel moves what was written on behind our back: it is full once it has stayed so
        // for a while.
        let mut refused = 0;
        while refused < 20 {
            match filler.write(b" ") {
                Ok(_) => refused = 0,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    refused += 1;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        }
        Self { _reader: reader, _filler: filler, path }
    }

    fn stdio(&self) -> Stdio {
        let flags = OFlags::NOCTTY.bits() as i32;
        OpenOptions::new().write(true).custom_flags(flags).open(&self.path).expect("its far end").into()
    }
}

/// Ends within `timeout`, or is killed.
fn end_of(mut child: Child, timeout: Duration) -> (Option<i32>, String) {
    let begin = Instant::now();
    while child.try_wait().expect("status").is_none() {
        if begin.elapsed() > timeout {
            child.kill().expect("kill");
            child.wait().expect("status");
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut text = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut text).expect("UTF-8");
    }
    (child.wait().expect("status").code(), text)
}

fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(process as i32).expect("a process");
    kill_process(process, signal).expect("a signal");
}

const TIMEOUT: Duration = Duration::from_secs(60);

// feature(program): a stop, and the number of cycles, whatever the terminal, the recording or the capture does
#[test]
fn a_terminal_that_is_stopped_does_not_keep_a_run_from_its_end() {
    let _shared = shared();
    let terminal = StoppedTerminal::new();
    let mut command = onbeat();
    command.args(["run", "--json", "--no-ipc"]).stdout(Stdio::piped()).stderr(terminal.stdio());
    let child = command.spawn().expect("the program");
    await_cycles(child.id(), 1000);
    signal(child.id(), Signal::INT);
    let (code, json) = end_of(child, TIMEOUT);
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    let end: serde_json::Value = serde_json::from_str(&json).expect("the numbers");
    assert!(end["cycles"].as_u64().is_some_and(|cycles| cycles > 0), "{json}");
}

// feature(program): a stop, and the number of cycles, whatever the terminal, the recording or the capture does
#[test]
fn a_stopped_terminal_does_not_delay_the_end() {
    let _shared = shared();
    let terminal = StoppedTerminal::new();
    let mut command = onbeat();
    command.args(["run", "--cycles", "300", "--no-ipc"]).stdout(terminal.stdio()).stderr(terminal.stdio());
    let (code, _) = end_of(command.spawn().expect("the program"), TIMEOUT);
    // Its table is lost.
    assert!(matches!(code, Some(1 | 3)), "{code:?}");
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn a_stuck_pipe_reader_does_not_delay_the_end() {
    let _shared = shared();
    // As `run | sleep`, once the pipe is full.
    let (_reader, writer) = rustix::pipe::pipe().expect("a pipe");
    let filler = writer.try_clone().expect("another descriptor");
    rustix::fs::fcntl_setfl(&filler, OFlags::NONBLOCK).expect("a flag");
    let mut filler = File::from(filler);
    while filler.write(&[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&filler, OFlags::empty()).expect("a flag");
    let mut command = onbeat();
    command.args(["run", "--cycles", "300", "--no-ipc"]).stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    let mut stderr = child.stderr.take().expect("standard error");
    let (code, _) = end_of(child, TIMEOUT);
    assert!(matches!(code, Some(1 | 3)), "{code:?}");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("UTF-8");
    assert!(
        said.contains("standard output took nothing for 10 s: what was to be printed is lost"),
        "{said}"
    );
}

fn fifo(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn stuck_fifos_do_not_delay_a_simulator() {
    let _shared = shared();
    let testbed = match testkit::Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let path = fifo("simulate.mcap");
    let simulate = || {
        let mut command = onbeat();
        command.args([
            "simulate",
            "examples/six-axis.toml",
            "--for",
            "200ms",
            "--iface",
            "far",
            "--record",
        ]);
        command.arg(&path);
        Running::start(testbed.run_in(testkit::Side::Far, command)).finish()
    };
    let ran = simulate();
    let refused = "the recording cannot be written (a FIFO without a reader)";
    assert!(ran.code == Some(1) && ran.stderr.contains(refused), "{:?} {}", ran.code, ran.stderr);

    let reading = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path);
    let _reader = reading.expect("a reader that does not read");
    let ran = simulate();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn the_table_of_a_run_fits_a_terminal_of_80_columns() {
    let long_names =
        [("name = \"axis-{}\"", "name = \"left-leg-joint-{}\""), ("\"drive-{}\"", "\"left-leg-drive-{}\"")];
    let mut text = include_str!("../../../../examples/six-axis.toml").to_owned();
    for (name, long) in long_names {
        assert!(text.contains(name), "{name}");
        text = text.replace(name, long);
    }
    let long_names = file("long-names.toml", &text);
    let faults = "100ms drive fault left-leg-drive-2 0x7500\n200ms power off left-leg-drive-5\n";
    let faults = file("long-names.faults", faults);
    let path = |path: &PathBuf| path.to_str().expect("UTF-8").to_owned();
    for (robot, faults) in [
        ("examples/six-axis.toml".to_owned(), None),
        ("examples/io-station.toml".to_owned(), None),
        (path(&long_names), None),
        (path(&long_names), Some(path(&faults))),
    ] {
        let mut arguments = vec!["run", &robot, "--cycles", "500", "--no-ipc", "--watch"];
        arguments.extend(faults.iter().flat_map(|faults| ["--faults", faults]));
        let ran = run(&arguments);
        let codes = if faults.is_some() { [4, 4] } else { [0, 3] };
        assert!(ran.code.is_some_and(|code| codes.contains(&code)), "{:?} {}", ran.code, ran.stderr);
        let long: Vec<&str> = ran.stdout.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty() && ran.stdout.contains(" velocity "), "{robot}: {long:#?}");
        assert!(ran.stdout.contains("preempted"), "{}", ran.stdout);
        assert_eq!(faults.is_some(), ran.stdout.contains("no answer"), "{}", ran.stdout);
    }
}

/// A run of 300 cycles with a file at this option that takes nothing, or not enough.
fn with_file(wrapper: &[&str], option: &str, path: &std::path::Path) -> Ran {
    let _shared = shared();
    let mut command = onbeat();
    if let [program, arguments @ ..] = wrapper {
        let onbeat = command.get_program().to_owned();
        let folder = command.get_current_dir().expect("a folder").to_owned();
        command = Command::new(program);
        command.args(arguments).arg(onbeat).current_dir(folder).stdin(Stdio::null());
    }
    command.args(["run", "--cycles", "300", "--json", "--no-ipc", option]).arg(path);
    Running::start(command).finish()
}

/// The file was lost; after a host stall maybe also an axis or the bus.
fn failed(ran: &Ran) -> bool {
    matches!(ran.code, Some(1 | 3 | 4))
}

fn measured(ran: &Ran) -> u64 {
    let end: serde_json::Value = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr));
    end["cycles"].as_u64().expect("cycles")
}

// feature(program): a stop, and the number of cycles, whatever the terminal, the recording or the capture does
#[test]
fn stuck_recordings_and_captures_do_not_delay_the_end() {
    for (option, name, expected) in [
        ("--record", "nobody-reads.mcap", "0 cycles are in it, 300 are missing"),
        ("--capture", "nobody-reads.pcapng", "0 frames are in it"),
    ] {
        let path = fifo(name);
        let ran = with_file(&[], option, &path);
        assert!(failed(&ran), "{:?} {}", ran.code, ran.stderr);
        assert_eq!(measured(&ran), 300);
        let sentence = format!("{}: it takes nothing any more; {expected}", path.display());
        assert!(ran.stderr.contains(&sentence), "{}", ran.stderr);
    }
}

// feature(program): a full disk or a file at its limit (SIGXFSZ) costs the file, not the run
#[test]
fn a_file_size_limit_is_reported_and_the_run_continues() {
    // 16 KiB, then SIGXFSZ and EFBIG: the same as a disk that fills up.
    let limited = ["sh", "-c", "ulimit -f 32; exec \"$@\"", "sh"];
    for (option, name, expected) in [
        ("--record", "limited.mcap", "cycles are in it"),
        ("--capture", "limited.pcapng", "frames are in it"),
    ] {
        let path = file(name, "");
        let ran = with_file(&limited, option, &path);
        assert!(failed(&ran), "{:?} {}", ran.code, ran.stderr);
        assert_eq!(measured(&ran), 300);
        assert!(ran.stderr.contains("File too large") && ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

/// Command lines that need no wire and print something.
fn commands() -> Vec<Vec<String>> {
    let recording = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("for-closed-outputs.mcap");
    let recording = recording.to_str().expect("UTF-8");
    let ran = run(&["run", "--cycles", "50", "--no-ipc", "--force", "--record", recording]);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    let lines = [
        "run --cycles 20 --no-ipc",
        "run --cycles 20 --no-ipc --json",
        "scan",
        "scan -v",
        "scan --json",
        "diag",
        "diag --json",
        "sdo list 0",
        "sdo read 0 0x1018:1",
        "analyse examples/six-axis.toml",
        "analyse examples/six-axis.toml --json",
        "doctor",
        "doctor --json",
        "report RECORDING",
        "report RECORDING --json",
        "report RECORDING --markdown",
        "--help",
        "--version",
        "run --help",
    ];
    let words = |line: &str| line.split(' ').map(|it| it.replace("RECORDING", recording)).collect();
    lines.iter().map(|line| words(line)).collect()
}

// feature(program): closed or full standard output and standard error, every command
#[test]
fn closed_standard_output_is_silent_and_a_full_one_reported() {
    let commands = commands();
    let _shared = shared();
    for words in &commands {
        let ran = |stdout: Stdio, stderr: Stdio| {
            let mut command = onbeat();
            let output = command.args(words).stdout(stdout).stderr(stderr).output().expect("the program");
            (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
        };
        let (earned, _) = ran(Stdio::null(), Stdio::piped());
        let closed = || Stdio::from(rustix::pipe::pipe().expect("a pipe").1);
        let (code, said) = ran(closed(), Stdio::piped());
        assert!(!said.contains("panicked"), "{words:?}: {said}");
        // Whether a busy machine holds an axis up is not the question.
        let same = code == earned || matches!((code, earned), (Some(0 | 3), Some(0 | 3)));
        assert!(same, "{words:?}: {code:?} instead of {earned:?}: {said}");

        let full = || OpenOptions::new().write(true).open("/dev/full").expect("/dev/full").into();
        let (code, said) = ran(full(), Stdio::piped());
        assert!(
            !said.contains("panicked") && said.contains("standard output: No space left"),
            "{words:?}: {said}"
        );
        assert!(matches!(code, Some(1..=3)), "{words:?}: {code:?}");

        for stderr in [closed(), full()] {
            let (code, _) = ran(Stdio::null(), stderr);
            let same = code == earned || matches!((code, earned), (Some(0 | 3), Some(0 | 3)));
            assert!(same, "{words:?}: {code:?} instead of {earned:?} without standard error");
        }
    }
}

// feature(program): closed or full standard output and standard error, every command
#[test]
fn a_run_without_a_reader_completes_its_recording() {
    let path = file("reader-gone.mcap", "");
    let _shared = shared();
    let mut command = onbeat();
    command.args(["run", "--cycles", "100", "--no-ipc", "--record"]).arg(&path);
    command.stdout(rustix::pipe::pipe().expect("a pipe").1).stderr(Stdio::null());
    let (code, _) = end_of(command.spawn().expect("the program"), TIMEOUT);
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    let recording = record::Recording::read(std::io::BufReader::new(File::open(&path).expect("it")));
    let recording = recording.expect("a recording");
    assert!(recording.complete && recording.len() == 100, "{}", recording.len());
}

// feature(program): SIGQUIT, SIGXCPU, SIGUSR1 and others that would end it stop in order, as SIGTERM does; a second one hurries, a third ends, signals close together are one; Ctrl-Z suspends nothing
#[test]
fn ctrl_z_is_explained_and_suspends_nothing() {
    let _shared = shared();
    let mut command = onbeat();
    command.args(["run", "--json", "--no-ipc"]);
    let running = Running::start(command);
    await_cycles(running.id(), 500);
    signal(running.id(), Signal::TSTP);
    let before = crate::common::slept(running.id()).expect("a cycle");
    await_cycles(running.id(), before + 200);
    signal(running.id(), Signal::INT);
    let ran = running.finish();
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.stderr);
    assert!(ran.stderr.contains("not suspended"), "{}", ran.stderr);
    assert!(ran.stderr.contains("a second signal brakes") && measured(&ran) > 0, "{}", ran.stderr);
}

// feature(program): SIGQUIT, SIGXCPU, SIGUSR1 and others that would end it stop in order, as SIGTERM does; a second one hurries, a third ends, signals close together are one; Ctrl-Z suspends nothing
#[test]
fn the_third_signal_ends_a_run_by_force() {
    let _shared = shared();
    let path = fifo("by-force.mcap");
    let mut command = onbeat();
    // At its end the run waits for a reader: long enough for three signals.
    command.args(["run", "--json", "--no-ipc", "--record"]).arg(&path);
    let running = Running::start(command);
    await_cycles(running.id(), 500);
    for _ in 0..3 {
        signal(running.id(), Signal::INT);
        std::thread::sleep(Duration::from_millis(400));
    }
    let ran = running.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("a third signal ends at once"), "{}", ran.stderr);
}
