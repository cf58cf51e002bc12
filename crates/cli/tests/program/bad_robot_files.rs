//! A robot file that cannot be used is one sentence and exit code 1, before anything is on the
//! wire.
//!
//! `onbeat check` and `onbeat completions`: what a person asks before a run.

use std::io::Write;
use std::process::{Command, Stdio};

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

// feature(program): `onbeat check`
#[test]
fn a_file_is_checked_and_nothing_is_started() {
    for example in ["six-axis", "first-drive", "arm", "m4k", "io-station", "humanoid-59"] {
        let ran = run(&["check", &format!("examples/{example}.toml")]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{example}: {}", ran.stdout);
        assert!(ran.stdout.starts_with(example) && ran.stdout.contains("cycle of "), "{}", ran.stdout);
    }
    let ran = run(&["check", "examples/arm.toml"]);
    let expected = "arm: 6 SubDevices (6 can be simulated), 6 axes, cycle of 1ms\n\
                    controllers: trajectories (joint_trajectory), positions (joint_position), tool (cartesian)\n\
                    required of the machine: profile PM, priority 80; check it with `onbeat doctor`\n\
                    rights: CAP_SYS_NICE for its priority, CAP_IPC_LOCK for locked memory, CAP_NET_RAW for --iface\n\
                    axes \"axis-1\", \"axis-2\", \"axis-3\", \"axis-4\" and 2 more: bounded in the drive by \
                    0x6065 = 131072 of startup, 0x6066 = 50 of startup, 0x6072 = 2000; not by 0x607D:01, 0x607D:02 \
                    (after a restart its drive may count from another range of its encoder), 0x607F, 0x6085 (only if the drive names its unit)\n";
    assert_eq!(ran.stdout, expected);
    let asked = "[ipc]\ngroup = \"robots\"\n\n[[peripheral]]\nkind = \"range_finder\"\nname = \"eye\"\ndevice = \"/dev/ttyEYE\"\n\n[cycle]";
    let path = six_axis_with("check-rights.toml", "[cycle]", asked);
    let ran = run(&["check", path.to_str().unwrap()]);
    let rights = ran.stdout.lines().find(|line| line.starts_with("rights: ")).expect("a line");
    for part in ["group \"robots\"", "reading and writing /dev/ttyEYE for \"eye\""] {
        assert!(rights.contains(part), "{part}: {rights} {}", ran.stderr);
    }
}

// feature(program): `onbeat check` of a robot with a controller in a separate process
#[test]
fn a_controller_process_need_not_be_there() {
    let external = "[controller]\nkind = \"external\"\ndeadline = \"500us\"\nmax_late = 3\n";
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conveyor.toml"));
    let path = file("external.toml", &format!("{}\n{external}", text.unwrap()));
    let ran = run(&["check", path.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("controllers: external (external)\n"), "{}", ran.stdout);
}

// feature(program): `onbeat check`
#[test]
fn check_reports_all_errors_and_exits_3_on_doubtful_values() {
    let path = six_axis_with("two-errors.toml", "profile = \"PM\"", "profil = \"PM\"\nclock = \"jump\"");
    let ran = run(&["check", path.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("onbeat: ")), "{lines:?}");
    assert!(ran.stderr.contains("\"profil\"") && ran.stderr.contains("\"jump\""), "{}", ran.stderr);
    let path = six_axis_with("fast.toml", "velocity = ", "velocity = 99");
    let ran = run(&["check", path.to_str().unwrap()]);
    assert!(
        ran.code == Some(3) && ran.stdout.contains("doubtful: axis \"axis-1\": limits.velocity = 99"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let ran = run(&["check", "/nonexistent.toml"]);
    assert!(ran.sentence().contains("cannot be read"), "{}", ran.stderr);
}

/// Errors that only the bus shows, of SubDevices that are simulated.
#[test]
fn check_reports_errors_that_a_run_finds_in_pre_op() {
    let conveyor =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conveyor.toml"))
            .unwrap();
    let path = file("wrong-channel.toml", &conveyor.replacen("channel = 1", "channel = 99", 1));
    let path = path.to_str().unwrap();
    let (checked, ran) = (run(&["check", path]), run(&["run", path, "--cycles", "1", "--no-ipc"]));
    assert!(checked.sentence().contains("channel 99"), "{}", checked.stderr);
    assert_eq!(checked.sentence(), ran.stderr.lines().last().unwrap());
}

/// A terminal does what these say.
#[test]
fn control_characters_of_a_name_are_escaped() {
    let path = six_axis_with("escape.toml", "name = \"six-axis\"", "name = \"a\\u001b[2Jb\"");
    let ran = run(&["check", path.to_str().unwrap()]);
    assert!(ran.stdout.starts_with("a\\u001b[2Jb: 6 SubDevices"), "{}", ran.stdout);
}

// feature(program): `onbeat completions`
#[test]
fn shells_complete_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        assert!(["simulate", "jog", "take-over"].iter().all(|word| ran.stdout.contains(word)), "{shell}");
    }
    assert_eq!(run(&["completions", "cmd"]).code, Some(2));
    // bash itself: what it offers for the beginning of a command.
    let script = run(&["completions", "bash"]).stdout;
    let mut bash = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
    let asks = "\nCOMP_WORDS=(onbeat simul); COMP_CWORD=1; _onbeat onbeat simul onbeat; echo \"${COMPREPLY[@]}\"\n";
    bash.stdin.take().expect("a pipe").write_all((script + asks).as_bytes()).expect("bash");
    let offered = bash.wait_with_output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&offered.stdout).trim(), "simulate");
}
