//! A cycle with a controller in a separate process, and such a process.

use std::path::PathBuf;
use std::time::Duration;

use ethercat::cia402::CyclicMode;
use ethercat::time::Instant;
use ipc::command::AxisTarget;
use ipc::controller::{
    Answer, AxisAnswer, Controller, ControllerCounters, CycleEnd, DriveRequest, ExternalCommand, Received,
    Request,
};
use ipc::description::{AxisDescription, Description};
use ipc::server::{Builder, Endpoints, Server};
use ipc::state;
use ipc::units::Radians;
use onbeat_control::controller::Controller as CycleController;
use onbeat_control::external::{ControllerProcess, ExternalAxis, Remote, Settings};
use rt::clock::{Clock, VirtualClock};

use super::IpcFolder;

/// An IPC with the role of a controller for this many axes, in this folder.
pub fn open(folder: &IpcFolder, drives: usize) -> (CycleEnd, Endpoints, Server) {
    let axis = |index| AxisDescription::new(format!("axis-{index}"), CyclicMode::Position, 10.0, 10.0);
    let axes = (0..drives).map(axis).collect();
    let mut builder = Builder::new("robot", &Description { axes, ..Description::default() });
    builder.folder(&folder.0);
    let end = builder.controller();
    let (ends, server) = builder.open().unwrap();
    (end, ends, server)
}

pub fn socket(folder: &IpcFolder) -> PathBuf {
    folder.0.join("robot.sock")
}

/// A process that moves all axes.
pub fn settings(drives: usize, deadline: Duration, max_late: u32) -> Settings {
    let axis = ExternalAxis { mode: CyclicMode::Position.into(), position: None };
    Settings { deadline, max_late, axes: vec![Some(axis); drives] }
}

/// Turns every axis at 2 rad/s from where it holds, or where supervision brought it, until the
/// cycle ends.
pub fn turn(controller: &mut Controller, drives: usize) {
    let mut positions = vec![0.0; drives];
    while let Some(turn) = controller.wait() {
        let elapsed = turn.request.period_ns as f64 * 1e-9 * turn.request.periods as f64;
        let axes = turn.request.axes.iter().zip(&mut turn.answer.axes);
        for ((axis, answer), position) in axes.zip(&mut positions) {
            match (axis.phase, axis.stop) {
                (2, 0) if !turn.request.stopping => *position += 2.0 * elapsed,
                (2, 0) => {}
                _ => *position = axis.target_position,
            }
            answer.request = Some(DriveRequest::Enable);
            answer.target = Some(AxisTarget::Position(Radians(*position)));
        }
        turn.send();
    }
}

/// A controller process that answers at once, in virtual time.
pub struct Direct<C> {
    process: ControllerProcess<C>,
    clock: VirtualClock,
    axes: usize,
    signals: usize,
    answer: Option<Answer>,
}

impl<C: CycleController> Direct<C> {
    pub fn new(description: &Description, controller: C, clock: VirtualClock) -> Self {
        let process = ControllerProcess::new(description, controller).unwrap();
        let (axes, signals) = (description.axes.len(), description.signals.len());
        Self { process, clock, axes, signals, answer: None }
    }
}

impl<C: CycleController> Remote for Direct<C> {
    fn blank_request(&self) -> Request {
        Request {
            axes: vec![state::Axis::default(); self.axes],
            signals: vec![state::Signal::default(); self.signals],
            command: ExternalCommand { axes: vec![None; self.axes], ..ExternalCommand::default() },
            ..Request::default()
        }
    }

    fn blank_answer(&self) -> Answer {
        Answer {
            axes: vec![AxisAnswer::default(); self.axes],
            outputs: vec![None; self.signals],
            ..Answer::default()
        }
    }

    fn newest(&mut self, answer: &mut Answer) -> Received {
        let Some(found) = self.answer.take() else { return Received::Nothing };
        *answer = found;
        Received::Answer
    }

    fn holder(&self) -> Option<u64> {
        Some(1)
    }

    fn ask(&mut self, request: &Request) {
        let mut answer = self.blank_answer();
        self.process.answer(request, false, &mut answer);
        self.answer = Some(answer);
    }

    fn wait(&mut self, deadline: Instant) {
        panic!("the answer is there, long before {deadline:?}");
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn count(&self, _: &ControllerCounters) {}
}
