//! A run as a service of systemd, which gets datagrams of it.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::common::{Running, folder, onbeat, shared};

/// Datagrams of a run to its service manager, in order, and its log.
// feature(program): a run under systemd tells when it is in Op, how far it is, that it is alive, and that it stops (`Type=notify`)
#[test]
fn a_service_manager_is_notified_of_a_run() {
    let _shared = shared();
    let socket = folder("service").join("notify");
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("its timeout");
    let mut command = onbeat();
    command.args(["run", "--cycles", "1500", "--no-ipc", "--json"]);
    command.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "200000").env_remove("WATCHDOG_PID");
    let running = Running::start(command);
    let mut heard = Vec::new();
    let mut room = [0; 1024];
    while heard.last().is_none_or(|it| it != "STOPPING=1") {
        let length = manager.recv(&mut room).expect("a word within a minute");
        heard.push(String::from_utf8_lossy(&room[..length]).into_owned());
    }
    let ran = running.finish();
    ran.json();
    assert!(!ran.stderr.contains(" lost, "), "progress is the status, and not in the log: {}", ran.stderr);
    let place = |start: &str| heard.iter().position(|it| it.starts_with(start));
    let ready = place("READY=1\nSTATUS=").unwrap_or_else(|| panic!("{heard:?}"));
    assert!(heard[ready].contains("cycles, "), "{heard:?}");
    assert_eq!(heard.iter().filter(|it| it.starts_with("READY=1")).count(), 1, "{heard:?}");
    // 1.5 s and more in Op, one message each 100 ms without host stalls.
    assert!(heard[ready..].iter().filter(|it| *it == "WATCHDOG=1").count() > 2, "{heard:?}");
}

/// A missing manager, or an invalid name, costs nothing.
#[test]
fn a_run_needs_no_service_manager() {
    let _shared = shared();
    for name in ["/no/such/socket", "@no-such-name", "relative", ""] {
        let mut command = onbeat();
        command.args(["run", "--cycles", "10", "--no-ipc", "--json"]).env("NOTIFY_SOCKET", name);
        Running::start(command).finish().json();
    }
}
