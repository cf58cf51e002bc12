//! Real-time profile: requests of a thread to the operating system.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// Letters of a profile: demands on the operating system, one each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// P: a real-time scheduling policy.
    pub priority: bool,
    /// M: all memory locked, stack and heap pre-faulted.
    pub memory: bool,
    /// C: a dedicated CPU.
    pub shield: bool,
    /// S: a spinning sleep.
    pub spin: bool,
}

impl Profile {
    /// SCHED_FIFO priority for P, unless another is said.
    pub const PRIORITY: u8 = 80;
    /// Time before a release at which S wakes up and spins, unless another is said.
    pub const SPIN_MARGIN: Duration = Duration::from_micros(50);

    /// No requests to the operating system.
    pub const NONE: Self = Self { priority: false, memory: false, shield: false, spin: false };
    /// Memory.
    pub const M: Self = Self { priority: false, memory: true, shield: false, spin: false };
    /// Priority and memory.
    pub const PM: Self = Self { priority: true, memory: true, shield: false, spin: false };
    /// Priority, memory and a dedicated CPU.
    pub const PMC: Self = Self { priority: true, memory: true, shield: true, spin: false };
    /// All of them.
    pub const PMCS: Self = Self { priority: true, memory: true, shield: true, spin: true };

    /// These letters, and the letters that separate settings request.
    #[must_use]
    pub const fn and(self, priority: bool, spin: bool) -> Self {
        Self { priority: self.priority || priority, spin: self.spin || spin, ..self }
    }

    /// True for each of P, M, C, S in this order.
    #[must_use]
    pub const fn has(self) -> [bool; 4] {
        [self.priority, self.memory, self.shield, self.spin]
    }
}

/// Error of a text that is not a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The text, 40 characters at most.
    pub found: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        write!(f, "found \"{found}\", expected letters of PMCS, each once, as in \"PM\", or \"none\"")
    }
}

impl core::error::Error for ProfileError {}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let wrong = || ProfileError { found: text.chars().take(40).collect() };
        let mut profile = Self::default();
        if text == "none" {
            return Ok(profile);
        }
        for letter in text.chars() {
            let asked = match letter {
                'P' => &mut profile.priority,
                'M' => &mut profile.memory,
                'C' => &mut profile.shield,
                'S' => &mut profile.spin,
                _ => return Err(wrong()),
            };
            if core::mem::replace(asked, true) {
                return Err(wrong());
            }
        }
        if text.is_empty() { Err(wrong()) } else { Ok(profile) }
    }
}

impl fmt::Display for Profile {
    /// Letters in the order PMCS, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = "PMCS".chars().zip(self.has()).filter(|(_, has)| *has).map(|(letter, _)| letter);
        let letters: String = letters.collect();
        f.write_str(if letters.is_empty() { "none" } else { &letters })
    }
}

/// P: how a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO`: before everything of a lower priority, for as long as it likes.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// `SCHED_DEADLINE`: `runtime` in every `period`, before `deadline`, guaranteed by the kernel's
    /// admission test. A cycle that uses more is stopped until the next period.
    Deadline {
        /// Processor time reserved, spinning included; 1024 ns or more.
        runtime: Duration,
        /// By when, from the release; `period` or less.
        deadline: Duration,
        /// Time between two reservations.
        period: Duration,
    },
}

/// Requests of a thread before it runs a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimeProfile {
    /// P: how it is scheduled; `None` keeps the ordinary policy.
    pub scheduling: Option<Scheduling>,
    /// M: lock all memory and pre-fault stack and heap.
    pub memory: Option<Residency>,
    /// C: move everything else away from `cpu`, or from the highest CPU this thread may use if
    /// `cpu` is `None`.
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
    /// Stack to make resident, in bytes, limited to the thread's stack.
    pub stack: usize,
}

impl Default for Residency {
    /// 1 MiB of heap, 128 KiB of stack.
    fn default() -> Self {
        Self { heap: 1 << 20, stack: 128 << 10 }
    }
}

impl Default for RealTimeProfile {
    /// PM: SCHED_FIFO 80, memory locked, any CPU.
    fn default() -> Self {
        let scheduling = Some(Scheduling::Fifo { priority: Profile::PRIORITY });
        Self { scheduling, memory: Some(Residency::default()), ..Self::ORDINARY }
    }
}

impl RealTimeProfile {
    /// Requests nothing.
    pub const ORDINARY: Self =
        Self { scheduling: None, memory: None, shield: false, spin: None, cpu: None };

    /// The requested letters.
    #[must_use]
    pub const fn letters(&self) -> Profile {
        let Self { scheduling, memory, shield, spin, cpu: _ } = self;
        Profile {
            priority: scheduling.is_some(),
            memory: memory.is_some(),
            shield: *shield,
            spin: spin.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_subset_of_the_letters_reads_back() {
        for bits in 0..16_u8 {
            let bit = |place: u8| bits >> place & 1 != 0;
            let profile = Profile { priority: bit(0), memory: bit(1), shield: bit(2), spin: bit(3) };
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        assert_eq!("SCMP".parse::<Profile>().map(|profile| profile.to_string()), Ok("PMCS".to_owned()));
        for wrong in ["", "PP", "PX", "pm", "NONE", "P M", "noneP"] {
            assert!(wrong.parse::<Profile>().is_err(), "{wrong}");
        }
    }
}
