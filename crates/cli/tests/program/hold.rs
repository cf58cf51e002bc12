//! How the cycle is held: profile, overrun policy, and what is put back.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{onbeat, run, six_axis_with};

#[test]
fn each_letter_is_switched_by_name_and_told_in_json() {
    for (arguments, asked) in [
        (&["--profile", "none"][..], "none"),
        (&["--profile", "M", "--priority", "40"], "M"),
        (&["--profile", "S", "--spin-margin", "80us"], "S"),
        (&["--priority", "40"], "PM"),
        (&["--spin-margin", "20us"], "PMS"),
    ] {
        let end = run(&[&["run", "--cycles", "50", "--json"], arguments].concat()).json();
        let profile = &end["profile"];
        assert_eq!(profile["asked"], asked, "{arguments:?}");
        let refused = profile["refusals"].as_array().unwrap().len();
        let granted = profile["granted"].as_str().unwrap().replace("none", "");
        assert_eq!(granted.len() + refused, asked.replace("none", "").len(), "{profile}");
        if granted.contains('S') {
            assert!(profile["spin_margin_ns"].as_u64().unwrap() >= 20_000, "{profile}");
        }
        assert_eq!(end["conditions"]["profile"]["asked"], asked);
    }
}

#[test]
fn the_table_names_the_profile() {
    let ran = run(&["run", "--cycles", "50", "--profile", "S"]);
    assert!(ran.stdout.lines().any(|line| line.split_whitespace().eq(["profile", "S"])), "{}", ran.stdout);
    assert!(ran.stdout.contains("SCHED_OTHER") && ran.stdout.contains("not locked"), "{}", ran.stdout);
}

#[test]
fn a_profile_of_other_letters_is_refused() {
    for letters in ["X", "PP", ""] {
        let output = onbeat().args(["run", "--profile", letters, "--cycles", "1"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("expected letters of PMCS, each once"), "{said}");
    }
}

/// The whole program is stopped for a while, so that a beat is late whatever the machine does.
#[test]
fn an_overrun_ends_the_run_if_it_is_to() {
    let mut command = onbeat();
    command.args(["run", "--profile", "none", "--for", "30s", "--overrun", "stop"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
    let number = child.id().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &number]).status().expect("kill");
    thread::sleep(Duration::from_millis(2_500));
    signal("-STOP");
    thread::sleep(Duration::from_millis(100));
    signal("-CONT");
    let output = child.wait_with_output().expect("output");
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("onbeat: cycle ") && last.contains("ran past the next release"), "{said}");
    assert!(out.contains("T_exec"), "the table is there all the same: {out}");
}

#[test]
fn overrun_policies_have_the_same_names_in_the_robot_file() {
    for name in ["skip", "catch-up", "stop"] {
        let file = format!("overrun-{name}.toml");
        let path = six_axis_with(&file, "overrun = \"skip\"", &format!("overrun = \"{name}\""));
        assert_eq!(run(&["scan", path.to_str().unwrap()]).code, Some(0));
    }
    let path = six_axis_with("overrun-wrong.toml", "overrun = \"skip\"", "overrun = \"ignore\"");
    let ran = run(&["scan", path.to_str().unwrap()]);
    assert!(ran.sentence().contains("expected one of skip, catch-up, stop"), "{}", ran.stderr);
}
