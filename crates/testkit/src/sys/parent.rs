//! Processes that end with the one that started them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Makes the process that `command` starts end (SIGKILL) with the thread that starts it, however
/// that ends: a test that is killed leaves no program behind. A test that calls this ends with its
/// `cargo test` from now on, too.
///
/// A program may ask for another signal itself, to end in order. Programs that change their user
/// forget it (prctl(2), PR_SET_PDEATHSIG).
pub fn end_with_parent(command: &mut Command) -> &mut Command {
    if is_run_by_cargo() {
        // Where the kernel refuses it nothing is lost but this.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the request.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: between fork and exec the closure makes two system calls, and neither allocates nor
    // locks.
    unsafe { command.pre_exec(ask) }
}

/// True for a child of `cargo`, as tests are. What `cargo run` starts takes its place, and is a
/// child of the shell, which may end before it.
fn is_run_by_cargo() -> bool {
    let name = getppid().map(|parent| std::fs::read_to_string(format!("/proc/{parent}/comm")));
    name.is_some_and(|name| name.is_ok_and(|name| name == "cargo\n"))
}
