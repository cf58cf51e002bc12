//! Sets of CPUs in the kernel's formats: lists (`0-3,8`) and masks (`00000000,0000010f`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Set of CPUs, by number. Its text is the kernel's list format, cpuset(7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus(BTreeSet<usize>);

/// Error for a text that is no set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found \"{0}\", expected CPUs as in \"0-3,8\"")]
pub struct CpusError(String);

impl Cpus {
    /// Creates a set of this CPU.
    #[must_use]
    pub fn one(cpu: usize) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    /// CPUs that are online; empty if the kernel does not list them.
    #[must_use]
    pub fn online() -> Self {
        std::fs::read_to_string("/sys/devices/system/cpu/online")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    /// Parses a mask: hexadecimal words of 32 bits, the highest first, as in
    /// `/proc/irq/*/smp_affinity`.
    ///
    /// # Errors
    /// The text is no mask, or contains a CPU above [`HIGHEST`].
    pub fn from_mask(text: &str) -> Result<Self, CpusError> {
        let wrong = || CpusError(text.chars().take(80).collect());
        let mut cpus = BTreeSet::new();
        for (place, word) in text.trim().rsplit(',').enumerate() {
            let bits = u32::from_str_radix(word, 16).map_err(|_| wrong())?;
            let set = (0..32).filter(|bit| bits >> bit & 1 != 0).map(|bit| place * 32 + bit);
            cpus.extend(set);
        }
        if cpus.last().is_some_and(|&last| last > HIGHEST) { Err(wrong()) } else { Ok(Self(cpus)) }
    }

    /// Mask of this set, as [`Cpus::from_mask`] parses it.
    #[must_use]
    pub fn mask(&self) -> String {
        let words = self.0.last().map_or(1, |last| last / 32 + 1);
        let word = |place: usize| {
            let bits = (0..32).filter(|bit| self.contains(place * 32 + bit));
            bits.fold(0_u32, |word, bit| word | 1 << bit)
        };
        (0..words).rev().map(|place| format!("{:08x}", word(place))).collect::<Vec<_>>().join(",")
    }

    /// True if the set contains `cpu`.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of CPUs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Highest CPU.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.0.last().copied()
    }

    /// Numbers of the CPUs, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Union of this set and `other`.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// CPUs of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<usize> for Cpus {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last {
                last if last == first => write!(f, "{comma}{first}")?,
                last => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let wrong = || CpusError(text.chars().take(80).collect());
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&cpu| cpu <= HIGHEST);
            let (first, last) = number(first).zip(number(last)).ok_or_else(wrong)?;
            if first > last {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

/// Highest CPU number a kernel may have (NR_CPUS is at most 8192).
pub const HIGHEST: usize = 8191;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_say_the_same() {
        for (list, mask) in [
            ("", "00000000"),
            ("0", "00000001"),
            ("0-3,8", "0000010f"),
            ("1,3,5-7", "000000ea"),
            ("31-32,64", "00000001,00000001,80000000"),
        ] {
            let cpus: Cpus = list.parse().unwrap();
            assert_eq!(cpus.to_string(), list);
            assert_eq!(cpus.mask(), mask);
            assert_eq!(Cpus::from_mask(mask), Ok(cpus));
        }
        assert_eq!(Cpus::from_mask("3\n"), Ok([0, 1].into_iter().collect()));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["a", "3-1", "1-", "-", "0-99999", "1 2"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
        for text in ["", "x", "1,,2", "100000000"] {
            assert!(Cpus::from_mask(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sets_add_and_subtract() {
        let few: Cpus = "0-3".parse().unwrap();
        assert_eq!(few.without(&Cpus::one(2)).to_string(), "0-1,3");
        assert_eq!(few.with(&Cpus::one(7)).to_string(), "0-3,7");
        assert_eq!((few.count(), few.last(), few.contains(4)), (4, Some(3), false));
        assert!(!Cpus::online().is_empty());
    }
}
