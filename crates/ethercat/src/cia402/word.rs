//! Statusword (0x6041) and controlword (0x6040): 16 checked bits each (IEC 61800-7-201, controlword
//! and statusword objects).

use core::fmt;

use super::state::State;

/// The statusword, 0x6041. Every one of its 65 536 values can be held; [`State::from_statusword`]
/// decodes the state, if it shows one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statusword(pub u16);

impl Statusword {
    /// Bit 4: the power stage is fed.
    pub const VOLTAGE_ENABLED: u16 = 1 << 4;
    /// Bit 7: a warning is present; the state does not change.
    pub const WARNING: u16 = 1 << 7;
    /// Bit 9: the drive obeys the controlword from the bus.
    pub const REMOTE: u16 = 1 << 9;
    /// Bit 10: the target was reached; after a halt or a quick stop, the axis rests.
    pub const TARGET_REACHED: u16 = 1 << 10;
    /// Bit 11: an internal limit acts on the motion.
    pub const INTERNAL_LIMIT_ACTIVE: u16 = 1 << 11;
    /// Bit 12 in the cyclic synchronous modes: the drive follows the command value.
    pub const DRIVE_FOLLOWS_COMMAND: u16 = 1 << 12;
    /// Bit 13 in the position modes: the following error left its window.
    pub const FOLLOWING_ERROR: u16 = 1 << 13;

    /// Bit 12 in profile position: the set-point was acknowledged.
    pub const SET_POINT_ACKNOWLEDGE: u16 = 1 << 12;
    /// Bit 12 in interpolated position: the drive follows the set-points.
    pub const INTERPOLATION_ACTIVE: u16 = 1 << 12;
    /// Bit 12 in profile velocity: the speed is zero.
    pub const SPEED_IS_ZERO: u16 = 1 << 12;
    /// Bit 12 in homing: a home position was found.
    pub const HOMING_ATTAINED: u16 = 1 << 12;
    /// Bit 13 in homing: homing failed.
    pub const HOMING_ERROR: u16 = 1 << 13;

    /// The state it shows, or `None` for a pattern the standard gives no state.
    #[must_use]
    pub const fn state(self) -> Option<State> {
        State::from_statusword(self.0)
    }

    /// The power stage is fed (bit 4).
    #[must_use]
    pub const fn voltage_enabled(self) -> bool {
        self.has(Self::VOLTAGE_ENABLED)
    }

    /// A warning is present (bit 7).
    #[must_use]
    pub const fn warning(self) -> bool {
        self.has(Self::WARNING)
    }

    /// The drive obeys the bus (bit 9).
    #[must_use]
    pub const fn remote(self) -> bool {
        self.has(Self::REMOTE)
    }

    /// The target was reached, or a stop has ended (bit 10).
    #[must_use]
    pub const fn target_reached(self) -> bool {
        self.has(Self::TARGET_REACHED)
    }

    /// An internal limit acts (bit 11).
    #[must_use]
    pub const fn internal_limit_active(self) -> bool {
        self.has(Self::INTERNAL_LIMIT_ACTIVE)
    }

    /// The drive follows the command value (bit 12; cyclic synchronous modes only).
    #[must_use]
    pub const fn drive_follows_command(self) -> bool {
        self.has(Self::DRIVE_FOLLOWS_COMMAND)
    }

    /// The set-point was acknowledged (bit 12; profile position mode only).
    #[must_use]
    pub const fn set_point_acknowledged(self) -> bool {
        self.has(Self::SET_POINT_ACKNOWLEDGE)
    }

    /// The following error left its window (bit 13; position modes only).
    #[must_use]
    pub const fn following_error(self) -> bool {
        self.has(Self::FOLLOWING_ERROR)
    }

    const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

impl fmt::Display for Statusword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state() {
            Some(state) => write!(f, "0x{:04X} {state}", self.0),
            None => write!(f, "0x{:04X} no defined state", self.0),
        }
    }
}

/// The controlword, 0x6040.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Controlword(pub u16);

impl Controlword {
    /// Bit 7: its rising edge resets a fault.
    pub const FAULT_RESET_BIT: u16 = 1 << 7;
    /// Bit 8: the axis stops as the halt option code 0x605D says.
    pub const HALT_BIT: u16 = 1 << 8;
    /// Bit 4 in profile position: a rising edge hands over a new set-point.
    pub const NEW_SET_POINT: u16 = 1 << 4;
    /// Bit 5 in profile position: the new set-point replaces the running one.
    pub const CHANGE_SET_IMMEDIATELY: u16 = 1 << 5;
    /// Bit 6 in profile position: the target is relative.
    pub const RELATIVE: u16 = 1 << 6;
    /// Bit 9 in profile position: the running set-point is passed at profile velocity where another
    /// waits.
    pub const CHANGE_ON_SET_POINT: u16 = 1 << 9;
    /// Bit 4 in interpolated position: the drive follows the set-points.
    pub const ENABLE_INTERPOLATION: u16 = 1 << 4;
    /// Bit 4 in homing: homing starts.
    pub const HOMING_OPERATION_START: u16 = 1 << 4;

    /// Command Disable voltage.
    pub const DISABLE_VOLTAGE: Self = Self(0x00);
    /// Command Quick stop.
    pub const QUICK_STOP: Self = Self(0x02);
    /// Command Shutdown.
    pub const SHUTDOWN: Self = Self(0x06);
    /// Command Switch on; in Operation enabled the same bits are Disable operation.
    pub const SWITCH_ON: Self = Self(0x07);
    /// Command Disable operation.
    pub const DISABLE_OPERATION: Self = Self(0x07);
    /// Command Enable operation.
    pub const ENABLE_OPERATION: Self = Self(0x0F);
    /// Fault reset, the high level of its edge.
    pub const FAULT_RESET: Self = Self(Self::FAULT_RESET_BIT);

    /// The same with the halt bit set.
    #[must_use]
    pub const fn with_halt(self) -> Self {
        Self(self.0 | Self::HALT_BIT)
    }

    /// Bits 0 to 3: the drive follows its targets.
    #[must_use]
    pub const fn enables_operation(self) -> bool {
        self.0 & Self::ENABLE_OPERATION.0 == Self::ENABLE_OPERATION.0
    }

    /// Bit 1: the power stage may be fed.
    #[must_use]
    pub const fn enables_voltage(self) -> bool {
        self.0 & Self::QUICK_STOP.0 != 0
    }

    /// True if the halt bit is set.
    #[must_use]
    pub const fn halt(self) -> bool {
        self.has(Self::HALT_BIT)
    }

    /// True if the start bit of homing is set (bit 4; homing mode only).
    #[must_use]
    pub const fn homing_start(self) -> bool {
        self.has(Self::HOMING_OPERATION_START)
    }

    /// True if a new set-point is handed over (bit 4, its level; profile position mode only).
    #[must_use]
    pub const fn new_set_point(self) -> bool {
        self.has(Self::NEW_SET_POINT)
    }

    /// True if a new set-point replaces the running one (bit 5; profile position mode only).
    #[must_use]
    pub const fn changes_set_immediately(self) -> bool {
        self.has(Self::CHANGE_SET_IMMEDIATELY)
    }

    /// True if a new set-point is relative to the previous one (bit 6; profile position mode only).
    #[must_use]
    pub const fn is_relative(self) -> bool {
        self.has(Self::RELATIVE)
    }

    /// True if the running set-point is passed at profile velocity (bit 9; profile position mode
    /// only).
    #[must_use]
    pub const fn changes_on_set_point(self) -> bool {
        self.has(Self::CHANGE_ON_SET_POINT)
    }

    /// True if the drive follows its set-points (bit 4; interpolated position mode only).
    #[must_use]
    pub const fn enables_interpolation(self) -> bool {
        self.has(Self::ENABLE_INTERPOLATION)
    }

    /// True if the fault reset bit is set (its level; the command is its rising edge).
    #[must_use]
    pub const fn fault_reset(self) -> bool {
        self.has(Self::FAULT_RESET_BIT)
    }

    const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

impl fmt::Display for Controlword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04X}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_of_the_statusword_is_read_from_its_place() {
        let read = |bit: u16| {
            let word = Statusword(1 << bit);
            [
                word.voltage_enabled(),
                word.warning(),
                word.remote(),
                word.target_reached(),
                word.internal_limit_active(),
                word.drive_follows_command(),
                word.following_error(),
            ]
        };
        let places = [4, 7, 9, 10, 11, 12, 13];
        for bit in 0..16 {
            assert_eq!(read(bit), places.map(|place| place == bit), "bit {bit}");
        }
    }
}
