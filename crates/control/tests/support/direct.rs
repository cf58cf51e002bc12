//! A controller process that answers at once, in virtual time.

use ethercat::time::Instant;
use ipc::controller::{Answer, AxisAnswer, ControllerCounters, ExternalCommand, Received, Request};
use ipc::description::Description;
use ipc::state;
use onbeat_control::controller::Controller;
use onbeat_control::external::{ControllerProcess, Remote};
use rt::clock::{Clock, VirtualClock};

pub struct Direct<C> {
    process: ControllerProcess<C>,
    clock: VirtualClock,
    axes: usize,
    signals: usize,
    answer: Option<Answer>,
}

impl<C: Controller> Direct<C> {
    pub fn new(description: &Description, controller: C, clock: VirtualClock) -> Self {
        let process = ControllerProcess::new(description, controller).unwrap();
        let (axes, signals) = (description.axes.len(), description.signals.len());
        Self { process, clock, axes, signals, answer: None }
    }
}

impl<C: Controller> Remote for Direct<C> {
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
