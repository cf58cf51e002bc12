//! The states, commands and transitions of a power drive system (IEC 61800-7-201, finite state
//! automaton).

pub use types::state::DriveState as State;

use super::word::Controlword;

/// Command in a controlword (IEC 61800-7-201, command coding).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Bits 3..0 `x110`.
    Shutdown,
    /// Bits 3..0 `0111`: Switch on, or in Operation enabled Disable operation.
    SwitchOn,
    /// Bits 3..0 `1111`; in Ready to switch on it switches on first (command Switch on + Enable
    /// operation).
    EnableOperation,
    /// Bits 3..0 `xx0x`.
    DisableVoltage,
    /// Bits 3..0 `x01x`.
    QuickStop,
    /// Bit 7 rose.
    FaultReset,
}

impl Command {
    /// The command in `controlword` after the `previous` one.
    ///
    /// `None` where bit 7 is high without having risen: the standard's commands all need it low.
    #[must_use]
    pub const fn from_controlword(controlword: Controlword, previous: Controlword) -> Option<Self> {
        if controlword.fault_reset() {
            return if previous.fault_reset() { None } else { Some(Self::FaultReset) };
        }
        let bits = controlword.0;
        Some(if bits & 0b0010 == 0 {
            Self::DisableVoltage
        } else if bits & 0b0100 == 0 {
            Self::QuickStop
        } else if bits & 0b0001 == 0 {
            Self::Shutdown
        } else if bits & 0b1000 == 0 {
            Self::SwitchOn
        } else {
            Self::EnableOperation
        })
    }
}

/// A transition, by the standard's number. Transition 16 (Quick stop active back to Operation
/// enabled) is optional in the standard, not recommended by it, and left out here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// 0 to 15.
    pub number: u8,
    /// The state before; `None` for the start (0), and for 13, which any state can take.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
}

impl Transition {
    /// From `from` by `command`, where that is a transition at all.
    ///
    /// Power, a fault or a stop in progress may block the transition: [`super::StateMachine`] knows
    /// of these.
    #[must_use]
    pub const fn by_command(from: State, command: Command) -> Option<Self> {
        use Command as C;
        use State as S;
        let (number, to) = match (from, command) {
            (S::SwitchOnDisabled, C::Shutdown) => (2, S::ReadyToSwitchOn),
            (S::ReadyToSwitchOn, C::SwitchOn | C::EnableOperation) => (3, S::SwitchedOn),
            (S::SwitchedOn, C::EnableOperation) => (4, S::OperationEnabled),
            (S::OperationEnabled, C::SwitchOn) => (5, S::SwitchedOn),
            (S::SwitchedOn, C::Shutdown) => (6, S::ReadyToSwitchOn),
            (S::ReadyToSwitchOn, C::QuickStop | C::DisableVoltage) => (7, S::SwitchOnDisabled),
            (S::OperationEnabled, C::Shutdown) => (8, S::ReadyToSwitchOn),
            (S::OperationEnabled, C::DisableVoltage) => (9, S::SwitchOnDisabled),
            (S::SwitchedOn, C::QuickStop | C::DisableVoltage) => (10, S::SwitchOnDisabled),
            (S::OperationEnabled, C::QuickStop) => (11, S::QuickStopActive),
            (S::QuickStopActive, C::DisableVoltage) => (12, S::SwitchOnDisabled),
            (S::Fault, C::FaultReset) => (15, S::SwitchOnDisabled),
            _ => return None,
        };
        Some(Self { number, from: Some(from), to })
    }

    /// 0: the start of the drive.
    pub const START: Self = Self { number: 0, from: None, to: State::NotReadyToSwitchOn };
    /// 1: self-test and initialisation have ended.
    pub const INITIALISED: Self =
        Self { number: 1, from: Some(State::NotReadyToSwitchOn), to: State::SwitchOnDisabled };
    /// 12 without a command: the quick stop has ended, and its option code (1 to 4) leaves the
    /// state.
    pub const QUICK_STOP_COMPLETED: Self =
        Self { number: 12, from: Some(State::QuickStopActive), to: State::SwitchOnDisabled };
    /// 13: a fault came.
    pub const FAULT: Self = Self { number: 13, from: None, to: State::FaultReactionActive };
    /// 14: the fault reaction has ended.
    pub const FAULT_REACTION_COMPLETED: Self =
        Self { number: 14, from: Some(State::FaultReactionActive), to: State::Fault };
}

#[cfg(test)]
mod tests {
    use super::super::word::Statusword;
    use super::*;

    /// The state coding as the standard prints it, low byte, `x` for either; read independently of
    /// the code.
    const CODING: [(&str, State); 8] = [
        ("x0xx0000", State::NotReadyToSwitchOn),
        ("x1xx0000", State::SwitchOnDisabled),
        ("x01x0001", State::ReadyToSwitchOn),
        ("x01x0011", State::SwitchedOn),
        ("x01x0111", State::OperationEnabled),
        ("x00x0111", State::QuickStopActive),
        ("x0xx1111", State::FaultReactionActive),
        ("x0xx1000", State::Fault),
    ];

    fn matches_pattern(byte: u8, pattern: &str) -> bool {
        format!("{byte:08b}").bytes().zip(pattern.bytes()).all(|(bit, want)| want == b'x' || bit == want)
    }

    // feature(cia402): all 65 536 statuswords
    #[test]
    fn all_65536_statuswords_decode_as_the_standards_table() {
        let by_low_byte: Vec<Option<State>> = (0..=255_u8)
            .map(|byte| {
                let hits: Vec<_> =
                    CODING.iter().filter(|(pattern, _)| matches_pattern(byte, pattern)).collect();
                assert!(hits.len() <= 1, "0x{byte:02X} is ambiguous");
                hits.first().map(|(_, state)| *state)
            })
            .collect();
        let mut shown = 0;
        for bits in 0..=u16::MAX {
            let want = by_low_byte[usize::from(bits & 0xFF)];
            assert_eq!(State::from_statusword(bits), want, "0x{bits:04X}");
            shown += u32::from(want.is_some());
        }
        // The high byte is free; in the low byte, four patterns have three free bits and four have
        // two.
        assert_eq!(shown, 256 * (4 * 8 + 4 * 4));
    }

    #[test]
    fn a_states_own_statusword_shows_it() {
        for state in State::ALL {
            assert_eq!(Statusword(state.statusword()).state(), Some(state));
        }
    }

    // feature(cia402): all controlwords, all transitions
    #[test]
    fn all_controlwords_command_as_the_standards_table() {
        // Bits 7, 3, 2, 1, 0.
        let coding = [
            ("0x110", Command::Shutdown),
            ("00111", Command::SwitchOn),
            ("01111", Command::EnableOperation),
            ("0xx0x", Command::DisableVoltage),
            ("0x01x", Command::QuickStop),
        ];
        for bits in 0..=u16::MAX {
            let relevant = format!("{:05b}", bits >> 3 & 0x10 | bits & 0x0F);
            let want = coding.iter().find(|(pattern, _)| {
                relevant.bytes().zip(pattern.bytes()).all(|(bit, want)| want == b'x' || bit == want)
            });
            let word = Controlword(bits);
            let reset = (bits & 0x80 != 0).then_some(Command::FaultReset);
            assert_eq!(
                Command::from_controlword(word, Controlword(0)),
                want.map(|(_, command)| *command).or(reset),
                "0x{bits:04X}"
            );
            if bits & 0x80 != 0 {
                assert_eq!(Command::from_controlword(word, Controlword(0x80)), None, "no edge");
            }
        }
    }

    // feature(cia402): all controlwords, all transitions
    #[test]
    fn transitions_carry_the_standards_numbers() {
        use Command as C;
        use State as S;
        let rows = [
            (2, S::SwitchOnDisabled, vec![C::Shutdown], S::ReadyToSwitchOn),
            (3, S::ReadyToSwitchOn, vec![C::SwitchOn, C::EnableOperation], S::SwitchedOn),
            (4, S::SwitchedOn, vec![C::EnableOperation], S::OperationEnabled),
            (5, S::OperationEnabled, vec![C::SwitchOn], S::SwitchedOn),
            (6, S::SwitchedOn, vec![C::Shutdown], S::ReadyToSwitchOn),
            (7, S::ReadyToSwitchOn, vec![C::DisableVoltage, C::QuickStop], S::SwitchOnDisabled),
            (8, S::OperationEnabled, vec![C::Shutdown], S::ReadyToSwitchOn),
            (9, S::OperationEnabled, vec![C::DisableVoltage], S::SwitchOnDisabled),
            (10, S::SwitchedOn, vec![C::DisableVoltage, C::QuickStop], S::SwitchOnDisabled),
            (11, S::OperationEnabled, vec![C::QuickStop], S::QuickStopActive),
            (12, S::QuickStopActive, vec![C::DisableVoltage], S::SwitchOnDisabled),
            (15, S::Fault, vec![C::FaultReset], S::SwitchOnDisabled),
        ];
        let commands =
            [C::Shutdown, C::SwitchOn, C::EnableOperation, C::DisableVoltage, C::QuickStop, C::FaultReset];
        for from in S::ALL {
            for command in commands {
                let row = rows.iter().find(|row| row.1 == from && row.2.contains(&command));
                let want = row.map(|&(number, _, _, to)| Transition { number, from: Some(from), to });
                assert_eq!(Transition::by_command(from, command), want, "{from} by {command:?}");
            }
        }
    }
}
