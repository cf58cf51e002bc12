//! What must not happen to the machine when DDS goes wrong. RustDDS keeps what peers announce and send in pieces, and a
//! peer that floods it with nonsense makes it grow without bound. So this process has a bound of its own, ends when it is
//! reached, and is the first to go when the machine has no memory left: not the cycle.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Data of this process at most, bytes: some ten times what it takes with a robot of 60 axes.
const MOST_DATA: u64 = 1 << 30;

/// Sets both bounds. Neither needs a privilege, and the node works without them, too.
pub(crate) fn bound_memory() {
    let maximum = getrlimit(Resource::Data).maximum;
    let current = Some(maximum.map_or(MOST_DATA, |maximum| maximum.min(MOST_DATA)));
    let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// A thread of DDS that panics would leave a node that looks alive and hears nothing. It ends instead: what it asked for
/// goes stale, and whoever started it can start it again.
pub(crate) fn end_with_any_thread() {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("onbeat-ros2: a defect: {info}");
        std::process::exit(101);
    }));
}
