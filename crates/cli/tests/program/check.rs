//! `onbeat check` and `onbeat completions`: what a person asks before a run.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{file, run, six_axis_with};

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

// feature(program): `onbeat check` of a robot whose controller is a process of its own
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
