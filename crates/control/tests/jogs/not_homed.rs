//! An axis in cst that has to be homed first.

use super::*;

// feature(axes): an axis in cst that has to be homed first is enabled, and no controller moves it before
#[test]
fn an_axis_in_cst_is_enabled_and_held_until_it_is_homed() {
    let bench = Bench { needs_homing: true, ..Bench::new(CyclicMode::Torque) };
    let ran = bench.run("not-homed-torque", 1_200, |visit| {
        let effort = Some(AxisTarget::Effort(NewtonMetres(0.05)));
        match visit.cycle {
            0..300 => visit.send(vec![effort, None], TIME_TO_LIVE),
            // A torque of the controller itself, whatever commands say.
            300..500 => visit.commands[0].setpoint.torque = NewtonMetres(0.05),
            600 => visit.commands[0].home = true,
            700..800 => visit.send(vec![effort, None], TIME_TO_LIVE),
            _ => {}
        }
    });
    assert!(ran.states.len() > 1_000, "it was never enabled");
    let stop = |cycle: usize| ran.states[cycle].axes[0].stop;
    assert_eq!([stop(100), stop(590)], [StopReason::NotHomed as u8; 2]);
    assert!(ran.states[..590].iter().all(|it| it.axes[0].drive_state == 5), "it stays enabled");
    assert_eq!(ran.refusals(), [(Refusal::NotHomed, 0)]);
    let begin = ran.states[0].axes[0].position;
    let away = |range: std::ops::Range<usize>| {
        let all = ran.states[range].iter().map(|it| (it.axes[0].position - begin).abs());
        all.fold(0.0, f64::max)
    };
    assert!(away(0..590) < 1e-4, "it moved by {} rad before it was homed", away(0..590));
    let homed = ran.states[690].axes[0].position;
    let moved = ran.states[690..].iter().map(|it| (it.axes[0].position - homed).abs());
    assert!(ran.states[690].axes[0].homed && moved.fold(0.0, f64::max) > 1e-2, "its controller has it");
}
