//! One axis, moved by a script in virtual time.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{Request, State};
use ethercat_linux::link::DirectLink;
use motion::{AxisPhase, RadiansPerSecond};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;

use super::{PERIOD, cycle_of};

/// One cycle of a play.
pub struct Scene<'a> {
    /// Cycles since the axis was enabled for the first time, from 1; 0 before.
    pub cycles: u64,
    /// True if the cycle is being stopped: then the script is ignored.
    pub stopping: bool,
    pub report: &'a AxisReport,
    /// Command for the axis on this cycle.
    pub command: &'a AxisCommand,
}

/// Enables the first axis and holds its position; from then on `script` moves it. Returns the
/// values that `look` made of the cycles.
pub fn play<S: Send + 'static>(
    segment: impl ethercat::link::Segment + 'static,
    axes: &[AxisConfiguration],
    cycles: u64,
    script: impl FnMut(u64, &AxisReport, &mut AxisCommand) + Send + 'static,
    look: impl FnMut(&Scene<'_>) -> Option<S> + Send + 'static,
) -> Vec<S> {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let (seen, told) = channel();
    let controller = Scripted { script, look, cycles: 0, seen };
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    let (cycle, _observer) = cycle_of(link, clock, axes, controller, configuration);
    assert_eq!(cycle.run(&StopHandle::new()).failure, None);
    told.try_iter().collect()
}

struct Scripted<P, L, S> {
    script: P,
    look: L,
    cycles: u64,
    seen: Sender<S>,
}

impl<P, L, S> Controller for Scripted<P, L, S>
where
    P: FnMut(u64, &AxisReport, &mut AxisCommand) + Send,
    L: FnMut(&Scene<'_>) -> Option<S> + Send,
    S: Send,
{
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let (report, command) = (&reports[0], &mut commands[0]);
        command.request = Request::Enable;
        if let AxisPhase::HoldingAt(position) = report.feedback.phase {
            command.setpoint.position = position;
            command.setpoint.velocity = RadiansPerSecond::ZERO;
        }
        self.cycles += u64::from(report.state == Some(State::OperationEnabled) || self.cycles > 0);
        if info.stopping {
            command.setpoint.velocity = RadiansPerSecond::ZERO;
        } else if self.cycles > 0 {
            (self.script)(self.cycles, report, command);
        }
        let scene = Scene { cycles: self.cycles, stopping: info.stopping, report, command };
        if let Some(seen) = (self.look)(&scene) {
            let _ = self.seen.send(seen);
        }
    }
}
