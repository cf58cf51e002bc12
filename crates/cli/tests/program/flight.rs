//! `onbeat run --trigger`, `onbeat record`, `onbeat export`: recordings that are kept for a reason,
//! and for other programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onbeat::ipc::state::{DriveState, StopReason};
use record::{CycleRecord, Mark, Recording, cycles};

use crate::common::{file, finished, folder, onbeat, run, shared};
use crate::robots::Robot;

const SIX_AXIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml");

/// Files in a folder, oldest first.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|it| it.expect("a file").path()).collect();
    files.sort();
    files
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}

fn read(path: &Path) -> Recording {
    Recording::read(fs::read(path).expect("the recording").as_slice()).expect("a recording")
}

// feature(measure): flight recorder (`run --trigger`): cycles before and after a fault, a late cycle, a threshold, `onbeat record`
#[test]
fn a_fault_is_kept_with_what_was_before_and_after_it() {
    let folder = folder("flight-fault");
    let path = folder.join("arm.mcap");
    let script = file("flight-fault.txt", "1s drive fault drive-3 0x7500\n");
    let (path, script) = (path.to_str().unwrap(), script.to_str().unwrap());
    let times = ["--before", "300ms", "--after", "200ms", "--for", "3s", "--faults", script];
    let ran = run(&[&["run", SIX_AXIS, "--record", path, "--trigger", "fault"], &times[..]].concat());
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let files = kept(&folder);
    assert!(ran.stderr.contains(&format!("{path}: {} recording", files.len())), "{}", ran.stderr);
    // A host stall causes an outage, which is a fault, too.
    let with_fault = |path: &PathBuf| {
        let it = read(path);
        it.end["triggers"].to_string().contains("axis-3").then_some((path.clone(), it))
    };
    let (path, recording) = files.iter().find_map(with_fault).expect("a recording of the fault");
    assert!(name(&path).starts_with("arm-2") && name(&path).ends_with("Z-fault.mcap"), "{path:?}");
    assert!(ran.stderr.contains(path.to_str().unwrap()), "{}", ran.stderr);
    assert_eq!(recording.header.facts["trigger"]["cause"], "fault");
    let of_fault = recording.end["triggers"].as_array().unwrap().iter();
    let of_fault = of_fault.filter(|it| it["sentence"].as_str().unwrap().contains("axis-3"));
    let fault = of_fault.map(|it| it["cycle"].as_u64().unwrap()).min().unwrap();
    let (_, all) = cycles::cycles(&recording).unwrap();
    assert!(all.is_sorted_by(|a, b| a.cycle < b.cycle), "each cycle once");
    let (first, last) = (all[0].release_ns, all[all.len() - 1].release_ns);
    let at = all.iter().find(|it| it.cycle >= fault).expect("the fault").release_ns;
    assert!(at - first >= 250_000_000 && last - at >= 150_000_000, "{first} {at} {last}");
    assert_eq!(recording.end["cycles"], all.len());
    // The event, and the state of the axis, are recorded next to the cycles.
    let told = |mark: &Mark| matches!(mark, Mark::Event { severity, sentence, .. } if severity == "error" && sentence.contains("axis-3"));
    let mark = recording.marks.iter().find(|mark| told(mark)).expect("the event");
    assert!(mark.cycle() >= all[0].cycle && mark.cycle() <= fault + 1, "{mark:?} {fault}");
    let column =
        |name: &str| recording.process_data(&format!("axis:axis-3.{name}")).unwrap().collect::<Vec<_>>();
    let (state, stop, code) = (column("drive_state"), column("stop"), column("error_code"));
    let enabled = f64::from(DriveState::OperationEnabled as u8);
    assert_eq!((state[0], stop[0], code[0]), (enabled, 0.0, 0.0));
    let last = state.len() - 1;
    let faulty =
        (f64::from(DriveState::Fault as u8), f64::from(StopReason::Fault as u8), f64::from(0x7500));
    assert_eq!((state[last], stop[last], code[last]), faulty);
    // As CSV: in the row of its cycle.
    let csv = folder.join("fault.csv");
    assert_eq!(run(&["export", path.to_str().unwrap(), csv.to_str().unwrap()]).code, Some(0));
    let text = fs::read_to_string(&csv).unwrap();
    let row = text.lines().find(|line| line.starts_with(&format!("{},", mark.cycle()))).expect("its row");
    assert!(text.lines().next().unwrap().ends_with(",events,late"), "the last columns");
    assert!(row.contains("axis-3"), "{row}");
}

// feature(measure): `--record-size`: every cycle in parts of bounded size, a bounded number of them
#[test]
fn a_split_recording_is_bounded_and_loses_no_cycle() {
    let folder = folder("parts");
    let path = folder.join("arm.mcap");
    let path = path.to_str().unwrap();
    let many = ["--cycles", "16000", "--profile", "none", "--period", "500us"];
    let ran =
        run(&[&["run", SIX_AXIS, "--record", path, "--record-size", "1MB", "--keep", "3"], &many[..]]
            .concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cycles recorded in ") && ran.stderr.contains(" parts named after "),
        "{}",
        ran.stderr
    );
    let files = kept(&folder);
    assert_eq!(files.len(), 3, "{files:?}");
    let parts: Vec<Recording> = files.iter().map(|path| read(path)).collect();
    let numbers: Vec<u64> = parts.iter().map(|it| it.header.facts["part"].as_u64().unwrap()).collect();
    assert!(numbers[0] > 1 && numbers.is_sorted() && numbers[2] - numbers[0] == 2, "{numbers:?}");
    for (path, part) in files.iter().zip(&parts) {
        assert!(part.complete && part.end["cycles"] == part.len(), "{path:?}");
        let size = fs::metadata(path).unwrap().len();
        assert!(size < 1_200_000, "{size}");
    }
    let (_, all): (u64, Vec<_>) =
        parts.iter().map(|it| cycles::cycles(it).unwrap()).fold((0, Vec::new()), |mut all, it| {
            all.1.extend(it.1);
            all
        });
    assert_eq!(
        all.last().unwrap().cycle - all[0].cycle,
        all.len() as u64 - 1 + skipped(&all),
        "none is missing"
    );
    let ran = run(&["run", "--record", path, "--record-size", "1kB"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("1 MB at least"), "{}", ran.stderr);
    let ran = run(&["run", "--record", path, "--record-size", "1GB", "--trigger", "late"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

/// Releases that were passed over.
fn skipped(all: &[CycleRecord]) -> u64 {
    all[1..].iter().map(|it| u64::from(it.skipped)).sum()
}

// feature(measure): an old part that cannot be removed is reported, and costs no cycle
#[test]
fn an_old_part_that_stays_is_reported() {
    let folder = folder("parts-stay");
    // Not a file, and so not removed: also by root.
    fs::create_dir_all(folder.join("arm-20261121T074010.123Z-part.mcap")).unwrap();
    let path = folder.join("arm.mcap");
    let path = path.to_str().unwrap();
    let parts = ["--record-size", "1MB", "--keep", "1", "--profile", "none"];
    let ran = run(&[&["run", SIX_AXIS, "--cycles", "300", "--record", path], &parts[..]].concat());
    assert!(matches!(ran.code, Some(1 | 3)), "{}", ran.stderr);
    assert!(ran.stderr.contains("older parts stay: "), "{}", ran.stderr);
    assert!(ran.stderr.contains(": 1 older file was not removed"), "{}", ran.stderr);
    let files = kept(&folder);
    let part = files.iter().find(|path| path.is_file()).expect("a part");
    assert_eq!((files.len(), read(part).len()), (2, 300));
}

#[test]
fn of_thresholds_the_newest_files_are_kept_as_mcap_too() {
    let folder = folder("flight-threshold");
    let path = folder.join("arm.mcap");
    let times = ["--before", "50ms", "--after", "20ms", "--keep", "2", "--for", "5s"];
    let triggers =
        ["--trigger", "axis-1.target_position>0.01", "--trigger", "axis-1.target_position<-0.01"];
    let record = ["run", SIX_AXIS, "--record", path.to_str().unwrap()];
    let ran = run(&[&record, &triggers[..], &times].concat());
    assert!(matches!(ran.code, Some(0 | 3)), "{}{}", ran.stdout, ran.stderr);
    let files = kept(&folder);
    assert_eq!(files.len(), 2, "{files:?} {}", ran.stderr);
    for path in files {
        assert!(name(&path).ends_with("Z-threshold.mcap"), "{path:?}");
        let bytes = fs::read(&path).unwrap();
        let messages: Vec<_> = mcap::MessageStream::new(&bytes).unwrap().collect::<Result<_, _>>().unwrap();
        let count = |topic: &str| messages.iter().filter(|it| it.channel.topic == topic).count();
        assert!(count("/cycle") > 60, "{}", count("/cycle"));
        assert_eq!(count("/cycle"), count("/axes/axis-1"));
    }
}

#[test]
fn a_recording_is_kept_on_request() {
    let _shared = shared();
    let folder = folder("flight-command");
    let path = folder.join("arm.mcap");
    let arguments = ["--record", path.to_str().unwrap(), "--trigger", "command", "--after", "100ms"];
    let robot = Robot::run("flight-command", SIX_AXIS, &arguments);
    robot.until("some cycles on", |state| state.cycle > 300);
    let ask = |robot: &Robot, words: &[&str]| {
        let mut command = onbeat();
        command.arg("record").args(words).arg("--cycle").arg(robot.ipc.path());
        finished(command)
    };
    let asked = ask(&robot, &["the arm\u{1b}shook"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    let started = Instant::now();
    let complete = || {
        let first = kept(&folder).into_iter().next();
        let first = first.and_then(|path| Recording::read(&fs::read(path).unwrap()[..]).ok());
        first.is_some_and(|it| it.complete)
    };
    while !complete() {
        assert!(started.elapsed() < Duration::from_secs(30), "no recording");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = robot.end();
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let recording = read(&kept(&folder)[0]);
    let trigger = &recording.header.facts["trigger"];
    assert_eq!((&trigger["cause"], &trigger["sentence"]), (&"command".into(), &"the arm shook".into()));

    let robot = Robot::run("flight-none", SIX_AXIS, &[]);
    let asked = ask(&robot, &[]);
    let expected =
        "the run makes no recording on request, expected a run with --record FILE --trigger command";
    assert!(asked.sentence().contains(expected), "{}", asked.stderr);
    robot.end();
}

#[test]
fn invalid_triggers_are_reported() {
    let record = ["run", "--cycles", "10", "--record"];
    let ran = run(&[&record, &["/tmp/x.mcap", "--trigger", "axis-1.torqe>2"][..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("--trigger axis-1.torqe: found no such value in the recording"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("nearest: axis-1.torque"), "{}", ran.stderr);
    let ran = run(&[&record, &["/nowhere/x.mcap", "--trigger", "fault"][..]].concat());
    assert!(ran.sentence().contains("/nowhere/x.mcap: the recording cannot be written"), "{}", ran.stderr);
    for (arguments, expected) in [
        (["--trigger", "fall"], "found \"fall\", expected fault, late"),
        (["--before", "5s"], "--trigger"),
        (["--keep", "0"], "0 is not in 1.."),
    ] {
        let ran = run(&[&record[..], &["/tmp/x.mcap"], &arguments[..]].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let ran = run(&[&record, &["/tmp/x.mcap", "--trigger", "late", "--before", "61s"][..]].concat());
    assert!(
        ran.code == Some(2) && ran.stderr.contains("found 61s, expected 1min at most"),
        "{}",
        ran.stderr
    );
}

// feature(measure): `onbeat export`: a recording as MCAP or CSV
#[test]
fn a_recording_is_exported_as_csv_and_as_mcap() {
    let folder = folder("export");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (from, csv, mcap) = (path("run.mcap"), path("run.csv"), path("copy.mcap"));
    run(&["run", "--cycles", "100", "--record", &from, "--json"]).json();
    let recording = read(Path::new(&from));

    let ran = run(&["export", &from, &csv]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), format!("100 rows in {csv}\n").as_str()));
    let text = fs::read_to_string(&csv).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (lines.len(), lines[0]),
        (101, (recording.header.columns.join(",") + ",events,late").as_str())
    );
    let fields: Vec<&str> = lines[50].split(',').collect();
    let row = recording.rows().nth(49).unwrap();
    assert_eq!(fields[..row.len()], row.iter().map(i64::to_string).collect::<Vec<_>>());
    let process_data = recording.process_data_rows().nth(49).unwrap();
    let numbers =
        fields[row.len()..][..process_data.len()].iter().map(|field| field.parse().unwrap_or(f64::NAN));
    assert!(numbers.zip(process_data).all(|(a, &b)| a == b || a.is_nan() && b.is_nan()));

    assert_eq!(run(&["export", &from, &mcap]).stdout, format!("100 rows in {mcap}\n"));
    let bytes = fs::read(&mcap).unwrap();
    let messages: Vec<_> = mcap::MessageStream::new(&bytes).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(messages.iter().filter(|it| it.channel.topic == "/cycle").count(), 100);
    let offset = recording.header.facts["realtime_offset_ns"].as_i64().unwrap();
    let release = recording.column("release_ns").unwrap().next().unwrap();
    assert_eq!(messages[0].log_time, u64::try_from(release + offset).unwrap());

    let ran = run(&["export", &from, &csv]);
    assert!(
        ran.sentence().ends_with("the file exists, expected none; --force replaces it"),
        "{}",
        ran.stderr
    );
    assert_eq!(run(&["export", &from, &csv, "--force"]).code, Some(0));
    let ran = run(&["export", &from, &path("run.txt")]);
    assert!(
        ran.sentence().ends_with("run.txt: expected a name that ends in .csv or .mcap"),
        "{}",
        ran.stderr
    );
    // The copy has all that the recording has, and another name does not matter.
    let copy = read(Path::new(&mcap));
    assert_eq!(
        (&copy.header, &copy.end, &copy.marks),
        (&recording.header, &recording.end, &recording.marks)
    );
    let bits = |it: &Recording| it.process_data_rows().flatten().map(|it| it.to_bits()).collect::<Vec<_>>();
    assert!(copy.complete && copy.rows().eq(recording.rows()) && bits(&copy) == bits(&recording));
    fs::rename(&mcap, path("copy.onbeat")).unwrap();
    assert_eq!(run(&["export", &path("copy.onbeat"), &path("copy.csv")]).code, Some(0));
    assert_eq!(fs::read_to_string(path("copy.csv")).unwrap(), text);
    let old = file("export-old.onbeat", "# onbeat recording 1\n# {}\n");
    for (from, expected) in [
        (csv.as_str(), "found \"cycle,"),
        (old.to_str().unwrap(), "found a text recording of an earlier Onbeat"),
    ] {
        let ran = run(&["export", from, &path("again.csv")]);
        assert!(ran.sentence().contains(expected), "{}", ran.stderr);
        assert!(!Path::new(&path("again.csv")).exists());
    }
}

/// A file that is no recording is kept, as is a file that is being written or read.
#[test]
fn no_file_is_lost_to_a_recording() {
    let folder = folder("not-lost");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let robot = path("robot.toml");
    let text = fs::read_to_string(SIX_AXIS).unwrap();
    fs::write(&robot, &text).unwrap();
    for option in ["--record", "--events"] {
        let ran = run(&["run", &robot, "--no-ipc", "--cycles", "10", option, &robot]);
        assert!(ran.sentence().contains("there is a file that"), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&robot).unwrap(), text);
    }
    // A recording is replaced only on demand, and not exported onto itself by halves.
    let recording = path("run.csv");
    let record = ["run", "--no-ipc", "--cycles", "50", "--json", "--record"];
    for recording in [&recording, &path("run.mcap")] {
        run(&[&record[..], &[recording]].concat()).json();
        let first = fs::read(recording).unwrap();
        let ran = run(&[&record[..], &[recording]].concat());
        assert!(ran.sentence().contains("there is a recording already; --force"), "{}", ran.stderr);
        assert!(ran.code == Some(1) && fs::read(recording).unwrap() == first, "{:?}", ran.code);
        run(&[&record[..], &[recording, "--force"]].concat()).json();
        assert!(fs::read(recording).unwrap() != first);
    }
    // Parts have the time in their names, as the files of a flight recorder do.
    for runs in 1..=2 {
        run(&[&record[..], &[&path("several.mcap"), "--record-size", "1MB"]].concat()).json();
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let parts = names.filter(|name| name.to_str().unwrap().ends_with("Z-part.mcap"));
        assert_eq!(parts.count(), runs);
    }
    assert_eq!(
        run(&["export", &recording, &recording, "--force"]).stdout,
        format!("50 rows in {recording}\n")
    );
    assert_eq!(fs::read_to_string(&recording).unwrap().lines().count(), 51);
    let other = path("other.mcap");
    let robot = Robot::run("held", SIX_AXIS, &["--record", &other]);
    let ran = run(&["run", "--no-ipc", "--cycles", "10", "--record", &other]);
    assert!(ran.sentence().contains("another run writes it"), "{}", ran.stderr);
    robot.end();
    assert!(read(Path::new(&other)).complete);
    // Half a line of events is ended before the next.
    let events = path("events.jsonl");
    fs::write(&events, "{\"time\":\"cut").unwrap();
    run(&["run", "--no-ipc", "--cycles", "10", "--json", "--events", &events]).json();
    let text = fs::read_to_string(&events).unwrap();
    let began: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).expect("JSON");
    assert_eq!(began["event"], "run_began");
    let ran = run(&["export", "/dev/zero", &path("zero.csv")]);
    assert!(ran.sentence().contains("not a regular file"), "{}", ran.stderr);
}
