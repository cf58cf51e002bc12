//! `onbeat new`: a robot file from what is on the bus, and from SII images.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};

use robot::{Overrides, RobotConfig};
use testkit::{Side, Testbed};

use crate::common::{Ran, finished, folder, onbeat, run, shared, undisturbed};
use crate::robots::Robot;
use crate::wire::Wire;

fn read(path: &Path) -> RobotConfig {
    RobotConfig::read(path, Overrides::default()).unwrap()
}

fn example(name: &str) -> RobotConfig {
    read(Path::new(&format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"))))
}

/// The draft of an example's SubDevices at the end of a cable, which is accepted, and with which
/// they run.
fn drafted_and_run(wire: &Wire, name: &str) -> (RobotConfig, String) {
    let path = folder(&format!("new-{name}")).join("draft.toml");
    let file = path.to_str().unwrap();
    let ran = wire.onbeat(&["new", "--output", file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing is marked `unknown:`"), "{}", ran.stderr);
    let checked = run(&["check", file]);
    assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{}", checked.stdout);
    // Slow: a machine that may be busy.
    let end = undisturbed(|| wire.onbeat(&["run", file, "--period", "5ms", "--cycles", "300", "--json"]));
    assert_eq!((&end["cycles"], &end["working_counter_errors"]), (&300.into(), &0.into()), "{end}");
    let states = end["axes"].as_array().unwrap().iter().map(|axis| axis["state"].as_str());
    assert!(states.into_iter().all(|state| state == Some("Operation enabled")), "{end}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(&format!("onbeat new --iface {}", Side::Near.interface())), "{text}");
    (read(&path), text)
}

/// Compares a draft with the file of the simulated SubDevices: identities, PDOs, scales.
fn compare(draft: &RobotConfig, original: &RobotConfig) {
    assert_eq!(draft.bus.sub_devices.len(), original.bus.sub_devices.len());
    for (found, expected) in draft.bus.sub_devices.iter().zip(&original.bus.sub_devices) {
        let kind = |it: &robot::SubDevice| it.identity.map(|it| (it.vendor_id, it.product_code));
        assert_eq!(kind(found), kind(expected).or(Some((0, 0))), "{}", expected.name);
        let pdos =
            |it: &robot::SubDevice| it.explicit_mapping().map(|it| (it.output_bits(), it.input_bits()));
        if pdos(found).is_some() {
            assert_eq!(pdos(found), pdos(expected), "{}", expected.name);
        }
    }
    for axis in &draft.axes {
        let simulation = original.bus.sub_devices[axis.sub_device].simulation.as_ref().unwrap();
        let counts = f64::from(simulation.encoder_counts);
        assert!((axis.scale.counts_per_radian() * std::f64::consts::TAU - counts).abs() < 1e-6 * counts);
        let rated = axis.scale.torque_units(axis.limits.torque).unwrap();
        assert!((i32::from(rated.value) - 1000).abs() <= 1, "the rated torque: {rated:?}");
        assert!((axis.limits.torque.0 - simulation.rated_torque).abs() < 1e-3, "{}", axis.name);
    }
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn drives_on_a_cable_become_a_file_that_runs() {
    let Some(wire) = Wire::with("examples/six-axis.toml") else { return };
    let (draft, text) = drafted_and_run(&wire, "six-axis");
    compare(&draft, &example("six-axis"));
    let names: Vec<&str> = draft.axes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["drive-1", "drive-2", "drive-3", "drive-4", "drive-5", "drive-6"]);
    assert_eq!(text.matches("[[bus.sub_device]]").count(), 1, "{text}");
    assert!(draft.bus.distributed_clocks && text.contains("# 0x608F: increments"), "{text}");
    // A gear configured in the drive, and its position units: 36000 a turn of the shaft, 2000 of
    // the motor.
    for (object, value) in [("0x6091:1", "18"), ("0x6092:1", "36000")] {
        assert_eq!(wire.onbeat(&["sdo", "write", "2", object, value]).code, Some(0));
    }
    let (draft, text) = drafted_and_run(&wire, "geared");
    let scales: Vec<_> =
        draft.axes.iter().map(|it| it.scale.counts_per_radian() * std::f64::consts::TAU).collect();
    assert!((scales[2] - 36_000.0).abs() < 1e-6 && (scales[3] - 1_048_576.0).abs() < 1e-6, "{scales:?}");
    assert!((draft.axes[2].limits.torque.0 - 18.0 * 2.4).abs() < 1e-6, "{text}");
    assert_eq!(text.matches("[[axis]]").count(), 3, "{text}");
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn terminals_on_a_cable_have_their_channels_by_name() {
    let Some(wire) = Wire::with("examples/io-station.toml") else { return };
    let (draft, text) = drafted_and_run(&wire, "io-station");
    compare(&draft, &example("io-station"));
    assert_eq!(draft.axes.len(), 1, "{text}");
    for name in
        ["lamps Channel 4", "switches Channel 2", "sensors channel 1", "valves channel 3", "forces Fz"]
    {
        assert!(draft.names_signal(name), "{name}: {text}");
    }
    assert!(text.contains("type = \"int16\"") && text.contains("type = \"int32\""), "{text}");
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn drives_of_several_axes_and_branches_become_files_that_run() {
    for (name, axes) in [("xy-table", 4), ("humanoid-59", 52), ("m4k", 2), ("vibration", 0)] {
        let segment = format!("examples/{name}.toml");
        let path = folder(&format!("new-{name}")).join("draft.toml");
        let file = path.to_str().unwrap();
        let ran = run(&["new", "--segment", &segment, "-o", file]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        assert_eq!(run(&["check", file]).code, Some(0), "{name}");
        let (draft, original) = (read(&path), example(name));
        compare(&draft, &original);
        assert_eq!(draft.axes.len(), axes, "{name}");
        let parents =
            |robot: &RobotConfig| robot.bus.sub_devices.iter().map(|it| it.parent).collect::<Vec<_>>();
        assert_eq!(parents(&draft), parents(&original), "{name}");
        let ran =
            run(&["run", file, "--segment", &segment, "--period", "5ms", "--cycles", "100", "--json"]);
        assert_eq!(ran.json()["cycles"], 100, "{name}: {}", ran.stderr);
    }
}

/// The last step that the draft itself describes.
// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn an_axis_of_a_draft_is_moved_from_a_shell() {
    let path = folder("new-moved").join("bench.toml");
    let file = path.to_str().unwrap();
    assert_eq!(run(&["new", "--segment", "examples/first-drive.toml", "-o", file]).code, Some(0));
    assert_eq!(read(&path).name, "bench");
    let _shared = shared();
    let robot = Robot::run("new", file, &["--segment", "examples/first-drive.toml", "--period", "10ms"]);
    let text = fs::read_to_string(&path).unwrap();
    let told = text.lines().find_map(|line| line.strip_prefix("#   onbeat control ")).unwrap();
    let told = told.split_once('#').unwrap().0;
    let mut command = onbeat();
    command.args(["control", "--cycle"]).arg(robot.ipc.path()).args(told.split_whitespace());
    let ran = finished(command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    robot.until("there", |state| (state.axes[0].position - 0.0873).abs() < 0.01);
    // The running cycle answers, and continues.
    let mut command = onbeat();
    command.args(["new", "--cycle"]).arg(robot.ipc.path());
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("which continues"), "{}", ran.stderr);
    let again = RobotConfig::parse(&ran.stdout, "again.toml").unwrap();
    assert_eq!(again.axes[0].scale, read(&path).axes[0].scale);
    assert!(ran.stdout.contains("# unknown: dc"), "{}", ran.stdout);
    robot.interrupt();
}

fn image_of(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/sii").join(name);
    if path.exists() {
        return Some(path);
    }
    testkit::skip!("needs the SII image {}", path.display());
    None
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn real_images_become_files_that_are_accepted() {
    let mut images = Vec::new();
    for name in ["ek1100", "el2004", "el2828", "el2889", "akd"] {
        let Some(path) = image_of(&format!("{name}.bin")) else { return };
        images.extend(["--sii".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let path = folder("new-real").join("draft.toml");
    let file = path.to_str().unwrap();
    let arguments: Vec<&str> =
        ["new", "-o", file].into_iter().chain(images.iter().map(String::as_str)).collect();
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 values marked `unknown:`"), "{}", ran.stderr);
    assert_eq!(run(&["check", file]).code, Some(0));
    let draft = read(&path);
    let names: Vec<&str> = draft.bus.sub_devices.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["ek1100", "el2004", "el2828", "el2889", "akd"]);
    assert!(draft.names_signal("el2889 Channel 16"));
    assert_eq!(draft.bus.sub_devices[4].explicit_mapping().map(|it| it.outputs[0].index), Some(0x1724));
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn an_impossible_draft_is_refused_and_leaves_no_file() {
    let folder = folder("new-refused");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let output = path("draft.toml");
    let refused = |arguments: &[&str], part: &str| {
        let ran = run(&[&["new", "-o", &output], arguments].concat());
        assert!(ran.sentence().contains(part), "{part}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !Path::new(&output).exists(), "{part}");
    };
    refused(&[], "expected --iface NIC");
    refused(&["--iface", "nowhere0"], "interface nowhere0: no interface has this name");
    refused(&["--sii", &path("none.bin")], "cannot be read, expected an SII image");
    refused(&["--sii", folder.to_str().unwrap()], "no regular file");
    fs::write(path("esi.xml"), "\u{feff}<?xml version=\"1.0\"?>\n<EtherCATInfo/>").unwrap();
    refused(&["--sii", &path("esi.xml")], "an ESI file (XML), which is not read yet");
    fs::write(path("short.bin"), [0; 100]).unwrap();
    refused(&["--sii", &path("short.bin")], "cut short: 100 bytes");
    fs::write(path("broken.bin"), [7; 512]).unwrap();
    refused(&["--sii", &path("broken.bin")], "checksum");
    refused(&["--segment", "examples/six-axis.toml", "--period", "1us"], "50us to 1s");
    // An existing file is kept, unless it may be replaced.
    fs::write(&output, "mine").unwrap();
    let six = ["new", "--segment", "examples/six-axis.toml", "-o", &output];
    assert!(run(&six).sentence().contains("is there already"));
    assert_eq!(fs::read_to_string(&output).unwrap(), "mine");
    assert_eq!(run(&[&six[..], &["--force"]].concat()).code, Some(0));
    assert_eq!(read(Path::new(&output)).axes.len(), 6);
    let special = run(&["new", "--segment", "examples/six-axis.toml", "-o", "/dev/null", "--force"]);
    assert!(special.sentence().contains("no regular file"), "{}", special.stderr);
    let link = path("link.toml");
    std::os::unix::fs::symlink(&output, &link).unwrap();
    fs::write(&output, "mine").unwrap();
    assert_eq!(run(&["new", "--segment", "examples/m4k.toml", "-o", &link, "--force"]).code, Some(0));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && read(Path::new(&output)).axes.len() == 2);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|it| !it.to_string_lossy().starts_with('.')), "{left:?}");
    assert_eq!(run(&["new", "--sii", "a.bin", "--iface", "eth0"]).code, Some(2));
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn an_empty_cable_is_reported_as_by_a_scan() {
    let _shared = shared();
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let ask = |command: &str| -> Ran {
        let mut program = onbeat();
        program.args([command, "--iface", Side::Near.interface()]);
        finished(testbed.run_in(Side::Near, program))
    };
    let ran = ask("new");
    assert!(ran.sentence().contains("no SubDevice answers"), "{}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), ran.sentence()), ("", ask("scan").sentence()));
}
