//! A picture for programs: numbers as in the state, codes with their words.

use ipc::state::{Axis, Spread};
use ipc::words;
use serde_json::{Value, json};

use super::picture::{Picture, Standing};
use crate::words::signals;

/// Everything that is known.
pub(super) fn object(picture: &Picture) -> Value {
    let it = &picture.state;
    let refused_axis = (it.command.last_refused_axis != u16::MAX && it.command.last_refusal != 0)
        .then(|| picture.axis_name(usize::from(it.command.last_refused_axis)));
    let refused_signal = picture.description.signals.get(usize::from(it.command.last_refused_signal));
    let refused_signal = refused_signal.filter(|_| it.command.last_refusal != 0).map(|it| &it.name);
    let clamped_axis = picture.description.axes.get(usize::from(it.command.last_clamped_axis));
    let clamped_axis = clamped_axis.filter(|_| it.command.last_clamp != 0).map(|it| &it.name);
    json!({
        "cycle": it.cycle,
        "release_ns": it.release_ns,
        "read_ns": picture.read_ns,
        "ended": match &picture.standing {
            Standing::Ended(why, _) => Some(why),
            Standing::Live | Standing::Still(_) => None,
        },
        "bus": {
            "phase": words::bus_phase(it.bus.phase),
            "all_fresh": it.bus.all_fresh,
            "working_counter_errors": it.bus.working_counter_errors,
            "absent": it.bus.absent,
            "frames_sent": it.bus.frames_sent,
            "frames_accepted": it.bus.frames_accepted,
            "frames_lost": it.bus.frames_lost,
            "frames_rejected": it.bus.frames_rejected,
            "broken_cycles": it.bus.broken_cycles,
            "clock_difference_ns": it.bus.clock_difference_ns,
            "link_errors": it.bus.link_errors,
        },
        "clock": {
            "lock": words::clock_lock(it.clock.lock),
            "fresh": it.clock.fresh,
            "difference_ns": it.clock.difference_ns,
            "frame_phase_ns": it.clock.frame_phase_ns,
            "phase_error_ns": it.clock.phase_error_ns,
            "drift_ppb": it.clock.drift_ppb,
            "losses": it.clock.losses,
        },
        "timing": {
            "cycles": it.timing.cycles,
            "wakeup_latency_ns": spread(&it.timing.wakeup_latency),
            "period_jitter_ns": spread(&it.timing.period_jitter),
            "execution_ns": spread(&it.timing.execution),
            "overruns": it.timing.overruns,
            "skipped": it.timing.skipped,
            "last_overrun": (it.timing.overruns > 0).then_some(it.timing.last_overrun),
        },
        "command": {
            "sequence": it.command.sequence,
            "stamp_ns": it.command.stamp_ns,
            "freshness": it.command.freshness.to_string(),
            "accepted": it.command.accepted,
            "refused": it.command.refused,
            "last_refusal": words::refusal_of(&it.command, &picture.description),
            "last_refused_axis": refused_axis,
            "last_refused_signal": refused_signal,
            "clamped": it.command.clamped,
            "last_clamp": words::clamp(it.command.last_clamp),
            "last_clamped_axis": clamped_axis,
        },
        "control": {
            "active": it.control.active,
            "name": picture.description.controllers.get(usize::from(it.control.active)).map(|it| &it.name),
            "enabled": it.control.enabled,
            "trajectory": it.control.trajectory,
            "trajectory_status": it.control.trajectory_status.to_string(),
            "trajectory_elapsed_ns": it.control.trajectory_elapsed_ns,
        },
        "base": picture.description.base.as_ref().map(|_| json!({ "pose": it.base.pose, "twist": it.base.twist })),
        "axes": it.axes.iter().enumerate().map(|(place, axis)| axis_object(picture, place, axis)).collect::<Vec<_>>(),
        "signals": picture.description.signals.iter().zip(&it.signals).map(|(described, signal)| signals::object(described, signal)).collect::<Vec<_>>(),
        "signal_counters": { "clamped": it.signal_counters.clamped, "refused": it.signal_counters.refused },
        "description": picture.description,
        "diagnostics": picture.diagnostics,
    })
}

fn spread(it: &Spread) -> Value {
    json!({
        "last": it.last_ns, "minimum": it.minimum_ns, "maximum": it.maximum_ns, "mean": it.mean_ns,
    })
}

fn axis_object(picture: &Picture, place: usize, it: &Axis) -> Value {
    json!({
        "name": picture.axis_name(place),
        "state": words::drive_state(it.drive_state),
        "no_process_data_s": words::silent_for(it, &picture.description).map(|it| it.as_secs_f64()),
        "phase": words::phase(it.phase),
        "fresh": it.fresh,
        "homed": it.homed,
        "mode": words::mode(it.mode),
        "stop": words::stop(it.stop),
        "why": words::why_stopped(it, &picture.state, &picture.description),
        "interlock": words::interlock_name(it, &picture.description),
        "stopped_with": words::stopped_with(it, &picture.description),
        "position": it.position,
        "velocity": it.velocity,
        "effort": picture.effort(place),
        "target_position": it.target_position,
        "target_velocity": it.target_velocity,
        "target_effort": it.target_effort,
        "error": picture.target_and_error(place).and_then(|(_, error)| error),
    })
}
