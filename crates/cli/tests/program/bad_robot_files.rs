//! A robot file that cannot be used is one sentence and exit code 1, before anything is on the
//! wire.

use std::process::Command;

use crate::common::{file, run, six_axis_with};

// feature(program): robot files: unknown keys, wrong types, impossible mappings
#[test]
fn an_unknown_key_stops_every_command_with_its_place() {
    let path = six_axis_with("unknown-key.toml", "profile = \"PM\"", "profil = \"PM\"");
    let path = path.to_str().unwrap();
    let expected = format!(
        "onbeat: {path}:11:1: unknown key \"profil\", expected one of period, profile, priority, \
         deadline_runtime, cpu, spin_margin, prepare_nic, nic_cpu, overrun, frame_order, clock, outage_time, after_outage, reset_faults, reset_codes, loss_time: did \
         you mean \"profile\"?"
    );
    assert_eq!(run(&["run", path, "--cycles", "1"]).sentence(), expected);
    assert_eq!(run(&["scan", path]).sentence(), expected);
    assert_eq!(run(&["simulate", path, "--iface", "lo"]).sentence(), expected);
    assert_eq!(run(&["sdo", "read", "0", "0x1018:1", "--robot", path]).sentence(), expected);
}

// feature(program): robot files: unknown keys, wrong types, impossible mappings
#[test]
fn an_impossible_mapping_is_refused() {
    let path = six_axis_with("mapping.toml", "index = 0x607A, bits = 32", "index = 0x607A, bits = 16");
    let ran = run(&["run", path.to_str().unwrap(), "--cycles", "1"]);
    let sentence = ran.sentence();
    assert!(
        sentence.contains("16 bits for object 0x607a:00, expected the 32 that CiA 402 gives it"),
        "{sentence}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let ran = run(&["run", "no-such-robot.toml"]);
    assert!(ran.sentence().starts_with("onbeat: no-such-robot.toml: cannot be read"), "{}", ran.stderr);
}

// feature(program): robot files without an end, or that nothing is written to
#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let fifo = file("no-robot.fifo", "");
    std::fs::remove_file(&fifo).expect("the file");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let large = file("large.toml", "");
    std::fs::File::options()
        .write(true)
        .open(&large)
        .expect("the file")
        .set_len((16 << 20) + 1)
        .expect("its length");
    let no_file = "cannot be read (it is no regular file), expected a robot file in TOML";
    for (path, sentence) in [
        ("/dev/zero", no_file),
        ("/tmp", no_file),
        (fifo.to_str().unwrap(), no_file),
        (
            large.to_str().unwrap(),
            "cannot be read (it has more than 16 MiB), expected a robot file in TOML",
        ),
    ] {
        for arguments in [&["run", path][..], &["scan", path], &["sdo", "list", "0", "--robot", path]] {
            let ran = run(arguments);
            assert!(ran.sentence().contains(sentence), "{arguments:?}: {}", ran.stderr);
        }
    }
    for path in ["/dev/zero", fifo.to_str().unwrap()] {
        let ran = run(&["report", path]);
        assert_eq!(ran.sentence(), format!("onbeat: {path}: it is no regular file"));
        let ran = run(&["analyse", path]);
        let sentence = ran.sentence();
        assert!(
            sentence.starts_with(&format!("onbeat: {path}: cannot be read (it is no regular file)")),
            "{sentence}"
        );
        let ran = run(&["measure", "interference", "--recording", path]);
        assert!(ran.sentence().contains("no regular file"), "{}", ran.stderr);
    }
}

#[test]
fn a_period_from_the_command_line_is_checked_as_the_files() {
    let ran = run(&["run", "--period", "1us"]);
    assert!(ran.sentence().contains("--period 1us, expected 50us to 1s"), "{}", ran.stderr);
    // The file's `outage_time` goes with its own period.
    let typed = "onbeat: the command line: --period 1s with outage_time 80ms of the robot file, expected 1s to 10s: choose another \
                 --period, or change the robot file: ";
    let ran = run(&["run", "--period", "1s"]);
    assert!(ran.sentence().starts_with(typed), "{}", ran.stderr);
    assert_eq!(run(&["run", "--period", "fast"]).code, Some(2));
}

#[test]
fn a_robot_that_cannot_be_simulated_names_the_sub_device() {
    let text = "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"press\"\n";
    let path = file("not-simulated.toml", text);
    let ran = run(&["run", path.to_str().unwrap(), "--cycles", "1"]);
    let sentence = ran.sentence();
    assert!(sentence.contains("SubDevice 0 \"press\"") && sentence.contains("simulate"), "{sentence}");
}

// feature(program): URDFs that are none, or name other joints
#[test]
fn a_urdf_that_is_none_is_named_before_anything_moves() {
    let text = include_str!("../../../../examples/arm.toml").replace("\"arm.urdf\"", "\"bad.urdf\"");
    let path = file("bad-urdf.toml", &text);
    let path = path.to_str().unwrap();
    let good = include_str!("../../../../examples/arm.urdf");
    for (urdf, expected) in [
        ("", "bad.urdf: it is empty"),
        ("not xml", "expected XML"),
        (&good.replace("\"elbow\"", "\"knee\""), "no joint \"elbow\" for axis \"axis-3\""),
        (&good.replacen("upper=\"2.9\"", "upper=\"nan\"", 1), "upper=\"nan\" as a limit"),
    ] {
        file("bad.urdf", urdf);
        let ran = run(&["run", path, "--cycles", "10"]);
        assert!(ran.sentence().contains(expected), "{}", ran.stderr);
    }
}
