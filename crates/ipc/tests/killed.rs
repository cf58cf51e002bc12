//! Kills (`kill -9`) a thousand readers, writers and channel clients at random instants, while a
//! thread publishes every millisecond in seccomp strict mode: the kernel would end it at any system
//! call but `read`.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{ExitStatusExt, parent_id};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use onbeat_ipc::channel::{Channel, Kind, Port};
use onbeat_ipc::client::{Client, LeaseError, PortError};
use onbeat_ipc::command::{AxisTarget, Command, Read as Taken, Twist, Writer};
use onbeat_ipc::server::Endpoints;
use onbeat_ipc::state::State;
use onbeat_ipc::units::{Radians, RadiansPerSecond};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{SecureComputingMode, gettid, set_secure_computing_mode};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use support::{Folder, eventually, state};

/// Readers killed by each thread of the test, one after another.
const READERS: [usize; 3] = [100; 3];
const WRITERS: usize = 300;
const CLIENTS: [(&str, usize); 4] = [("m0", 100), ("m1", 100), ("s0", 100), ("s1", 100)];

const ROLE: &str = "ONBEAT_TEST_ROLE";
const SOCKET: &str = "ONBEAT_TEST_SOCKET";

// feature(ipc): a thousand readers, writers and clients killed with SIGKILL
#[test]
fn thousand_killed_clients_leave_cycle_and_ipc_intact() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let kind = |name: &str| match name.starts_with('m') {
        true => Kind::Message { size: 64, depth: 16 },
        false => Kind::Stream { size: 1024 },
    };
    let ports = CLIENTS.map(|(name, _)| builder.port(name, kind(name)).unwrap());
    let (ends, server) = builder.open().unwrap();
    let cycle = Arc::new(Cycle::default());
    let timer = every_millisecond();
    thread::spawn({
        let cycle = Arc::clone(&cycle);
        move || cycle.run(ends, ports, &timer)
    });
    eventually("the first cycle", || (cycle.cycles.load(Ordering::Relaxed) > 10).then_some(()));
    server.diagnostics("{}").unwrap();
    let socket = folder.socket("robot");
    let ipc = Client::open(&socket).unwrap();
    // Without locked memory (RLIMIT_MEMLOCK) the kernel may take pages from this process, and
    // counted faults prove nothing.
    let locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).is_ok();
    let before = cycle.switches_and_faults();
    let descriptors = descriptors();

    let killed = AtomicU64::new(0);
    thread::scope(|scope| {
        let (ipc, socket, killed, cycle) = (&ipc, socket.as_path(), &killed, &*cycle);
        let mut killers = Vec::new();
        for (number, count) in READERS.into_iter().enumerate() {
            killers.push(scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number as u64);
                for _ in 0..count {
                    kill("reader", socket, &mut random);
                    killed.fetch_add(1, Ordering::Relaxed);
                    let seen = whole(&ipc.state().read().unwrap());
                    eventually("the next cycle", || {
                        (whole(&ipc.state().read().unwrap()) > seen).then_some(())
                    });
                }
            }));
        }
        killers.push(scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(100);
            for round in 1..=WRITERS as u64 {
                kill("writer", socket, &mut random);
                killed.fetch_add(1, Ordering::Relaxed);
                // The lease is free, and the next command the cycle reads is the new holder's.
                let mut writer = lease(ipc, std::process::id());
                let marker = MARKER + round;
                writer.send(&pattern(1, marker)).unwrap();
                eventually("the new holder is heard", || {
                    (ipc.state().read().unwrap().command.stamp_ns == marker).then_some(())
                });
            }
        }));
        for (number, (name, count)) in CLIENTS.into_iter().enumerate() {
            killers.push(scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(200 + number as u64);
                for _ in 0..count {
                    kill(name, socket, &mut random);
                    killed.fetch_add(1, Ordering::Relaxed);
                    // The port is free, and a message comes back.
                    let marker = random.u64(..).to_le_bytes();
                    passes(&port(ipc, name, std::process::id()), &marker);
                }
            }));
        }
        // The cycle continues meanwhile: it would have stopped if it had been killed, or had
        // waited.
        let mut last = 0;
        while !killers.iter().all(|killer| killer.is_finished()) {
            last = eventually("another cycle", || {
                Some(cycle.cycles.load(Ordering::Relaxed)).filter(|&now| now > last)
            });
            thread::sleep(Duration::from_millis(20));
        }
    });

    assert_eq!(killed.load(Ordering::Relaxed), 1_000);
    let (switches, faults) = cycle.switches_and_faults();
    let heard = ipc.state().read().unwrap().command;
    assert_eq!(heard.refused, 0, "a command was torn, or two in one");
    assert!(heard.accepted >= WRITERS as u64);
    cycle.stop.store(true, Ordering::Relaxed);
    let published = eventually("the last cycle", || {
        cycle.over.load(Ordering::Relaxed).then(|| cycle.cycles.load(Ordering::Relaxed))
    });
    assert_eq!(ipc.state().heartbeat(), published, "every cycle was published");
    assert!(!locked || faults == before.1, "the real-time thread had {} page faults", faults - before.1);
    assert!(
        switches - before.0 <= published,
        "the real-time thread waited {} times in {published} cycles",
        switches - before.0
    );
    eventually("every descriptor is given back", || (self::descriptors() <= descriptors).then_some(()));
    let regions = fs::read_to_string("/proc/self/maps").unwrap().matches("onbeat-command").count();
    assert!(regions <= 2, "{regions} command regions are still mapped");
    if !cycle.strict.load(Ordering::Relaxed) {
        eprintln!("not shown: no system call but `read`; this system refuses strict seccomp");
    }
}

/// Publishing thread, seen from outside.
#[derive(Default)]
struct Cycle {
    cycles: AtomicU64,
    thread: AtomicI32,
    strict: AtomicBool,
    stop: AtomicBool,
    over: AtomicBool,
}

impl Cycle {
    /// Runs the cycles. Never returns: a thread that ends makes system calls, which strict mode
    /// forbids.
    fn run(&self, mut ends: Endpoints, mut ports: [Port; 4], timer: &OwnedFd) {
        let mut command = ends.command.blank();
        let mut now = state(0);
        let mut buffer = [0; 64];
        for port in &mut ports {
            port.bind();
        }
        self.thread.store(gettid().as_raw_nonzero().get(), Ordering::Relaxed);
        // From here on any system call but read, write, _exit and sigreturn ends the thread
        // (prctl(2)).
        self.strict
            .store(set_secure_computing_mode(SecureComputingMode::Strict).is_ok(), Ordering::Relaxed);
        loop {
            let _ = rustix::io::read(timer, &mut [0_u8; 8]);
            if self.stop.load(Ordering::Relaxed) {
                self.over.store(true, Ordering::Relaxed);
                continue;
            }
            let sequence = now.command.sequence;
            match ends.command.newest(&mut command) {
                Taken::New => {
                    let (is_whole, first) = (is_pattern(&command), command.sequence == 1);
                    now.command.accepted += 1;
                    now.command.refused += u64::from(!is_whole);
                    // The numbers of one holder only increase. The first ones of a new holder may
                    // be overwritten between two cycles.
                    let holder = command.time_to_live_ns;
                    if !first && holder == now.command.stamp_ns && command.sequence <= sequence {
                        now.command.refused += 1;
                    }
                    now.command.sequence = command.sequence;
                    now.command.stamp_ns = holder;
                }
                Taken::Torn => now.command.refused += 1,
                Taken::Same | Taken::Nothing => {}
            }
            for port in &mut ports {
                for _ in 0..8 {
                    let Some(length) = port.receive(&mut buffer) else { break };
                    let _ = port.send(&buffer[..length]);
                }
            }
            number(&mut now, self.cycles.load(Ordering::Relaxed) + 1);
            ends.state.publish(&now);
            self.cycles.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Voluntary context switches and page faults so far.
    fn switches_and_faults(&self) -> (u64, u64) {
        let task = format!("/proc/self/task/{}", self.thread.load(Ordering::Relaxed));
        let status = fs::read_to_string(format!("{task}/status")).unwrap();
        let switches =
            status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        let stat = fs::read_to_string(format!("{task}/stat")).unwrap();
        // proc(5): minflt is field 10, majflt field 12; the name, field 2, is in brackets.
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        (switches.trim().parse().unwrap(), fields[10 - 3] + fields[12 - 3])
    }
}

/// Changes a state in place to that of another cycle.
fn number(state: &mut State, cycle: u64) {
    state.cycle = cycle;
    state.release_ns = cycle.wrapping_mul(7);
    state.bus.frames_sent = cycle ^ 0x5A5A;
    for axis in &mut state.axes {
        axis.position = cycle as f64;
        axis.target_effort = -(cycle as f64);
    }
}

/// Number of the cycle of a state; checks that every part belongs to it.
fn whole(found: &State) -> u64 {
    let expected = State { command: found.command, ..state(found.cycle) };
    assert_eq!(found, &expected);
    found.cycle
}

/// Command in which every part encodes its sequence number; `time_to_live_ns` encodes the holder.
fn pattern(sequence: u64, holder: u64) -> Command {
    let n = sequence as f64;
    Command {
        time_to_live_ns: holder,
        twist: Some(Twist::new(n, -n, holder as f64)),
        axes: vec![
            Some(AxisTarget::Position(Radians(n))),
            Some(AxisTarget::Velocity(RadiansPerSecond(-n))),
        ],
        ..Command::default()
    }
}

/// True if every part is of one command. Allocates nothing.
fn is_pattern(command: &Command) -> bool {
    let n = command.sequence as f64;
    command.twist == Some(Twist::new(n, -n, command.time_to_live_ns as f64))
        && command.axes[..]
            == [Some(AxisTarget::Position(Radians(n))), Some(AxisTarget::Velocity(RadiansPerSecond(-n)))]
}

/// Added to numbers to lie above every process id.
const MARKER: u64 = 1 << 40;

/// Starts a child in a role and kills it: mostly at work, sometimes at any instant of its life.
fn kill(role: &str, socket: &Path, random: &mut fastrand::Rng) {
    let mut child = start(role, socket);
    let mut said = [0];
    if random.u8(0..8) > 0 {
        let mut errors = child.stderr.take().unwrap();
        errors.read_exact(&mut said).unwrap();
        if said != *b"!" {
            let mut why = String::new();
            let _ = errors.read_to_string(&mut why);
            panic!("the {role} ended by itself: {}{why}", char::from(said[0]));
        }
        // At the first instructions, or anywhere in the work.
        thread::sleep(Duration::from_micros(random.u64(0..4_000)));
    } else {
        thread::sleep(Duration::from_micros(random.u64(0..20_000)));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the {role} ended by itself");
}

fn start(role: &str, socket: &Path) -> Child {
    let mut process = Process::new(std::env::current_exe().unwrap());
    process.args(["--exact", "in_a_role", "--ignored", "--nocapture", "--test-threads=1"]);
    process.env(ROLE, role).env(SOCKET, socket).env("RUST_BACKTRACE", "0");
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    process.spawn().unwrap()
}

/// Work of the children until they are killed.
#[test]
#[ignore = "what the processes that the test above kills do"]
fn in_a_role() {
    let (Ok(role), Some(socket)) = (std::env::var(ROLE), std::env::var_os(SOCKET)) else { return };
    let ipc = Client::open(Path::new(&socket)).unwrap();
    let mut ready = Some(());
    let mut at_work = || {
        if ready.take().is_some() {
            std::io::stderr().write_all(b"!").unwrap();
        }
    };
    match role.as_str() {
        "reader" => loop {
            whole(&ipc.state().read().unwrap());
            assert_eq!(ipc.diagnostics().unwrap(), "{}");
            at_work();
        },
        "writer" => {
            let mut writer = lease(&ipc, parent_id());
            let holder = u64::from(std::process::id());
            for sequence in 1.. {
                assert_eq!(writer.send(&pattern(sequence, holder)), Ok(sequence));
                at_work();
            }
        }
        name => {
            let channel = port(&ipc, name, parent_id());
            channel.set_nonblocking(true).unwrap();
            let mut random = fastrand::Rng::new();
            let mut buffer = [0; 64];
            loop {
                let letter = random.u8(b'a'..=b'z');
                let bytes = [letter; 60];
                match (&channel).write(&bytes[..random.usize(1..=60)]) {
                    Ok(length) => assert!(length > 0),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        thread::yield_now();
                    }
                }
                at_work();
                // Reads at random.
                if random.bool() {
                    match (&channel).read(&mut buffer) {
                        Ok(0) => panic!("the cycle has ended"),
                        Ok(length) => check_message(&channel, &buffer[..length]),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    }
                }
            }
        }
    }
}

/// Takes the lease. One that this test's own process gave back may be held a moment longer, by
/// another of its children between fork and exec. No other process may have it.
fn lease(ipc: &Client, test: u32) -> Writer {
    eventually("the lease is given back", || match ipc.command() {
        Err(LeaseError::Taken { process }) if process == test => None,
        other => Some(other.unwrap()),
    })
}

/// Opens a port; as above.
fn port(ipc: &Client, name: &str, test: u32) -> Channel {
    eventually("the port is given back", || match ipc.port(name) {
        Err(PortError::Taken { process, .. }) if process == test => None,
        other => Some(other.unwrap()),
    })
}

/// Checks that a message is one repeated letter or, as a marker of the parent, 8 bytes long.
fn check_message(channel: &Channel, bytes: &[u8]) {
    if matches!(channel.kind(), Kind::Message { .. }) {
        let one_letter = bytes.iter().all(|&byte| byte == bytes[0] && byte.is_ascii_lowercase());
        assert!(one_letter || bytes.len() == 8, "torn: {bytes:?}");
    }
}

/// Sends a marker until it comes back, after whatever the former client left.
fn passes(channel: &Channel, marker: &[u8]) {
    let mut back: Vec<u8> = Vec::new();
    let mut buffer = [0; 64];
    let mut looks = 0_u32;
    eventually("what was sent comes back", || {
        // The way back may have been full: sends again now and then.
        if looks % 16 == 0 {
            let _ = channel.send_timeout(marker, Duration::from_millis(1));
        }
        looks += 1;
        let length = channel.recv_timeout(&mut buffer, Duration::from_millis(5)).unwrap()?;
        check_message(channel, &buffer[..length]);
        back.extend(&buffer[..length]);
        back.windows(marker.len()).any(|window| window == marker).then_some(())
    });
}

fn every_millisecond() -> OwnedFd {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
    let millisecond = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    let every = Itimerspec { it_interval: millisecond, it_value: millisecond };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every).unwrap();
    timer
}

/// Number of open descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}
