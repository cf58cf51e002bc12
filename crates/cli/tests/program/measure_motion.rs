//! `onbeat measure omni` and `navigation`: bases that drive, from the planner down to simulated
//! drives.
//!
//! Conditions of a measurement, in every place that shows them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use record::Recording;
use serde_json::{Map, Value, json};

use crate::common::{
    Ran, Running, await_cycles, finished, folder, measure, measured, measured_beside, of_the_paper, onbeat,
    run, shared,
};

fn report(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("report.json")).expect("a saved report");
    serde_json::from_str(&text).expect("JSON")
}

/// Repeats `drive` after a host stall longer than the drives' watchdog: the drives then stop, as
/// they must.
fn until_still<T>(mut drive: impl FnMut() -> Option<T>) -> T {
    for _ in 0..5 {
        if let Some(result) = drive() {
            return result;
        }
        eprintln!("the machine stood still: once more");
    }
    panic!("the machine stands still all the time");
}

// feature(papers): `measure omni`
#[test]
fn an_omnidirectional_robot_follows_its_path_to_the_end() {
    let off = |report: &Value, name: &str| report["values"][name].as_f64().expect("a number");
    let (report, folder) = until_still(|| {
        let settings = ["omni", "--velocity", "0.9", "--acceleration", "0.9", "--jerk", "5", "--json"];
        let (ran, folder) = measured_beside("omni", &settings);
        let report = ran.json();
        // A host stall leaves the robot behind its path.
        let followed =
            off(&report, "end_point_error_mm") < 100.0 && off(&report, "largest_distance_mm") < 300.0;
        followed.then_some((report, folder))
    });
    // The last commands ask for what is missing; encoders and gears leave micrometres.
    assert!(off(&report, "end_point_error_mm") < 2.0, "{}", report["values"]);
    assert!(off(&report, "heading_error_degrees") < 0.5, "{}", report["values"]);
    let page = fs::read_to_string(folder.join("report.html")).expect("the page");
    assert_eq!(of_the_paper(&report), ["Section 4.1"]);
    assert_eq!(page.matches("<svg").count(), 4, "trajectory, velocities, wheels, distance");
    let shown = run(&["report", folder.to_str().expect("a path")]).stdout;
    assert!(shown.contains("end-point error") && shown.contains("convolution"), "{shown}");
}

#[test]
fn a_robot_that_cannot_go_aside_is_refused() {
    let (ran, _) = measured_beside("omni-m4k", &["omni", "examples/m4k.toml"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("expected a robot with a [base] of kind mecanum or omni"),
        "{}",
        ran.stderr
    );
}

/// Six seconds are too short for three metres round a triangle: the experiment says so, with all
/// four rows in its report.
// feature(papers): `measure navigation`
#[test]
fn navigation_measures_four_drives_and_fails_without_arrival() {
    const KEYS: [&str; 4] = ["ordinary", "real-time", "ordinary-load", "real-time-load"];
    let (ran, folder, report) = until_still(|| {
        let (ran, folder) =
            measured("navigation", &["navigation", "--duration", "6s", "--velocity", "0.5"]);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        let report = report(&folder);
        // A planner that a busy machine held up for all of the six seconds saw nothing.
        let saw = |key: &&str| report["values"][key]["least_room_m"].is_number();
        KEYS.iter().all(saw).then_some((ran, folder, report))
    });
    let said = ran.stderr.lines().last().expect("a sentence");
    assert!(said.contains("real-time cycle: it did not arrive") && said.contains("m were left"), "{said}");
    let rows = report["sections"][0]["table"]["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let expected = [
        "ordinary process",
        "real-time cycle",
        "ordinary process, under load",
        "real-time cycle, under load",
    ];
    assert_eq!(names, expected);
    assert_eq!(of_the_paper(&report), ["Figure 10"]);
    let sections = report["sections"].as_array().expect("sections");
    let boxes = sections.iter().find_map(|it| it["boxes"]["boxes"].as_array()).expect("Figure 10");
    assert_eq!(boxes.len(), 4, "{boxes:?}");
    for key in KEYS {
        let asked = sections.iter().filter_map(|it| it["curve"]["series"].as_array());
        assert_eq!(asked.filter(|it| it.len() == 2).count(), 8, "reference and feedback of two velocities");
        let values = &report["values"][key];
        let (period, deviation) = (&values["period_ns"], &values["deviation_ns"]);
        for of in [period, deviation] {
            let number = |name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name} in {values}"));
            assert!(number("minimum") <= number("average") && number("average") <= number("maximum"));
            assert!(number("standard_deviation") >= 0.0);
        }
        assert!(values["cycles"].as_u64() > Some(20) && values["arrived_after_s"].is_null(), "{values}");
        assert!(values["least_room_m"].as_f64() > Some(0.0), "it touches nothing: {values}");
        for file in [format!("{key}.mcap"), format!("{key}-cycles.mcap")] {
            let shown = run(&["report", folder.join(&file).to_str().expect("a path")]);
            assert_eq!(shown.code, Some(0), "{file}: {}", shown.stderr);
        }
    }
}

// feature(papers): `measure navigation`
#[test]
fn a_drive_that_cannot_arrive_is_refused_before_it_begins() {
    let (ran, folder) = measured_beside("navigation-short", &["navigation", "--duration", "11s"]);
    assert!(ran.sentence().contains("expected more than 11.6 s for 2.9 m at 0.25 m/s"), "{}", ran.stderr);
    assert!(!folder.join("ordinary-cycles.mcap").exists());
}

// feature(papers): `measure omni` and `navigation` from any folder
#[test]
fn omni_finds_its_robot_from_any_folder() {
    let folder = folder("omni-elsewhere");
    let mut command = measure();
    let quick = ["--velocity", "2.0", "--acceleration", "4.0", "--jerk", "40"];
    command.current_dir(&folder).arg("omni").args(quick).args(["--out", "measured", "--json"]);
    let _shared = shared();
    let ran = finished(command);
    assert!(ran.json()["values"]["commands"].as_u64() > Some(100), "{}", ran.stderr);
    let robot = fs::read_to_string(folder.join("measured/omni.toml")).expect("the robot's file");
    assert!(robot.contains("mecanum"), "{robot}");
}

/// The planner in a separate process, the IPC, the cycle, the drives: 3 m round the triangle.
#[test]
fn a_pilot_on_the_other_side_of_the_ipc_reaches_the_goal() {
    // Twice as fast as the paper's, for the sake of the test's time.
    let course = r#"{"goal":[3.0,0.0],"obstacle":[[1.4,0.05],[1.75,-0.15],[1.75,0.25]],"boards":[[-0.5,-1.0],[3.75,1.0]],"robot":[0.45,0.28],"tolerance":0.1,"velocity":0.5,"acceleration":0.37}"#;
    let folder = folder("pilot");
    let ipc = format!("pilot-{}", std::process::id());
    let least_room = until_still(|| {
        let _shared = shared();
        let mut robot = onbeat();
        robot.args(["run", "examples/m4k.toml", "--json", "--period", "10ms", "--profile", "none"]);
        robot.args(["--for", "14s", "--ipc", &ipc]);
        let robot = Running::start(robot);
        await_cycles(robot.id(), 20);
        let mut pilot = measure();
        pilot.args(["pilot", "--ipc", &ipc, "--log", "pilot", "--course", course, "--directory"]);
        let ran = finished({
            pilot.arg(&folder);
            pilot
        });
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let ended = robot.finish();
        let log = fs::read(folder.join("pilot.mcap")).expect("the log");
        let log = Recording::read(&log[..]).expect("a recording");
        let rows: Vec<&[i64]> = log.rows().collect();
        let last = rows.last().expect("rows");
        let metres = |cell: i64| cell as f64 / 1e9;
        let there = (metres(last[1]) - 3.0).hypot(metres(last[2])) < 0.15;
        let room = rows.iter().map(|row| metres(row[10])).fold(f64::INFINITY, f64::min);
        let still = ended.code == Some(0);
        assert!(there || !still || was_late(&ended), "it stands at {last:?}");
        there.then_some(room)
    });
    assert!(least_room > 0.0 && least_room < 0.3, "{least_room} m: past the triangle, without touching it");
}

/// True if a host stall stopped the drives, or nearly.
fn was_late(ended: &Ran) -> bool {
    ended.json()["t_period_ns"]["maximum"].as_u64() > Some(90_000_000)
}

/// Names that every measurement of a robot has, on any machine.
const NAMES: [&str; 9] =
    ["began", "version", "host", "robot", "robot_file_sha256", "kernel", "preempt_rt", "cpu_model", "cpus"];

/// Conditions that are the same in every run here.
const STEADY: [&str; 6] = ["version", "host", "robot", "robot_file_sha256", "kernel", "cpu_model"];

// feature(measure): conditions have the same names in `run --json`, in recordings and their MCAP metadata, in reports and in reports of experiments
#[test]
fn conditions_have_the_same_names_and_values_everywhere() {
    let folder = folder("conditions");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let mcap = path("run.mcap");
    let ran = run(&["run", "--cycles", "50", "--record", &mcap, "--json"]).json();
    let of_run = ran["conditions"].as_object().expect("conditions").clone();

    let recording = Recording::read(&fs::read(&mcap).expect("the recording")[..]).expect("a recording");
    let report = run(&["report", &mcap, "--json"]).json();
    let (ran, measured) =
        measured_beside("conditions-servo", &["servo", "--duration", "300ms", "--profile", "none"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    let of_measure: Value =
        serde_json::from_slice(&fs::read(measured.join("report.json")).expect("a report")).expect("JSON");

    let told = [
        ("a recording", recording.header.facts.clone()),
        ("the metadata of a recording", metadata(&fs::read(&mcap).expect("the recording"))),
        ("report", facts(&report)),
        ("measure", facts(&of_measure)),
    ];
    for name in NAMES {
        assert!(!of_run[name].is_null(), "{name} of run: {of_run:?}");
    }
    for (whose, facts) in told {
        for name in NAMES {
            assert!(facts.contains_key(name), "{name} of {whose}: {facts:?}");
        }
        for name in STEADY {
            assert_eq!(facts[name], of_run[name], "{name} of {whose}");
        }
        let began = facts["began"].as_str().and_then(|it| humantime::parse_rfc3339(it).ok());
        assert!(began.is_some(), "{whose}: {}", facts["began"]);
    }
}

/// Conditions of a report by their names, each of which there is once.
fn facts(report: &Value) -> Map<String, Value> {
    let all = report["conditions"].as_array().expect("conditions");
    let facts: Map<_, _> = all
        .iter()
        .map(|it| (it["name"].as_str().expect("a name").to_owned(), it["value"].clone()))
        .collect();
    assert_eq!(facts.len(), all.len(), "{all:?}");
    facts
}

/// Facts at the beginning of an MCAP file.
fn metadata(bytes: &[u8]) -> Map<String, Value> {
    let summary = mcap::Summary::read(bytes).expect("MCAP").expect("a summary");
    let index = summary.metadata_indexes.iter().find(|it| it.name == "onbeat").expect("its facts");
    let found: BTreeMap<String, String> = mcap::read::metadata(bytes, index).expect("its facts").metadata;
    found.into_iter().map(|(name, value)| (name, json!(value))).collect()
}
