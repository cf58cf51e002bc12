//! An interface that is not there is named, with what to do.

use crate::common::run;

#[test]
fn every_command_names_the_interface() {
    for arguments in [
        &["simulate", "--iface", "no-such-nic"][..],
        &["simulate", "examples/io-station.toml", "--iface", "no-such-nic"],
    ] {
        let ran = run(arguments);
        assert!(ran.sentence().contains("no-such-nic"), "{arguments:?}: {}", ran.stderr);
    }
}
