//! `measure devices`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use devices::Kind;
use onbeat_experiments::devices::Devices;
use report::Report;
use support::{Folder, conduct, number, table};

// feature(devices): `measure devices`: responses with their six parts, each device alone and all together
// feature(devices): `measure devices --direct`: calls of a driver block its real-time task; calls through the channel do not
#[test]
fn five_pairs_are_measured_recorded_and_tested_against_bounds() {
    let folder = Folder::new();
    let (waiting, direct) = (Duration::from_millis(400), Some(Duration::from_millis(300)));
    let experiment =
        Devices { duration: Duration::from_millis(2_500), waiting, direct, ..Devices::default() };
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

    waited_for(&report, &folder);
    called_directly(&report);

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

/// Responses as the paper has them: of six parts, with the device's own time in it.
fn waited_for(report: &Report, folder: &Folder) {
    for (caption, what) in [("Each device alone", "alone"), ("All devices together", "together")] {
        let responses = table(report, caption);
        // An LED strip of 60, an IMU, encoders and a converter take as long as their wires, a sonar
        // as long as the sound to the wall and back: 60 words of 24 bits at 1.25 us, three reads at
        // 400 kbit/s, four transfers at 1 Mbit/s.
        for (device, device_us) in
            [("sonar", 5_000.0), ("led_strip", 1_800.0), ("imu", 810.0), ("actuators", 96.0)]
        {
            let at = |column: &str| number(responses, device, column);
            let parts: f64 = ["C", "S", "r", "D", "R", "w"].into_iter().map(at).sum();
            assert!((parts - at("response avg")).abs() < 0.01, "{device}: {parts}");
            assert!(at("D") >= device_us, "{device}: {}", at("D"));
            let rows = folder.recording(&format!("{device}-{what}"));
            assert!(rows.complete && rows.rows().len() > 3);
            assert!(rows.rows().all(|row| row.windows(2).all(|pair| pair[0] <= pair[1])), "{device}");
        }
    }
    let taken = report.values["bounds_of_responses"]["longest"]["utilisation"].as_f64().unwrap();
    let own = report.values["bounds"]["longest"]["utilisation"].as_f64().unwrap();
    assert!(taken > own, "{taken} {own}");
}

/// Calls of a driver that block its real-time task; calls through the channel never block.
fn called_directly(report: &Report) {
    let told = report.values["direct"].as_array().unwrap();
    let of = |name: &str| told.iter().find(|it| it["name"] == name).unwrap();
    for name in ["sonar", "led_strip", "imu", "actuators"] {
        let it = of(name);
        let (jobs, blocked) = (it["jobs"].as_u64().unwrap(), it["blocked"].as_u64().unwrap());
        // The task waits for its device in each job.
        // A host stall stops the motors, which counts as a failure.
        let works = it["failures"] == 0 || name == "actuators";
        assert!(jobs > 3 && blocked >= jobs && works, "{it}");
        let (jobs, blocked) = (&it["through_channel"]["jobs"], &it["through_channel"]["blocked"]);
        assert!(jobs.as_u64().unwrap() > 10 && blocked == 0, "{it}");
    }
    assert_eq!(table(report, "called by the real-time task itself").rows.len(), 10);
}

#[test]
fn a_missing_device_is_a_warning_and_its_task_is_measured() {
    let folder = Folder::new();
    let waiting = Duration::from_millis(300);
    let mut experiment = Devices { duration: Duration::from_millis(600), waiting, ..Devices::default() };
    experiment.replace(Kind::mpu6050(Some(("/dev/onbeat-no-such-bus".into(), 0x68))));
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
