//! What a real-time thread asks of the operating system, and what it was granted.

use std::fmt;
use std::io;

use crate::sys::{memory, scheduling};

/// What a thread asks for before it runs a cycle. Nothing here is needed to run: a refusal is
/// reported, and the cycle runs with the timing the machine gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimeProfile {
    /// `SCHED_FIFO` priority, 1 to 99; `None` keeps the ordinary policy.
    pub priority: Option<u8>,
    /// Lock all memory and pre-fault stack and heap.
    pub lock_memory: bool,
    /// The one CPU to run on.
    pub cpu: Option<usize>,
    /// Heap to make resident, in bytes. Only with `lock_memory`.
    pub heap: usize,
    /// Stack to make resident, in bytes, at most 512 KiB. Only with `lock_memory`.
    pub stack: usize,
}

impl Default for RealTimeProfile {
    /// Priority 80, memory locked, any CPU.
    fn default() -> Self {
        Self { priority: Some(80), lock_memory: true, cpu: None, heap: 1 << 20, stack: 128 << 10 }
    }
}

impl RealTimeProfile {
    /// Asks for nothing.
    pub const ORDINARY: Self = Self { priority: None, lock_memory: false, cpu: None, heap: 0, stack: 0 };

    /// Asks for all of it, for the calling thread (the memory lock holds for the whole process), and
    /// reports what was granted.
    pub fn apply(&self) -> Granted {
        let memory_lock = Grant::ask(self.lock_memory.then_some(()), |()| {
            // Pre-fault even when the lock is refused: the pages are at least there.
            memory::prefault_heap(self.heap);
            memory::prefault_stack(self.stack);
            memory::lock_all().map_err(|error| memory_lock_refused(&error))
        });
        let cpu = Grant::ask(self.cpu, |cpu| {
            scheduling::set_cpu(cpu).map_err(|error| {
                let allowed = scheduling::allowed_cpus();
                format!("{}: this process may use CPUs {}", symbol(&error), list(&allowed))
            })
        });
        let priority = Grant::ask(self.priority, |priority| {
            scheduling::set_fifo(priority).map_err(|error| priority_refused(priority, &error))
        });
        if !priority.is_granted() {
            // Without a real-time policy the kernel may end a sleep 50 us late to save wake-ups.
            scheduling::set_timer_slack(1);
        }
        Granted { priority, memory_lock, cpu }
    }
}

/// What was asked, and what was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// `SCHED_FIFO` at this priority.
    pub priority: Grant<u8>,
    /// All memory locked.
    pub memory_lock: Grant<()>,
    /// Bound to this CPU.
    pub cpu: Grant<usize>,
}

impl Granted {
    /// The reasons of all refusals, each a sentence for people.
    pub fn refusals(&self) -> impl Iterator<Item = String> + '_ {
        let priority =
            self.priority.refusal().map(|(asked, why)| format!("SCHED_FIFO {asked} was refused ({why})"));
        let memory_lock =
            self.memory_lock.refusal().map(|((), why)| format!("the memory lock was refused ({why})"));
        let cpu = self.cpu.refusal().map(|(asked, why)| format!("CPU {asked} was refused ({why})"));
        priority.into_iter().chain(memory_lock).chain(cpu)
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.priority {
            Grant::NotAsked => write!(f, "SCHED_OTHER")?,
            Grant::Granted(priority) => write!(f, "SCHED_FIFO {priority}")?,
            Grant::Refused { asked, reason } => write!(f, "SCHED_FIFO {asked} refused ({reason})")?,
        }
        match &self.memory_lock {
            Grant::NotAsked => write!(f, ", memory not locked")?,
            Grant::Granted(()) => write!(f, ", memory locked")?,
            Grant::Refused { reason, .. } => write!(f, ", memory lock refused ({reason})")?,
        }
        match &self.cpu {
            Grant::NotAsked => write!(f, ", any CPU"),
            Grant::Granted(cpu) => write!(f, ", CPU {cpu}"),
            Grant::Refused { asked, reason } => write!(f, ", CPU {asked} refused ({reason})"),
        }
    }
}

/// One thing asked for, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant<T> {
    /// Nobody asked.
    NotAsked,
    /// Asked and granted.
    Granted(T),
    /// Asked and refused.
    Refused {
        /// What was asked.
        asked: T,
        /// Why it was refused, and what to do.
        reason: String,
    },
}

impl<T: Copy> Grant<T> {
    fn ask(asked: Option<T>, request: impl FnOnce(T) -> Result<(), String>) -> Self {
        match asked {
            None => Self::NotAsked,
            Some(asked) => match request(asked) {
                Ok(()) => Self::Granted(asked),
                Err(reason) => Self::Refused { asked, reason },
            },
        }
    }

    /// Whether it was asked and granted.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        matches!(self, Self::Granted(_))
    }

    /// What was asked, whether granted or not.
    #[must_use]
    pub fn asked(&self) -> Option<T> {
        match self {
            Self::NotAsked => None,
            Self::Granted(asked) | Self::Refused { asked, .. } => Some(*asked),
        }
    }

    fn refusal(&self) -> Option<(T, &str)> {
        match self {
            Self::Refused { asked, reason } => Some((*asked, reason)),
            _ => None,
        }
    }
}

fn priority_refused(priority: u8, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => format!(
            "EPERM: needs CAP_SYS_NICE or an rtprio limit of {priority} in /etc/security/limits.conf; \
             `ulimit -r` now says {}",
            scheduling::priority_limit().map_or_else(|| "unlimited".into(), |limit| limit.to_string())
        ),
        Some(libc::EINVAL) => "EINVAL: priorities are 1 to 99".into(),
        _ => symbol(error),
    }
}

fn memory_lock_refused(error: &io::Error) -> String {
    let limit =
        memory::lock_limit().map_or_else(|| "unlimited".into(), |limit| format!("{} KiB", limit / 1024));
    match error.raw_os_error() {
        Some(code @ (libc::EPERM | libc::ENOMEM | libc::EAGAIN)) => format!(
            "{}: needs CAP_IPC_LOCK or a larger memlock limit in /etc/security/limits.conf; \
             `ulimit -l` now says {limit}",
            match code {
                libc::EPERM => "EPERM",
                libc::ENOMEM => "ENOMEM",
                _ => "EAGAIN",
            }
        ),
        _ => symbol(error),
    }
}

fn symbol(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) => "EINVAL".into(),
        Some(libc::EPERM) => "EPERM".into(),
        _ => error.to_string(),
    }
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_nothing_changes_nothing_and_says_so() {
        let granted = RealTimeProfile::ORDINARY.apply();
        assert_eq!(granted.to_string(), "SCHED_OTHER, memory not locked, any CPU");
        assert_eq!(granted.refusals().count(), 0);
    }

    #[test]
    fn what_cannot_be_granted_is_refused_with_a_reason_and_the_rest_still_holds() {
        // On a thread of its own: affinity and policy stay with it.
        let granted = std::thread::spawn(|| {
            RealTimeProfile { priority: Some(100), cpu: Some(1_000_000), ..RealTimeProfile::ORDINARY }
                .apply()
        })
        .join()
        .unwrap();
        assert_eq!(granted.priority.asked(), Some(100));
        assert!(granted.to_string().contains("SCHED_FIFO 100 refused (EINVAL: priorities are 1 to 99)"));
        assert!(granted.to_string().contains("CPU 1000000 refused (EINVAL: this process may use CPUs "));
        assert_eq!(granted.refusals().count(), 2);
    }

    #[test]
    fn a_refusal_names_the_capability_and_the_limit() {
        let reason = priority_refused(80, &io::Error::from_raw_os_error(libc::EPERM));
        assert!(reason.starts_with("EPERM: needs CAP_SYS_NICE or an rtprio limit of 80"), "{reason}");
        let reason = memory_lock_refused(&io::Error::from_raw_os_error(libc::ENOMEM));
        assert!(reason.starts_with("ENOMEM: needs CAP_IPC_LOCK"), "{reason}");
    }
}
