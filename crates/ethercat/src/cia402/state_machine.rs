//! The drive's side of the state machine, used by simulated drives (IEC 61800-7-201).

use super::state::{Command, State, Transition};
use super::word::{Controlword, Statusword};

/// Facts of the drive around the state machine that a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Self-test and initialisation have ended.
    pub initialised: bool,
    /// High-level power is present. Without it the drive cannot be switched on, and losing it while
    /// switched on is a fault (under-voltage, 0x3220).
    pub power: bool,
    /// A fault is present now.
    pub fault: bool,
    /// The fault reaction has ended: the axis rests, or was never driven.
    pub fault_reaction_completed: bool,
    /// The quick stop has ended: the axis rests.
    pub quick_stop_completed: bool,
    /// The axis stays in Quick stop active after it has stopped (quick stop option codes 5 to 8);
    /// otherwise (1 to 4) it changes to Switch on disabled.
    pub quick_stop_holds: bool,
}

impl Surroundings {
    /// Initialised, powered, at standstill, no fault.
    pub const WELL: Self = Self {
        initialised: true,
        power: true,
        fault: false,
        fault_reaction_completed: true,
        quick_stop_completed: true,
        quick_stop_holds: false,
    };
}

/// The state machine of a drive: its state and the last controlword, of which bit 7 acts on its
/// rising edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateMachine {
    state: State,
    previous: Controlword,
}

impl Default for StateMachine {
    fn default() -> Self {
        Self::new()
    }
}

impl StateMachine {
    /// After transition 0: Not ready to switch on.
    #[must_use]
    pub const fn new() -> Self {
        Self::in_state(Transition::START.to)
    }

    /// In `state`, with fault reset low.
    #[must_use]
    pub const fn in_state(state: State) -> Self {
        Self { state, previous: Controlword(0) }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Takes at most one transition and returns it.
    ///
    /// Order: a fault first, then automatic transitions, then the command. For the standard's
    /// Switch on + Enable operation in one cycle, a drive steps until `None`.
    pub fn step(&mut self, controlword: Controlword, around: Surroundings) -> Option<Transition> {
        let command = Command::from_controlword(controlword, self.previous);
        self.previous = controlword;
        let transition = next(self.state, command, around)?;
        self.state = transition.to;
        Some(transition)
    }

    /// The statusword of the state, with Remote and, where `power` is, Voltage enabled. The mode's
    /// bits are the caller's to add.
    #[must_use]
    pub const fn statusword(&self, power: bool) -> Statusword {
        let voltage = if power { Statusword::VOLTAGE_ENABLED } else { 0 };
        Statusword(self.state.statusword() | Statusword::REMOTE | voltage)
    }
}

fn next(state: State, command: Option<Command>, around: Surroundings) -> Option<Transition> {
    let power_lost = !around.power
        && matches!(state, State::SwitchedOn | State::OperationEnabled | State::QuickStopActive);
    if !state.is_faulted() && (around.fault || power_lost) {
        return Some(Transition::FAULT);
    }
    match state {
        State::NotReadyToSwitchOn => around.initialised.then_some(Transition::INITIALISED),
        State::FaultReactionActive => {
            around.fault_reaction_completed.then_some(Transition::FAULT_REACTION_COMPLETED)
        }
        State::QuickStopActive if around.quick_stop_completed && !around.quick_stop_holds => {
            Some(Transition::QUICK_STOP_COMPLETED)
        }
        _ => {
            let transition = Transition::by_command(state, command?)?;
            let allowed = match transition.number {
                3 => around.power,
                15 => !around.fault,
                _ => true,
            };
            allowed.then_some(transition)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(machine: &mut StateMachine, controlword: u16, around: Surroundings) -> Vec<u8> {
        core::iter::from_fn(|| machine.step(Controlword(controlword), around)).map(|it| it.number).collect()
    }

    #[test]
    fn a_drive_starts_and_enables_by_transitions_0_to_4() {
        let mut machine = StateMachine::new();
        assert_eq!(machine.state(), State::NotReadyToSwitchOn);
        assert_eq!(numbers(&mut machine, 0x00, Surroundings::WELL), [1]);
        assert_eq!(numbers(&mut machine, 0x06, Surroundings::WELL), [2]);
        assert_eq!(numbers(&mut machine, 0x07, Surroundings::WELL), [3]);
        assert_eq!(numbers(&mut machine, 0x0F, Surroundings::WELL), [4]);
        assert_eq!(machine.statusword(true), Statusword(0x0237));
        assert_eq!(numbers(&mut machine, 0x06, Surroundings::WELL), [8]);
        assert_eq!(numbers(&mut machine, 0x0F, Surroundings::WELL), [3, 4], "switch on + enable operation");
    }

    #[test]
    fn quick_stop_option_code_decides_the_next_state() {
        let moving = Surroundings { quick_stop_completed: false, ..Surroundings::WELL };
        let holds = Surroundings { quick_stop_holds: true, ..Surroundings::WELL };
        let mut machine = StateMachine::in_state(State::OperationEnabled);
        assert_eq!(numbers(&mut machine, 0x02, moving), [11]);
        assert_eq!(numbers(&mut machine, 0x02, holds), [0_u8; 0]);
        assert_eq!(numbers(&mut machine, 0x0F, holds), [0_u8; 0], "transition 16 is not offered");
        assert_eq!(numbers(&mut machine, 0x02, Surroundings::WELL), [12]);
        let mut machine = StateMachine::in_state(State::QuickStopActive);
        assert_eq!(numbers(&mut machine, 0x00, moving), [12], "disable voltage cuts it short");
    }

    #[test]
    fn every_state_but_the_two_of_a_fault_takes_transition_13() {
        let fault = Surroundings { fault: true, fault_reaction_completed: false, ..Surroundings::WELL };
        for state in State::ALL {
            let mut machine = StateMachine::in_state(state);
            let faulted = matches!(state, State::Fault | State::FaultReactionActive);
            assert_eq!(
                numbers(&mut machine, 0x0F, fault),
                if faulted { vec![] } else { vec![13] },
                "{state}"
            );
        }
    }

    #[test]
    fn fault_reset_needs_an_edge_and_no_cause() {
        let present = Surroundings { fault: true, ..Surroundings::WELL };
        let mut machine = StateMachine::in_state(State::FaultReactionActive);
        assert_eq!(numbers(&mut machine, 0x00, present), [14]);
        assert_eq!(numbers(&mut machine, 0x80, present), [0_u8; 0], "the fault is still there");
        assert_eq!(numbers(&mut machine, 0x80, Surroundings::WELL), [0_u8; 0], "no edge");
        for controlword in 0..0x80 {
            assert_eq!(
                numbers(&mut machine, controlword, Surroundings::WELL),
                [0_u8; 0],
                "0x{controlword:02X}"
            );
        }
        assert_eq!(numbers(&mut machine, 0x80, Surroundings::WELL), [15]);
        assert_eq!(machine.state(), State::SwitchOnDisabled);
    }

    #[test]
    fn missing_power_blocks_switch_on_and_faults() {
        let unpowered = Surroundings { power: false, ..Surroundings::WELL };
        let mut machine = StateMachine::in_state(State::SwitchOnDisabled);
        assert_eq!(numbers(&mut machine, 0x06, unpowered), [2]);
        assert_eq!(numbers(&mut machine, 0x0F, unpowered), [0_u8; 0]);
        assert_eq!(numbers(&mut machine, 0x0F, Surroundings::WELL), [3, 4]);
        assert_eq!(numbers(&mut machine, 0x0F, unpowered), [13, 14]);
    }
}
