//! Private cable for tests: two network namespaces joined by a veth pair.
//!
//! A [`Testbed`] needs root and `ip` (Debian: iproute2); without them [`Testbed::new`] returns a
//! [`Skip`] that names the missing one. Its namespace names contain the process id, so that
//! testbeds of several processes coexist. The next process removes the testbeds of a killed one.
//!
//! ```no_run
//! use std::process::Command;
//! use testkit::{Side, Testbed};
//!
//! let testbed = match Testbed::new() {
//!     Ok(testbed) => testbed,
//!     Err(skip) => return testkit::skip!("{skip}"),
//! };
//! let mut simulate = Command::new("onbeat");
//! simulate.args(["simulate", "robot.toml", "--iface", Side::Far.interface()]);
//! let mut child = testbed.run_in(Side::Far, simulate).spawn().unwrap();
//! let carrier = testbed.inside(Side::Near, || std::fs::read("/sys/class/net/near/carrier"));
//! # let _ = (child.kill(), carrier);
//! ```
//!
//! Programs end with the test that started them ([`end_with_parent`]), also when it is killed. A
//! [`CountingAllocator`] counts allocations, [`allocations`] counts them by thread, and [`strace`]
//! counts the system calls of a thread.
/// Pages with Rust programs that are compiled as tests; here, as this crate is not published.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/signals.md")]
    mod signals {}
    #[doc = include_str!("../../../docs/controller-process.md")]
    mod controller_process {}
    #[doc = include_str!("../../../docs/ipc.md")]
    mod ipc {}
    #[doc = include_str!("../../../docs/bus.md")]
    mod bus {}
}

pub mod allocations;
pub mod strace;
mod turn;

/// The only unsafe code of the testbed.
mod sys {
    pub(crate) mod counting;
    pub(crate) mod parent;
}

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{self, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub use sys::counting::CountingAllocator;
pub use sys::parent::end_with_parent;
pub use turn::{Turn, alone, await_calm};

/// Says that a test cannot run here, with the reason; `cargo xtask test` counts it as skipped.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => { $crate::skipped(&format!($($reason)*)) };
}

/// As [`skip!`]. The test is named by its thread.
pub fn skipped(reason: &str) {
    let thread = thread::current();
    let line = format!("{}: {}\n", thread.name().unwrap_or("a test"), reason.replace('\n', " "));
    eprint!("skipped: {line}");
    if let Some(path) = std::env::var_os("ONBEAT_SKIPS") {
        let file = File::options().append(true).create(true).open(path);
        // The file is for the summary only.
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// An end of the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// End of the MainDevice.
    Near,
    /// End of the SubDevices.
    Far,
}

impl Side {
    /// Name of the veth interface, the only one in its namespace besides `lo`.
    #[must_use]
    pub const fn interface(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    /// Name of the one at its end of the second cable ([`Testbed::add_cable`]).
    #[must_use]
    pub const fn second_interface(self) -> &'static str {
        match self {
            Self::Near => "near-2",
            Self::Far => "far-2",
        }
    }
}

/// Two network namespaces and the cable between them; dropping it removes all of them.
#[derive(Debug)]
pub struct Testbed {
    name: String,
}

impl Testbed {
    /// Makes both namespaces and the cable, and brings it up. IPv6 is off, so that the cable
    /// carries only the test's frames.
    ///
    /// # Errors
    /// A [`Skip`] that names what the machine lacks: root, `ip`, or the right to make namespaces.
    pub fn new() -> Result<Self, Skip> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return Err(Skip("a test network needs root (network namespaces and raw sockets)".into()));
        }
        sweep();
        // Relaxed: only uniqueness counts, the number publishes no other memory.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let testbed = Self { name: format!("{PREFIX}{}-{number}", process::id()) };
        testbed.build()?;
        Ok(testbed)
    }

    /// Name of a side's network namespace, as `ip netns` knows it.
    #[must_use]
    pub fn namespace(&self, side: Side) -> String {
        format!("{}-{}", self.name, side.interface())
    }

    /// Returns the same command, to be started inside a side's namespace. Arguments, environment
    /// and working directory are kept; set standard input and output on the returned command. The
    /// started process *is* the program, without a wrapper, so its process id and signals are the
    /// program's own; it ends with the thread that starts it ([`end_with_parent`]).
    #[must_use]
    pub fn run_in(&self, side: Side, command: Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.namespace(side)]).arg(command.get_program());
        inside.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        end_with_parent(&mut inside);
        inside
    }

    /// Runs `work` on a separate thread inside a side's namespace: sockets opened there, and
    /// threads started there, stay in that namespace. `/sys` remains that of the whole machine.
    ///
    /// # Panics
    /// If `work` does, or if the namespace cannot be entered.
    pub fn inside<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        let path = Path::new(NAMESPACES).join(self.namespace(side));
        let result = thread::scope(|scope| {
            let enter_and_work = || {
                let namespace =
                    File::open(&path).expect("the namespace file exists while the testbed does");
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("root may enter a network namespace");
                work()
            };
            scope.spawn(enter_and_work).join()
        });
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Joins both sides by a second cable, as the other end of a ring.
    ///
    /// # Errors
    /// A [`Skip`] that names what the machine lacks.
    pub fn add_cable(&self) -> Result<(), Skip> {
        self.join(Side::second_interface)
    }

    fn build(&self) -> Result<(), Skip> {
        for side in [Side::Near, Side::Far] {
            let namespace = self.namespace(side);
            ip(&["netns", "add", &namespace])?;
            self.inside(side, disable_ipv6);
            ip(&["-n", &namespace, "link", "set", "dev", "lo", "up"])?;
        }
        self.join(Side::interface)
    }

    /// A cable between the interfaces of these names.
    fn join(&self, name: fn(Side) -> &'static str) -> Result<(), Skip> {
        let (near, far) = (self.namespace(Side::Near), self.namespace(Side::Far));
        let cable = ["netns", "exec", &near, "ip", "link", "add", name(Side::Near), "type", "veth"];
        ip(&[&cable[..], &["peer", "name", name(Side::Far), "netns", &far]].concat())?;
        for side in [Side::Near, Side::Far] {
            ip(&["-n", &self.namespace(side), "link", "set", "dev", name(side), "up"])?;
        }
        self.await_carrier(Side::Near, name(Side::Near))?;
        self.await_carrier(Side::Far, name(Side::Far))
    }

    /// Waits for the carrier, which the kernel raises a moment after `ip` returns.
    fn await_carrier(&self, side: Side, interface: &str) -> Result<(), Skip> {
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            let shown = ip(&["-oneline", "-n", &self.namespace(side), "link", "show", interface])?;
            if String::from_utf8_lossy(&shown.stdout).contains("state UP") {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(Skip(format!("interface `{interface}` had no carrier after 5 s")))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for side in [Side::Near, Side::Far] {
            remove(&self.namespace(side));
        }
    }
}

/// Reason for which there is no testbed on this machine.
#[derive(Debug)]
pub struct Skip(String);

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Folder in which `ip netns` keeps its names.
const NAMESPACES: &str = "/run/netns";
const PREFIX: &str = "onbeat-";

fn ip(arguments: &[&str]) -> Result<Output, Skip> {
    let words = arguments.join(" ");
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| Skip(format!("`ip` (Debian: iproute2) does not start: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Skip(format!("`ip {words}` was refused: {}", said.trim())))
}

/// Disables IPv6. A kernel without it has no such file, and then there is nothing to disable.
fn disable_ipv6() {
    for scope in ["all", "default"] {
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
}

/// Removes namespaces that a killed process left behind.
fn sweep() {
    let entries = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let Some(owner) = owner.and_then(|owner| owner.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{owner}")).exists() {
            remove(&name);
        }
    }
}

/// Removes a namespace; one that is already gone is no error.
fn remove(namespace: &str) {
    let _ = Command::new("ip").args(["netns", "del", namespace]).stderr(Stdio::null()).status();
}
