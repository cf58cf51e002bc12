//! Choices of a cycle.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// Reply that a cycle works with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum FrameOrder {
    /// Takes the replies to the frames of the cycle before, computes, sends: the cycle never waits for the wire.
    #[default]
    ReplyOfLastCycle,
    /// Sends what the cycle before computed, waits for the replies, computes: outputs leave at the release however long
    /// the controller takes, and inputs are of this cycle.
    WaitForReply,
}

impl FrameOrder {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ReplyOfLastCycle, Self::WaitForReply];

    /// Name in robot files, on the command line and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReplyOfLastCycle => "reply_of_last_cycle",
            Self::WaitForReply => "wait_for_reply",
        }
    }
}

/// Treatment of the releases that a cycle has run past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "kebab-case")
)]
pub enum OverrunPolicy {
    /// They are skipped: the next cycle starts at the next grid point.
    #[default]
    Skip,
    /// They are run back to back until the grid is caught up with, up to a limit in a row; what is missing then is
    /// skipped.
    CatchUp,
    /// They are skipped, the axes come to rest, and the run ends with an error.
    Stop,
}

impl OverrunPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Skip, Self::CatchUp, Self::Stop];

    /// Name in robot files, on the command line and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::CatchUp => "catch-up",
            Self::Stop => "stop",
        }
    }
}

/// Behaviour of an axis after an outage, once it is back and rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "kebab-case")
)]
pub enum AfterOutage {
    /// Stays in place until the outage is acknowledged.
    #[default]
    Stay,
    /// Is moved on by its controller.
    Resume,
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
