//! Hints behind a mistake: they name what was wrong, and what to do about that.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use onbeat::ipc::description::Description;
use onbeat::ipc::server::Builder;

use crate::common::{Ran, finished, folder, onbeat, run, six_axis_with};

/// Standard error of a command line that cannot be read.
fn usage(arguments: &[&str]) -> String {
    let ran = run(arguments);
    assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn no_option_is_to_be_given_behind_two_dashes() {
    for arguments in
        [&["run", "--for", "-1s"][..], &["run", "-z"], &["run", "--silent"], &["run", "--duration", "1s"]]
    {
        let said = usage(arguments);
        assert!(!said.contains("-- -"), "{arguments:?}: {said}");
    }
    assert!(usage(&["run", "--for", "-1s"]).contains("--for=-1s"));
    assert!(usage(&["run", "--for=-1s"]).contains("\"-1s\""), "{}", usage(&["run", "--for=-1s"]));
    assert!(usage(&["run", "--duration", "1s"]).contains("'--for'"));
    // It has no such option.
    assert!(!usage(&["events", "--duration", "1s"]).contains("'--for'"));
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn an_invalid_text_argument_is_reported_by_its_number() {
    let of = |before: &[&str]| {
        let mut command = onbeat();
        command.args(before).arg(OsStr::from_bytes(b"\xff\xfe"));
        finished(command)
    };
    for before in [&["events", "--cycle"][..], &["io", "get"], &["run", "--for"], &["run", "--control"]] {
        let ran = of(before);
        assert_eq!(ran.code, Some(2), "{before:?}: {}", ran.stderr);
        let number = before.len() + 1;
        let expected = format!("word {number} of the command line: found \"\\xFF\\xFE\", expected UTF-8");
        assert!(ran.stderr.contains(&expected), "{before:?}: {}", ran.stderr);
    }
    // A path may be any.
    let ran = of(&["check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn an_object_in_two_words_is_reported() {
    let said = usage(&["sdo", "read", "0", "0x1018", "1"]);
    assert!(said.contains("0x1018:1") && !said.contains("-- 1"), "{said}");
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_value_of_the_command_line_is_not_the_files() {
    let file = six_axis_with("hints.toml", "period = \"1ms\"", "period = \"2ms\"");
    for robot in [&[][..], &[file.to_str().unwrap()]] {
        let ran = run(&[&["run", "--period", "10us"][..], robot].concat());
        let sentence = ran.sentence();
        assert!(
            sentence.starts_with("onbeat: the command line: ") && sentence.contains("10us"),
            "{sentence}"
        );
        assert!(!sentence.contains(".toml"), "{sentence}");
    }
    // An error within a file is still reported with its position.
    let wrong = six_axis_with("hints-wrong.toml", "period = \"1ms\"", "period = \"1us\"");
    let ran = run(&["run", wrong.to_str().unwrap(), "--priority", "50"]);
    assert!(ran.sentence().contains("hints-wrong.toml:"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_cpu_that_is_not_there_is_refused_before_the_bus() {
    let ran = run(&["run", "--cpu", "1023", "--cycles", "10"]);
    let sentence = ran.sentence();
    assert!(sentence.contains("--cpu: found 1023, expected one of this machine's CPUs: 0"), "{sentence}");
    let ran = run(&["run", "--iface", "lo", "--prepare-nic", "--nic-cpu", "1023"]);
    let expected = "--nic-cpu: found 1023, expected one of this machine's CPUs: 0";
    assert!(ran.sentence().contains(expected), "{}", ran.stderr);
    let ran = run(&["simulate", "--iface", "lo", "--cpu", "1023", "--for", "1ms"]);
    assert_eq!(ran.code, Some(1));
    let expected = "--cpu: found 1023, expected one of this machine's CPUs: 0";
    assert!(ran.sentence().contains(expected), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_mistyped_folder_is_not_made() {
    // Not below a folder of temporary files, where it would be made.
    let typo = Path::new("/").join(format!("onbeat-typo-{}", std::process::id()));
    let ran = run(&["run", "--cycles", "10", "--ipc", typo.join("x.sock").to_str().unwrap()]);
    assert!(ran.sentence().contains("there is no such folder"), "{}", ran.stderr);
    assert!(!typo.exists());
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_foreign_bus_gets_a_hint_how_to_draft_a_file() {
    let ran = run(&["run", "--segment", "examples/io-station.toml", "--cycles", "10"]);
    assert_eq!(ran.code, Some(1));
    for part in ["built-in robot", "onbeat new --segment examples/io-station.toml -o robot.toml"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let ran =
        run(&["run", "examples/six-axis.toml", "--segment", "examples/io-station.toml", "--cycles", "10"]);
    assert!(!ran.sentence().contains("built-in"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn an_esi_file_instead_of_an_image_is_reported() {
    crate::common::file("hints-esi.xml", "\u{feff}<?xml version=\"1.0\"?>\n<EtherCATInfo/>\n");
    let robot = six_axis_with(
        "hints-esi.toml",
        "kind = \"servo_drive\"",
        "kind = \"servo_drive\"\nsii = \"hints-esi.xml\"",
    );
    let ran = run(&["run", robot.to_str().unwrap(), "--cycles", "10"]);
    assert!(ran.sentence().contains("an ESI file (XML), expected an SII image"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn of_several_cycles_top_says_how_one_is_named() {
    let runtime = folder("hints-cycles");
    let sockets = runtime.join("onbeat");
    std::fs::create_dir(&sockets).unwrap();
    let open = |name: &str| {
        let mut builder = Builder::new(name, &Description::default());
        builder.folder(&sockets);
        builder.open().unwrap()
    };
    let _two = [open("hints-one"), open("hints-two")];
    let mut command = onbeat();
    command.env("XDG_RUNTIME_DIR", &runtime).env_remove("ONBEAT_IPC").args(["top", "--once"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for part in ["name one, as with `onbeat top NAME`", "hints-one (process ", "hints-two (process "] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("--cycle"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn what_root_has_changed_is_put_back_by_root() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("it needs root, to have a folder of root's");
    }
    let _ = std::fs::create_dir(RUN);
    let ran = as_nobody(&["doctor", "--restore"]);
    if ran.stderr.contains("setpriv:") {
        return testkit::skip!("{}", ran.stderr);
    }
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("run this as root") && !ran.stderr.contains("remove it"), "{}", ran.stderr);
}

/// Runs the program as a user without rights, from a folder that this user may read.
fn as_nobody(arguments: &[&str]) -> Ran {
    let program = onbeat();
    let copy = std::env::temp_dir().join(format!("onbeat-hints-{}", std::process::id()));
    std::fs::copy(Path::new(program.get_program()), &copy).expect("a copy");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(arguments);
    let ran = finished(command);
    std::fs::remove_file(copy).expect("the copy");
    ran
}

/// Folder of root's journals.
const RUN: &str = "/run/onbeat";
