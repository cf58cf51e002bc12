//! Preparation of a bus's interface for a cycle, undone at the end of the cycle.

use std::fmt;
use std::io;

use crate::check::{self, Subject};
use crate::journal::{self, Failure, Journal};

/// Interface that is prepared until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it undoes the preparation"]
pub struct PreparedNic {
    journal: Journal,
    report: NicReport,
}

/// Result of preparing an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicReport {
    /// Name of the interface.
    pub interface: String,
    /// Changes made, for people.
    pub changes: Vec<String>,
    /// Changes that were refused, each with the reason.
    pub refused: Vec<String>,
}

impl PreparedNic {
    /// Makes what the checks of the subject's interface would change, as far as the machine lets
    /// it. What killed processes left behind is put back first. The link may be gone for seconds
    /// afterwards, where energy saving was on.
    ///
    /// Left as they are: an interface that is down, and whatever takes the link down for little.
    ///
    /// # Errors
    /// The journal cannot be written; root is required.
    pub fn prepare(subject: &Subject) -> io::Result<Self> {
        let interface = subject.interface().unwrap_or_default().to_owned();
        let mut journal = Journal::begin(&format!("preparation of interface {interface}"))?;
        // The state left by a killed process is not one to restore later. Commands that restore on
        // request report failures.
        let _ = journal::restore_crashed();
        let mut report = NicReport { interface, changes: Vec::new(), refused: Vec::new() };
        let findings = check::of_interface(subject).into_iter();
        for change in findings.filter(|it| !LEFT.contains(&it.name)).flat_map(|it| it.changes) {
            match change.make(&mut journal) {
                Ok(()) => report.changes.push(change.to_string()),
                Err(error) => report.refused.push(format!("{change}: {error}")),
            }
        }
        Ok(Self { journal, report })
    }

    /// Result of preparing it.
    #[must_use]
    pub fn report(&self) -> &NicReport {
        &self.report
    }

    /// Undoes everything, and returns the changes that could not be undone.
    #[must_use]
    pub fn put_back(self) -> Vec<Failure> {
        self.journal.undo()
    }
}

/// Checks that are not fixed here: a link that is down is its owner's to set up, and the other
/// changes take down a link that is up.
const LEFT: [&str; 4] = ["nic-link", "nic-mtu", "nic-queues", "nic-pause"];

impl fmt::Display for NicReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, changes, refused } = self;
        match changes.is_empty() {
            true => write!(f, "{interface}: nothing changed")?,
            false => f.write_str(&changes.join("; "))?,
        }
        match refused.len() {
            0 => Ok(()),
            count => write!(f, "; {count} refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_what_was_changed_and_counts_what_was_not() {
        let report = |changes: &[&str], refused: &[&str]| {
            let words = |words: &[&str]| words.iter().map(|&it| it.to_owned()).collect();
            NicReport { interface: "eth0".into(), changes: words(changes), refused: words(refused) }
                .to_string()
        };
        assert_eq!(report(&["eth0: gro 0", "a = 1"], &["b = 1: no"]), "eth0: gro 0; a = 1; 1 refused");
        assert_eq!(report(&[], &[]), "eth0: nothing changed");
    }

    /// A change that no check speaks of any more would be left in silence.
    #[test]
    fn what_is_left_are_checks() {
        let names: Vec<&str> = check::names().map(|(name, _)| name).collect();
        assert!(LEFT.iter().all(|left| names.contains(left)), "{names:?}");
    }
}
