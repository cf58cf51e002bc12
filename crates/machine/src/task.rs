//! Threads of the machine, the CPUs they may use, and their scheduling.

use std::fs;
use std::io;
use std::str::FromStr;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::cpus::Cpus;
use crate::sys;

/// Thread as shown in `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread id.
    pub tid: i32,
    /// Process id.
    pub pid: i32,
    /// Name, at most 15 bytes (64 for kernel workers).
    pub name: String,
    /// Id of the process that started its process.
    pub parent: i32,
    /// Start time, in clock ticks since boot: unique together with `tid`.
    pub started: u64,
    /// True for a thread of the kernel (PF_KTHREAD).
    pub of_kernel: bool,
    /// True if its CPUs may not be changed (PF_NO_SETAFFINITY), as for the kernel's per-CPU
    /// threads.
    pub bound: bool,
}

impl Task {
    /// Reads the thread with this id; `None` if it does not exist (any more).
    #[must_use]
    pub fn read(tid: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
        Self::of_process(pid, tid)
    }

    /// Reads all threads. Threads start and end while the list is made.
    #[must_use]
    pub fn all() -> Vec<Self> {
        numbers("/proc").flat_map(Self::of).collect()
    }

    /// Reads all threads of one process.
    #[must_use]
    pub fn of(pid: i32) -> Vec<Self> {
        numbers(&format!("/proc/{pid}/task")).filter_map(|tid| Self::of_process(pid, tid)).collect()
    }

    /// Reads thread `tid` of process `pid`.
    fn of_process(pid: i32, tid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        let stat = Stat::parse(&text)?;
        Some(Self {
            tid,
            pid,
            name: stat.name.to_owned(),
            parent: stat.number(4)?,
            started: stat.number(22)?,
            of_kernel: stat.of_kernel(),
            bound: stat.bound(),
        })
    }

    /// True if the thread with this id and start time still lives.
    #[must_use]
    pub fn lives(tid: i32, started: u64) -> bool {
        Self::read(tid).is_some_and(|task| task.started == started)
    }
}

/// Parser of a thread's `stat` file (proc_pid_stat(5)): the only code that depends on its layout.
#[derive(Clone, Debug)]
pub(crate) struct Stat<'a> {
    /// Name of the thread.
    pub(crate) name: &'a str,
    /// Fields from number 3 of the manual page on.
    fields: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        // The name is in parentheses and may contain any character, also ')': it ends at the last
        // one.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        Some(Self { name, fields: rest.split_ascii_whitespace().collect() })
    }

    /// A field by its number in the manual page, 3 or more.
    pub(crate) fn number<T: FromStr>(&self, field: usize) -> Option<T> {
        self.fields.get(field.checked_sub(3)?)?.parse().ok()
    }

    /// True for a thread of the kernel.
    pub(crate) fn of_kernel(&self) -> bool {
        self.flags() & PF_KTHREAD != 0
    }

    /// True if the kernel lets no process change its CPUs.
    pub(crate) fn bound(&self) -> bool {
        self.flags() & PF_NO_SETAFFINITY != 0
    }

    fn flags(&self) -> u64 {
        self.number(9).unwrap_or(0)
    }
}

/// Counts of the kernel for a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of times it went to sleep.
    pub voluntary: u64,
    /// Number of times it was switched out while runnable.
    pub involuntary: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

impl Counters {
    /// Reads the counts of thread `tid`; `None` if it does not exist (any more).
    #[must_use]
    pub fn read(tid: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        // `/proc/TID/stat` has the sums of TID's process; the thread's own are below `task`.
        let stat = fs::read_to_string(format!("/proc/{tid}/task/{tid}/stat")).ok()?;
        Self::parse(&status, &Stat::parse(&stat)?)
    }

    fn parse(status: &str, stat: &Stat<'_>) -> Option<Self> {
        let line =
            |name| status.lines().find_map(|line: &str| line.strip_prefix(name))?.trim().parse().ok();
        Some(Self {
            voluntary: line("voluntary_ctxt_switches:")?,
            involuntary: line("nonvoluntary_ctxt_switches:")?,
            minor_faults: stat.number(10)?,
            major_faults: stat.number(12)?,
        })
    }
}

/// Times of the kernel for a thread since its start, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// Time on a CPU.
    pub ran_ns: u64,
    /// Time in which it could have run and another thread had the CPU.
    pub waited_ns: u64,
}

impl RunTimes {
    /// Reads the times of thread `tid`; `None` if it does not exist (any more), or the kernel has
    /// none.
    #[must_use]
    pub fn read(tid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(|it| it.parse().ok());
        Some(Self { ran_ns: numbers.next()??, waited_ns: numbers.next()?? })
    }
}

/// CPUs a thread may run on.
///
/// # Errors
/// ESRCH if there is no such thread.
pub fn affinity(tid: i32) -> io::Result<Cpus> {
    let set = sched_getaffinity(Some(named(tid)?))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Restricts a thread to these CPUs.
///
/// # Errors
/// ESRCH if there is no such thread, EINVAL if it is bound by the kernel or none of the CPUs
/// exists, EPERM for the thread of another user.
pub fn set_affinity(tid: i32, cpus: &Cpus) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    Ok(sched_setaffinity(Some(named(tid)?), &set)?)
}

/// Scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// Policy by its number in linux/sched.h, with SCHED_RESET_ON_FORK.
    policy: i32,
    /// Real-time priority; 0 of the ordinary policies.
    priority: i32,
}

impl Scheduling {
    /// SCHED_FIFO at this priority, 1 to 99.
    #[must_use]
    pub fn fifo(priority: u8) -> Self {
        Self { policy: libc::SCHED_FIFO, priority: priority.into() }
    }
}

/// Scheduling of a thread.
///
/// # Errors
/// ESRCH if there is no such thread.
pub fn scheduling(tid: i32) -> io::Result<Scheduling> {
    let (policy, priority) = sys::scheduling::scheduler(named(tid)?.as_raw_nonzero().get())?;
    Ok(Scheduling { policy, priority })
}

/// Schedules a thread so.
///
/// # Errors
/// ESRCH if there is no such thread, EPERM without CAP_SYS_NICE.
pub fn set_scheduling(tid: i32, scheduling: Scheduling) -> io::Result<()> {
    let tid = named(tid)?.as_raw_nonzero().get();
    sys::scheduling::set_scheduler(tid, scheduling.policy, scheduling.priority)
}

/// Id of the calling thread.
#[must_use]
pub fn current() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

fn named(tid: i32) -> io::Result<Pid> {
    Pid::from_raw(tid.max(0)).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// Entries of a folder that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Flag of a kernel thread, `include/linux/sched.h`.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Flag of a thread with CPUs that user space may not change, same header.
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_times_are_the_first_two_numbers() {
        let times = RunTimes { ran_ns: 5_120, waited_ns: 77 };
        assert_eq!(RunTimes::parse("5120 77 12\n"), Some(times));
        assert_eq!(RunTimes::parse("5120\n"), None);
        assert_eq!(RunTimes::parse(""), None);
    }

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
    fn a_thread_that_sleeps_is_counted_asleep() {
        let sleeps = || {
            let before = Counters::read(current()).unwrap();
            (0..10).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
            (before, Counters::read(current()).unwrap())
        };
        let (before, after) = std::thread::spawn(sleeps).join().unwrap();
        assert!(after.voluntary >= before.voluntary + 10, "{before:?} {after:?}");
        assert!(after.involuntary >= before.involuntary && after.minor_faults >= before.minor_faults);
        assert_eq!(Counters::read(-1), None);
        let stat = Stat::parse("7 (a) b) S 1 2 3 4 5 64 111 112 113 114 115").unwrap();
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
        let counters = Counters::parse(status, &stat).unwrap();
        let expected = Counters { voluntary: 5, involuntary: 6, minor_faults: 111, major_faults: 113 };
        assert_eq!((stat.name, counters), ("a) b", expected));
        assert_eq!(Counters::parse("", &stat), None);
    }

    #[test]
    fn scheduling_is_read_and_set_and_the_nice_value_stays() {
        std::thread::spawn(|| {
            let nice = rustix::process::nice(3).unwrap();
            let before = scheduling(current()).unwrap();
            assert_eq!(before, Scheduling { policy: libc::SCHED_OTHER, priority: 0 });
            if let Err(error) = set_scheduling(current(), Scheduling::fifo(7)) {
                return testkit::skip!("needs the right to SCHED_FIFO: {error}");
            }
            assert_eq!(scheduling(current()).unwrap(), Scheduling::fifo(7));
            set_scheduling(current(), before).unwrap();
            assert_eq!(scheduling(current()).unwrap(), before);
            let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
            assert_eq!(Stat::parse(&stat).unwrap().number(19), Some(nice), "{stat}");
        })
        .join()
        .unwrap();
        assert_eq!(scheduling(-1).unwrap_err().raw_os_error(), Some(libc::ESRCH));
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
