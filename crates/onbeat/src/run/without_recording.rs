//! In place of recordings, for a program without them: no run can request one.

use std::time::Duration;

use control::bus::PartNames;
use control::cycle::Cycle;
use control::observer::CycleEvent;
use onbeat_ethercat_linux::link::Link;
use record::{CycleRecord, RunConditions, RunSummary};
use robot::RobotConfig;
use rt::clock::Clock;
use types::Signal;
use types::late::LateCycle;

use crate::{Error, Reporter};

/// Nothing is requested.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordingSettings;

/// A file that is never made.
pub(super) enum NewFile {}

/// A flight recorder that is not there.
pub(super) enum Ask {}

/// A recording that is never begun.
pub(super) enum Recorder {}

pub(super) fn realtime_offset_ns(_: &impl Clock) -> i64 {
    0
}

impl RecordingSettings {
    pub(super) fn create(&self, _: &mut dyn Reporter) -> Result<Option<NewFile>, Error> {
        Ok(None)
    }
}

impl NewFile {
    pub(super) fn ask(&self) -> Option<Ask> {
        match *self {}
    }

    pub(super) fn choose(&mut self, _: &RobotConfig, _: &[Signal]) -> Result<(), Error> {
        match *self {}
    }

    pub(super) fn sample<L: Link, C: Clock>(&mut self, _: &mut Cycle<L, C>) {
        match *self {}
    }
}

impl Ask {
    pub(super) fn keep(&self, _: &str) {
        match *self {}
    }
}

impl Recorder {
    pub(super) fn begin(
        new: NewFile,
        _: &RunConditions,
        _: Duration,
        _: PartNames,
        _: (bool, i64),
    ) -> Self {
        match new {}
    }

    pub(super) fn see(&mut self, _: &[CycleEvent]) {
        match *self {}
    }

    pub(super) fn late(&mut self, _: &[LateCycle]) {
        match *self {}
    }

    pub(super) fn record(&mut self, _: &CycleRecord) {
        match *self {}
    }

    pub(super) fn look(&self, _: &mut dyn Reporter) {
        match *self {}
    }

    pub(super) fn finish(self, _: &RunSummary, _: &mut dyn Reporter) -> Result<String, Error> {
        match self {}
    }
}
