//! States of a running cycle, requests to its drives, and reasons for stops, with their codes.

use alloc::format;
use alloc::string::String;

use crate::codes;

codes! {
    /// Phase of the bus.
    #[derive(PartialOrd, Ord, Hash)]
    BringUpPhase: u8 {
        /// Opening ports, counting, addressing, reading SIIs, measuring the cable.
        Scan = 0, "Scan";
        /// Setting clocks.
        Clocks = 1, "Clocks";
        /// To PreOp, and the SDOs there.
        Configuration = 2, "Configuration";
        /// All in PreOp and configured. With a target above PreOp: waiting for the first cycles.
        PreOp = 3, "PreOp";
        /// Process data flows; on the way to SafeOp.
        ToSafeOp = 4, "To SafeOp";
        /// All in SafeOp; waiting for complete working counters before Op is requested.
        SafeOp = 5, "SafeOp";
        /// On the way to Op.
        ToOp = 6, "To Op";
        /// All in Op.
        Op = 7, "Op";
        /// On the way back to Init.
        ToInit = 8, "To Init";
        /// Init requested from all, at the end or after a failure.
        Down = 9, "Down";
    }
}

codes! {
    /// State of a power drive system (CiA 402), in the standard's order.
    #[derive(PartialOrd, Ord, Hash)]
    DriveState: u8 {
        /// The drive starts up or tests itself.
        NotReadyToSwitchOn = 1, "Not ready to switch on";
        /// Ready for parameters; high-level power may be absent.
        SwitchOnDisabled = 2, "Switch on disabled";
        /// High-level power may be applied.
        ReadyToSwitchOn = 3, "Ready to switch on";
        /// High-level power is applied, no torque.
        SwitchedOn = 4, "Switched on";
        /// The axis follows its set-points.
        OperationEnabled = 5, "Operation enabled";
        /// The axis stops, or holds after it.
        QuickStopActive = 6, "Quick stop active";
        /// The axis reacts to a fault that has just come.
        FaultReactionActive = 7, "Fault reaction active";
        /// The reaction has ended, no torque until the fault is reset.
        Fault = 8, "Fault";
    }
}

impl DriveState {
    /// The state a statusword shows (IEC 61800-7-201, state coding: `x0xx 0000` to `x0xx 1000` of
    /// the low byte), or `None` for a pattern without one.
    #[must_use]
    pub const fn from_statusword(statusword: u16) -> Option<Self> {
        match statusword & 0x4F {
            0x00 => return Some(Self::NotReadyToSwitchOn),
            0x40 => return Some(Self::SwitchOnDisabled),
            0x0F => return Some(Self::FaultReactionActive),
            0x08 => return Some(Self::Fault),
            _ => {}
        }
        match statusword & 0x6F {
            0x21 => Some(Self::ReadyToSwitchOn),
            0x23 => Some(Self::SwitchedOn),
            0x27 => Some(Self::OperationEnabled),
            0x07 => Some(Self::QuickStopActive),
            _ => None,
        }
    }

    /// The statusword that shows this state and nothing else.
    #[must_use]
    pub const fn statusword(self) -> u16 {
        match self {
            Self::NotReadyToSwitchOn => 0x00,
            Self::SwitchOnDisabled => 0x40,
            Self::ReadyToSwitchOn => 0x21,
            Self::SwitchedOn => 0x23,
            Self::OperationEnabled => 0x27,
            Self::QuickStopActive => 0x07,
            Self::FaultReactionActive => 0x0F,
            Self::Fault => 0x08,
        }
    }

    /// True if the drive is in fault, or on its way there.
    #[must_use]
    pub const fn is_faulted(self) -> bool {
        matches!(self, Self::FaultReactionActive | Self::Fault)
    }

    /// True if the power stage may drive the motor in this state.
    #[must_use]
    pub const fn is_powered(self) -> bool {
        matches!(self, Self::OperationEnabled | Self::QuickStopActive | Self::FaultReactionActive)
    }
}

codes! {
    /// Source of the target that a drive gets.
    DrivePhase: u8 {
        /// Not in Operation enabled: in CSP the actual position is sent back, in CSV and CST zero.
        NotEnabled = 0, "not enabled";
        /// In Operation enabled and standing: set-points of a controller start at that place.
        Holding = 1, "holding";
        /// The controller's targets reach the drive.
        Following = 2, "following";
    }
}

codes! {
    /// Request to a drive, made on every cycle.
    #[derive(Default, Hash)]
    DriveRequest: u8 {
        /// No torque: step down to Switch on disabled. Cuts a running quick stop short.
        #[default]
        Disable = 1, "disable";
        /// Step up to Operation enabled and follow the targets. Never resets a fault.
        Enable = 2, "enable";
        /// Stop as the quick stop option code 0x605A says, and stay disabled after it.
        QuickStop = 3, "quick stop";
        /// Stand still with torque: the halt bit is set and the target held. Enables nothing by
        /// itself.
        Halt = 4, "halt";
        /// Reset a fault, and acknowledge a stop by supervision; in any other state as
        /// [`DriveRequest::Disable`].
        FaultReset = 5, "fault reset";
    }
}

codes! {
    /// Level of the digital input of an interlock.
    InputLevel: u8 {
        /// No process data of the input has been received yet.
        Unknown = 0, "has not been read yet";
        /// The input is low.
        Low = 1, "is low";
        /// The input is high.
        High = 2, "is high";
        /// The SubDevice of the input exchanges no process data.
        Lost = 3, "is lost (no process data of its SubDevice)";
        /// The input permits, and its signal is forced to low.
        ForcedLow = 4, "is forced to low";
        /// The input permits, and its signal is forced to high.
        ForcedHigh = 5, "is forced to high";
    }
}

codes! {
    /// Reason for a stop of an axis by supervision.
    StopReason: u8 {
        /// The command became stale, or the controller process answers no more.
        Stale = 1, "the command, or the controller process, went stale";
        /// The controller's set-point was beyond the position limits; in torque mode the axis was
        /// too fast to stop before one.
        PositionLimit = 2, "a set-point beyond the limits of position, or (in cst) an axis too fast to stop before them";
        /// The set-point was above the velocity limit; in torque mode the axis was.
        VelocityLimit = 3, "a set-point beyond the limit of velocity, or (in cst) an axis that moves faster";
        /// A set-point stepped farther than allowed.
        Step = 4, "a set-point stepped farther than it may";
        /// The axis did not follow its set-point.
        FollowingError = 5, "the axis did not follow";
        /// The drive is in fault.
        Fault = 6, "the drive is in fault";
        /// A set-point, or what the axis reports, was NaN or infinite.
        NotFinite = 7, "a set-point, or what the axis reports, was no number";
        /// Homing failed: the drive reported a homing error.
        HomingError = 8, "the drive did not find its home: it shows a homing error";
        /// Homing failed: the drive did not finish in time.
        HomingTimedOut = 9, "the drive did not find its home in time";
        /// The axis exchanged no process data for too long: no inputs arrived, its outputs were not
        /// taken, or the host stalled.
        Outage = 10, "no process data of the axis (outage)";
        /// A stop signal is set.
        Interlock = 11, "a stop signal (interlock)";
        /// The permission to enable is missing.
        NotPermitted = 12, "the permission to enable is missing (interlock)";
        /// The cycle ends, or a request stops the axes, and the controller did not stop the axis.
        Ending = 13, "the controller did not stop the axis when requested";
        /// Another axis was stopped, and this one stops with it.
        OtherAxis = 14, "another axis was stopped, and this one with it";
        /// The SubDevice that holds its brake open takes no outputs any more.
        Brake = 15, "the output that holds its brake open is not taken: the brake may be shut";
        /// The drive reports positions that the axis cannot have reached: a broken encoder, or a
        /// wire that changes bytes.
        Implausible = 16, "its drive reports positions that the axis cannot have come to (implausible feedback)";
        /// Unreferenced: the drive restarted, and its encoder does not keep the position while it
        /// is without power.
        UnreferencedRestart = 17, "unreferenced: its drive restarted, and its encoder may have lost the position";
        /// Unreferenced: the drive restarted, and its position has changed by more than the axis
        /// can have moved.
        UnreferencedChange = 18, "unreferenced: its drive restarted, and its position changed by more than the axis can have moved";
        /// Unreferenced: the drive counts from elsewhere, since it was in Op.
        UnreferencedCount = 19, "unreferenced: its drive has changed the position that it counts from";
        /// Unreferenced: the drive reported a fault of its position sensor (error codes 0x7300 to
        /// 0x73FF).
        UnreferencedSensor = 20, "unreferenced: its drive reported a fault of its position sensor";
        /// Set-points beyond the written acceleration or jerk: clamped to them, and a stop after
        /// 100 ms.
        AccelerationLimit = 21, "set-points beyond the written limits of acceleration or jerk";
        /// Power, safe torque off, main power or a permission took its torque; its return moves
        /// nothing without a start request.
        AwaitsStart = 22, "power, STO or a permission was missing: the axis waits for a start request";
        /// Unreferenced at the start of the run: its position memory is missing (first start), or
        /// is of another drive, encoder or scale.
        UnreferencedMemory = 23, "unreferenced: its position memory is missing, or of another drive, encoder or scale";
        /// In csv and cst the axis moved against its command, or faster than it: no torque at once.
        Runaway = 24, "the axis moved against its command, or faster than it (runaway): its torque was taken off";
        /// The feedback of its brake does not show that the brake is open, which it should be.
        BrakeNotOpen = 25, "its brake is not open, as its feedback shows";
        /// The feedback of its brake does not show that the brake is closed, which it should be.
        BrakeNotClosed = 26, "its brake is not closed, as its feedback shows";
        /// Unreferenced at the start of the run: no position that reads alike is within the limits.
        UnreferencedStart = 27, "unreferenced: the position that its drive reports at the start may be beyond either of its limits";
        /// Unreferenced at the start of the run: its position memory says that the drive was
        /// enabled, or the position not known, when the last run ended or was killed.
        UnreferencedInUse = 28, "unreferenced: when the last run ended or was killed, its drive was enabled or its position not known";
        /// Unreferenced at the start of the run: its position is not the one of its memory.
        UnreferencedMoved = 29, "unreferenced: its position has changed since the last run";
        /// A jog moves it: no controller has it.
        Jog = 30, "a jog moves it";
        /// The torque was above the limit of a jog.
        JogTorque = 31, "its torque was above the limit of a jog";
        /// It is not homed, and has to be.
        NotHomed = 32, "not homed: no controller moves it before it is homed";
        /// It is outside its position limits by more than its braking distance and its tolerance.
        OutsideLimits = 33, "it is far outside its position limits: no controller moves it";
        /// Set-up mode: automatic motion is not permitted.
        SetUp = 34, "set-up mode: only a jog moves it";
        /// Set-up mode has ended while it was enabled.
        AfterSetUp = 35, "set-up mode has ended: a reset gives it back to its controller";
        /// An axis of the same chain is unreferenced, not homed, or too far outside its limits.
        Chain = 36, "its controller also moves an axis that is not ready";
        /// It is outside its position limits in a mode without jogs: every source moves it inwards
        /// only.
        InwardsOnly = 37, "it is outside its position limits: it can be moved inwards only";
    }
}

codes! {
    /// Digital input of the feedback of a brake.
    BrakeInput: u8 {
        /// On while the brake is open.
        Released = 1, "released";
        /// On while the brake is closed.
        Closed = 2, "closed";
    }
}

codes! {
    /// Step that stopped an axis after a quick stop that its drive did not carry out.
    QuickStopStep: u8 {
        /// Set-points to standstill, in Operation enabled.
        SetPoints = 1, "set-points to standstill";
        /// The halt bit of the controlword.
        Halt = 2, "a halt";
        /// Torque 0, in a mode of torques.
        NoTorque = 3, "torque 0";
        /// Nothing stopped it: brake and Disable voltage together.
        CutOff = 4, "brake and Disable voltage together";
    }
}

impl QuickStopStep {
    /// Clause on the drive, and on the step that stopped its axis instead.
    #[must_use]
    pub fn sentence(self) -> String {
        format!("its drive does not carry out the quick stop, it was stopped by {}", self.words())
    }
}

impl StopReason {
    /// True if it stays until it is acknowledged; an outage does unless
    /// [`AfterOutage::Resume`](crate::AfterOutage::Resume) says otherwise.
    #[must_use]
    pub const fn is_latched(self) -> bool {
        !matches!(
            self,
            Self::Stale
                | Self::NotPermitted
                | Self::Jog
                | Self::NotHomed
                | Self::OutsideLimits
                | Self::SetUp
                | Self::Chain
                | Self::InwardsOnly
        )
    }

    /// True if its drive may look for its home meanwhile.
    #[must_use]
    pub const fn lets_home(self) -> bool {
        self.is_unreferenced()
            || matches!(
                self,
                Self::Stale
                    | Self::Jog
                    | Self::NotHomed
                    | Self::OutsideLimits
                    | Self::Chain
                    | Self::InwardsOnly
            )
    }

    /// True if the feedback of its brake contradicts what the brake was commanded.
    #[must_use]
    pub const fn is_of_brake_feedback(self) -> bool {
        matches!(self, Self::BrakeNotOpen | Self::BrakeNotClosed)
    }

    /// True if the reported position of the axis may be wrong: no reset ends that.
    #[must_use]
    pub const fn is_unreferenced(self) -> bool {
        matches!(
            self,
            Self::UnreferencedRestart
                | Self::UnreferencedChange
                | Self::UnreferencedCount
                | Self::UnreferencedSensor
                | Self::UnreferencedMemory
                | Self::UnreferencedStart
                | Self::UnreferencedInUse
                | Self::UnreferencedMoved
        )
    }
}

/// True for a drive's error code (0x603F) that a lack of process data causes, and for an unknown
/// one (0).
#[must_use]
pub const fn is_communication_error(error_code: u16) -> bool {
    matches!(error_code, 0 | 0x7500..=0x75FF | 0x8100..=0x82FF)
}
