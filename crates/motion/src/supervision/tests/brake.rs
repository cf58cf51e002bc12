//! A stop because the feedback of a brake contradicts its command.

use super::*;

fn stopped_by(bench: &mut Bench, reason: StopReason) -> Supervised {
    let seen =
        Seen { feedback: bench.feedback, brake: Some(reason), fault: bench.fault, ..Seen::default() };
    let supervised = bench.supervisor.step(PERIOD, AxisSetpoint::default(), &seen);
    bench.feedback.position = supervised.setpoint.position;
    bench.feedback.velocity = supervised.setpoint.velocity;
    supervised
}

#[test]
fn an_axis_rests_before_it_gives_its_torque_away() {
    let mut bench = Bench::position(OnStale::Hold);
    bench.cruise(2.0, 100);
    let mut before = bench.feedback.velocity.0;
    assert!(before > 1.9);
    // 2 rad/s at 20 rad/s^2 take 100 cycles.
    for cycle in 0..95 {
        let supervised = stopped_by(&mut bench, StopReason::BrakeNotOpen);
        let velocity = supervised.setpoint.velocity.0;
        assert!(velocity < before && before - velocity < DECELERATION * PERIOD.0 + SLACK, "{cycle}");
        assert_eq!(supervised.intervention, None, "{cycle}");
        before = velocity;
    }
    let rests: Vec<_> = (0..20).map(|_| stopped_by(&mut bench, StopReason::BrakeNotOpen)).collect();
    assert_eq!(rests[19].intervention, Some(Intervention::Disable));
    assert_eq!(rests[19].reason, Some(StopReason::BrakeNotOpen));
}

#[test]
fn no_reset_counts_while_the_brake_contradicts() {
    let mut bench = Bench::position(OnStale::Hold);
    for _ in 0..50 {
        bench.supervisor.acknowledge();
        stopped_by(&mut bench, StopReason::BrakeNotClosed);
        assert_eq!(bench.supervisor.stopped(), Some(StopReason::BrakeNotClosed));
        bench.feedback.phase = AxisPhase::NotEnabled;
    }
    bench.ask(0.0);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::BrakeNotClosed), "until a reset");
    bench.supervisor.acknowledge();
    bench.ask(0.0);
    assert_eq!(bench.supervisor.stopped(), None);
}

#[test]
fn a_fault_and_a_brake_need_a_reset_each_can_take() {
    let mut bench = Bench::position(OnStale::Hold);
    bench.fault = true;
    stopped_by(&mut bench, StopReason::BrakeNotClosed);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::Fault));
    bench.fault = false;
    bench.feedback.phase = AxisPhase::NotEnabled;
    bench.supervisor.acknowledge();
    let supervised = stopped_by(&mut bench, StopReason::BrakeNotClosed);
    assert_eq!(supervised.reason, Some(StopReason::BrakeNotClosed), "its fault is reset, its brake not");
    bench.supervisor.acknowledge();
    bench.ask(0.0);
    assert_eq!(bench.supervisor.stopped(), None);
}
