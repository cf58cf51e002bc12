//! Changes of the machine that a killed run has left behind.

use std::io::{self, ErrorKind};

use machine::journal::{self, Restoration};

/// Puts them back, and says so.
pub(crate) fn put_back(say: impl Fn(&str)) {
    match journal::restore_crashed() {
        Ok(Restoration { restored, refused }) => {
            for journal in restored {
                say(&format!("put back first: {journal}"));
                journal.failures.iter().for_each(|failure| say(&failure.to_string()));
            }
            refused.iter().for_each(|error| say(&format!("an earlier run's changes remain: {error}")));
        }
        Err(error) => cannot(&error, say),
    }
}

/// Says that they stand, and what puts them back.
pub(crate) fn tell(say: impl Fn(&str)) {
    match journal::left_behind() {
        Ok(journals) => {
            journals.iter().for_each(|it| say(&format!("{it}; `onbeat doctor --restore` puts them back")));
        }
        Err(error) => cannot(&error, say),
    }
}

/// Without the privilege to look there is none to restore anything either; such a run changes
/// nothing.
fn cannot(error: &io::Error, say: impl Fn(&str)) {
    if error.kind() != ErrorKind::PermissionDenied || rustix::process::geteuid().is_root() {
        say(&format!("what earlier runs left behind cannot be put back: {error}"));
    }
}
