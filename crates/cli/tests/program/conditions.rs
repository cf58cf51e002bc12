//! Conditions of a measurement, in every place that shows them.

use std::collections::BTreeMap;
use std::fs;

use record::Recording;
use serde_json::{Map, Value, json};

use crate::common::{folder, measured_beside, run};

/// Names that every measurement of a robot has, on any machine.
const NAMES: [&str; 9] =
    ["began", "version", "host", "robot", "robot_file_sha256", "kernel", "preempt_rt", "cpu_model", "cpus"];

/// Conditions that are the same in every run here.
const STEADY: [&str; 6] = ["version", "host", "robot", "robot_file_sha256", "kernel", "cpu_model"];

// feature(measure): conditions have the same names in `run --json`, in recordings and their MCAP metadata, in reports and in those of experiments
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
