//! Modes of operation (IEC 61800-7-201, modes of operation 0x6060 and supported drive modes
//! 0x6502).

use core::fmt;

use types::{AxisMode, CyclicMode};

/// A mode of operation, as 0x6060 and 0x6061 number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModeOfOperation {
    /// 1, pp.
    ProfilePosition,
    /// 3, pv.
    ProfileVelocity,
    /// 4, tq.
    ProfileTorque,
    /// 6, hm.
    Homing,
    /// 7, ip.
    InterpolatedPosition,
    /// 8, csp.
    CyclicSynchronousPosition,
    /// 9, csv.
    CyclicSynchronousVelocity,
    /// 10, cst.
    CyclicSynchronousTorque,
    /// Another number: 0 is no mode, 2 the velocity mode of frequency converters; negative modes
    /// are vendor-specific.
    Other(i8),
}

impl ModeOfOperation {
    /// The number in 0x6060.
    #[must_use]
    pub const fn number(self) -> i8 {
        match self {
            Self::ProfilePosition => 1,
            Self::ProfileVelocity => 3,
            Self::ProfileTorque => 4,
            Self::Homing => 6,
            Self::InterpolatedPosition => 7,
            Self::CyclicSynchronousPosition => 8,
            Self::CyclicSynchronousVelocity => 9,
            Self::CyclicSynchronousTorque => 10,
            Self::Other(number) => number,
        }
    }

    /// The mode with this number.
    #[must_use]
    pub const fn from_number(number: i8) -> Self {
        match number {
            1 => Self::ProfilePosition,
            3 => Self::ProfileVelocity,
            4 => Self::ProfileTorque,
            6 => Self::Homing,
            7 => Self::InterpolatedPosition,
            8 => Self::CyclicSynchronousPosition,
            9 => Self::CyclicSynchronousVelocity,
            10 => Self::CyclicSynchronousTorque,
            other => Self::Other(other),
        }
    }

    /// The cyclic synchronous mode it is, if it is one.
    #[must_use]
    pub const fn cyclic(self) -> Option<CyclicMode> {
        match self {
            Self::CyclicSynchronousPosition => Some(CyclicMode::Position),
            Self::CyclicSynchronousVelocity => Some(CyclicMode::Velocity),
            Self::CyclicSynchronousTorque => Some(CyclicMode::Torque),
            _ => None,
        }
    }

    /// The mode of an axis that it is, if it is one.
    #[must_use]
    pub fn axis(self) -> Option<AxisMode> {
        AxisMode::ALL.into_iter().find(|&mode| Self::from(mode) == self)
    }
}

impl fmt::Display for ModeOfOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProfilePosition => f.pad("profile position"),
            Self::ProfileVelocity => f.pad("profile velocity"),
            Self::ProfileTorque => f.pad("profile torque"),
            Self::Homing => f.pad("homing"),
            Self::InterpolatedPosition => f.pad("interpolated position"),
            Self::CyclicSynchronousPosition => f.pad("cyclic synchronous position"),
            Self::CyclicSynchronousVelocity => f.pad("cyclic synchronous velocity"),
            Self::CyclicSynchronousTorque => f.pad("cyclic synchronous torque"),
            Self::Other(number) => write!(f, "mode {number}"),
        }
    }
}

impl From<AxisMode> for ModeOfOperation {
    fn from(mode: AxisMode) -> Self {
        match mode {
            AxisMode::CyclicPosition => Self::CyclicSynchronousPosition,
            AxisMode::CyclicVelocity => Self::CyclicSynchronousVelocity,
            AxisMode::CyclicTorque => Self::CyclicSynchronousTorque,
            AxisMode::InterpolatedPosition => Self::InterpolatedPosition,
            AxisMode::ProfilePosition => Self::ProfilePosition,
            AxisMode::ProfileVelocity => Self::ProfileVelocity,
            AxisMode::ProfileTorque => Self::ProfileTorque,
        }
    }
}

impl From<CyclicMode> for ModeOfOperation {
    fn from(mode: CyclicMode) -> Self {
        AxisMode::from(mode).into()
    }
}

/// Supported drive modes, 0x6502: bit `number - 1` for modes 1 to 10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SupportedModes(pub u32);

impl SupportedModes {
    /// The modes in `modes` that have a bit.
    #[must_use]
    pub fn of(modes: &[ModeOfOperation]) -> Self {
        Self(modes.iter().filter_map(|&mode| bit(mode)).fold(0, |bits, bit| bits | bit))
    }

    /// True if `mode` is supported; false for modes without a bit.
    #[must_use]
    pub fn contains(self, mode: ModeOfOperation) -> bool {
        bit(mode).is_some_and(|bit| self.0 & bit != 0)
    }
}

fn bit(mode: ModeOfOperation) -> Option<u32> {
    let number = mode.number();
    (1..=10).contains(&number).then(|| 1 << (number - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives() {
        for number in i8::MIN..=i8::MAX {
            assert_eq!(ModeOfOperation::from_number(number).number(), number);
        }
    }

    #[test]
    fn supported_modes_are_bits_of_the_modes_number() {
        let modes = [8, 9, 10, 1, -3].map(ModeOfOperation::from_number);
        let supported = SupportedModes::of(&modes);
        assert_eq!(supported, SupportedModes(0x0000_0381));
        assert!(supported.contains(ModeOfOperation::CyclicSynchronousPosition));
        assert!(!supported.contains(ModeOfOperation::Homing));
        assert!(!supported.contains(ModeOfOperation::Other(-3)));
        assert_eq!(ModeOfOperation::Homing.cyclic(), None);
        assert_eq!(modes[0].cyclic().map(ModeOfOperation::from), Some(modes[0]));
    }
}
