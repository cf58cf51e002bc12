//! `measure interrupt`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use onbeat_experiments::interrupt::{Condition, Interrupt, Line};
use support::{Folder, assert_in_order, conduct, number, table};

// feature(measure): `measure interrupt`, by a real-time thread and by an ordinary one, idle and loaded
#[test]
fn timers_and_frames_are_measured_from_interrupt_to_user_code() {
    let folder = Folder::new();
    // An ordinary thread under load takes its time: that condition is left out.
    let conditions = Condition::ALL[..3].to_vec();
    let interval = Duration::from_micros(500);
    let experiment = Interrupt { samples: 120, interval, conditions, ..Interrupt::default() };
    let report = conduct(&folder, |context| experiment.run(context));
    let latencies = table(&report, "Latency, us");
    let timers = ["timer: clock_nanosleep", "timer: timerfd", "timer: POSIX timer, signal"];
    for name in timers {
        assert!(number(latencies, name, "minimum") >= 0.0);
    }
    for condition in ["ordinary, idle", "real-time, loaded"] {
        let rows = &table(&report, &format!("Latency, us, {condition}")).rows;
        assert!(rows.iter().zip(&latencies.rows).all(|(row, first)| row.name == first.name), "{condition}");
        let recording = folder.recording(&format!("timer-timerfd-{}", condition.replace(", ", "-")));
        assert_eq!(recording.rows().len(), 120, "{condition}");
    }
    let ratios = table(&report, "Ordinary thread over real-time one");
    assert_eq!(ratios.rows.len(), latencies.rows.len());
    let recording = folder.recording("timer-timerfd");
    assert!(recording.complete);
    assert_eq!((recording.header.what.as_str(), recording.rows().len()), ("interrupt", 120));

    let refused = report.warnings.iter().find(|warning| warning.starts_with("frames are not measured"));
    if let Some(refused) = refused {
        return testkit::skip!("{refused}");
    }
    assert_in_order(latencies);
    let (frame, reaction) =
        ("NIC: kernel's receive stamp to user code", "NIC: frame in to frame out, by kernel stamps");
    // The reply is sent after the frame was read: every reaction is longer than the quickest
    // reading.
    assert!(number(latencies, reaction, "minimum") > number(latencies, frame, "minimum"));
    let lost = report.values["frames_lost"].as_u64().unwrap();
    let came = folder.recording("nic-kernel-s-receive-stamp-to-user-code").rows().len() as u64;
    assert_eq!((came, lost), (120, 0), "a cable of one machine loses nothing");
}

// feature(measure): `measure interrupt`
#[test]
fn what_is_not_there_is_said_and_the_rest_measured() {
    let folder = Folder::new();
    let experiment = Interrupt {
        samples: 20,
        conditions: vec![Condition { real_time: true, loaded: false }],
        interface: Some("onbeat-none0".into()),
        gpio_input: Some(Line { chip: "/dev/gpiochip999".into(), offset: 3 }),
        ..Interrupt::default()
    };
    let report = conduct(&folder, |context| experiment.run(context));
    assert_eq!(table(&report, "Latency, us").rows.len(), 3, "the timers");
    for words in ["frames are not measured: interface onbeat-none0", "GPIO line /dev/gpiochip999:3"] {
        assert!(report.warnings.iter().any(|it| it.starts_with(words)), "{words}: {:?}", report.warnings);
    }
}
