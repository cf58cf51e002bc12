//! Requests of a real-time thread to the operating system, and its grants.
//!
//! | letter | asks for | costs |
//! |---|---|---|
//! | P | [`Scheduling`]: `SCHED_FIFO`, or a `SCHED_DEADLINE` reservation | ordinary threads wait for the cycle |
//! | M | [`Residency`]: all memory locked, stack and heap pre-faulted | memory that is never given back |
//! | C | a CPU shield: everything else moved away, [`machine::shield`] | a CPU |
//! | S | a spinning sleep, [`crate::pacer`] | the margin of that CPU's time in every period |
//!
//! Each letter is asked for alone, and none is needed to run: a refusal is reported, and the cycle runs with the timing
//! the machine gives it. What needs no choice is [`crate::always_on`].
//!
//! | module | part |
//! |---|---|
//! | `grant` | the answers, and their undoing |
//! | `refusal` | reasons of the system, and remedies |

mod grant;
mod refusal;

use std::marker::PhantomData;
use std::time::Duration;

use machine::cpus::Cpus;
use machine::shield::Shield;
use machine::task;

pub use grant::{Grant, Granted, Grants};
pub use rt::scheduling::Scheduling;

use crate::always_on;
use crate::sys::memory;
pub use grant::Scheduled;
use grant::Undo;
use rt::scheduling;

/// Requests of a thread before it runs a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimeProfile {
    /// P: how it is scheduled; `None` keeps the ordinary policy.
    pub scheduling: Option<Scheduling>,
    /// M: lock all memory and pre-fault stack and heap.
    pub memory: Option<Residency>,
    /// C: move everything else away from `cpu`, or from the highest CPU this thread may use where `cpu` says none.
    pub shield: bool,
    /// S: how long before a release to wake up and spin.
    pub spin: Option<Duration>,
    /// The one CPU to run on.
    pub cpu: Option<usize>,
}

/// M: memory that is there before the first cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Heap to make resident, in bytes.
    pub heap: usize,
    /// Stack to make resident, in bytes, as far as the thread's stack goes.
    pub stack: usize,
}

impl Default for Residency {
    /// 1 MiB of heap, 128 KiB of stack.
    fn default() -> Self {
        Self { heap: 1 << 20, stack: 128 << 10 }
    }
}

/// Time before a release at which a spinning sleep wakes up unless it is told otherwise.
pub const SPIN_MARGIN: Duration = Duration::from_micros(50);

impl Default for RealTimeProfile {
    /// PM: SCHED_FIFO 80, memory locked, any CPU.
    fn default() -> Self {
        let scheduling = Some(Scheduling::Fifo { priority: 80 });
        Self { scheduling, memory: Some(Residency::default()), ..Self::ORDINARY }
    }
}

impl RealTimeProfile {
    /// Asks for nothing.
    pub const ORDINARY: Self =
        Self { scheduling: None, memory: None, shield: false, spin: None, cpu: None };

    /// The letters asked for, in the order PMCS; "none" if there are none.
    #[must_use]
    pub fn letters(&self) -> String {
        let Self { scheduling, memory, shield, spin, cpu: _ } = self;
        letters([scheduling.is_some(), memory.is_some(), *shield, spin.is_some()])
    }

    /// Asks for all of it, and for what is [always on](crate::always_on), for the calling thread, and says what was
    /// granted. All of it is given back when the answer is dropped.
    pub fn apply(&self) -> Granted {
        let found = scheduling::attributes().ok();
        let (always_on, held) = always_on::hold();
        let mut undo = Undo::new(held);
        let (cpu, shield, shield_report) = self.place(&mut undo);
        let memory = Grant::ask(self.memory, |Residency { heap, stack }| {
            // Pre-fault even when the lock is refused: the pages are at least there.
            memory::prefault_heap(heap);
            memory::prefault_stack(stack);
            undo.lock_memory().map_err(|error| refusal::memory_lock(&error))
        });
        let scheduling = Grant::ask(self.scheduling, |scheduling| {
            undo.schedule(scheduling).map_err(|error| refusal::scheduling(scheduling, &error))
        });
        let spin = Grant::ask(self.spin, |margin| match self.scheduling {
            Some(Scheduling::Deadline { runtime, .. }) if margin >= runtime => {
                Err(format!("the reserved {runtime:?} would be spun away: reserve more, or spin less"))
            }
            _ => Ok(()),
        });
        // What the kernel says, not what it was asked: the policy may come from outside.
        let scheduled = Scheduled::new(found, scheduling::attributes().ok());
        let grants = Grants { scheduling, scheduled, memory, cpu, shield, spin, always_on, shield_report };
        Granted { grants, undo, thread: PhantomData }
    }

    /// C, or the CPU alone.
    fn place(
        &self,
        undo: &mut Undo,
    ) -> (Grant<usize>, Grant<usize>, Option<machine::shield::ShieldReport>) {
        let cpu = self.cpu.or_else(|| self.shield.then(default_cpu).flatten());
        let mut report = None;
        let shield = Grant::ask(cpu.filter(|_| self.shield), |cpu| {
            let shield = Shield::raise(cpu).map_err(|error| error.to_string())?;
            report = Some(shield.report().clone());
            undo.shield = Some(shield);
            Ok(())
        });
        let cpu = match shield.is_granted() {
            true => Grant::Granted(shield.asked().unwrap_or_default()),
            false => Grant::ask(cpu, |cpu| undo.bind(cpu).map_err(|error| refusal::cpu(&error))),
        };
        (cpu, shield, report)
    }
}

/// The highest CPU the calling thread may use: interrupts and old habits gather on the lowest.
fn default_cpu() -> Option<usize> {
    task::affinity(task::current()).unwrap_or_else(|_| Cpus::online()).last()
}

fn letters(has: [bool; 4]) -> String {
    let letters: String =
        "PMCS".chars().zip(has).filter(|(_, has)| *has).map(|(letter, _)| letter).collect();
    if letters.is_empty() { "none".to_owned() } else { letters }
}

#[cfg(test)]
mod tests;
