//! The other side: a controller as the cycle's thread calls it, in a separate process.

use std::time::Duration;

use ethercat::cia402::{AxisMode, CyclicMode};
use ethercat::time::Instant;
use ipc::command::AxisTarget;
use ipc::controller::{Answer, AxisAnswer, Request};
use ipc::description::Description;
use ipc::state;
use motion::AxisSetpoint;
use thiserror::Error;

use crate::axis::ignored::Ignored;
use crate::controller::{AxisCommand, AxisReport, Controller, CycleInfo, Io};
use crate::signal::{SignalError, Signals};
use rt::pacer::Grid;
use types::ControllerKind;

/// A [`Controller`] that answers requests. Except for its thread it sees no difference to the
/// cycle's: `init` once, then `command`, `update` and `output` for each request. Impossible values
/// of outputs are clamped or refused, and counted, in this process.
#[derive(Debug)]
pub struct ControllerProcess<C> {
    controller: C,
    signals: Signals,
    /// Modes of the axes it moves; `None` for other axes.
    modes: Vec<Option<AxisMode>>,
    /// Set-points that their modes do not take.
    ignored: Vec<Ignored>,
    /// Cycle and release of the first request.
    first: Option<(u64, Instant)>,
    reports: Vec<AxisReport>,
    commands: Vec<AxisCommand>,
}

/// Reason for which a controller cannot run in a separate process.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// [`Controller::init`] has refused.
    #[error("the controller cannot start: {0}")]
    Signal(#[from] SignalError),
}

impl<C: Controller> ControllerProcess<C> {
    /// A controller for the cycle of this description.
    ///
    /// # Errors
    /// The controller does not find its signals.
    pub fn new(description: &Description, mut controller: C) -> Result<Self, ProcessError> {
        let signals = Signals::described(&description.signals);
        controller.init(&signals)?;
        let axes = description.axes.len();
        let modes = (0..axes).map(|axis| mode(description, axis)).collect();
        Ok(Self {
            controller,
            signals,
            modes,
            reports: vec![AxisReport::default(); axes],
            commands: vec![AxisCommand::default(); axes],
            ignored: vec![Ignored::default(); axes],
            first: None,
        })
    }

    /// Calls the controller for a request and writes its answer. `stopping` is passed to it as the
    /// cycle's own end is.
    ///
    /// Allocates nothing, as long as the controller does not.
    pub fn answer(&mut self, request: &Request, stopping: bool, answer: &mut Answer) {
        let info = self.info(request, stopping);
        let Self { controller, signals, modes, ignored, reports, commands, .. } = self;
        signals.show(&request.signals, request.command.freshness);
        for (shown, axis) in reports.iter_mut().zip(&request.axes) {
            *shown = AxisReport::of(axis);
        }
        controller.command(&request.command);
        controller.update(info, &mut Io::new(signals, reports, commands));
        let output = controller.output();
        answer.cycle = request.cycle;
        answer.commanded = output.commanded;
        (answer.refused, answer.clamped) = (output.refused, output.clamped);
        answer.base = state::Base {
            pose: [output.pose.x.0, output.pose.y.0, output.pose.yaw.0],
            twist: [output.twist.x.0, output.twist.y.0, output.twist.yaw.0],
        };
        let axes = answer.axes.iter_mut().zip(reports).zip(commands);
        for (((axis, report), command), (mode, ignored)) in axes.zip(modes.iter().zip(ignored)) {
            let elsewhere = mode.and_then(|mode| ignored.look(mode, &report.feedback, command));
            *axis = mode.map_or_else(AxisAnswer::default, |mode| AxisAnswer {
                request: Some(command.request),
                home: std::mem::take(&mut command.home),
                target: Some(target(mode.cyclic(), &command.setpoint)),
                ignored: elsewhere.map(|it| it.given),
            });
        }
        for (output, value) in answer.outputs.iter_mut().zip(signals.answers()) {
            *output = value;
        }
    }

    fn info(&mut self, request: &Request, stopping: bool) -> CycleInfo {
        let Request { cycle, release_ns, period_ns, periods, .. } = *request;
        let (release, period) = (Instant::from_nanos(release_ns), Duration::from_nanos(period_ns));
        let (first, began) = *self.first.get_or_insert((cycle, release));
        // A cycle on a wire counts the releases that it skips, one in bus time has none.
        let bus_time = Grid::new(began, period).release(cycle.saturating_sub(first));
        CycleInfo { cycle, release, bus_time, period, periods, stopping: request.stopping || stopping }
    }

    /// True for each axis that the controller moves.
    pub fn moves(&self) -> impl Iterator<Item = bool> + '_ {
        self.modes.iter().map(Option::is_some)
    }
}

/// Mode of an axis, if it is one of the controller process.
fn mode(description: &Description, axis: usize) -> Option<AxisMode> {
    let external = description.controllers.iter().find(|it| it.kind == Some(ControllerKind::External));
    if external.is_some_and(|it| !it.axes.contains(&axis)) {
        return None;
    }
    Some(description.axes[axis].mode)
}

/// Set-point of the mode. A value that is not finite makes the answer wrong, and the cycle stops
/// the axes.
fn target(mode: CyclicMode, setpoint: &AxisSetpoint) -> AxisTarget {
    match mode {
        CyclicMode::Position => AxisTarget::Position(setpoint.position),
        CyclicMode::Velocity => AxisTarget::Velocity(setpoint.velocity),
        CyclicMode::Torque => AxisTarget::Effort(setpoint.torque),
    }
}
