//! Threads of the machine, ours and everybody's, and the CPUs they may use.

use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::cpus::Cpus;

/// One thread, as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub tid: i32,
    /// Number of its process.
    pub pid: i32,
    /// Its name, at most 15 bytes (64 for kernel workers).
    pub name: String,
    /// Number of the process that started its process.
    pub parent: i32,
    /// When it started, in clock ticks since the machine did: with `tid` this names it for ever.
    pub started: u64,
    /// Whether the kernel itself runs in it (PF_KTHREAD).
    pub of_kernel: bool,
    /// Whether its CPUs may not be changed (PF_NO_SETAFFINITY), as of the kernel's threads for one CPU.
    pub bound: bool,
}

impl Task {
    /// The thread with this number, or `None` if there is none (any more).
    #[must_use]
    pub fn read(tid: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
        Self::of_process(pid, tid)
    }

    /// Every thread there is. Threads come and go while the list is made.
    #[must_use]
    pub fn all() -> Vec<Self> {
        numbers("/proc").flat_map(Self::of).collect()
    }

    /// All threads of one process.
    #[must_use]
    pub fn of(pid: i32) -> Vec<Self> {
        numbers(&format!("/proc/{pid}/task")).filter_map(|tid| Self::of_process(pid, tid)).collect()
    }

    /// Thread `tid` of process `pid`.
    fn of_process(pid: i32, tid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        // The name stands in parentheses and may hold any character, ')' too.
        let (name, rest) = (stat.split_once('(')?.1, stat.rsplit_once(')')?.1);
        let name = name.get(..name.rfind(')')?)?.to_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        Some(Self {
            tid,
            pid,
            name,
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            of_kernel: flags & PF_KTHREAD != 0,
            bound: flags & PF_NO_SETAFFINITY != 0,
        })
    }

    /// Whether this very thread still lives.
    #[must_use]
    pub fn lives(tid: i32, started: u64) -> bool {
        Self::read(tid).is_some_and(|task| task.started == started)
    }
}

/// The CPUs a thread may run on.
///
/// # Errors
/// ESRCH if there is no such thread.
pub fn affinity(tid: i32) -> io::Result<Cpus> {
    let set = sched_getaffinity(Some(named(tid)?))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Lets a thread run on these CPUs only.
///
/// # Errors
/// ESRCH if there is no such thread, EINVAL if it is bound by the kernel or none of the CPUs is there, EPERM for the
/// thread of another user.
pub fn set_affinity(tid: i32, cpus: &Cpus) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    Ok(sched_setaffinity(Some(named(tid)?), &set)?)
}

/// The number of the calling thread.
#[must_use]
pub fn current() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

fn named(tid: i32) -> io::Result<Pid> {
    Pid::from_raw(tid.max(0)).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// The entries of a folder that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The kernel's `include/linux/sched.h`: a thread of the kernel.
const PF_KTHREAD: u64 = 0x0020_0000;
/// There as well: user space may not meddle with its CPUs.
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_found_under_its_name() {
        let name = "a) (b";
        let thread = std::thread::Builder::new().name(name.to_owned());
        let (tid, task, all) =
            thread.spawn(|| (current(), Task::read(current()), Task::all())).unwrap().join().unwrap();
        let task = task.unwrap();
        assert_eq!((task.tid, task.pid, task.name.as_str()), (tid, std::process::id() as i32, name));
        assert!(!task.of_kernel && !task.bound && task.started > 0);
        assert!(all.contains(&task));
        assert!(Task::of(task.pid).len() >= 2 || !Task::lives(tid, task.started));
        assert!(!Task::lives(task.pid, task.started + 1_000_000));
    }

    #[test]
    fn affinities_are_read_and_set() {
        std::thread::spawn(|| {
            let before = affinity(current()).unwrap();
            let one = Cpus::one(before.last().unwrap());
            set_affinity(current(), &one).unwrap();
            assert_eq!(affinity(current()).unwrap(), one);
            let code = set_affinity(current(), &Cpus::one(1_000_000)).unwrap_err().raw_os_error();
            assert_eq!(code, Some(libc::EINVAL));
            assert_eq!(affinity(-1).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        })
        .join()
        .unwrap();
    }
}
