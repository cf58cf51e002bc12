//! Axes as other processes see them, and the other way round.

use ethercat::cia402::{ModeOfOperation, Statusword};
use ipc::state::{self, AxisDetails, DrivePhase, DriveState, InputLevel, QuickStopStep, StopReason};
use motion::{AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond};

use crate::controller::{AxisReport, BrakeInputCause, IgnoredSetpoint, InterlockCause};

/// An axis as readers see it.
pub(crate) fn shown(report: &AxisReport, sent: AxisSetpoint) -> state::Axis {
    state::Axis {
        drive_state: report.state.map_or(0, |state| state as u8),
        phase: match report.feedback.phase {
            AxisPhase::NotEnabled => DrivePhase::NotEnabled,
            AxisPhase::HoldingAt(_) => DrivePhase::Holding,
            AxisPhase::Following => DrivePhase::Following,
        } as u8,
        fresh: report.feedback.fresh,
        homed: report.homed,
        ended: report.ended,
        stop: report.stop.map_or(0, |stop| stop as u8),
        quick_stop: report.quick_stop.map_or(0, |step| step as u8),
        stopped_with: report.stopped_with.and_then(|axis| u16::try_from(axis).ok()),
        interlock: report.interlock.and_then(|it| u16::try_from(it.interlock).ok()),
        brake_input: report.brake.and_then(|it| u16::try_from(it.place).ok()),
        brake_level: report.brake.map_or(0, |it| it.level as u8),
        error_code: report.error_code,
        stalled: report.stalled,
        memory_error: report.memory_error,
        mode: report.mode.map_or(0, ModeOfOperation::number),
        position: report.feedback.position.0,
        velocity: report.feedback.velocity.0,
        effort: report.feedback.torque.0,
        target_position: sent.position.0,
        target_velocity: sent.velocity.0,
        target_effort: sent.torque.0,
        details: details(report),
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

/// Report of an axis as its state has it: the same as before [`shown`].
pub(crate) fn report(axis: &state::Axis) -> AxisReport {
    let details = &axis.details;
    let level = |code| InputLevel::from_code(code).unwrap_or(InputLevel::Unknown);
    AxisReport {
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
