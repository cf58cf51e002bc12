//! In place of diagnosis, for a program without it: no run can request any.

use ipc::diagnostics::{LateCycles, Watched};
use record::CycleRecord;
use robot::RobotConfig;
use rt::profile::Grants;
use rt::task::Subject;
use types::late::{LateCycle, LateReport};

use crate::robot::Settings;
use crate::{Error, Reporter};

/// Nothing is diagnosed.
pub(super) struct Diagnostician;

impl Diagnostician {
    pub(super) fn start(_: &Settings, _: &RobotConfig, _: bool, _: &mut dyn Reporter) -> Self {
        Self
    }

    pub(super) fn follow(
        &mut self,
        _: &Settings,
        _: &RobotConfig,
        _: (i32, &Grants),
        _: impl Iterator<Item = Subject>,
    ) -> Result<(), Error> {
        Ok(())
    }

    pub(super) fn see(&self, _: &CycleRecord) {}

    pub(super) fn look(&mut self, _: &[CycleRecord], _: &mut dyn Reporter) {}

    pub(super) fn close(&self) {}

    pub(super) fn watched(&self) -> Vec<Watched> {
        Vec::new()
    }

    pub(super) fn recent(&self) -> Option<Box<dyn Fn(u64) -> LateReport + Send>> {
        None
    }

    pub(super) fn late(&self) -> Option<LateCycles> {
        None
    }

    pub(super) fn explained(&self) -> &[LateCycle] {
        &[]
    }

    pub(super) fn explain_rest(&mut self) -> &[LateCycle] {
        &[]
    }
}
