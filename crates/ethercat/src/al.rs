//! The EtherCAT state machine: its states and how the AL control and AL status registers spell them
//! (ETG.1000.6, 6.4.1).

use core::fmt;

/// A state of the EtherCAT state machine (ETG.1000.6, 6.4.1, Table 102).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlState {
    /// No mailbox, no process data.
    Init,
    /// Mailbox, no process data.
    PreOp,
    /// Mailbox and inputs; outputs stay safe.
    SafeOp,
    /// Mailbox, inputs and outputs.
    Op,
    /// Firmware update through the mailbox's FoE only.
    Bootstrap,
}

impl AlState {
    /// The low four bits of AL control and AL status.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Init => 1,
            Self::PreOp => 2,
            Self::Bootstrap => 3,
            Self::SafeOp => 4,
            Self::Op => 8,
        }
    }

    /// The state with this number, or `None` for the eleven the standard does not define.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Init),
            2 => Some(Self::PreOp),
            3 => Some(Self::Bootstrap),
            4 => Some(Self::SafeOp),
            8 => Some(Self::Op),
            _ => None,
        }
    }
}

impl fmt::Display for AlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Init => "Init",
            Self::PreOp => "PreOp",
            Self::SafeOp => "SafeOp",
            Self::Op => "Op",
            Self::Bootstrap => "Bootstrap",
        })
    }
}

/// The AL control register, 0x0120 (ETG.1000.6, 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlControl {
    /// Requested state, as a number: SubDevices must survive undefined numbers.
    pub state: u8,
    /// Acknowledges an error shown in AL status.
    pub acknowledge: bool,
    /// Asks for the device identification value.
    pub request_identification: bool,
}

impl AlControl {
    /// Asks for `state`.
    #[must_use]
    pub const fn request(state: AlState) -> Self {
        Self { state: state.number(), acknowledge: false, request_identification: false }
    }

    /// Asks for `state` and acknowledges an error at once.
    #[must_use]
    pub const fn acknowledge(state: AlState) -> Self {
        Self { state: state.number(), acknowledge: true, request_identification: false }
    }

    /// As read from the register.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self {
            state: (bits & 0x0F) as u8,
            acknowledge: bits & 0x10 != 0,
            request_identification: bits & 0x20 != 0,
        }
    }

    /// As written to the register.
    #[must_use]
    pub const fn bits(self) -> u16 {
        (self.state & 0x0F) as u16
            | (self.acknowledge as u16) << 4
            | (self.request_identification as u16) << 5
    }
}

/// The AL status register, 0x0130 (ETG.1000.6, 5.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlStatus {
    /// The state, by number; a broadcast read combines several by OR.
    pub state: u8,
    /// The SubDevice refused a request or left a state; the AL status code gives the reason.
    pub error: bool,
    /// The AL status code register holds the device identification value.
    pub identification: bool,
}

impl AlStatus {
    /// In `state`, with no error.
    #[must_use]
    pub const fn in_state(state: AlState) -> Self {
        Self { state: state.number(), error: false, identification: false }
    }

    /// As read from the register.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self { state: (bits & 0x0F) as u8, error: bits & 0x10 != 0, identification: bits & 0x20 != 0 }
    }

    /// Register value.
    #[must_use]
    pub const fn bits(self) -> u16 {
        (self.state & 0x0F) as u16 | (self.error as u16) << 4 | (self.identification as u16) << 5
    }

    /// The state, if the number is one.
    #[must_use]
    pub const fn al_state(self) -> Option<AlState> {
        AlState::from_number(self.state)
    }
}

impl fmt::Display for AlStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.al_state() {
            Some(state) => write!(f, "{state}")?,
            None => write!(f, "state {}", self.state)?,
        }
        f.write_str(if self.error { " + error" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_status_keep_the_bits_they_define() {
        for bits in 0..0x40_u16 {
            assert_eq!(AlControl::from_bits(bits).bits(), bits);
            assert_eq!(AlStatus::from_bits(bits).bits(), bits);
        }
    }

    #[test]
    fn only_five_numbers_are_states() {
        let states: Vec<_> = (0..16).filter_map(AlState::from_number).collect();
        assert_eq!(states.len(), 5);
        assert!(states.iter().all(|state| AlState::from_number(state.number()) == Some(*state)));
    }
}
