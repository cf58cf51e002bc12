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

mod grant;
mod refusal;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use crate::scheduling::{self, Attributes};
use machine::cpus::Cpus;
use machine::shield::Shield;
use machine::task;

pub use grant::{Grants, Scheduled};
pub use refusal::Grant;
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
mod tests {
    use std::time::Duration;

    use types::Profile;

    use super::*;

    fn letters(letters: &str) -> Profile {
        letters.parse().unwrap()
    }

    /// Policy and affinity stay with the thread they were given.
    fn on_a_thread_of_its_own<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    #[test]
    fn asking_for_nothing_changes_nothing_and_says_so() {
        on_a_thread_of_its_own(|| {
            let granted = Granted::ask(&RealTimeProfile::ORDINARY);
            assert_eq!(granted.to_string(), "SCHED_OTHER, memory not locked, any CPU");
            assert_eq!(granted.refusals().count(), 0);
            assert_eq!((granted.requested(), granted.letters()), (Profile::NONE, Profile::NONE));
            assert_eq!(granted.release(), Vec::<String>::new());
        });
    }

    #[test]
    fn refused_letters_have_reasons_and_the_others_are_granted() {
        on_a_thread_of_its_own(|| {
            let scheduling = Some(Scheduling::Fifo { priority: 100 });
            let profile = RealTimeProfile { scheduling, cpu: Some(1_000_000), ..RealTimeProfile::ORDINARY };
            let granted = Granted::ask(&profile);
            assert_eq!(granted.scheduling.requested(), scheduling);
            let text = granted.to_string();
            assert!(text.contains("SCHED_FIFO 100 refused (EINVAL: priorities are 1 to 99)"), "{text}");
            assert!(text.contains("CPU 1000000 refused (EINVAL: this process may use CPUs "), "{text}");
            assert_eq!(granted.refusals().count(), 2);
            assert_eq!((granted.requested(), granted.letters()), (letters("P"), Profile::NONE));
        });
    }

    // feature(hold): P, M, C and S: each asked for alone, granted or refused with a reason, given back
    #[test]
    fn each_letter_is_requested_separately() {
        let fifo = Some(Scheduling::Fifo { priority: 10 });
        let all = RealTimeProfile {
            scheduling: fifo,
            memory: Some(Residency::default()),
            shield: true,
            spin: Some(Profile::SPIN_MARGIN),
            cpu: None,
        };
        assert_eq!(all.letters(), letters("PMCS"));
        assert_eq!(RealTimeProfile { scheduling: None, ..all }.letters(), letters("MCS"));
        assert_eq!(RealTimeProfile { memory: None, ..all }.letters(), letters("PCS"));
        assert_eq!(RealTimeProfile { shield: false, ..all }.letters(), letters("PMS"));
        assert_eq!(RealTimeProfile { spin: None, ..all }.letters(), letters("PMC"));
    }

    // feature(hold): P, M, C and S: each asked for alone, granted or refused with a reason, given back
    #[test]
    fn what_was_granted_is_given_back() {
        on_a_thread_of_its_own(|| {
            let before = (scheduling::attributes().unwrap(), task::affinity(task::current()).unwrap());
            let cpu = before.1.last();
            let granted = Granted::ask(&RealTimeProfile { cpu, ..RealTimeProfile::default() });
            if granted.scheduling.is_granted() {
                assert_ne!(scheduling::attributes().unwrap(), before.0);
            } else {
                eprintln!("skipped in part: {granted}");
            }
            assert_eq!(task::affinity(task::current()).unwrap(), Cpus::one(cpu.unwrap()));
            assert_eq!(granted.release(), Vec::<String>::new());
            let after = (scheduling::attributes().unwrap(), task::affinity(task::current()).unwrap());
            assert_eq!(after, before);
        });
    }

    // feature(hold): SCHED_DEADLINE instead of SCHED_FIFO
    #[test]
    fn a_spin_longer_than_the_reservation_is_refused() {
        on_a_thread_of_its_own(|| {
            let (runtime, period) = (Duration::from_micros(40), Duration::from_millis(1));
            let scheduling = Some(Scheduling::Deadline { runtime, deadline: period, period });
            let profile = RealTimeProfile {
                scheduling,
                spin: Some(Profile::SPIN_MARGIN),
                ..RealTimeProfile::ORDINARY
            };
            let granted = Granted::ask(&profile);
            assert!(granted.spin.refusal().unwrap().1.contains("40µs would be spun away"), "{granted}");
            assert_eq!(granted.spin_margin(), Duration::ZERO);
        });
    }

    // feature(hold): SCHED_DEADLINE instead of SCHED_FIFO
    #[test]
    fn a_reservation_is_granted_or_says_why_not() {
        on_a_thread_of_its_own(|| {
            let (runtime, period) = (Duration::from_micros(100), Duration::from_millis(10));
            let scheduling = Scheduling::Deadline { runtime, deadline: period, period };
            let profile = RealTimeProfile { scheduling: Some(scheduling), ..RealTimeProfile::ORDINARY };
            let granted = Granted::ask(&profile);
            match granted.scheduling.refusal() {
                None => {
                    assert!(granted.to_string().starts_with("SCHED_DEADLINE 100µs in 10ms"), "{granted}")
                }
                Some((asked, why)) => {
                    eprintln!("skipped in part: {why}");
                    assert_eq!(asked, scheduling);
                }
            }
        });
    }

    // feature(program): how a thread is really scheduled, read back; a policy from outside is told
    #[test]
    fn external_policy_is_read_back_and_reported() {
        on_a_thread_of_its_own(|| {
            let outside = Scheduling::Fifo { priority: 50 };
            if let Err(error) = scheduling::schedule(outside) {
                return testkit::skip!("{}", refusal::scheduling(outside, &error));
            }
            let kept = Granted::ask(&RealTimeProfile::ORDINARY);
            assert!(kept.to_string().starts_with("SCHED_FIFO 50, memory"), "{kept}");
            let notes: Vec<_> = kept.notes().collect();
            assert!(
                notes.contains(&"scheduled as SCHED_FIFO 50, which it was started with".to_owned()),
                "{notes:?}"
            );
            assert_eq!(kept.release(), Vec::<String>::new());

            let scheduling = Some(Scheduling::Fifo { priority: 79 });
            let changed = Granted::ask(&RealTimeProfile { scheduling, ..RealTimeProfile::ORDINARY });
            let text = changed.to_string();
            assert!(
                text.starts_with("SCHED_FIFO 79 (it was started with SCHED_FIFO 50), memory"),
                "{text}"
            );
            assert!(changed.notes().any(|it| it.contains("instead of SCHED_FIFO 50")));
            assert_eq!(changed.release(), Vec::<String>::new());

            let scheduling = Some(Scheduling::Fifo { priority: 100 });
            let refused =
                Granted::ask(&RealTimeProfile { scheduling, ..RealTimeProfile::ORDINARY }).to_string();
            assert!(refused.contains("1 to 99), SCHED_FIFO 50 instead,"), "{refused}");
        });
    }
}
