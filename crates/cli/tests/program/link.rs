//! Ways to the interface's frames: `--link`.

use crate::common::{finished, onbeat, undisturbed};
use crate::wire::{SIX_AXIS, Wire};

/// True where the kernel or this process has no such link; all others scan the bus by it.
pub(crate) fn lacks(wire: &Wire, kind: &str) -> bool {
    let scan = wire.onbeat(&["scan", "--link", kind]);
    let lack = ["has no AF_XDP", "AF_XDP needs the capabilities", "lets no program poll a driver"];
    if lack.iter().any(|lack| scan.stderr.contains(lack)) {
        testkit::skip!("{}", scan.stderr);
        return true;
    }
    assert!(scan.code == Some(0) && scan.stdout.contains("drive-6"), "{} {}", scan.stdout, scan.stderr);
    false
}

// feature(program): `--link` packet, xdp, xdp-polled, auto
#[test]
fn six_axes_run_by_every_kind_of_link() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    for (kind, told) in [
        ("packet", ""),
        ("xdp", "interface near: AF_XDP, in the driver, copied, 1 queue\n"),
        ("xdp-polled", "interface near: AF_XDP, in the driver, copied, polled, 1 queue\n"),
        ("auto", "interface near: AF_XDP, in the driver, copied, 1 queue\n"),
    ] {
        if lacks(&wire, kind) {
            continue;
        }
        let mut stderr = String::new();
        let end = undisturbed(|| {
            let ran = wire.onbeat(&["run", SIX_AXIS, "--cycles", "500", "--json", "--link", kind]);
            stderr.clone_from(&ran.stderr);
            ran
        });
        assert_eq!(end["cycles"], 500, "{kind}: {end}");
        assert_eq!(end["working_counter_errors"], 0, "{kind}: {end}");
        let way = told.trim().strip_prefix("interface near: ").unwrap_or("AF_PACKET");
        assert_eq!(end["conditions"]["link"], format!("near ({way})"), "{kind}");
        assert!(stderr.contains(told) && stderr.contains("AF_XDP") != told.is_empty(), "{kind}: {stderr}");
    }
}

#[test]
fn a_link_that_means_nothing_is_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let mut command = onbeat();
        command.args(["scan"]).args(arguments);
        let ran = finished(command);
        assert!(ran.code == Some(2) && ran.stderr.contains(part), "{:?} {}", ran.code, ran.stderr);
    };
    refused(&["--link", "xdp"], "--iface");
    refused(&["--iface", "lo", "--link", "fast"], "[possible values: packet, xdp, xdp-polled, auto]");
}
