//! Requests of a real-time thread to the operating system, and its grants.
//!
//! | letter | requests | costs |
//! |---|---|---|
//! | P | [`Scheduling`]: `SCHED_FIFO` or a `SCHED_DEADLINE` reservation | ordinary threads wait |
//! | M | [`Residency`]: memory locked, stack and heap pre-faulted | memory is never given back |
//! | C | a CPU shield: everything else moved away, [`machine::shield`] | a CPU |
//! | S | a spinning sleep, [`crate::pacer`] | the margin of that CPU's time in every period |
//!
//! Each letter is requested separately, and none is needed to run: a refusal is reported, and the
//! cycle runs with the timing the machine gives it. What needs no choice is [`crate::always_on`].
//!
//! | module | part |
//! |---|---|
//! | `answer` | the answer to one request |
//! | `grant` | the answers to all |
//! | `refusal` | reasons of the system, and remedies |

mod answer;
mod grant;
mod refusal;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use crate::scheduling::{self, Attributes};
use machine::cpus::Cpus;
use machine::shield::Shield;
use machine::task;

pub use answer::Grant;
pub use grant::{Grants, Scheduled};
pub use types::{RealTimeProfile, Residency, Scheduling};

use crate::always_on::{self, Held};
use crate::sys::memory;

/// Grants to the calling thread, as long as this lives. It belongs to that thread.
#[derive(Debug)]
pub struct Granted {
    grants: Grants,
    undo: Undo,
    thread: PhantomData<*const ()>,
}

impl Granted {
    /// Requests all of it, and the [always-on](crate::always_on) settings, for the calling thread,
    /// and returns the grants. Dropping the result releases all of it.
    pub fn ask(profile: &RealTimeProfile) -> Self {
        let found = scheduling::attributes().ok();
        let (always_on, held) = always_on::hold();
        let mut undo = Undo::new(held);
        let (cpu, shield, shield_report) = place(profile, &mut undo);
        let memory = Grant::ask(profile.memory, |Residency { heap, stack }| {
            // Pre-fault even when the lock is refused: the pages are at least there.
            memory::prefault_heap(heap);
            memory::prefault_stack(stack);
            undo.lock_memory().map_err(|error| refusal::memory_lock(&error))
        });
        let scheduling = Grant::ask(profile.scheduling, |scheduling| {
            undo.schedule(scheduling).map_err(|error| refusal::scheduling(scheduling, &error))
        });
        let spin = Grant::ask(profile.spin, |margin| match profile.scheduling {
            Some(Scheduling::Deadline { runtime, .. }) if margin >= runtime => {
                Err(format!("the reserved {runtime:?} would be spun away: reserve more, or spin less"))
            }
            _ => Ok(()),
        });
        // The kernel's answer, not the request: the policy may come from outside.
        let scheduled = Scheduled::new(found, scheduling::attributes().ok());
        let grants = Grants { scheduling, scheduled, memory, cpu, shield, spin, always_on, shield_report };
        Self { grants, undo, thread: PhantomData }
    }

    /// The answers alone.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Gives everything back; what could not be put back, each a sentence.
    #[must_use]
    pub fn release(mut self) -> Vec<String> {
        self.undo.undo()
    }
}

impl Deref for Granted {
    type Target = Grants;

    fn deref(&self) -> &Grants {
        &self.grants
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.grants.fmt(f)
    }
}

/// The single CPU to run on, if any: with C the highest that the calling thread may use, unless
/// `cpu` is given.
#[must_use]
pub fn cpu(profile: &RealTimeProfile) -> Option<usize> {
    profile.cpu.or_else(|| profile.shield.then(default_cpu).flatten())
}

/// C, or the CPU alone.
fn place(
    profile: &RealTimeProfile,
    undo: &mut Undo,
) -> (Grant<usize>, Grant<usize>, Option<machine::shield::ShieldReport>) {
    let cpu = cpu(profile);
    let mut report = None;
    let shield = Grant::ask(cpu.filter(|_| profile.shield), |cpu| {
        let shield = Shield::raise(cpu).map_err(|error| error.to_string())?;
        report = Some(shield.report().clone());
        undo.shield = Some(shield);
        Ok(())
    });
    let cpu = match shield.is_granted() {
        true => Grant::Granted(shield.requested().unwrap_or_default()),
        false => Grant::ask(cpu, |cpu| undo.bind(cpu).map_err(|error| refusal::cpu(&error))),
    };
    (cpu, shield, report)
}

/// Undoing of every grant.
#[derive(Debug)]
struct Undo {
    shield: Option<Shield>,
    scheduling: Option<Attributes>,
    affinity: Option<Cpus>,
    memory: bool,
    _always_on: Option<Held>,
}

impl Undo {
    fn new(held: Held) -> Self {
        Self { shield: None, scheduling: None, affinity: None, memory: false, _always_on: Some(held) }
    }

    fn lock_memory(&mut self) -> io::Result<()> {
        let mut holders = MEMORY_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        memory::lock_all()?;
        *holders += 1;
        self.memory = true;
        Ok(())
    }

    fn bind(&mut self, cpu: usize) -> io::Result<()> {
        let before = task::affinity(task::current())?;
        task::set_affinity(task::current(), &Cpus::one(cpu))?;
        self.affinity = Some(before);
        Ok(())
    }

    fn schedule(&mut self, asked: Scheduling) -> io::Result<()> {
        let before = scheduling::attributes()?;
        scheduling::schedule(asked)?;
        self.scheduling = Some(before);
        Ok(())
    }

    fn undo(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut put_back = |what: &str, done: io::Result<()>| {
            if let Err(error) = done {
                failures.push(format!("{what} could not be put back: {error}"));
            }
        };
        if let Some(before) = self.scheduling.take() {
            put_back("the scheduling policy", before.apply());
        }
        if let Some(before) = self.affinity.take() {
            put_back("the CPUs of the cycle's thread", task::set_affinity(task::current(), &before));
        }
        if std::mem::take(&mut self.memory) {
            let mut holders = MEMORY_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
            *holders -= 1;
            if *holders == 0 {
                put_back("the memory lock", memory::unlock_all());
            }
        }
        if let Some(shield) = self.shield.take() {
            failures.extend(shield.lower().iter().map(ToString::to_string));
        }
        self._always_on = None;
        failures
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.undo();
    }
}

/// Threads of this process that requested the memory lock, which is the process's.
static MEMORY_HOLDERS: Mutex<usize> = Mutex::new(0);

/// The highest CPU the calling thread may use: interrupts and old habits gather on the lowest.
fn default_cpu() -> Option<usize> {
    task::affinity(task::current()).unwrap_or_else(|_| Cpus::online()).last()
}

#[cfg(test)]
mod tests;
