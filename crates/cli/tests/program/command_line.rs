//! Command lines that cannot be read: the advice says what was meant, or nothing.

use std::process::Command;

use crate::common::{Ran, finished, measure, onbeat};

fn refused(mut command: Command, arguments: &[&str]) -> Ran {
    command.args(arguments);
    let ran = finished(command);
    assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran
}

// feature(program): a robot file is the argument of every command but `sdo`; one in the wrong place is told its own
#[test]
fn a_misplaced_robot_file_is_reported_with_the_right_place() {
    let robot = "examples/six-axis.toml";
    for command in [&["run"][..], &["scan"], &["simulate", "--iface", "lo"]] {
        let ran = refused(onbeat(), &[command, &["--robot", robot]].concat());
        assert!(
            ran.stderr.contains("tip: the robot file of this command is given without --robot"),
            "{}",
            ran.stderr
        );
    }
    let ran = refused(measure(), &["servo", "--robot", robot]);
    assert!(ran.stderr.contains("is given without --robot"), "{}", ran.stderr);
    // It takes none.
    let ran = refused(onbeat(), &["events", "--robot", robot]);
    assert!(!ran.stderr.contains("is given without"), "{}", ran.stderr);
    for command in [&["sdo", "read", robot, "0", "0x1018:1"][..], &["sdo", "list", robot]] {
        let ran = refused(onbeat(), command);
        assert!(ran.stderr.contains("a robot file is given as --robot ROBOT.toml"), "{}", ran.stderr);
    }
}

// feature(program): a mistyped word of a few letters is told the near ones, and no others
#[test]
fn of_a_few_letters_only_near_words_are_suggested() {
    for (words, near) in [
        (&["topp"][..], "'top'"),
        (&["ru"], "'run'"),
        (&["scn"], "'scan'"),
        (&["io", "gett"], "'get'"),
        (&["run", "--fo", "1s"], "'--for'"),
    ] {
        let ran = refused(onbeat(), words);
        assert!(ran.stderr.contains("similar") && ran.stderr.contains(near), "{words:?}: {}", ran.stderr);
    }
    for words in [&["ot"][..], &["u"], &["en"], &["run", "--ih"], &["run", "--x"], &["run", "--am"]] {
        let ran = refused(onbeat(), words);
        let other = ["similar", "--with-parent", "--explain", "--frame-order"]
            .iter()
            .any(|it| ran.stderr.contains(it));
        assert!(!other && ran.stderr.contains("--help"), "{words:?}: {}", ran.stderr);
    }
}

/// A command that no page names is not found by its users.
#[test]
fn every_command_is_named_on_a_page() {
    let help = finished({
        let mut command = onbeat();
        command.arg("--help");
        command
    });
    let listed = help.stdout.split_once("Commands:\n").expect("commands").1.lines();
    let names: Vec<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() > 15, "{names:?}");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let pages: String = std::fs::read_dir(docs)
        .expect("docs")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "md"))
        .map(|entry| std::fs::read_to_string(entry.path()).expect("a page"))
        .collect();
    let missing: Vec<_> = names.iter().filter(|name| !pages.contains(&format!("onbeat {name}"))).collect();
    assert!(missing.is_empty(), "on no page of docs/: {missing:?}");
}
