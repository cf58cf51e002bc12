//! Mode of an axis: changes between the cyclic ones, and the profile of a drive that makes its own way.

use ethercat::cia402::{AxisMode, CyclicMode};
use motion::Seconds;
use motion::supervision::DriveProfile;

use super::fields::Fields;
use super::{AxisConfiguration, AxisError};

/// Changes of the cyclic mode, as far as its drive has them.
#[derive(Debug)]
pub(super) struct ModeChange {
    may_change: bool,
    /// Mode before the last change.
    before: Option<CyclicMode>,
    /// Cycles in a row, enabled, in which the drive has not shown the mode asked for, and how many are borne.
    cycles: u64,
    longest: u64,
}

/// Time that a drive is given to show the mode it was asked for.
const LONGEST: Seconds = Seconds(0.1);

impl ModeChange {
    pub(super) fn of(mode: AxisMode, fields: &Fields, period: Seconds) -> Self {
        let may_change = !mode.is_profile() && fields.change_between_cyclic_modes();
        Self { may_change, before: None, cycles: 0, longest: (LONGEST / period).ceil() as u64 }
    }

    /// True if its drive takes another cyclic mode, and set-points of each, by process data.
    pub(super) const fn may_change(&self) -> bool {
        self.may_change
    }

    /// The drive was asked for another mode.
    pub(super) fn begin(&mut self, before: CyclicMode) {
        (self.before, self.cycles) = (Some(before), 0);
    }

    /// The mode to go back to, where a drive does not take the one it was asked for.
    pub(super) fn gives_up(&mut self, waits: bool) -> Option<CyclicMode> {
        self.cycles = if waits { self.cycles + 1 } else { 0 };
        if self.cycles > self.longest { self.before.take() } else { None }
    }
}

/// Speed and ramps of a drive that makes its own way; `None` for an axis whose set-points are the motion.
pub(super) fn drive_profile(configuration: &AxisConfiguration) -> Result<Option<DriveProfile>, AxisError> {
    let AxisConfiguration { name, mode, scale, supervision, .. } = configuration;
    let unsupervised = || AxisError::UnsupervisedProfile { axis: name.clone(), mode: *mode };
    match mode.is_profile() {
        false => Ok(None),
        true => Ok(Some(DriveProfile::within(&supervision.ok_or_else(unsupervised)?.limits, scale))),
    }
}
