//! Messages to the service manager that started a run, if one did: systemd's notifications
//! (sd_notify(3)), datagrams to the socket in `NOTIFY_SOCKET`.
//!
//! The thread that watches the cycle sends them, and reports a running cycle only while the cycle
//! runs. A message that is not accepted is lost: the run does not wait.

use std::env;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use onbeat::Phase;

/// Interval of words on the progress.
const TELLS_EVERY: Duration = Duration::from_secs(1);

/// Service manager of a run.
pub(super) struct Service {
    socket: UnixDatagram,
    manager: SocketAddr,
    /// Interval at which systemd expects a watchdog message: half of its limit.
    watchdog: Option<Duration>,
    sent: Option<Instant>,
    alive: Option<(u64, Instant)>,
    ready: bool,
}

impl Service {
    /// The service manager named in the environment, if any.
    pub(super) fn of_this_process() -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        let manager = address(&env::var_os("NOTIFY_SOCKET")?)?;
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        // Of a process that started this one, maybe.
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let within = number("WATCHDOG_USEC").filter(|within| is_ours && *within > 0);
        let watchdog = within.map(|within| Duration::from_micros(within) / 2);
        Some(Self { socket, manager, watchdog, sent: None, alive: None, ready: false })
    }

    /// Sends a phase of the run with its newest cycle, and `progress` now and then.
    pub(super) fn progress(&mut self, phase: Phase, cycle: u64, progress: impl FnOnce() -> String) {
        let now = Instant::now();
        if phase == Phase::Measuring && !self.ready {
            self.ready = true;
            self.sent = Some(now);
            self.send(&format!("READY=1\nSTATUS={}", progress()));
        } else if self.sent.is_none_or(|told| now - told >= TELLS_EVERY) {
            self.sent = Some(now);
            self.send(&format!("STATUS={}", progress()));
        }
        let Some(interval) = self.watchdog else { return };
        // The same cycle as last time: the watchdog is to expire.
        if self.alive.is_none_or(|(last, told)| cycle != last && now - told >= interval) {
            self.alive = Some((cycle, now));
            self.send("WATCHDOG=1");
        }
    }

    /// Sends that the stop has begun.
    pub(super) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    fn send(&self, words: &str) {
        let _ = self.socket.send_to_addr(words.as_bytes(), &self.manager);
    }
}

/// A path, or a name in the kernel's own space behind `@`.
fn address(name: &OsStr) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(name).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service manager that receives what is sent to a name of the kernel's.
    fn heard(test: &str) -> (Service, impl Fn() -> Vec<String>) {
        let name = format!("@onbeat-{test}-{}", std::process::id());
        let manager = address(OsStr::new(&name)).expect("a name");
        let ear = UnixDatagram::bind_addr(&manager).expect("a socket");
        ear.set_nonblocking(true).expect("its mode");
        let socket = UnixDatagram::unbound().expect("a socket");
        let watchdog = Some(Duration::from_millis(5));
        let service = Service { socket, manager, watchdog, sent: None, alive: None, ready: false };
        let words = move || {
            let mut room = [0; 256];
            std::iter::from_fn(|| {
                ear.recv(&mut room).ok().map(|it| String::from_utf8_lossy(&room[..it]).into())
            })
            .collect()
        };
        (service, words)
    }

    /// A stalled cycle is not reported as alive.
    // feature(program): a run notifies the watchdog of systemd only while its cycle runs
    #[test]
    fn the_watchdog_is_fed_only_while_the_cycle_runs() {
        let (mut service, words) = heard("watchdog");
        let mut at = |cycle| {
            std::thread::sleep(Duration::from_millis(6));
            service.progress(Phase::Measuring, cycle, || "so many cycles".to_owned());
            words()
        };
        assert_eq!(at(7), ["READY=1\nSTATUS=so many cycles", "WATCHDOG=1"]);
        assert_eq!(at(8), ["WATCHDOG=1"]);
        assert_eq!([at(8), at(8)], [[""; 0]; 2]);
        assert_eq!(at(9), ["WATCHDOG=1"]);
    }

    #[test]
    fn a_bus_on_its_way_up_is_not_ready() {
        let (mut service, words) = heard("ready");
        service.progress(Phase::BringUp, 1, || "PreOp".to_owned());
        assert_eq!(words(), ["STATUS=PreOp", "WATCHDOG=1"]);
        service.progress(Phase::Measuring, 2, || "Op".to_owned());
        assert_eq!(words()[0], "READY=1\nSTATUS=Op");
        service.stopping();
        assert_eq!(words(), ["STOPPING=1"]);
        assert!(address(OsStr::new("relative")).is_none());
    }
}
