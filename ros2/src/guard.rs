//! Protection of the machine against a failing DDS. RustDDS stores the announcements and fragments
//! of its peers without bound. So the process has a separate memory limit, ends when it is reached
//! (the watchdog restarts it before), and is the first to be killed when the machine runs out of
//! memory, before the cycle. It also ends in time on request.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fs, io, thread};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Limit of this process's data, bytes: some ten times its need with a robot of 60 axes.
const MOST_DATA: u64 = 1 << 30;

/// Sets both limits. Neither needs a privilege, and the node also works without them.
pub(crate) fn bound_memory() {
    let maximum = getrlimit(Resource::Data).maximum;
    let current = Some(maximum.map_or(MOST_DATA, |maximum| maximum.min(MOST_DATA)));
    let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Ends the process when any thread panics. A node without a DDS thread would look alive and
/// receive nothing; when the process ends, its commands go stale, and its supervisor can restart
/// it.
pub(crate) fn end_with_any_thread() {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("onbeat-ros2: a defect: {info}");
        std::process::exit(101);
    }));
}

/// Time for an orderly end: commands and ports are given back to the cycle, the participant takes
/// its leave.
const LONGEST_END: Duration = Duration::from_millis(800);

/// Sets `stop` at a signal, and ends the process if it does not exit soon after: DDS waits for its
/// threads, whatever they are doing.
///
/// # Errors
/// No handler for a signal, or no thread.
pub(crate) fn end_when_told(stop: Arc<AtomicBool>) -> io::Result<()> {
    let wanted = [SIGHUP, SIGINT, SIGTERM];
    // At once, in the handler: the watchdog, too, looks at it before it starts the node again.
    for signal in wanted {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let _ = signals.forever().next();
        thread::sleep(LONGEST_END);
        std::process::exit(0);
    })?;
    Ok(())
}
