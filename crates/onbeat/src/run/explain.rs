//! Start of the explanation of late cycles.

use std::thread;
use std::time::Duration;

use control::profile;
use diagnose::{Explainer, Settings};
use machine::cpus::Cpus;
use machine::task;
use robot::RobotConfig;
use types::time::nanoseconds;

/// Starts to record for explanations: to be done before the cycle starts.
pub(super) fn start(robot: &RobotConfig, late_above: Duration) -> Explainer {
    Explainer::start(Settings {
        late_above_ns: nanoseconds(late_above),
        period_ns: nanoseconds(robot.cycle.period),
        waits_for_reply: robot.cycle.frame_order == robot::FrameOrder::WaitForReply,
        cpu: profile::cpu(&robot.cycle.real_time_profile()).filter(|&cpu| may_be_bound_to(cpu)),
    })
}

/// True if the cycle will get the CPU it asks for: otherwise it may run on any, and all are recorded. A thread tries it,
/// so that this one stays where it is.
fn may_be_bound_to(cpu: usize) -> bool {
    let bind = move || task::set_affinity(task::current(), &Cpus::one(cpu)).is_ok();
    thread::spawn(bind).join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_the_cycle_cannot_get_is_not_the_one_that_is_recorded() {
        let mine = task::affinity(task::current()).unwrap();
        assert!(mine.last().is_some_and(may_be_bound_to));
        assert!(!may_be_bound_to(4095));
        assert_eq!(task::affinity(task::current()).unwrap(), mine, "this thread stays where it is");
    }
}
