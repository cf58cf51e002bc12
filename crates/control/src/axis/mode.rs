//! Mode of an axis: its changes, and the profile of a drive that generates it.

use ethercat::cia402::AxisMode;
use motion::Seconds;
use motion::supervision::DriveProfile;

use super::fields::Fields;
use super::{AxisConfiguration, AxisError};

/// Changes of the mode, as far as its drive has them.
#[derive(Debug)]
pub(super) struct ModeChange {
    now: AxisMode,
    /// Modes that its drive takes, and their set-points, by process data.
    takes: Vec<AxisMode>,
    /// Mode before the last change.
    before: Option<AxisMode>,
    /// Consecutive cycles, enabled, in which the drive has not shown the requested mode, and their
    /// limit.
    cycles: u64,
    longest: u64,
}

/// Time limit for a drive to show the requested mode.
const LONGEST: Seconds = Seconds(0.1);

impl ModeChange {
    pub(super) fn of(configuration: &AxisConfiguration, fields: &Fields, period: Seconds) -> Self {
        let AxisConfiguration { mode: now, modes, .. } = configuration;
        let is_prepared = |mode: AxisMode| !mode.is_profile() || mode == *now || modes.contains(&mode);
        let takes = |&mode: &AxisMode| is_prepared(mode) && fields.takes(mode).is_ok();
        Self {
            now: *now,
            takes: AxisMode::ALL.into_iter().filter(takes).collect(),
            before: None,
            cycles: 0,
            longest: (LONGEST / period).ceil() as u64,
        }
    }

    /// Last mode requested of the drive.
    pub(super) const fn now(&self) -> AxisMode {
        self.now
    }

    /// True if its drive takes that mode: of an axis that moves only between modes that are no
    /// profile modes.
    pub(super) fn may_become(&self, mode: AxisMode, rests: bool) -> bool {
        self.takes.contains(&mode) && (rests || !self.now.is_profile() && !mode.is_profile())
    }

    /// Notes a request for another mode.
    pub(super) fn begin(&mut self, mode: AxisMode) {
        (self.before, self.cycles) = (Some(self.now), 0);
        self.now = mode;
    }

    /// The mode to return to if a drive does not take the requested one.
    pub(super) fn gives_up(&mut self, waits: bool) -> Option<AxisMode> {
        self.cycles = if waits { self.cycles + 1 } else { 0 };
        if self.cycles > self.longest { self.before.take() } else { None }
    }
}

/// Speed and ramps of a drive that generates its own profile in one of its modes; `None` for an
/// axis that always follows set-points.
pub(super) fn drive_profile(configuration: &AxisConfiguration) -> Result<Option<DriveProfile>, AxisError> {
    let AxisConfiguration { name, mode, modes, scale, supervision, .. } = configuration;
    let profile = std::iter::once(mode).chain(modes).copied().find(|mode| mode.is_profile());
    let unsupervised = |mode| AxisError::UnsupervisedProfile { axis: name.clone(), mode };
    match profile {
        None => Ok(None),
        Some(mode) => {
            Ok(Some(DriveProfile::within(&supervision.ok_or_else(|| unsupervised(mode))?.limits, scale)))
        }
    }
}
