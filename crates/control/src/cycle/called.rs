//! The controller as a cycle calls it: a panic does not end the cycle, and a panicked controller is
//! not called again.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::controller::{Controller, ControllerOutput, CycleInfo, ExternalCommand, Io};
use crate::signal::{Signals, SignalsError};
use rt::task::words;

pub(super) struct CalledController {
    controller: Box<dyn Controller>,
    panic: Option<Box<dyn Any + Send>>,
}

impl CalledController {
    pub(super) const fn new(controller: Box<dyn Controller>) -> Self {
        Self { controller, panic: None }
    }

    /// As [`Controller::init`], before the first cycle.
    pub(super) fn init(&mut self, signals: &Signals) -> Result<(), SignalsError> {
        match self.call(|controller| controller.init(signals)) {
            Some(found) => Ok(found?),
            None => Err(SignalsError::Panicked(self.panic.as_deref().map(words).unwrap_or_default())),
        }
    }

    pub(super) fn command(&mut self, command: &ExternalCommand) {
        self.call(|controller| controller.command(command));
    }

    /// Its output of this cycle; after a panic, the report that its axes are still in use.
    pub(super) fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) -> ControllerOutput {
        let output = self.call(|controller| {
            controller.update(info, io);
            controller.output()
        });
        output.unwrap_or(ControllerOutput { lost: true, left_in_use: true, ..ControllerOutput::default() })
    }

    pub(super) const fn has_panicked(&self) -> bool {
        self.panic.is_some()
    }

    /// Drops it; words of its panic, in its last cycles or only now.
    pub(super) fn end(self) -> Option<String> {
        let Self { controller, panic } = self;
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(controller)));
        let dropped = dropped.err().map(told);
        panic.map(told).or(dropped)
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Controller) -> T) -> Option<T> {
        if self.panic.is_some() {
            return None;
        }
        // After a panic the controller is not used again; commands of axes are for supervision.
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut *self.controller)));
        called.map_err(|panic| self.panic = Some(panic)).ok()
    }
}

/// Text of a panic. Its value is not dropped, because that may panic again.
fn told(panic: Box<dyn Any + Send>) -> String {
    let words = words(&*panic);
    std::mem::forget(panic);
    words
}
