//! Any text as a task set, analysed with a bounded effort: no panic, no response shorter than its
//! execution time, and on a processor reported as schedulable no response is too long.
#![no_main]

use libfuzzer_sys::fuzz_target;
use robot::task_set::{Decided, parse};
use schedulability::sensitivity::{Growing, slack};
use schedulability::timeline::Timeline;
use schedulability::sensitivity::meets_deadlines;
use schedulability::{
    Effort, Policy, ResponseTime, TaskSet, assignment, earliest_deadline, fixed_priority,
};

/// A tenth of a second at most, instrumented as this is.
const STEPS: u64 = 50_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let mut set = match parse(text, "tasks.toml", Decided::default()) {
        Ok(set) => set,
        Err(error) => return assert!(error.to_string().starts_with("tasks.toml:"), "{error}"),
    };
    // As many as can be looked at in a moment.
    set.tasks.truncate(8);
    if set.check().is_err() {
        return;
    }
    let effort = Effort::new(STEPS);
    let responses: Vec<_> = (0..set.tasks.len()).map(|place| response(&set, place, &effort)).collect();
    for (task, response) in set.tasks.iter().zip(&responses) {
        assert!(response.ns().is_none_or(|ns| ns >= task.wcet_ns), "{task:?} {response:?}");
        let proven = meets_deadlines(&set, task.cpu, &Effort::new(STEPS));
        let late =
            response.ns().is_some_and(|ns| ns > task.deadline_ns) || *response == ResponseTime::Unbounded;
        // A reservation is admitted as a whole.
        assert!(!proven || !late || set.policy == Policy::Reservation, "{response:?} of {set:?}");
        let _ = Timeline::of(&set, task.cpu, None, 200);
    }
    let _ = slack(&set, Growing::System, &Effort::new(STEPS));
    if assignment::audsley(&mut set, &Effort::new(STEPS)) {
        assert!(set.tasks.iter().all(|task| task.priority > 0), "{set:?}");
    }
});

fn response(set: &TaskSet, place: usize, effort: &Effort) -> ResponseTime {
    match set.policy {
        Policy::FixedPriority => fixed_priority::response_time(set, place, effort),
        Policy::EarliestDeadline | Policy::Reservation => {
            earliest_deadline::response_time(set, place, effort)
        }
    }
}
