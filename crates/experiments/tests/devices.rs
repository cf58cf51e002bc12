//! `measure devices`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use devices::Kind;
use onbeat_experiments::devices::Devices;
use support::{Folder, conduct, number, table};

// feature(devices): `measure devices`
#[test]
fn the_five_pairs_are_measured_recorded_and_tested_against_the_bounds() {
    let folder = Folder::new();
    let experiment = Devices { duration: Duration::from_millis(2_500), ..Devices::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let periods = table(&report, "Period, ms");
    let responses = table(&report, "Response, ms");
    let tasks = [("sonar", 30), ("range_finder", 200), ("led_strip", 20), ("imu", 10), ("actuators", 10)];
    for (task, period) in tasks {
        let at = |column: &str| number(responses, task, column);
        assert!(at("minimum") > 0.0 && at("minimum") <= at("average") && at("average") <= at("maximum"));
        assert_eq!(number(periods, task, "nominal period"), f64::from(period));

        let recording = folder.recording(task);
        assert!(recording.complete);
        assert_eq!(recording.header.columns, ["release_ns", "start_ns", "end_ns"]);
        assert!(recording.rows().all(|row| row[0] <= row[1] && row[1] <= row[2]));
        let releases: Vec<i64> = recording.column("release_ns").unwrap().collect();
        assert!(
            releases.len() >= 2 && releases.windows(2).all(|pair| (pair[1] - pair[0]) % 1_000_000 == 0)
        );
        // The real-time task never waits for it, but the ordinary one did use its device.
        assert!(folder.recording(&format!("{task}-device")).rows().len() > 2, "{task}");
    }
    // Released together, at first.
    let first = |task: &str| folder.recording(task).column("release_ns").unwrap().next().unwrap();
    assert!(tasks.iter().all(|(task, _)| first(task) == first("sonar")));

    let bounds = table(&report, "Utilisation bounds");
    assert_eq!(number(bounds, "with the median C", "Liu and Layland"), 0.743492);
    let (low, high) = (number(bounds, "with the median C", "U"), number(bounds, "with the longest C", "U"));
    assert!(low > 0.0 && low <= high);
    assert!(number(bounds, "with the median C", "product of U + 1") > 1.0 + low * 0.999);
    let figures: Vec<_> =
        report.values["paper"].as_array().unwrap().iter().map(|it| &it["figure"]["name"]).collect();
    assert_eq!(figures, ["Table 1", "utilisation", "Figures 5 and 6"]);
    let told = report.values["tasks"].as_array().unwrap();
    assert!(told.iter().all(|task| task["messages"].as_u64().unwrap() > 0), "{told:?}");
    assert!(report.warnings.iter().any(|warning| warning.contains("all devices are simulated")));
}

#[test]
fn a_device_that_is_not_there_is_a_warning_and_its_task_is_measured_all_the_same() {
    let folder = Folder::new();
    let mut experiment = Devices { duration: Duration::from_millis(600), ..Devices::default() };
    experiment.replace(Kind::Imu { i2c: Some(("/dev/onbeat-no-such-bus".into(), 0x68)) });
    let report = conduct(&folder, |context| experiment.run(context));
    assert!(
        report.warnings.iter().any(|warning| warning.starts_with("device imu (/dev/onbeat-no-such-bus")),
        "{:?}",
        report.warnings
    );
    assert!(folder.recording("imu").rows().len() > 2);
    let imu = report.values["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "imu").unwrap();
    assert_eq!(imu["messages"], imu["messages_stale"]);
}
