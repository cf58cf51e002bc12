//! Watchdog for a DDS that no longer receives. A thread of RustDDS ends for good when a suspension
//! (SIGSTOP, Ctrl-Z, a sleeping machine) interrupts its wait, and the node would look alive
//! afterwards. The memory that peers can make RustDDS use is not bounded either. The watchdog then
//! replaces the process by a fresh one with the same arguments: its commands expire like the
//! commands of a killed node.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(500);

/// Time for a signal to be delivered before a restart, which would lose it.
const SIGNALS: Duration = Duration::from_millis(50);

/// Looks without progress of a thread of RustDDS after which it hangs, 3 s: these threads wake
/// every 2 s and oftener. Looks are counted, not time: while the process is suspended, there are
/// none.
const PATIENT_LOOKS: u32 = 6;

/// The same of the node's own thread, 20 s: it waits up to 5 s for each answer of a cycle that is
/// suspended.
const PATIENT_LOOKS_OF_NODE: u32 = 40;

/// Resident memory above which others have filled RustDDS, bytes: five times the need with a robot
/// of 60 axes, and half of the limit at which an allocation fails.
const MOST_RESIDENT: u64 = 512 << 20;

/// Restarts in a row, each within [`SOON`] of the one before, after which the supervisor decides.
const MOST_RESTARTS: u32 = 5;
const SOON: Duration = Duration::from_secs(10);

/// Longest wait for a message to be written: nothing reads a full pipe.
const MESSAGE: Duration = Duration::from_millis(200);

/// Exit status when restarting does not help.
const GIVEN_UP: i32 = 102;

/// Variable with the number of restarts in a row.
const RESTARTS: &str = "ONBEAT_ROS2_RESTARTS";

/// Names of the threads of one participant, as far as the kernel keeps them.
const DDS_THREADS: [&str; 2] = ["RustDDS discove", "RustDDS Partici"];

/// True while there is a participant: its threads have to run.
static IS_JOINED: AtomicBool = AtomicBool::new(false);

/// Turns of the node's own loop.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Counts a turn of the node's own loop.
pub(crate) fn turn() {
    TURNS.fetch_add(1, Ordering::Relaxed);
}

/// Time for which a participant exists; to be dropped before it.
pub(crate) struct Joined(());

impl Joined {
    pub(crate) fn new() -> Self {
        IS_JOINED.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        IS_JOINED.store(false, Ordering::SeqCst);
    }
}

/// Starts the watchdog, which ends with `stop`.
///
/// # Errors
/// No thread.
pub(crate) fn start(stop: Arc<AtomicBool>) -> io::Result<()> {
    let started = Instant::now();
    thread::Builder::new().name("watchdog".into()).spawn(move || {
        let mut watch = Watch::default();
        loop {
            thread::sleep(PERIOD);
            // Before the look, and after it: a participant that goes meanwhile is no failure.
            let expected = IS_JOINED.load(Ordering::SeqCst);
            let look = Look::take();
            let verdict = if expected && IS_JOINED.load(Ordering::SeqCst) {
                watch.judge(look)
            } else {
                watch = Watch::default();
                None
            };
            if verdict.is_some() {
                // A signal that waited for the end of a suspension comes now.
                thread::sleep(SIGNALS);
            }
            if stop.load(Ordering::SeqCst) {
                return;
            }
            if let Some(why) = verdict {
                start_again(&why, started);
            }
        }
    })?;
    Ok(())
}

/// Progress of the threads at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look {
    /// Context switches of each thread of RustDDS, by its number and name.
    threads: BTreeMap<(u32, String), u64>,
    turns: u64,
    resident: u64,
}

impl Look {
    fn take() -> Self {
        let mut look = Self { turns: TURNS.load(Ordering::Relaxed), ..Self::default() };
        for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let number = task.file_name().to_str().and_then(|number| number.parse().ok());
            if let Some(number) = number.filter(|_| DDS_THREADS.contains(&name.trim_end())) {
                let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                let switches = fields(&status, "voluntary_ctxt_switches").sum();
                look.threads.insert((number, name.trim_end().to_owned()), switches);
            }
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        look.resident = fields(&status, "VmRSS").sum::<u64>() << 10;
        look
    }
}

/// Numbers in the lines with names that end like this.
fn fields<'a>(status: &'a str, name: &'a str) -> impl Iterator<Item = u64> + 'a {
    let named = status.lines().filter_map(|line| line.split_once(':'));
    let wanted = named.filter(move |(key, _)| key.ends_with(name));
    wanted.filter_map(|(_, value)| value.split_whitespace().next()?.parse().ok())
}

/// The look before, and how long each thread has made no progress.
#[derive(Debug, Default)]
struct Watch {
    before: Look,
    idle: BTreeMap<String, u32>,
}

impl Watch {
    /// Reason to start again, if there is one.
    fn judge(&mut self, look: Look) -> Option<String> {
        let lost = DDS_THREADS.iter().find(|name| !look.threads.keys().any(|(_, it)| it == *name));
        if let Some(lost) = lost {
            return Some(format!("the thread `{lost}` of DDS has ended"));
        }
        if look.resident > MOST_RESIDENT {
            return Some(format!(
                "DDS has filled {} MiB of memory, more than {}",
                look.resident >> 20,
                MOST_RESIDENT >> 20
            ));
        }
        let own = ("node".to_owned(), self.before.turns == look.turns, PATIENT_LOOKS_OF_NODE);
        let of_dds = look.threads.iter().map(|(thread, switches)| {
            let is_idle = self.before.threads.get(thread) == Some(switches);
            (format!("{} of DDS", thread.1), is_idle, PATIENT_LOOKS)
        });
        let mut hangs = None;
        for (name, is_idle, patience) in std::iter::once(own).chain(of_dds) {
            let looks = self.idle.entry(name.clone()).or_default();
            *looks = if is_idle { *looks + 1 } else { 0 };
            if *looks >= patience {
                hangs = Some(format!("the thread `{name}` hangs"));
            }
        }
        self.before = look;
        hangs
    }
}

/// Number of this restart, or `None` if too many came in a row.
fn next_restart(before: u32, since_start: Duration) -> Option<u32> {
    let number = if since_start < SOON { before + 1 } else { 1 };
    (number <= MOST_RESTARTS).then_some(number)
}

/// Replaces this process by a fresh one with the same arguments.
fn start_again(why: &str, started: Instant) -> ! {
    let before = env::var(RESTARTS).ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    let Some(number) = next_restart(before, started.elapsed()) else {
        say(format!("{why}, after {MOST_RESTARTS} restarts in a row: ends with status {GIVEN_UP}"));
        process::exit(GIVEN_UP);
    };
    say(format!("{why}: starts again"));
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let error = Command::new(program()).args(arguments).env(RESTARTS, number.to_string()).exec();
    say(format!("cannot start again: {error}"));
    process::exit(GIVEN_UP);
}

/// Writes a message, unless the standard error is full or another thread waits in it: then the
/// message is dropped.
fn say(message: String) {
    at_most(MESSAGE, move || eprintln!("onbeat-ros2: {message}"));
}

/// Runs `write` in another thread, and leaves it there after this time.
fn at_most(time: Duration, write: impl FnOnce() + Send + 'static) {
    let (done, written) = mpsc::channel();
    let writer = thread::Builder::new().name("message".into()).spawn(move || {
        write();
        let _ = done.send(());
    });
    if writer.is_ok() {
        // An end without a message, by a panic, ends the wait as well.
        let _ = written.recv_timeout(time);
    }
}

/// This program's file; an update may have taken its name away.
fn program() -> PathBuf {
    env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| Path::new("/proc/self/exe").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(switches: [u64; 2], turns: u64) -> Look {
        let threads = (1..).zip(DDS_THREADS).zip(switches);
        let threads = threads.map(|((number, name), count)| ((number, name.to_owned()), count)).collect();
        Look { threads, turns, resident: 0 }
    }

    #[test]
    fn running_threads_are_left_alone() {
        let mut watch = Watch::default();
        for number in 0..100 {
            // One of them wakes at every fourth look only.
            assert_eq!(watch.judge(look([number / 4, number], number)), None, "{number}");
        }
    }

    #[test]
    fn a_thread_that_has_ended_is_noticed_at_once() {
        let mut look = look([1, 1], 1);
        look.threads.pop_last();
        let why = Watch::default().judge(look).unwrap();
        assert_eq!(why, "the thread `RustDDS Partici` of DDS has ended");
    }

    #[test]
    fn a_thread_that_hangs_is_noticed() {
        let hangs = |at: fn(u64) -> Look| {
            let mut watch = Watch::default();
            (0..50).find_map(|number| Some((number, watch.judge(at(number))?)))
        };
        let of_dds = hangs(|number| look([number, 7], number)).unwrap();
        assert_eq!(of_dds, (6, "the thread `RustDDS Partici of DDS` hangs".to_owned()));
        let own = hangs(|number| look([number, number], 7)).unwrap();
        assert_eq!(own, (40, "the thread `node` hangs".to_owned()));
    }

    #[test]
    fn memory_that_others_fill_is_bounded() {
        let full = |resident| Look { resident, ..look([1, 1], 1) };
        assert_eq!(Watch::default().judge(full(MOST_RESIDENT)), None);
        let why = Watch::default().judge(full(600 << 20)).unwrap();
        assert_eq!(why, "DDS has filled 600 MiB of memory, more than 512");
    }

    #[test]
    fn restarts_in_a_row_come_to_an_end() {
        let soon = Duration::from_secs(1);
        assert_eq!(next_restart(0, soon), Some(1));
        assert_eq!(next_restart(4, soon), Some(5));
        assert_eq!(next_restart(5, soon), None);
        assert_eq!(next_restart(5, SOON), Some(1));
    }

    #[test]
    fn a_full_pipe_does_not_hold_up_a_restart() {
        let (room, full) = mpsc::channel::<()>();
        let (wrote, written) = mpsc::channel();
        at_most(Duration::from_millis(1), move || {
            let _ = full.recv();
            let _ = wrote.send(());
        });
        assert!(written.try_recv().is_err(), "it waited for the write");
        room.send(()).unwrap();
        written.recv().unwrap();
        let (wrote, written) = mpsc::channel();
        at_most(Duration::MAX, move || wrote.send(()).unwrap());
        assert!(written.try_recv().is_ok(), "a message that can be written is written before the restart");
    }

    #[test]
    fn a_look_finds_the_memory_of_this_process() {
        assert!(Look::take().resident > 1 << 20);
        let status = "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\nVmRSS:\t 8 kB\n";
        assert_eq!(fields(status, "voluntary_ctxt_switches").sum::<u64>(), 7);
    }
}
