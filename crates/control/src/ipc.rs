//! The cycle's side of the IPC: requests of other processes, and the region for its state.
//!
//! Nothing here waits, allocates or makes a system call, whatever the peers do: the command is read
//! with a bounded number of attempts, checked completely, and taken or refused.

mod command;
mod convert;

use ipc::server::Endpoints;
use ipc::{force, reference, state};

use crate::controller::ControllerOutput;
use crate::signal::{ForceEvent, Governing, Signals};
use command::Commands;

pub use command::{BaseRules, Commanded, Follows, Rules, Takes};

/// The cycle's end of the IPC.
#[derive(Debug)]
pub struct Ipc {
    pub(crate) commands: Commands,
    forces: force::Reader,
    pub(crate) references: reference::Reader,
    region: Option<state::Writer>,
}

impl Ipc {
    /// Around these ends, which were opened for as many axes as `rules` has.
    #[must_use]
    pub fn new(ends: Endpoints, rules: Rules) -> Self {
        let Endpoints { state: region, command, forces, references } = ends;
        let commands = Commands::new(command, rules);
        Self { commands, forces, references, region: Some(region) }
    }

    /// The region for the state of the cycle, once.
    pub(crate) fn take_region(&mut self) -> Option<state::Writer> {
        self.region.take()
    }

    /// Governs the signals of this cycle: requested forces, the robot file over them, and the
    /// values of a command that came with this cycle.
    pub(crate) fn govern(
        &mut self,
        signals: &mut Signals,
        governing: &Governing,
        tell: &mut impl FnMut(ForceEvent),
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

    /// Counts what the controller has refused and clamped, and returns the outcome of commands.
    pub(crate) fn note(&mut self, output: &ControllerOutput) -> state::CommandState {
        self.commands.note(output);
        self.commands.state()
    }
}

/// Forces taken in one cycle; the others wait.
const FORCES: usize = 8;

#[cfg(test)]
mod tests;
