//! Mutual exclusion of tests that change the whole machine.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use crate::Skip;

/// Exclusive right of a test to change the whole machine: interrupts, control groups. Others wait
/// until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for the turn among the tests of all crates and processes.
    ///
    /// # Errors
    /// The lock file in the folder of temporary files cannot be opened.
    pub fn take() -> io::Result<Self> {
        let path = std::env::temp_dir().join("onbeat-test-turn");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { _lock: file })
    }
}

/// Waits until this machine has woken a sleeping thread in time for one continuous second; `false`
/// if that took longer than `longest`. A virtual machine with a busy host stalls for tenths of a
/// second at times.
pub fn await_calm(longest: Duration) -> bool {
    const STEP: Duration = Duration::from_millis(1);
    const LATE: Duration = Duration::from_millis(10);
    let started = Instant::now();
    let (mut calm_since, mut last) = (started, started);
    while started.elapsed() < longest {
        thread::sleep(STEP);
        let now = Instant::now();
        if now - last > STEP + LATE {
            calm_since = now;
        }
        if now - calm_since >= Duration::from_secs(1) {
            return true;
        }
        last = now;
    }
    false
}

/// Runs a command that shields a CPU in a separate PID and mount namespace, where it can move only
/// its own threads. Interrupts and control groups belong to the whole machine, so no other shield
/// may be active meanwhile: this function waits for an active one, and repeats a command that
/// failed while another was active.
///
/// The command has its own `/run`. `put_back` undoes the journals in a folder: those of the
/// command, or of a killed test.
///
/// # Errors
/// Reason for which the test cannot run here.
pub fn alone(
    arguments: &[&OsStr],
    environment: (&str, &str),
    mut put_back: impl FnMut(&Path),
) -> Result<Output, Skip> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let mut able = Command::new("unshare");
    able.args(["--pid", "--mount", "--fork", "true"]).stderr(Stdio::null());
    if cpus < 2 || !able.status().is_ok_and(|status| status.success()) {
        return Err(Skip("a shield needs two CPUs, root and unshare (Debian: util-linux)".into()));
    }
    let _turn = Turn::take().map_err(|error| Skip(format!("no turn: {error}")))?;
    OwnRun::of_dead_tests().for_each(|mut left| left.clear(&mut put_back));
    for _ in 0..ATTEMPTS {
        wait_until_free()?;
        let mut run = OwnRun::new().map_err(|error| Skip(format!("no folder for its /run: {error}")))?;
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["sh", "-c", "mount --bind \"$0\" /run && exec \"$@\""]).arg(&run.0).args(arguments);
        command.env(environment.0, environment.1).stdin(Stdio::null());
        let (output, disturbed) = watched(&mut command);
        run.clear(&mut put_back);
        if output.status.success() || !disturbed {
            return Ok(output);
        }
    }
    Err(Skip("another process raises shields on this machine again and again".into()))
}

/// Folder that a command has as `/run`. It lies outside the command's namespaces: what is written
/// there of changes to the machine can be undone when they are gone.
struct OwnRun(PathBuf);

impl OwnRun {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("{OWN_RUN}{}", process::id()));
        DirBuilder::new().recursive(true).mode(0o755).create(&path)?;
        Ok(Self(path))
    }

    /// Folders of killed tests.
    fn of_dead_tests() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let process: u32 = entry.file_name().to_str()?.strip_prefix(OWN_RUN)?.parse().ok()?;
            let ours = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw());
            let lives = Path::new(&format!("/proc/{process}")).exists() && process != process::id();
            (ours && !lives).then(|| Self(entry.path()))
        })
    }

    /// Removes it, unless a journal stays: that of a process which still lives.
    fn clear(&mut self, put_back: &mut impl FnMut(&Path)) {
        let journals = self.0.join("onbeat");
        put_back(&journals);
        let mut left = fs::read_dir(&journals).into_iter().flatten().flatten();
        if !left.any(|entry| entry.path().extension().is_some_and(|it| it == "journal")) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Output of a command, and `true` if another shield was active while it ran.
fn watched(command: &mut Command) -> (Output, bool) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = false;
            // Relaxed: the flag publishes nothing but itself.
            while !done.load(Ordering::Relaxed) {
                seen |= shield_stands();
                thread::sleep(Duration::from_millis(5));
            }
            seen | shield_stands()
        });
        let output = command.output().expect("unshare has just run");
        done.store(true, Ordering::Relaxed);
        (output, watch.join().unwrap_or(true))
    })
}

fn wait_until_free() -> Result<(), Skip> {
    for _ in 0..600 {
        if !shield_stands() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(Skip("another process has a shield on this machine".into()))
}

/// True if a journal outside the namespaces has claimed a CPU.
fn shield_stands() -> bool {
    let journals = fs::read_dir("/run/onbeat").into_iter().flatten().flatten();
    journals
        .into_iter()
        .any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("\"claim\"")))
}

const ATTEMPTS: usize = 5;

/// Name of the folder of a command's `/run`, before the number of the test's process.
const OWN_RUN: &str = "onbeat-run-";

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn turns_exclude_each_other() {
        let inside = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _turn = Turn::take().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
