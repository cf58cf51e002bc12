//! Axes as other processes see them, and the other way round.

use ethercat::cia402::{ModeOfOperation, Statusword};
use ipc::state::{self, AxisDetails, DrivePhase, DriveState, InputLevel, QuickStopStep, StopReason};
use motion::{AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond};

use crate::controller::{AxisReport, BrakeInputCause, IgnoredSetpoint, InterlockCause};

impl AxisReport {
    /// The axis as readers see it, with the set-point that was sent to its drive.
    pub(crate) fn shown(&self, sent: AxisSetpoint) -> state::Axis {
        state::Axis {
            drive_state: self.state.map_or(0, |state| state as u8),
            phase: match self.feedback.phase {
                AxisPhase::NotEnabled => DrivePhase::NotEnabled,
                AxisPhase::HoldingAt(_) => DrivePhase::Holding,
                AxisPhase::Following => DrivePhase::Following,
            } as u8,
            fresh: self.feedback.fresh,
            homed: self.homed,
            ended: self.ended,
            stop: self.stop.map_or(0, |stop| stop as u8),
            quick_stop: self.quick_stop.map_or(0, |step| step as u8),
            stopped_with: self.stopped_with.and_then(|axis| u16::try_from(axis).ok()),
            interlock: self.interlock.and_then(|it| u16::try_from(it.interlock).ok()),
            brake_input: self.brake.and_then(|it| u16::try_from(it.place).ok()),
            brake_level: self.brake.map_or(0, |it| it.level as u8),
            error_code: self.error_code,
            stalled: self.stalled,
            memory_error: self.memory_error,
            mode: self.mode.map_or(0, ModeOfOperation::number),
            position: self.feedback.position.0,
            velocity: self.feedback.velocity.0,
            effort: self.feedback.torque.0,
            target_position: sent.position.0,
            target_velocity: sent.velocity.0,
            target_effort: sent.torque.0,
            details: details(self),
        }
    }

    /// The report of which this is the state: the same as before [`AxisReport::shown`].
    pub(crate) fn of(axis: &state::Axis) -> Self {
        let details = &axis.details;
        let level = |code| InputLevel::from_code(code).unwrap_or(InputLevel::Unknown);
        Self {
            state: DriveState::from_code(axis.drive_state),
            feedback: AxisFeedback {
                position: Radians(axis.position),
                velocity: RadiansPerSecond(axis.velocity),
                torque: NewtonMetres(axis.effort),
                phase: match DrivePhase::from_code(axis.phase) {
                    Some(DrivePhase::Holding) => AxisPhase::HoldingAt(Radians(details.holds_at)),
                    Some(DrivePhase::Following) => AxisPhase::Following,
                    Some(DrivePhase::NotEnabled) | None => AxisPhase::NotEnabled,
                },
                fresh: axis.fresh,
            },
            measures_torque: details.measures_torque,
            homed: axis.homed,
            homed_by_hand: details.homed_by_hand,
            homing: details.is_homing,
            stop: StopReason::from_code(axis.stop),
            stopped_with: axis.stopped_with.map(usize::from),
            held: details.held,
            quick_stop: QuickStopStep::from_code(axis.quick_stop),
            overshoot: details.overshoot.map(Radians),
            interlock: axis.interlock.map(|interlock| InterlockCause {
                interlock: interlock.into(),
                level: level(details.interlock_level),
                permits: details.interlock_permits,
            }),
            brake: axis
                .brake_input
                .map(|place| BrakeInputCause { place: place.into(), level: level(axis.brake_level) }),
            stalled: axis.stalled,
            ended: axis.ended,
            moved: details.moved.map(|it| it.map(Radians)),
            memory_error: axis.memory_error,
            statusword: Statusword(details.statusword),
            mode: details.is_mode_known.then(|| ModeOfOperation::from_number(axis.mode)),
            error_code: axis.error_code,
            missed: details.missed,
            waits: details.waits,
            was_enabled: details.was_enabled,
            counts: details.counts,
            absent: details.is_absent,
            ignored: details.ignored.map(|(mode, given)| IgnoredSetpoint { mode, given }),
        }
    }
}

/// The part of a report that its other words lack.
fn details(report: &AxisReport) -> AxisDetails {
    AxisDetails {
        statusword: report.statusword.0,
        is_mode_known: report.mode.is_some(),
        measures_torque: report.measures_torque,
        is_absent: report.absent,
        is_homing: report.homing,
        was_enabled: report.was_enabled,
        homed_by_hand: report.homed_by_hand,
        missed: report.missed,
        waits: report.waits,
        held: report.held,
        counts: report.counts,
        holds_at: match report.feedback.phase {
            AxisPhase::HoldingAt(position) => position.0,
            AxisPhase::NotEnabled | AxisPhase::Following => 0.0,
        },
        overshoot: report.overshoot.map(|it| it.0),
        moved: report.moved.map(|it| it.map(|it| it.0)),
        interlock_level: report.interlock.map_or(0, |it| it.level as u8),
        interlock_permits: report.interlock.is_some_and(|it| it.permits),
        ignored: report.ignored.map(|it| (it.mode, it.given)),
    }
}
