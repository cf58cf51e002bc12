//! Axes as other processes see them, and the other way round.

use ethercat::cia402::{ModeOfOperation, Statusword};
use ipc::controller::Drive;
use ipc::state::{self, DrivePhase, DriveState, QuickStopStep, StopReason};
use motion::{AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond};

use crate::controller::AxisReport;

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
    }
}

/// Report of an axis for a controller process, with the torque of its drive.
pub(crate) fn report(axis: &state::Axis, drive: &Drive) -> AxisReport {
    let Drive { statusword, error_code, homing, was_enabled, missed, waits, counts } = *drive;
    AxisReport {
        state: DriveState::from_code(axis.drive_state),
        feedback: AxisFeedback {
            position: Radians(axis.position),
            velocity: RadiansPerSecond(axis.velocity),
            torque: NewtonMetres(axis.effort),
            phase: match DrivePhase::from_code(axis.phase) {
                Some(DrivePhase::Holding) => AxisPhase::HoldingAt(Radians(axis.target_position)),
                Some(DrivePhase::Following) => AxisPhase::Following,
                Some(DrivePhase::NotEnabled) | None => AxisPhase::NotEnabled,
            },
            fresh: axis.fresh,
        },
        homed: axis.homed,
        homed_by_hand: 0,
        moved: None,
        ended: axis.ended,
        homing,
        stop: StopReason::from_code(axis.stop),
        quick_stop: QuickStopStep::from_code(axis.quick_stop),
        overshoot: None,
        held: 0,
        stopped_with: axis.stopped_with.map(usize::from),
        // Its level is the cycle's: a controller needs the reason alone.
        interlock: None,
        brake: None,
        stalled: axis.stalled,
        memory_error: 0,
        measures_torque: true,
        mode: (axis.mode != 0).then(|| ModeOfOperation::from_number(axis.mode)),
        statusword: Statusword(statusword),
        error_code,
        missed,
        waits,
        was_enabled,
        counts,
        absent: false,
        ignored: None,
    }
}
