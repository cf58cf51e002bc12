//! An interface that is not there is named, with what to do.

use crate::common::run;

// feature(program): missing interfaces
#[test]
fn every_command_names_the_interface() {
    for arguments in [
        &["run", "--iface", "no-such-nic", "--cycles", "1"][..],
        &["scan", "--iface", "no-such-nic"],
        &["new", "--iface", "no-such-nic"],
        &["simulate", "examples/six-axis.toml", "--iface", "no-such-nic"],
        &["sdo", "read", "0", "0x1018:1", "--iface", "no-such-nic"],
    ] {
        let ran = run(arguments);
        assert!(ran.sentence().contains("no-such-nic"), "{arguments:?}: {}", ran.stderr);
        let nameless: Vec<&str> =
            arguments.iter().map(|it| if *it == "no-such-nic" { "" } else { it }).collect();
        let ran = run(&nameless);
        assert!(
            ran.sentence().contains("the name of the interface is empty, expected one of: "),
            "{}",
            ran.stderr
        );
    }
}
