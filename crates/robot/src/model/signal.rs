use ethercat::pdo::PdoMapping;

use super::Robot;
use crate::error::FileError;
use crate::{check, file};

/// Signals of a robot file, as far as they are known without the process data of its SubDevices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    pub(crate) named: Vec<file::Signal>,
    /// The robot file, for errors with their place.
    pub(crate) text: String,
    pub(crate) file: String,
}

impl Robot {
    /// Signals, the named ones first, then every other entry as `sub_device.entry`. `mapping` gives the process data of the
    /// SubDevice at a position; where that is not known yet its signals are left out.
    ///
    /// # Errors
    /// A named signal that is not in the process data, does not fit its entry, or is an output that has a writer.
    pub fn signals<'a>(
        &self,
        mapping: impl Fn(usize) -> Option<&'a PdoMapping>,
    ) -> Result<Vec<types::Signal>, FileError> {
        let Signals { text, file, .. } = &self.signals;
        check::signal::signals(self, mapping).map_err(|problem| FileError::at(text, file, problem))
    }

    /// True if the robot file gives a signal this name.
    #[must_use]
    pub fn names_signal(&self, name: &str) -> bool {
        let names = self.signals.named.iter().filter_map(|signal| check::signal::names(signal).ok());
        names.flatten().any(|named| named == name)
    }
}
