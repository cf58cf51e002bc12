//! The cycle's side of the IPC: what is asked of it from other processes, and what it tells them.
//!
//! Nothing here waits, allocates or makes a system call, whatever the peers do: the command is read with a bounded number
//! of attempts, checked whole, and taken or refused; the state is written without a look at its readers.

mod convert;
mod figures;
mod rules;

use std::time::Duration;

use ethercat::main_device::BringUpPhase;
use ethercat::time::Instant;
use ipc::command::{Command, Read};
use ipc::server::Endpoints;
use ipc::state::{self, CommandState, Refusal, State};
use motion::AxisSetpoint;
use record::CycleRecord;

use crate::controller::{AxisReport, Clamped, ControllerOutput, ExternalCommand, Freshness};
use crate::signal::{Counters, Governing, SignalState, Signals};
use crate::status::Status;
use figures::Figures;
use rules::Refused;

pub(crate) use convert::{report, shown};
pub use rules::{BaseRules, Commanded, Rules, Takes};

/// The cycle's end of the IPC.
#[derive(Debug)]
pub struct Ipc {
    ends: Endpoints,
    rules: Rules,
    incoming: Command,
    /// The command that came in was taken, in this cycle.
    taken: bool,
    external_command: ExternalCommand,
    /// Until when the last command holds.
    holds_until: Option<Instant>,
    command: CommandState,
    /// Commands taken as of the last one that is counted as clamped.
    clamped_of: u64,
    figures: Figures,
    state: State,
}

impl Ipc {
    /// Around these ends, which were opened for as many axes as `rules` has.
    #[must_use]
    pub fn new(ends: Endpoints, rules: Rules) -> Self {
        let axes = rules.axes.len();
        Self {
            incoming: ends.command.blank(),
            taken: false,
            external_command: ExternalCommand { axes: vec![None; axes], ..ExternalCommand::default() },
            holds_until: None,
            command: CommandState {
                last_refused_axis: u16::MAX,
                last_refused_signal: u16::MAX,
                last_clamped_axis: u16::MAX,
                ..CommandState::default()
            },
            clamped_of: 0,
            figures: Figures::default(),
            state: ends.state.blank(),
            ends,
            rules,
        }
    }

    /// The same for a cycle of this period.
    pub(crate) fn with_period(self, period: Duration) -> Self {
        let period = types::time::nanoseconds(period);
        Self { figures: Figures::new(period), ..self }
    }

    /// Reads what is asked. `now` reads the clock, once there is something to check.
    pub(crate) fn command(&mut self, now: impl Fn() -> Instant) {
        match self.ends.command.newest(&mut self.incoming) {
            Read::Nothing | Read::Same => {}
            Read::Torn => self.refuse(Refused::whole(Refusal::Torn)),
            // The clock is read behind the command: an honest stamp is never in the future.
            Read::New => match self.rules.check(&self.incoming, now().as_nanos()) {
                Ok(()) => self.take(),
                Err(refused) => self.refuse(refused),
            },
        }
        let fresh = |until: Instant| if now() < until { Freshness::Fresh } else { Freshness::Stale };
        self.external_command.freshness = self.holds_until.map_or(Freshness::Never, fresh);
    }

    /// Governs the signals of this cycle: forces that were asked for, the robot file over them, and the values of a command
    /// that came with this cycle.
    pub(crate) fn govern(&mut self, signals: &mut Signals, governing: Governing) {
        for _ in 0..FORCES {
            let Some(force) = self.ends.forces.poll() else { break };
            signals.force(force, governing.now);
        }
        signals.govern(governing);
        if std::mem::take(&mut self.taken) {
            signals.command(&self.incoming.signals);
        }
    }

    /// The command.
    pub(crate) fn external_command(&self) -> &ExternalCommand {
        &self.external_command
    }

    fn take(&mut self) {
        let Command { sequence, stamp_ns, time_to_live_ns, twist, pose, axes, signals: _ } = &self.incoming;
        self.taken = true;
        self.command.sequence = *sequence;
        self.command.stamp_ns = *stamp_ns;
        self.command.accepted += 1;
        self.holds_until = Some(Instant::from_nanos(stamp_ns.saturating_add(*time_to_live_ns)));
        (self.external_command.twist, self.external_command.pose) = (*twist, *pose);
        self.external_command.axes.clone_from(axes);
    }

    /// Counts a refusal; the command taken before stays.
    fn refuse(&mut self, refused: Refused) {
        self.command.refused += 1;
        self.command.last_refusal = refused.why as u8;
        self.command.last_refused_axis = place(refused.axis);
        self.command.last_refused_signal = place(refused.signal);
    }

    /// Counts a clamp, once a command however long that holds.
    fn note_clamp(&mut self, clamped: Clamped) {
        if self.clamped_of != self.command.accepted {
            self.clamped_of = self.command.accepted;
            self.command.clamped += 1;
        }
        self.command.last_clamp = clamped.limit as u8;
        self.command.last_clamped_axis = place(clamped.axis);
    }

    /// Puts the state of this cycle before all readers. Its timing is that of the cycles before: this one is not over.
    pub(crate) fn publish<'a>(
        &mut self,
        status: &Status,
        release: Instant,
        axes: impl Iterator<Item = (&'a AxisReport, AxisSetpoint)>,
        signals: &Signals,
        output: &ControllerOutput,
    ) {
        if let Some(why) = output.refused {
            self.refuse(Refused::whole(why));
        }
        if let Some(clamped) = output.clamped {
            self.note_clamp(clamped);
        }
        let state = &mut self.state;
        state.cycle = status.cycle;
        state.release_ns = release.as_nanos();
        state.bus = self.figures.bus(status);
        state.clock = figures::clock(status);
        state.timing = self.figures.timing();
        state.command = CommandState { freshness: self.external_command.freshness, ..self.command };
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
        let Counters { clamped, refused } = signals.counters();
        state.signal_counters = state::SignalCounters { clamped, refused };
        self.ends.state.publish(state);
    }

    /// The cycle is over.
    pub(crate) fn record(&mut self, record: &CycleRecord, phase: BringUpPhase) {
        if phase == BringUpPhase::Op {
            self.figures.record(record);
        }
    }
}

/// Index as the state has it.
fn place(index: Option<usize>) -> u16 {
    index.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX)
}

/// Forces heard in one cycle; the others wait.
const FORCES: usize = 8;

#[cfg(test)]
mod tests;
