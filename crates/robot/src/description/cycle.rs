use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// Real-time cycle: its period, and its demands on the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Time from release to release; 50 us to 1 s.
    pub period: Duration,
    /// Real-time profile.
    pub profile: Profile,
    /// SCHED_FIFO priority for P, 1 to 99.
    pub priority: u8,
    /// Runtime reserved in every period under SCHED_DEADLINE, for P; `None` selects SCHED_FIFO.
    pub deadline_runtime: Option<Duration>,
    /// CPU the cycle is bound to; `None` leaves the choice to the scheduler, or to C.
    pub cpu: Option<usize>,
    /// Time before a release at which S wakes up and spins.
    pub spin_margin: Duration,
    /// Treatment of releases missed by an overrun.
    pub overrun: Overrun,
    /// Reply that a cycle works with.
    pub frame_order: FrameOrder,
    /// Outage of an axis after which its drive gets a quick stop; `None` for 20 cycles.
    pub outage_time: Option<Duration>,
    /// Behaviour of an axis after an outage.
    pub after_outage: AfterOutage,
    /// Loss of the bus after which the run ends; `None` waits for ever.
    pub loss_time: Option<Duration>,
}

/// Behaviour of an axis after an outage, once it is back and rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterOutage {
    /// It stays in place until it is reset.
    #[default]
    Stay,
    /// Its controller moves it on.
    Resume,
}

impl Cycle {
    /// SCHED_FIFO priority, if P is selected.
    #[must_use]
    pub fn fifo_priority(&self) -> Option<u8> {
        self.profile.priority.then_some(self.priority)
    }
}

/// Real-time profile: demands on the operating system, one letter each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// P: a real-time scheduling policy.
    pub priority: bool,
    /// M: all memory locked, stack and heap pre-faulted.
    pub memory: bool,
    /// C: a CPU of its own.
    pub shield: bool,
    /// S: a spinning sleep.
    pub spin: bool,
}

impl Profile {
    /// Nothing is asked of the operating system.
    pub const NONE: Self = Self { priority: false, memory: false, shield: false, spin: false };
    /// Priority and memory.
    pub const PM: Self = Self { priority: true, memory: true, shield: false, spin: false };
    /// Priority, memory and a CPU of its own.
    pub const PMC: Self = Self { priority: true, memory: true, shield: true, spin: false };
    /// All of them.
    pub const PMCS: Self = Self { priority: true, memory: true, shield: true, spin: true };
}

/// Error of a text that is not a profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found \"{found}\", expected letters of PMCS, each once, as in \"PM\", or \"none\"")]
pub struct ProfileError {
    /// The text.
    pub found: String,
}

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
            if std::mem::replace(asked, true) {
                return Err(wrong());
            }
        }
        if text.is_empty() { Err(wrong()) } else { Ok(profile) }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = [self.priority, self.memory, self.shield, self.spin];
        let letters: String =
            "PMCS".chars().zip(has).filter(|(_, has)| *has).map(|(letter, _)| letter).collect();
        f.write_str(if letters.is_empty() { "none" } else { &letters })
    }
}

/// Treatment of releases missed by an overrun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overrun {
    /// Skip them: the next cycle is at the next grid point.
    #[default]
    Skip,
    /// Run them back to back, up to a limit.
    CatchUp,
    /// Bring the axes to rest, and end the run with an error.
    Stop,
}

/// Reply that a cycle works with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameOrder {
    /// Take the reply to the previous cycle's frames, which arrived long ago, and never wait.
    #[default]
    ReplyOfLastBeat,
    /// Send, then wait for the reply of this cycle.
    WaitForReply,
}

#[cfg(test)]
mod tests {
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
