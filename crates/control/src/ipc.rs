//! The cycle's side of the IPC: requests of other processes, and its state for them.
//!
//! Nothing here waits, allocates or makes a system call, whatever the peers do: the command is read
//! with a bounded number of attempts, checked completely, and taken or refused; the state is
//! written independently of its readers.

mod command;
mod convert;
mod figures;

use std::time::Duration;

use ethercat::main_device::BringUpPhase;
use ethercat::time::Instant;
use ipc::server::Endpoints;
use ipc::{force, reference, state};
use motion::AxisSetpoint;
use record::CycleRecord;
use types::state::InputLevel;

use crate::controller::{AxisReport, ControllerOutput};
use crate::observer::Happening;
use crate::signal::{Counters, Governing, SignalState, Signals};
use crate::status::Status;
use command::Commands;
use figures::Figures;

pub use command::{BaseRules, Commanded, Follows, Rules, Takes};
pub(crate) use convert::{report, shown};

/// The cycle's end of the IPC.
#[derive(Debug)]
pub struct Ipc {
    pub(crate) commands: Commands,
    forces: force::Reader,
    pub(crate) references: reference::Reader,
    writer: state::Writer,
    figures: Figures,
    state: state::State,
}

impl Ipc {
    /// Around these ends, which were opened for as many axes as `rules` has.
    #[must_use]
    pub fn new(ends: Endpoints, rules: Rules) -> Self {
        let Endpoints { state: writer, command, forces, references } = ends;
        let (commands, state) = (Commands::new(command, rules), writer.blank());
        Self { commands, forces, references, figures: Figures::default(), state, writer }
    }

    /// The same for a cycle of this period.
    pub(crate) fn with_period(self, period: Duration) -> Self {
        let period = types::time::nanoseconds(period);
        Self { figures: Figures::new(period), ..self }
    }

    /// Governs the signals of this cycle: requested forces, the robot file over them, and the
    /// values of a command that came with this cycle.
    pub(crate) fn govern(
        &mut self,
        signals: &mut Signals,
        governing: &Governing,
        tell: &mut impl FnMut(Happening),
    ) {
        for _ in 0..FORCES {
            let Some((force, by)) = self.forces.poll() else { break };
            signals.force(force, by, governing, tell);
        }
        signals.govern(governing, tell);
        if let Some(values) = self.commands.new_signals() {
            signals.command(values);
        }
    }

    /// Publishes the state of this cycle to all readers. Its timing is of the previous cycles: this
    /// one has not ended.
    pub(crate) fn publish<'a>(
        &mut self,
        status: &Status,
        release: Instant,
        axes: impl Iterator<Item = (&'a AxisReport, AxisSetpoint)>,
        signals: &Signals,
        interlocks: impl Iterator<Item = (InputLevel, bool)>,
        output: &ControllerOutput,
    ) {
        self.commands.note(output);
        let state = &mut self.state;
        state.cycle = status.cycle;
        state.release_ns = release.as_nanos();
        state.bus = self.figures.bus(status);
        state.clock = figures::clock(status);
        state.timing = self.figures.timing();
        state.command = self.commands.state();
        state.control = output.control;
        state.base = state::Base {
            pose: [output.pose.x.0, output.pose.y.0, output.pose.yaw.0],
            twist: [output.twist.x.0, output.twist.y.0, output.twist.yaw.0],
        };
        for (axis, (report, sent)) in state.axes.iter_mut().zip(axes) {
            *axis = shown(report, sent);
        }
        for (signal, SignalState { value, fresh, forced }) in state.signals.iter_mut().zip(signals.states())
        {
            *signal = state::Signal { word: value.word(), fresh, forced };
        }
        for (shown, (level, permits)) in state.interlocks.iter_mut().zip(interlocks) {
            *shown = state::Interlock { level: level as u8, permits };
        }
        let Counters { clamped, refused } = signals.counters();
        state.signal_counters = state::SignalCounters { clamped, refused };
        self.writer.publish(state);
    }

    /// Records the end of the cycle.
    pub(crate) fn record(&mut self, record: &CycleRecord, phase: BringUpPhase) {
        if phase == BringUpPhase::Op {
            self.figures.record(record);
        }
    }
}

/// Forces taken in one cycle; the others wait.
const FORCES: usize = 8;

#[cfg(test)]
mod tests;
