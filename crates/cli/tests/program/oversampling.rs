//! Samples of an oversampling terminal from the user's point of view: `onbeat io`, recordings,
//! `run --json`.
//!
//! Arrays of bytes as a text or as hexadecimal digits: `onbeat io get`, `set` and `force`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use record::Recording;
use serde_json::Value;

use crate::common::{Running, await_cycles, file, finished, onbeat, run, shared};
use crate::signals::interrupt;

const ROBOT: &str = "examples/vibration.toml";

/// Samples of the array `vibration` in an array of objects.
fn samples(signals: &Value) -> Vec<f64> {
    let all = signals.as_array().expect("signals");
    let named = |number: usize| all.iter().find(|it| it["name"] == format!("vibration[{number}]"));
    (0..10).map(|number| named(number).expect("a sample")["value"].as_f64().expect("a number")).collect()
}

/// The end of a run has the samples of its last cycle; they differ, as samples of a wave do. A
/// recording has a column for each.
// feature(signals): oversampling: arrays in `onbeat io`, recordings and JSON
#[test]
fn a_run_keeps_the_samples_of_its_last_cycle_and_records_all() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vibration.mcap");
    let _ = std::fs::remove_file(&path);
    let recorded = path.to_str().expect("UTF-8");
    let end = run(&["run", ROBOT, "--cycles", "300", "--record", recorded, "--json", "--no-ipc"]).json();
    let last = samples(&end["signals"]);
    assert!(last.windows(2).all(|pair| pair[0] != pair[1]), "{last:?}");
    let recording = Recording::read(BufReader::new(File::open(&path).expect("the recording"))).expect("it");
    let columns = &recording.header.columns;
    for number in 0..10 {
        assert!(columns.contains(&format!("signal:vibration[{number}]")), "{columns:?}");
    }
}

/// The name of an array means all its elements, to read, to set and to force.
// feature(signals): oversampling: arrays in `onbeat io`, recordings and JSON
#[test]
fn io_takes_the_name_of_an_array_for_all_its_elements() {
    let _shared = shared();
    let socket: PathBuf =
        std::env::temp_dir().join(format!("onbeat-vibration-{}", std::process::id())).join("io.sock");
    let mut command = onbeat();
    command.args(["run", ROBOT, "--for", "50s", "--json", "--ipc"]).arg(&socket);
    let cycle = Running::start(command);
    await_cycles(cycle.id(), 1_000);
    let io = |arguments: &[&str]| -> Command {
        let mut command = onbeat();
        command.arg("io").args(arguments).arg("--cycle").arg(&socket);
        command
    };
    let said = |arguments: &[&str]| {
        let ran = finished(io(arguments));
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    };
    let got = said(&["get", "vibration", "block"]);
    let lines: Vec<&str> = got.lines().collect();
    assert_eq!(lines.len(), 11, "{got}");
    assert!(lines[..10].iter().all(|line| line.contains(" m/s²")), "{got}");
    let array: Value = serde_json::from_str(&said(&["get", "vibration", "--json"])).expect("JSON");
    assert_eq!((array.as_array().map(Vec::len), samples(&array).len()), (Some(10), 10));
    let forced = said(&["force", "vibration", "1,2,3,4,5,6,7,8,9,10", "--for", "1h"]);
    assert_eq!(forced.lines().count(), 10, "{forced}");
    let values: Vec<f64> =
        samples(&serde_json::from_str(&said(&["get", "vibration", "--json"])).expect("JSON"));
    assert!(
        values.iter().zip(1..).all(|(value, number)| (value - f64::from(number)).abs() < 0.01),
        "{values:?}"
    );
    said(&["release", "vibration"]);
    let setting = Running::start(io(&["set", "shaker", "0,1,2,3,4,5,4,3,2,1"]));
    let begin = Instant::now();
    let volts = || -> f64 {
        let shown = said(&["get", "shaker[5]"]);
        shown.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    while (volts() - 5.0).abs() > 0.01 {
        assert!(begin.elapsed().as_secs() < 20, "it is not set: {}", volts());
    }
    assert_eq!(interrupt(setting).stdout.lines().count(), 10);
    for (arguments, sentence) in [
        (
            &["set", "shaker", "1,2,3"][..],
            "3 values for the signal \"shaker\", expected one for all its elements, or 10 with commas between",
        ),
        (
            &["set", "shaker", "1,2,3,4,5,6,7,8,9,ten"],
            "\"ten\" for the signal \"shaker[9]\", expected a number",
        ),
        (&["set", "shaker", "10.5"], "10.5 for the signal \"shaker[0]\", expected -10 to 10"),
        (&["get", "vibrations"], "no signal is called \"vibrations\""),
        (&["get", "vibration[10]"], "no signal is called \"vibration[10]\""),
    ] {
        let ran = finished(io(arguments));
        assert!(ran.sentence().contains(sentence), "{arguments:?}: {}", ran.stderr);
    }
    let watched = Running::start(io(&["watch", "vibration", "--json"]));
    std::thread::sleep(Duration::from_millis(300));
    interrupt(cycle);
    let watched = watched.finish().stdout;
    let of =
        |number: usize| watched.lines().filter(|it| it.contains(&format!("vibration[{number}]"))).count();
    assert!((0..10).all(|number| of(number) > 1), "{watched}");
}

const TEXTS: &str = r#"
name = "serial"

[cycle]
period = "1ms"
profile = "none"

[[bus.sub_device]]
name = "lines"
simulate = { kind = "el6022" }

[[bus.sub_device]]
name = "other lines"
simulate = { kind = "serial_lines" }

[[signal]]
name = "out"
sub_device = "lines"
entry = { index = 0x7000, sub_index = 0x11 }
elements = 22
writer = "outside"

[[signal]]
name = "in"
sub_device = "lines"
entry = { index = 0x6000, sub_index = 0x11 }
elements = 22
"#;

// feature(signals): arrays of bytes as a text or as hexadecimal digits in `onbeat io`
#[test]
fn byte_strings_are_set_forced_and_shown_as_text_or_hex() {
    let _shared = shared();
    let socket = std::env::temp_dir().join(format!("onbeat-bytes-{}", std::process::id())).join("io.sock");
    let mut command = onbeat();
    command.arg("run").arg(file("byte-strings.toml", TEXTS)).args(["--for", "60s", "--ipc"]).arg(&socket);
    let cycle = Running::start(command);
    await_cycles(cycle.id(), 100);
    let io = |arguments: &[&str]| -> Command {
        let mut command = onbeat();
        command.arg("io").args(arguments).arg("--cycle").arg(&socket);
        command
    };
    let said = |arguments: &[&str]| {
        let ran = finished(io(arguments));
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    };
    let setting = Running::start(io(&["set", "out", "LOT 17", "--as", "text"]));
    let begin = Instant::now();
    while said(&["get", "out", "--as", "text"]) != "\"LOT 17\"" {
        assert!(begin.elapsed() < Duration::from_secs(20), "it is not set");
    }
    assert_eq!(said(&["get", "out[4]"]), "49", "the digit 1");
    assert_eq!(said(&["get", "other lines.0x7000:15"]), "0", "nothing is sent on those");
    assert_eq!(said(&["get", "out", "--as", "hex"]), format!("4c4f54203137{}", "00".repeat(16)));
    interrupt(setting);
    let answer = format!("{}{}", "41c3a9", "00".repeat(19));
    said(&["force", "in", &answer, "--as", "hex", "--for", "1h"]);
    // The reply of the requested cycle may be missing.
    let told = said(&["get", "in", "--as", "text"]).replace(" (old)", "");
    assert_eq!(told, "\"A\u{e9}\" (forced)");
    let json: Value = serde_json::from_str(&said(&["get", "in", "--as", "text", "--json"])).expect("JSON");
    assert_eq!((&json[0]["value"], &json[0]["forced"]), (&"A\u{e9}".into(), &true.into()));
    for (arguments, sentence) in [
        (
            &["set", "out", "a text of more than 22 bytes", "--as", "text"][..],
            "for the signal \"out\" has 28 bytes, expected 22 at most",
        ),
        (&["force", "in", "41", "--as", "hex", "--for", "1s"], "expected 44 hexadecimal digits"),
        (&["get", "lines.Status", "--as", "hex"], "no signal is called \"lines.Status\""),
        (
            &["get", "lines.0x6001:01", "--as", "hex"],
            "signal \"lines.0x6001:01\" is of type uint16, expected bytes (uint8, without a scale) for --as",
        ),
    ] {
        let ran = finished(io(arguments));
        assert!(ran.sentence().contains(sentence), "{arguments:?}: {}", ran.stderr);
    }
    interrupt(cycle);
}
