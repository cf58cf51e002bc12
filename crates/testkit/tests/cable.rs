//! A testbed carries frames between its sides, and leaves nothing behind.

use std::path::Path;
use std::process::Command;

use testkit::{Side, Testbed};

fn testbed() -> Option<Testbed> {
    Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()
}

fn interfaces(testbed: &Testbed, side: Side) -> String {
    let mut command = Command::new("ip");
    command.args(["-oneline", "link"]);
    let output = testbed.run_in(side, command).output().expect("ip runs");
    String::from_utf8(output.stdout).expect("ip prints text")
}

#[test]
fn each_side_holds_its_own_interface_and_the_cable_is_up() {
    let Some(testbed) = testbed() else { return };
    for (side, other) in [(Side::Near, "far@"), (Side::Far, "near@")] {
        let found = interfaces(&testbed, side);
        assert!(found.contains(&format!("{}@", side.interface())), "{found}");
        assert!(!found.contains(other), "{found}");
        assert!(found.contains("state UP"), "{found}");
    }
}

#[test]
fn a_closure_inside_a_side_sees_that_side_alone() {
    let Some(testbed) = testbed() else { return };
    let devices = || std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs is there");
    assert!(testbed.inside(Side::Near, devices).contains("near:"));
    assert!(testbed.inside(Side::Far, devices).contains("far:"));
    assert!(!devices().contains("near:"), "the calling thread stays where it was");
}

#[test]
fn a_dropped_testbed_takes_its_namespaces_along() {
    let Some(testbed) = testbed() else { return };
    let names = [Side::Near, Side::Far].map(|side| Path::new("/run/netns").join(testbed.namespace(side)));
    assert!(names.iter().all(|name| name.exists()));
    drop(testbed);
    assert!(names.iter().all(|name| !name.exists()));
}

#[test]
fn what_a_killed_process_left_behind_is_swept() {
    let Some(_first) = testbed() else { return };
    let mut short_lived = Command::new("true").spawn().expect("true runs");
    let left = format!("onbeat-{}-0-near", short_lived.id());
    short_lived.wait().expect("true ends");
    let added = Command::new("ip").args(["netns", "add", &left]).status().expect("ip runs");
    assert!(added.success());
    let _second = testbed();
    assert!(!Path::new("/run/netns").join(&left).exists());
}
