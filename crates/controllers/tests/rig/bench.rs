//! A controller manager with scripted axes, for cases that simulated drives show too seldom, or
//! never.

use std::ops::{Deref, DerefMut};

use control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, ExternalCommand, Io};
use control::signal::Signals;
use ethercat::cia402::{CyclicMode, Request, State};
use ethercat::time::Instant;
use motion::{AxisPhase, Radians, RadiansPerSecond};
use onbeat_controllers::{ControllerManager, HomedBy, ManagedAxis, Member};

use super::ports::Client;
use super::{CYCLE, PERIOD, VELOCITY, hardest};

/// Fault of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Trouble {
    /// No reset ends its stop.
    Latched,
    /// No fault.
    #[default]
    None,
    /// Its drive is in fault until it is reset.
    Fault,
    /// Its drive is in fault for good.
    Broken,
    /// Its drive ignores all requests and stays in its state.
    Deaf,
    /// The axis is blocked: it does not move, and reports no velocity.
    Stuck,
    /// The axis continues at this velocity, for any set-points.
    Coasts(f64),
}

/// The manager and its axes.
pub struct Bench {
    pub manager: ControllerManager,
    pub command: ExternalCommand,
    pub reports: Vec<AxisReport>,
    pub commands: Vec<AxisCommand>,
    pub troubles: Vec<Trouble>,
    pub stopping: bool,
    pub cycle: u64,
    /// Set-points of every cycle.
    pub positions: Vec<Vec<f64>>,
    modes: Vec<CyclicMode>,
    client: Client,
}

impl Deref for Bench {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Bench {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Bench {
    /// A bench with all axes enabled and at standstill for a while.
    pub fn new(modes: &[CyclicMode], members: Vec<Member>) -> Self {
        let axis = |&mode: &CyclicMode| ManagedAxis {
            mode: mode.into(),
            velocity_limit: RadiansPerSecond(VELOCITY),
            homing: HomedBy::Hand,
        };
        let axes: Vec<_> = modes.iter().map(axis).collect();
        let client = Client::default();
        let (requests, orders) = client.ports();
        let manager = ControllerManager::new(&axes, members, true).with_ports(requests, orders);
        let mut report = AxisReport { state: Some(State::SwitchOnDisabled), ..AxisReport::default() };
        report.feedback.fresh = true;
        let mut bench = Self {
            manager,
            command: ExternalCommand { axes: vec![None; axes.len()], ..ExternalCommand::default() },
            reports: vec![report; axes.len()],
            commands: vec![AxisCommand::default(); axes.len()],
            troubles: vec![Trouble::None; axes.len()],
            stopping: false,
            cycle: 0,
            positions: Vec::new(),
            modes: modes.to_vec(),
            client,
        };
        bench.run(50);
        bench
    }

    /// Runs this many cycles.
    pub fn run(&mut self, cycles: usize) {
        for _ in 0..cycles {
            self.cycle += 1;
            for axis in 0..self.reports.len() {
                self.play(axis);
            }
            let cycle = CycleInfo {
                cycle: self.cycle,
                release: Instant::from_nanos(self.now_ns()),
                bus_time: Instant::from_nanos(self.now_ns()),
                period: PERIOD,
                periods: 1,
                stopping: self.stopping,
            };
            self.commands.iter_mut().for_each(|command| command.mode = None);
            self.manager.command(&self.command);
            self.manager
                .update(cycle, &mut Io::new(&mut Signals::default(), &self.reports, &mut self.commands));
            self.client.collect();
            self.positions.push(self.commands.iter().map(|command| command.setpoint.position.0).collect());
        }
    }

    /// Release of the last cycle.
    pub fn now_ns(&self) -> u64 {
        1_000_000_000_000 + self.cycle * PERIOD.as_nanos() as u64
    }

    /// Largest change of velocity per second in the set-points of an axis since `from`.
    pub fn hardest(&self, axis: usize, from: usize) -> f64 {
        hardest(self.positions[from..].iter().map(|row| row[axis]))
    }

    /// Feedback of an axis in this cycle to its set-point of the previous one.
    fn play(&mut self, axis: usize) {
        let (report, command) = (&mut self.reports[axis], &self.commands[axis]);
        let trouble = self.troubles[axis];
        report.state = match (trouble, command.request) {
            (Trouble::Deaf, _) => report.state,
            (Trouble::Broken, _) => Some(State::Fault),
            (Trouble::Fault, Request::FaultReset) => {
                self.troubles[axis] = Trouble::None;
                Some(State::SwitchOnDisabled)
            }
            (Trouble::Fault, _) => Some(State::Fault),
            (_, Request::Enable | Request::Halt) => Some(State::OperationEnabled),
            (_, Request::Disable | Request::QuickStop) => Some(State::SwitchOnDisabled),
            (_, Request::FaultReset) => report.state,
        };
        if command.request == Request::FaultReset && trouble != Trouble::Latched {
            report.stop = None;
        }
        if command.home {
            report.homed = true;
            report.homed_by_hand += 1;
        }
        let feedback = &mut report.feedback;
        let enabled = report.state == Some(State::OperationEnabled);
        feedback.phase = match feedback.phase {
            _ if !enabled => AxisPhase::NotEnabled,
            AxisPhase::NotEnabled => AxisPhase::HoldingAt(feedback.position),
            AxisPhase::HoldingAt(_) if report.stop.is_some() => feedback.phase,
            _ => AxisPhase::Following,
        };
        let moved = match (trouble, self.modes[axis]) {
            (Trouble::Coasts(velocity), _) => velocity * CYCLE,
            _ if !enabled || trouble == Trouble::Stuck => 0.0,
            (_, CyclicMode::Position) => (command.setpoint.position - feedback.position).0,
            (_, CyclicMode::Velocity) => command.setpoint.velocity.0 * CYCLE,
            (_, CyclicMode::Torque) => 0.0,
        };
        feedback.velocity = RadiansPerSecond(moved / CYCLE);
        feedback.position += Radians(moved);
    }
}
