//! One MainDevice to an interface: in network namespaces made for the test.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{self, Command};
use std::time::Duration;

use onbeat_ethercat_linux::link::{OpenError, Owner, PacketLink};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use testkit::{Side, Testbed};

const TIMEOUT: Duration = Duration::from_secs(5);

/// A testbed, or why the test is skipped.
fn testbed() -> Option<Testbed> {
    Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()
}

fn own(testbed: &Testbed, side: Side, interface: &str, doing: &str) -> Result<PacketLink, OpenError> {
    testbed.inside(side, || PacketLink::open_as_owner(interface, TIMEOUT, doing))
}

fn index(testbed: &Testbed, side: Side) -> u32 {
    let mut list = Command::new("ip");
    list.args(["-oneline", "link", "show", side.interface()]);
    let shown = testbed.run_in(side, list).output().unwrap().stdout;
    String::from_utf8(shown).unwrap().split(':').next().unwrap().parse().unwrap()
}

#[test]
fn second_owner_is_refused_with_the_first_ones_name() {
    let Some(testbed) = testbed() else { return };
    let near = Side::Near.interface();
    let first = own(&testbed, Side::Near, near, "onbeat run, robot \"six-axis\"").unwrap();
    assert_eq!(first.squatter(), None);
    for _ in 0..3 {
        let error = own(&testbed, Side::Near, near, "onbeat scan").unwrap_err();
        let expected = format!(
            "interface near: process {} of user 0 (onbeat run, robot \"six-axis\") has it; end that, or attach to its \
             IPC: `onbeat top`",
            process::id()
        );
        assert_eq!(error.to_string(), expected);
    }
    // A link that only watches does not conflict.
    testbed.inside(Side::Near, || PacketLink::open(near, TIMEOUT)).unwrap();
    drop(first);
    own(&testbed, Side::Near, near, "onbeat scan").unwrap();
}

#[test]
fn owner_text_has_no_control_characters() {
    let Some(testbed) = testbed() else { return };
    let near = Side::Near.interface();
    let _first = own(&testbed, Side::Near, near, "\u{1b}[2Jrun\n").unwrap();
    let error = own(&testbed, Side::Near, near, "scan").unwrap_err().to_string();
    assert!(error.contains("([2Jrun)"), "{error}");
}

// feature(program): an interface has one owner among processes of all users and network namespaces, none after it was killed
#[test]
fn an_interface_keeps_its_owner_under_another_name() {
    let Some(testbed) = testbed() else { return };
    let _first = own(&testbed, Side::Near, Side::Near.interface(), "run").unwrap();
    let rename = "ip link set near down && ip link set near name other && ip link set other up";
    let mut shell = Command::new("sh");
    shell.args(["-c", rename]);
    assert!(testbed.run_in(Side::Near, shell).status().unwrap().success());
    let error = own(&testbed, Side::Near, "other", "scan").unwrap_err();
    assert!(matches!(error, OpenError::Held { .. }), "{error}");
}

// feature(program): an interface has one owner among processes of all users and network namespaces, none after it was killed
#[test]
fn interfaces_with_one_number_in_two_namespaces_have_two_owners() {
    let Some(testbed) = testbed() else { return };
    if index(&testbed, Side::Near) != index(&testbed, Side::Far) {
        return testkit::skip!("the kernel numbers both ends of the cable differently");
    }
    let _near = own(&testbed, Side::Near, Side::Near.interface(), "run").unwrap();
    own(&testbed, Side::Far, Side::Far.interface(), "run").unwrap();
}

/// A process without an EtherCAT socket on an interface does not own it, even with the lock's name:
/// only the owner's description is lost, not the lock.
// feature(program): users without rights cannot block the bus for others
#[test]
fn squatter_does_not_break_the_lock() {
    let Some(testbed) = testbed() else { return };
    let near = Side::Near.interface();
    let name = format!("onbeat-interface-{}", index(&testbed, Side::Near));
    let bind = || UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let squatter = testbed.inside(Side::Near, bind);
    let first = own(&testbed, Side::Near, near, "run").unwrap();
    let expected = Owner { process: Some(process::id()), user: Some(0), doing: String::new() };
    assert_eq!(first.squatter(), Some(&expected));
    let error = own(&testbed, Side::Near, near, "scan").unwrap_err();
    assert!(matches!(error, OpenError::Held { .. }), "{error}");
    drop(squatter);
}

// feature(program): users without rights cannot block the bus for others
#[test]
fn silent_squatter_delays_no_start() {
    let Some(testbed) = testbed() else { return };
    let near = Side::Near.interface();
    let name = format!("onbeat-interface-{}", index(&testbed, Side::Near));
    let _squatter = testbed.inside(Side::Near, || {
        let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        socket
    });
    let first = own(&testbed, Side::Near, near, "run").unwrap();
    assert_eq!(first.squatter(), Some(&Owner::default()));
    let error = own(&testbed, Side::Near, near, "scan").unwrap_err().to_string();
    assert!(error.contains("a process of user 0 has it"), "{error}");
}
