//! `onbeat run --record` and `onbeat report`: every cycle in a file, and what it says.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use record::recording::{Facts, Header};
use record::{Mark, Recording, RecordingWriter, cycles};

use crate::common::{file, run};

fn path(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // An earlier test run may have left one.
    let _ = std::fs::remove_file(&path);
    path
}

fn read(path: &Path) -> Recording {
    Recording::read(BufReader::new(File::open(path).expect("the recording"))).expect("a recording")
}

/// Records 300 cycles.
fn recorded(name: &str) -> PathBuf {
    let path = path(name);
    run(&["run", "--cycles", "300", "--record", path.to_str().expect("UTF-8"), "--json"]).json();
    path
}

/// Digest as coreutils has it.
fn sha256sum(path: &str) -> String {
    let printed = Command::new("sha256sum").arg(path).output().expect("coreutils").stdout;
    String::from_utf8(printed).expect("UTF-8").split(' ').next().expect("a digest").to_owned()
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_owned()
}

// feature(measure): recordings, reports and `--json` say when, on which machine, by which version and with which robot file
// feature(measure): `run --record`: every measured cycle and its conditions; a full disk ends the recording, not the run
#[test]
fn a_recording_holds_every_measured_cycle_and_its_conditions() {
    let path = path("whole.mcap");
    let end = run(&["run", "--cycles", "300", "--record", path.to_str().unwrap(), "--json"]).json();
    let recording = read(&path);
    assert!(recording.complete && recording.len() == 300, "{}", recording.len());
    let (timing, process_data) = recording.header.columns.split_at(cycles::COLUMNS.len());
    assert_eq!(timing, cycles::COLUMNS);
    assert_eq!(
        (process_data[0].as_str(), process_data[1].as_str()),
        ("signals:forced", "axis:axis-1.position")
    );
    assert_eq!((process_data.len(), recording.process_data_rows().len()), (1 + 6 * 9, 300));
    let facts = &recording.header.facts;
    assert_eq!((&facts["robot"], &facts["sub_devices"]), (&"six-axis".into(), &6.into()));
    assert_eq!(facts["kernel"], end["conditions"]["kernel"]);
    assert_eq!(facts["output_bytes"], end["conditions"]["output_bytes"]);
    assert_eq!(facts["robot_file_sha256"], sha256sum("../../examples/six-axis.toml"));
    assert_eq!(
        (&facts["version"], &facts["host"]),
        (&env!("CARGO_PKG_VERSION").into(), &hostname().into())
    );
    let began = humantime::parse_rfc3339(facts["began"].as_str().expect("a text")).expect("a time");
    assert!(began.elapsed().expect("the past") < Duration::from_secs(600), "{began:?}");
    assert_eq!((&recording.end["cycles"], &recording.end["dropped_records"]), (&300.into(), &0.into()));
    assert!(recording.end["machine"]["busy"].is_number(), "{:?}", recording.end);

    let (period, cycles) = cycles::cycles(&recording).expect("cycles of a cycle");
    assert_eq!(period, 1_000_000);
    assert!(cycles.is_sorted_by(|a, b| a.cycle < b.cycle && a.release_ns < b.release_ns));
    let worst = cycles.iter().map(|cycle| cycle.wakeup_latency()).max();
    assert_eq!(worst, end["wakeup_latency_ns"]["maximum"].as_u64());
    let execution = cycles.iter().map(|cycle| cycle.execution_time()).max();
    assert_eq!(execution, end["t_exec_ns"]["maximum"].as_u64());
}

#[test]
fn an_unwritable_file_is_named_before_the_bus_is_touched() {
    let ran = run(&["run", "--cycles", "10", "--record", "/nowhere/cycles.mcap"]);
    assert_eq!(
        ran.sentence(),
        "onbeat: /nowhere/cycles.mcap: the recording cannot be written (No such file or directory (os error 2)), \
         expected a place for a new file: choose another path for --record"
    );
}

// feature(measure): `run --record`: every measured cycle and its conditions; a full disk ends the recording, not the run
// feature(program): a full disk or a file at its limit (SIGXFSZ) costs the file, not the run
#[test]
fn a_disk_that_is_full_ends_the_recording_and_not_the_run() {
    let ran = run(&["run", "--cycles", "300", "--record", "/dev/full"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("T_jitter"), "the run's table: {}", ran.stdout);
    assert!(ran.stderr.contains("/dev/full: No space left on device"), "{}", ran.stderr);
}

// feature(measure): a run whose bus does not reach Op reports its recording, too
#[test]
fn a_run_without_op_reports_its_recording() {
    let script = file("record-without-op.txt", "0s state refuse drive-3 Op 0x8001\n");
    let record =
        |to: &str| run(&["run", "--cycles", "10", "--faults", script.to_str().unwrap(), "--record", to]);
    let whole = path("without-op.mcap");
    let (whole, failed) = (record(whole.to_str().unwrap()), record("/dev/full"));
    for ran in [&whole, &failed] {
        assert!(ran.code == Some(1) && ran.stderr.contains("drive-3"), "{:?} {}", ran.code, ran.stderr);
    }
    assert!(whole.stderr.contains("0 cycles recorded in "), "{}", whole.stderr);
    assert!(failed.stderr.contains("onbeat: /dev/full: No space left on device"), "{}", failed.stderr);
}

// feature(measure): a file that fails does not hold up a run with `--time fast`
#[test]
fn a_full_disk_does_not_hold_up_a_fast_run() {
    for signals in ["named", "none"] {
        let arguments = ["run", "--time", "fast", "--cycles", "100000", "--signals", signals];
        let ran = run(&[&arguments[..], &["--no-ipc", "--record", "/dev/full"]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("100000 are missing"), "{}", ran.stderr);
    }
}

// feature(measure): `report`: text, Markdown, JSON, HTML with plots
#[test]
fn a_recording_is_shown_as_text_markdown_json_and_html() {
    let path = recorded("shown.mcap");
    let recording = path.to_str().unwrap();
    let text = run(&["report", recording]);
    for expected in ["measured", "good", "T_exec (us)", "samples", "wakeup latency"] {
        assert!(text.stdout.contains(expected), "{expected}: {}", text.stdout);
    }
    assert!(run(&["report", recording, "--markdown"]).stdout.contains("| average |"));
    assert_eq!(run(&["report", recording, "--json"]).json()["values"]["cycles"], 300);
    let page = self::path("shown.html");
    // A second time in the place of the first.
    for _ in 0..2 {
        let ran = run(&["report", recording, "--html", page.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let ran = run(&["report", recording, "--html", recording]);
    assert!(ran.sentence().contains("there is a file that is no page"), "{}", ran.stderr);
    assert_eq!(run(&["report", recording]).stdout, text.stdout);
    let page = std::fs::read_to_string(page).expect("the page");
    // Timing, and position, velocity and torque of six axes, four of them in a plot.
    assert_eq!(page.matches("<svg").count(), 5 + 3 * 2);
}

// feature(measure): `report` of signals and axes: a table, plots over time by unit, cycles without
#[test]
fn a_recording_shows_signals_with_their_units_or_timing_alone() {
    let path = path("signals.mcap");
    let recording = path.to_str().unwrap();
    let record = |which: &[&str]| {
        let words = [
            "run",
            "examples/io-station.toml",
            "--cycles",
            "100",
            "--no-ipc",
            "--force",
            "--record",
            recording,
        ];
        let ran = run(&[&words, which].concat());
        assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
        run(&["report", recording]).stdout
    };
    let text = record(&[]);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(line("valve pressure").starts_with("valve pressure bar 2."), "{text}");
    assert!(line("spindle target velocity").starts_with("spindle target velocity rad/s "), "{text}");
    let text = record(&["--signals", "all"]);
    assert!(text.contains("spindle.statusword"), "{text}");
    let text = record(&["--signals", "none"]);
    assert!(text.contains("T_exec (us)") && !text.contains("spindle"), "{text}");
    let ran = run(&["run", "--signals", "all", "--cycles", "1"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("--record <FILE>"), "{:?} {}", ran.code, ran.stderr);
}

#[test]
fn a_folder_of_recordings_is_shown_one_after_the_other() {
    let folder = path("folder");
    std::fs::create_dir_all(&folder).expect("a folder");
    let recording = recorded("one-of-two.mcap");
    for name in ["a.mcap", "b.mcap"] {
        std::fs::copy(&recording, folder.join(name)).expect("a copy");
    }
    let text = run(&["report", folder.to_str().unwrap()]).stdout;
    assert_eq!(text.matches("T_exec (us)").count(), 2, "{text}");
    assert!(text.contains("a: the cycles of a run") && text.contains("b: the cycles"), "{text}");
}

#[test]
fn what_is_no_recording_is_a_sentence_that_names_the_place() {
    let whole = std::fs::read(recorded("cut.mcap")).expect("the recording");
    let written = |name: &str, bytes: &[u8]| {
        let path = path(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let cut = written("cut-in-the-header.mcap", &whole[..100]);
    // A byte of the first row.
    let mut wrong = whole.clone();
    wrong[whole.len() / 2] ^= 1;
    let wrong = written("wrong-row.mcap", &wrong);
    let empty = file("empty.mcap", "");
    let text = file("text.mcap", "hello\n");
    let old = file("old.onbeat", "# onbeat recording 1\n# {}\n");
    let json = file("other.json", "{\"title\": 5}");
    let bytes = written("bytes.mcap", &[0xFF; 100]);
    let mut other = mcap::Writer::new(std::io::Cursor::new(Vec::new())).expect("memory");
    other.finish().expect("memory");
    let other = written("other.mcap", &other.into_inner().into_inner());
    let nothing = path("empty-folder");
    std::fs::create_dir_all(&nothing).expect("a folder");
    for (path, expected) in [
        (cut, "the file ends before its first row"),
        (wrong, "the file is damaged at byte "),
        (empty, "expected a recording, an MCAP file of `onbeat run --record`; found \"\""),
        (text, "found \"hello\""),
        (old, "found a text recording of an earlier Onbeat, expected MCAP"),
        (other, "found an MCAP file without the metadata `onbeat_rows`"),
        (json, "expected a report"),
        (bytes, "expected a recording"),
        (nothing, "found no report.json and no recording"),
        (path("missing.mcap"), "No such file"),
    ] {
        let ran = run(&["report", path.to_str().unwrap()]);
        let sentence = ran.sentence();
        assert!(sentence.contains(expected) && sentence.contains(path.to_str().unwrap()), "{sentence}");
    }
}

// feature(measure): damaged recordings
#[test]
fn a_recording_cut_off_is_shown_with_a_warning() {
    let whole = std::fs::read(recorded("cut-off.mcap")).expect("the recording");
    let cut = path("cut-in-a-row.mcap");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    let text = run(&["report", cut.to_str().unwrap()]).stdout;
    assert!(text.contains("warning") && text.contains("was cut off"), "{text}");
    // As MCAP it has an index again, and is still cut off.
    let rows = read(&cut).len();
    assert!(rows > 50 && rows < 300, "{rows}");
    let copy = path("with-an-index.mcap");
    let ran = run(&["export", cut.to_str().unwrap(), copy.to_str().unwrap()]);
    let expected = format!("{rows} rows in {}; the recording was cut off\n", copy.display());
    assert_eq!((ran.code, ran.stdout), (Some(0), expected));
    let bytes = std::fs::read(&copy).expect("the copy");
    let summary = mcap::Summary::read(&bytes).expect("MCAP").expect("an index");
    assert!(summary.stats.expect("counts").message_count >= rows as u64);
    assert!(read(&copy).len() == rows && !read(&copy).complete);
}

// feature(measure): a killed run leaves a recording of all but its last second
#[test]
fn a_killed_run_leaves_its_recording() {
    let path = path("killed.mcap");
    let mut command = crate::common::onbeat();
    command.args(["run", "--no-ipc", "--for", "60s", "--json", "--record"]).arg(&path);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("the program");
    let rows = || Recording::read(&std::fs::read(&path).unwrap_or_default()[..]).map_or(0, |it| it.len());
    let begin = std::time::Instant::now();
    while rows() < 1500 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} rows", rows());
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("the signal");
    child.wait().expect("the end");
    let recording = read(&path);
    assert!(!recording.complete && recording.len() >= 1500, "{}", recording.len());
    let text = run(&["report", path.to_str().unwrap()]).stdout;
    assert!(text.contains("was cut off") && text.contains("T_exec (us)"), "{text}");
}

// feature(measure): `export` to CSV keeps the events of cycles that have no row
#[test]
fn csv_keeps_marks_of_cycles_without_a_row() {
    let (from, to) = (path("marks.mcap"), path("marks.csv"));
    let facts = [("period_ns".to_owned(), 1_000_000.into())].into_iter().collect();
    let columns = ["release_ns", "cycle"].map(str::to_owned).to_vec();
    let header = Header { what: "cycle".to_owned(), columns, facts };
    let mut writer = RecordingWriter::begin(File::create(&from).unwrap(), &header).unwrap();
    let mark = |cycle, sentence: &str| Mark::Event {
        cycle,
        at_ns: 0,
        severity: "ok".to_owned(),
        sentence: sentence.to_owned(),
    };
    let marks = [(0, "up"), (4, "lost"), (4, "a, b"), (5, "back"), (9, "down")];
    marks.iter().for_each(|&(cycle, sentence)| writer.mark(&mark(cycle, sentence)).unwrap());
    [3, 5, 6].iter().for_each(|&cycle| writer.row(&[100 * cycle, cycle]).unwrap());
    writer.finish(&Facts::new()).unwrap();
    let ran = run(&["export", from.to_str().unwrap(), to.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("3 rows in "), "{}", ran.stdout);
    let expected = "release_ns,cycle,events,late\n300,3,cycle 0: up,\n500,5,\"cycle 4: lost; a, b; back\",\n600,6,cycle 9: down,\n";
    assert_eq!(std::fs::read_to_string(&to).unwrap(), expected);
    // A recording may have no columns at all.
    let header = Header { columns: Vec::new(), ..header };
    let writer = RecordingWriter::begin(File::create(&from).unwrap(), &header).unwrap();
    writer.finish(&Facts::new()).unwrap();
    std::fs::remove_file(&to).unwrap();
    let ran = run(&["export", from.to_str().unwrap(), to.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "events,late\n");
}
