//! `measure cost`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use onbeat_experiments::cost::Cost;
use support::{Folder, conduct, context, goes_on, number, table};

// feature(measure): `measure cost`: T_exec against the number of SubDevices and the bytes of their PDOs, with a fitted plane
// feature(measure): `measure cost`: a cycle's own work by the number of its SubDevices, axes and signals
// feature(measure): `--continue DIR` of `cost`
#[test]
fn every_size_has_its_row_and_its_cycles() {
    let folder = Folder::new();
    let experiment = Cost { cycles: 200, rounds: 2, largest: 10, priority: None, cpu: 0 };
    let report = conduct(&folder, |context| experiment.run(context));
    for (caption, rows) in [
        ("Digital terminals", &["1", "10"][..]),
        ("Servo drives", &["1", "10"]),
        ("128 digital", &["0", "1", "10"]),
    ] {
        let names: Vec<&str> = table(&report, caption).rows.iter().map(|row| &*row.name).collect();
        assert_eq!(names, rows, "{caption}");
    }
    let sweep = table(&report, "T_exec = C + P + T");
    assert_eq!(sweep.rows.len(), 2 * 3, "one and ten SubDevices of three sizes");
    assert_eq!(number(sweep, "10 of 48 + 48 bytes", "bytes"), 960.0);
    assert!(number(sweep, "10 of 48 + 48 bytes", "T_exec") > 0.0);
    let fit = &report.values["fit"];
    let at = |n: f64, bytes: f64| {
        let of = |name: &str| fit[name].as_f64().unwrap();
        (of("constant_ns") + n * of("sub_device_ns") + bytes * of("byte_ns")) / 1e3
    };
    assert!((at(10.0, 960.0) - number(sweep, "10 of 48 + 48 bytes", "fitted")).abs() < 0.001, "{fit}");
    // Ten drives are one frame, and more work than one.
    assert_eq!(report.values["axes_10_ns"]["frames"].as_f64().map(f64::round), Some(1.0));
    let median = |name: &str| report.values[name]["median"].as_u64().unwrap();
    assert!(median("axes_10_ns") > median("axes_1_ns"), "{:?}", report.values);
    for name in ["sub_devices-10", "axes-10", "signals-0"] {
        let recording = folder.recording(name);
        assert!(recording.complete);
        assert_eq!(recording.rows().len(), 400);
        assert!(recording.column("whole_ns").unwrap().all(|whole| whole > 0));
    }
    goes_on(&folder, &report, |context| experiment.run(context));
}

// feature(measure): `measure cost` ends on Ctrl-C while it measures a bus; complete rounds are kept
#[test]
fn a_stop_is_obeyed_while_a_bus_is_measured() {
    let folder = Folder::new();
    let stop = AtomicBool::new(false);
    let context = context(&folder, &stop);
    let experiment = Cost { cycles: Cost::MOST_CYCLES, rounds: 1, largest: 10, priority: None, cpu: 0 };
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| experiment.run(&context));
        while !is_measuring() {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap()
    });
    assert!(
        table(&report, "Digital terminals").rows.iter().all(|row| row.cells[1] == "-"),
        "{}",
        report.text()
    );
    assert!(!folder.0.join("round-1.cell.json").exists());
}

/// True once a bus is under way.
fn is_measuring() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut names = threads.map(|it| std::fs::read_to_string(it.path().join("comm")).unwrap_or_default());
    names.any(|name| name.trim() == "cost")
}
