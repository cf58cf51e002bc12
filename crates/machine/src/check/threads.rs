//! Threads of the machine, read from `/proc` (proc_pid_stat(5), proc_pid_status(5)).

use crate::cpus::Cpus;
use crate::root::Root;
use crate::task::Stat;

/// Thread of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) process: i32,
    pub(super) thread: i32,
    pub(super) name: String,
    /// True for a thread of the kernel.
    pub(super) kernel: bool,
    /// True if the kernel lets no process change its CPUs.
    pub(super) bound: bool,
    pub(super) policy: Policy,
    /// CPUs it may run on.
    pub(super) cpus: Cpus,
}

/// Scheduling policy of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Ordinary,
    /// SCHED_FIFO or SCHED_RR, with its priority.
    Fixed(u8),
    Deadline,
}

impl Policy {
    /// Its fixed priority, if it has one.
    pub(super) fn fixed(self) -> Option<u8> {
        match self {
            Self::Fixed(priority) => Some(priority),
            Self::Ordinary | Self::Deadline => None,
        }
    }
}

/// All visible threads, without threads that end meanwhile.
pub(super) fn read(root: &Root) -> Vec<Thread> {
    let processes = root.names("/proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    let mut threads = Vec::new();
    for process in processes {
        for thread in root.names(format!("/proc/{process}/task")) {
            threads.extend(thread.parse().ok().and_then(|thread| read_thread(root, process, thread)));
        }
    }
    threads
}

/// True for a thread of a NAPI instance of `interface`, by its name: older kernels show 15 letters
/// of it.
pub(super) fn is_napi_of(name: &str, interface: &str) -> bool {
    let whole = format!("napi/{interface}-");
    name.starts_with(&whole) || name.len() == SHORT && whole.starts_with(name)
}

/// Length of a thread's short name.
const SHORT: usize = 15;

fn read_thread(root: &Root, process: i32, thread: i32) -> Option<Thread> {
    let folder = format!("/proc/{process}/task/{thread}");
    let text = root.text(format!("{folder}/stat"))?;
    let stat = Stat::parse(&text)?;
    let status = root.text(format!("{folder}/status"))?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Thread {
        process,
        thread,
        name: super::printable(stat.name),
        kernel: stat.of_kernel(),
        bound: stat.bound(),
        policy: match stat.number(41)? {
            1 | 2 => Policy::Fixed(stat.number(40)?),
            6 => Policy::Deadline,
            _ => Policy::Ordinary,
        },
        cpus: cpus.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_among_the_threads() {
        let threads = read(&Root::machine());
        let me = threads.iter().find(|it| it.process == std::process::id() as i32).expect("this process");
        assert!(!me.kernel && !me.bound && !me.cpus.is_empty(), "{me:?}");
    }
}
