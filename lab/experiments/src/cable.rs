//! Private cable: two network namespaces joined by a veth pair, for a MainDevice and its SubDevices
//! on one machine.
//!
//! Each end is a thread in an unnamed network namespace, which starts the processes that belong
//! there. The kernel removes namespaces and cable once the last of them is gone, for whatever
//! reason: nothing is left after Ctrl-C, a crash, or a kill. behind by Ctrl-C, a crash, or a kill.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::Error;
use crate::sys::own_network;

/// Both ends of a cable.
#[derive(Debug)]
pub struct Cable {
    /// End of the MainDevice, with the interface [`NEAR`].
    pub near: Room,
    /// End of the SubDevices, with the interface [`FAR`].
    pub far: Room,
}

/// Name of the interface at the near end.
pub const NEAR: &str = "near";

/// Name of the interface at the far end.
pub const FAR: &str = "far";

impl Cable {
    /// Creates a cable and brings it up, with IPv6 off, so that it carries only frames sent on
    /// purpose.
    ///
    /// # Errors
    /// The right to make namespaces (root), or `ip`, is missing.
    pub fn lay() -> Result<Self, Error> {
        let (near, far) = (Room::open(NEAR)?, Room::open(FAR)?);
        let there = far.thread_id.to_string();
        near.within(move || {
            ip(&["link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", &there])
        })?;
        for (room, interface) in [(&near, NEAR), (&far, FAR)] {
            room.within(move || {
                silence();
                ip(&["link", "set", "dev", "lo", "up"])?;
                ip(&["link", "set", "dev", interface, "up"])
            })?;
        }
        Ok(Self { near, far })
    }
}

/// Thread in a separate network namespace.
#[derive(Debug)]
pub struct Room {
    thread_id: i32,
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Room {
    fn open(name: &str) -> Result<Self, Error> {
        let (work, orders) = channel();
        let (tell, told) = channel();
        let spawned = thread::Builder::new().name(format!("{name} end")).spawn(move || {
            let entered = own_network().map(|()| rustix::thread::gettid().as_raw_pid());
            let inside = entered.is_ok();
            // The receiver is gone only if the program is ending.
            let _ = tell.send(entered);
            if inside {
                obey(&orders);
            }
        });
        let fail = |error| {
            Error::other(format_args!(
                "a network namespace for the {name} end of the cable is refused ({error}): run as root, or on real \
                 interfaces (see --help)"
            ))
        };
        let thread = spawned.map_err(fail)?;
        let thread_id = told.recv().map_err(std::io::Error::other).and_then(|told| told).map_err(fail)?;
        Ok(Self { thread_id, work: Some(work), thread: Some(thread) })
    }

    /// Runs `work` in the namespace. Processes started by it stay there.
    ///
    /// # Errors
    /// The error of `work`.
    pub fn within<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = channel();
        let order: Work = Box::new(move || {
            let _ = tell.send(work());
        });
        let gone = || Error::other("the thread of a network namespace is gone");
        self.work.as_ref().ok_or_else(gone)?.send(order).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())?
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // The thread ends once its channel is closed.
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn obey(orders: &Receiver<Work>) {
    while let Ok(work) = orders.recv() {
        work();
    }
}

fn ip(arguments: &[&str]) -> Result<(), Error> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        Error::other(format_args!("`ip` (Debian: iproute2) cannot be started: {error}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::other(format_args!("`ip {}` was refused: {}", arguments.join(" "), said.trim())))
}

/// Switches IPv6 off; a kernel without IPv6 lacks the file.
fn silence() {
    for scope in ["all", "default"] {
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(room: &Room) -> String {
        room.within(|| {
            let output = Command::new("ip").args(["-oneline", "link"]).output().expect("ip");
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        })
        .expect("links")
    }

    #[test]
    fn a_cable_joins_two_namespaces_and_is_gone_afterwards() {
        let cable = match Cable::lay() {
            Ok(cable) => cable,
            Err(error) => return testkit::skip!("{error}"),
        };
        assert!(links(&cable.near).contains("near@") && !links(&cable.near).contains(" far"));
        assert!(links(&cable.far).contains("far@"));
        // A process started there sees that end, and this process sees neither.
        let outside = Command::new("ip").args(["-oneline", "link"]).output().expect("ip");
        assert!(!String::from_utf8_lossy(&outside.stdout).contains("near@"));
        let second = Cable::lay().expect("two cables do not disturb each other");
        let far = cable.far;
        drop(cable.near);
        // The kernel removes a namespace shortly after its last thread has ended.
        let begin = std::time::Instant::now();
        while links(&far).contains("far@") {
            assert!(begin.elapsed() < std::time::Duration::from_secs(30), "{}", links(&far));
            thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(links(&second.near).contains("near@"));
    }
}
