//! Scheduling of the calling thread: policy, timer slack.

use std::fmt;
use std::io;
use std::mem;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use rustix::thread::set_current_timer_slack;
pub use types::Scheduling;
use types::time::nanoseconds;

/// Gives the calling thread this policy.
///
/// # Errors
/// EPERM without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`, and for a reservation of a thread
/// that is bound to a part of its scheduling domain; EINVAL for a priority outside 1 to 99, and
/// unless 1024 ns <= runtime <= deadline <= period; EBUSY if less is left than the reservation
/// needs.
pub fn schedule(scheduling: Scheduling) -> io::Result<()> {
    Attributes::from(scheduling).apply()
}

/// Gives the calling thread the ordinary policy: a thread that serves the real-time side must not
/// inherit its priority.
///
/// # Errors
/// None that is known: every thread may become ordinary.
pub fn set_ordinary() -> io::Result<()> {
    // SAFETY: an all-zero sched_param is valid: it holds integers only.
    let parameters: libc::sched_param = unsafe { mem::zeroed() };
    // SAFETY: `parameters` is valid and outlives the call; 0 names the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) }.into())
}

/// Scheduling of the calling thread.
#[derive(Clone, Copy)]
pub struct Attributes(libc::sched_attr);

/// Scheduling of the calling thread.
///
/// # Errors
/// ENOSYS on a kernel without sched_getattr(2).
pub fn attributes() -> io::Result<Attributes> {
    let Attributes(mut attributes) = Attributes::blank();
    let size = attributes.size;
    // SAFETY: `attributes` is valid to write to for the size given; 0 names the calling thread; no
    // flags.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) })?;
    Ok(Attributes(attributes))
}

impl From<Scheduling> for Attributes {
    fn from(scheduling: Scheduling) -> Self {
        let Self(mut attributes) = Self::blank();
        match scheduling {
            Scheduling::Fifo { priority } => {
                attributes.sched_policy = libc::SCHED_FIFO as u32;
                attributes.sched_priority = priority.into();
            }
            Scheduling::Deadline { runtime, deadline, period } => {
                attributes.sched_policy = libc::SCHED_DEADLINE as u32;
                attributes.sched_runtime = nanoseconds(runtime);
                attributes.sched_deadline = nanoseconds(deadline);
                attributes.sched_period = nanoseconds(period);
            }
        }
        Self(attributes)
    }
}

impl Attributes {
    fn blank() -> Self {
        // SAFETY: an all-zero sched_attr is valid: it holds integers only.
        let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
        attributes.size = size_of_val(&attributes) as u32;
        Self(attributes)
    }

    /// Schedules the calling thread so.
    ///
    /// # Errors
    /// As [`schedule`].
    pub fn apply(&self) -> io::Result<()> {
        let Self(attributes) = self;
        // SAFETY: `attributes` is valid, says its own size, and outlives the call, which only reads
        // it; 0 names the calling thread; no flags.
        check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) })
    }

    /// True if it runs before ordinary threads.
    pub fn is_real_time(&self) -> bool {
        let policy = self.0.sched_policy as libc::c_int;
        matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }

    fn parts(&self) -> (u32, u64, i32, u32, u64, u64, u64) {
        let it = &self.0;
        (
            it.sched_policy,
            it.sched_flags,
            it.sched_nice,
            it.sched_priority,
            it.sched_runtime,
            it.sched_deadline,
            it.sched_period,
        )
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = &self.0;
        let time = Duration::from_nanos;
        match it.sched_policy as libc::c_int {
            libc::SCHED_OTHER => f.write_str("SCHED_OTHER"),
            libc::SCHED_FIFO => write!(f, "SCHED_FIFO {}", it.sched_priority),
            libc::SCHED_RR => write!(f, "SCHED_RR {}", it.sched_priority),
            libc::SCHED_BATCH => f.write_str("SCHED_BATCH"),
            libc::SCHED_IDLE => f.write_str("SCHED_IDLE"),
            libc::SCHED_DEADLINE if it.sched_deadline == it.sched_period => {
                write!(f, "SCHED_DEADLINE {:?} in {:?}", time(it.sched_runtime), time(it.sched_period))
            }
            libc::SCHED_DEADLINE => {
                let (runtime, deadline, period) =
                    (time(it.sched_runtime), time(it.sched_deadline), time(it.sched_period));
                write!(f, "SCHED_DEADLINE {runtime:?} within {deadline:?} in {period:?}")
            }
            other => write!(f, "scheduling policy {other}"),
        }
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attributes").field(&self.parts()).finish()
    }
}

/// Slack by which the kernel may delay this thread's ordinary sleeps to save wake-ups, in
/// nanoseconds. Real-time policies ignore it; without one it is 50 us by default.
pub fn set_timer_slack(nanoseconds: u32) {
    let slack = NonZeroU64::new(nanoseconds.into()).unwrap_or(NonZeroU64::MIN);
    // It cannot fail for a positive one.
    let _ = set_current_timer_slack(Some(slack));
}

/// The highest `SCHED_FIFO` priority an unprivileged process gets (`ulimit -r`); `None`: no limit.
pub fn priority_limit() -> Option<u64> {
    getrlimit(Resource::Rtprio).current
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
