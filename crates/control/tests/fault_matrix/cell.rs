//! The cells of the matrix: which fault, from when on.

use std::time::Duration;

use ethercat::cia402::AxisMode;
use simulator::application::brake::Sticking;

/// One cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) phase: Phase,
    pub(crate) fault: Fault,
    pub(crate) seed: u64,
    /// The cause of a fault that would last for good goes away again.
    pub(crate) heals: bool,
}

impl Cell {
    pub(crate) fn new(phase: Phase, fault: Fault, seed: u64) -> Self {
        Self { phase, fault, seed, heals: false }
    }

    /// True if the cause goes away while the run continues. It does not for a robot that is built
    /// wrongly or an interface that was removed; a run that is to stop does not wait for it.
    pub(crate) fn can_heal(self) -> bool {
        self.phase != Phase::Shutdown && !matches!(self.fault, Fault::Swapped | Fault::InterfaceGone)
    }

    /// True if the bus is in Op when the fault begins: then all are there again by themselves,
    /// whatever it was.
    pub(crate) fn is_in_op(self) -> bool {
        matches!(self.phase, Phase::Op | Phase::Homing | Phase::Profile)
    }

    /// True if the fault begins before the bus is in Op.
    pub(crate) fn is_on_the_way_up(self) -> bool {
        !self.is_in_op() && self.phase != Phase::Shutdown
    }

    /// Faults of parts that a SubDevice in Op does not need; each comes with a fall out of Op.
    pub(crate) fn falls(self) -> Option<Fall> {
        match self.fault {
            _ if !self.is_in_op() => None,
            Fault::RefusedState => Some(Fall::Watchdog),
            Fault::StuckMailbox | Fault::SiiGarbage => Some(Fall::Power),
            _ => None,
        }
    }
}

impl Fault {
    /// Turns by which the second drive counts from elsewhere.
    pub(crate) fn turns_off(self) -> Option<f64> {
        match self {
            Self::HalfTurnOff => Some(0.5),
            Self::TurnOff | Self::TurnOffInOp => Some(1.0),
            Self::ThreeTurnsOff => Some(3.0),
            _ => None,
        }
    }

    /// True if the shaft of the second drive is turned by hand by one turn while it is off, and
    /// reads the same afterwards.
    pub(crate) fn turns_the_shaft(self) -> bool {
        matches!(self, Self::TurnedUnseen | Self::TurnedByRange)
    }

    /// True if the second drive restarts at once, and its axis is not moved after that without
    /// homing.
    pub(crate) fn restarts(self) -> bool {
        self.turns_the_shaft() || self.turns_off().is_some() && self != Self::TurnOffInOp
    }

    /// True if the position of the second axis is unknown after this.
    pub(crate) fn loses_the_reference(self) -> bool {
        self.turns_the_shaft() || self.turns_off().is_some()
    }

    /// True if no drive but the first has a quick stop.
    pub(crate) fn has_no_quick_stop(self) -> bool {
        matches!(self, Self::NoQuickStop | Self::NoStopBrake | Self::NoStopLoad | Self::NoStopBrakeLoad)
    }

    /// True if there is a load on the second axis while it moves.
    pub(crate) fn has_load(self) -> bool {
        matches!(self, Self::NoStopLoad | Self::NoStopBrakeLoad | Self::BrakeStuckOpen | Self::OwnBrakeOpen)
    }

    /// True if the second drive has a brake.
    pub(crate) fn has_brake(self) -> bool {
        matches!(self, Self::NoStopBrake | Self::NoStopBrakeLoad) || self.sticks().is_some()
    }

    /// True if the second drive powers its brake itself.
    pub(crate) fn drive_powers_brake(self) -> bool {
        self == Self::OwnBrakeOpen
    }

    /// Place in which the brake of the second drive sticks. Behind the drives are two terminals: an
    /// output powers its coil, and an input shows whether it is closed.
    pub(crate) fn sticks(self) -> Option<Sticking> {
        match self {
            Self::BrakeStuckOpen | Self::OwnBrakeOpen => Some(Sticking::Open),
            Self::BrakeStuckShut => Some(Sticking::Closed),
            _ => None,
        }
    }

    /// Time that the host stalls.
    pub(crate) fn stall(self) -> Option<Duration> {
        Some(Duration::from_millis(match self {
            Self::HostStall => 50,
            Self::HostStallHalf => 500,
            Self::HostStallFive => 5_000,
            _ => return None,
        }))
    }
}

/// Fall of the second SubDevice out of Op, on top of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fall {
    /// To SafeOp: its process data watchdog expires.
    Watchdog,
    /// To Init: its power is off for a moment.
    Power,
}

/// When the fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// With the first frame.
    Scan,
    /// With the first message to a mailbox: the start-up objects are written in PreOp.
    MailboxTransfer,
    /// Once a SYNC0 is running.
    DcStart,
    /// Once a SubDevice is in SafeOp.
    BringUp,
    /// In Op, with the axes in motion.
    Op,
    /// In Op, while a drive homes.
    Homing,
    /// In Op, with axes on the way that drives make by themselves: profile position, velocity,
    /// torque.
    Profile,
    /// Once the cycle was asked to stop.
    Shutdown,
}

impl Phase {
    pub(crate) const ALL: [Self; 8] = [
        Self::Scan,
        Self::MailboxTransfer,
        Self::DcStart,
        Self::BringUp,
        Self::Op,
        Self::Homing,
        Self::Profile,
        Self::Shutdown,
    ];

    /// Modes of operation of the three axes.
    pub(crate) const fn modes(self) -> [AxisMode; 3] {
        use AxisMode::{
            CyclicPosition, CyclicVelocity, InterpolatedPosition, ProfilePosition, ProfileTorque,
            ProfileVelocity,
        };
        match self {
            Self::Profile => [ProfilePosition, ProfileVelocity, ProfileTorque],
            Self::Homing => [CyclicPosition, InterpolatedPosition, CyclicVelocity],
            _ => [CyclicPosition, CyclicPosition, CyclicVelocity],
        }
    }
}

/// A fault from a phase on: for a while, or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No frame comes through for a while, either way.
    Loss,
    /// Replies come 5 ms late for a while.
    Delay,
    /// Every reply comes twice for a while.
    Duplicate,
    /// Before every reply comes the one of 64 frames ago, for a while: the same index, another
    /// generation.
    Replay,
    /// Replies overtake each other for a while.
    Reorder,
    /// One bit of every fifth reply and of every seventh request is another one: their frame check
    /// sequences are wrong, and its receiver drops such a frame.
    Corrupt,
    /// One bit of every fifth reply is another one, and its check sequence is right all the same:
    /// changed in a switch or in the host. A changed bit of process data cannot be noticed.
    Altered,
    /// Frames of other programs and other MainDevices come in between for a while.
    Foreign,
    /// Replies are cut for a while.
    Truncated,
    /// The last SubDevice loses its power for good: whatever lasts for good, or until its cause
    /// goes away in a cell that heals.
    PowerLoss,
    /// All SubDevices lose their power for good, on a segment that leaves the source address of
    /// frames unchanged.
    UnmarkedPower,
    /// The cable behind the first SubDevice breaks for good.
    CableBreak,
    /// The last two SubDevices have changed places, before power-on: the bus does not come up, so
    /// its phases are one.
    Swapped,
    /// The second SubDevice answers in its mailbox no more. In Op it also loses its power for a
    /// moment: it needs its mailbox to come back.
    StuckMailbox,
    /// The second SubDevice refuses Op. In Op its process data watchdog expires, too.
    RefusedState,
    /// The EEPROM of the second SubDevice is blank. In Op it also loses its power for a moment: it
    /// is known by its EEPROM then.
    SiiGarbage,
    /// The process data watchdog of the second SubDevice expires.
    WatchdogExpiry,
    /// The clock of the second SubDevice jumps by 5 ms.
    ClockJump,
    /// The interface is down for a while.
    LinkDown,
    /// The interface is removed.
    InterfaceGone,
    /// The host stalls for 50 ms with its frame on the way.
    HostStall,
    /// The same for half a second: the drives' watchdogs expire.
    HostStallHalf,
    /// The same for five seconds.
    HostStallFive,
    /// The second drive restarts, and counts from half a turn off.
    HalfTurnOff,
    /// The same from one turn off.
    TurnOff,
    /// The same from three turns off.
    ThreeTurnsOff,
    /// The second drive counts from one turn off, with power all the time.
    TurnOffInOp,
    /// The second drive restarts, and its shaft was turned by one turn meanwhile, which its
    /// incremental encoder does not see.
    TurnedUnseen,
    /// The same with an encoder of one turn, and limits that are farther apart than that.
    TurnedByRange,
    /// No frame passes for a while, either way, and no drive but the first has a quick stop.
    NoQuickStop,
    /// The same, and the second drive has a brake.
    NoStopBrake,
    /// The same without a brake, with a load on the second axis, which holds it.
    NoStopLoad,
    /// The same with brake and load.
    NoStopBrakeLoad,
    /// The brake of the second axis stays open, whatever is commanded, and its feedback shows
    /// that. The axis holds a load.
    BrakeStuckOpen,
    /// The same with a brake that the drive powers while it is enabled.
    OwnBrakeOpen,
    /// The brake of the second axis closes, and stays closed; there is no load.
    BrakeStuckShut,
    /// Another MainDevice brings the same SubDevices up and runs its own cycle, for good. In the
    /// scan it already does. Where its cause goes away it sends no more, after two seconds.
    SecondMaster,
}

impl Fault {
    pub(crate) const ALL: [Self; 37] = [
        Self::Loss,
        Self::Delay,
        Self::Duplicate,
        Self::Replay,
        Self::Reorder,
        Self::Corrupt,
        Self::Altered,
        Self::Foreign,
        Self::Truncated,
        Self::PowerLoss,
        Self::UnmarkedPower,
        Self::CableBreak,
        Self::Swapped,
        Self::StuckMailbox,
        Self::RefusedState,
        Self::SiiGarbage,
        Self::WatchdogExpiry,
        Self::ClockJump,
        Self::LinkDown,
        Self::InterfaceGone,
        Self::HostStall,
        Self::HostStallHalf,
        Self::HostStallFive,
        Self::HalfTurnOff,
        Self::TurnOff,
        Self::ThreeTurnsOff,
        Self::TurnOffInOp,
        Self::TurnedUnseen,
        Self::TurnedByRange,
        Self::NoQuickStop,
        Self::NoStopBrake,
        Self::NoStopLoad,
        Self::NoStopBrakeLoad,
        Self::BrakeStuckOpen,
        Self::OwnBrakeOpen,
        Self::BrakeStuckShut,
        Self::SecondMaster,
    ];
}
