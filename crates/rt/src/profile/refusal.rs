//! Reasons for the system's refusals, and their remedies.

use std::path::{Path, PathBuf};
use std::{fs, io};

use machine::task;

use super::Scheduling;
use crate::scheduling::priority_limit;
use crate::sys::memory;

pub(super) fn scheduling(asked: Scheduling, error: &io::Error) -> String {
    match (asked, error.raw_os_error()) {
        (_, Some(libc::EPERM)) if may_schedule() => denied_to_root(asked),
        (Scheduling::Fifo { priority }, Some(libc::EPERM)) => format!(
            "EPERM: needs CAP_SYS_NICE or an rtprio limit of {priority} in /etc/security/limits.conf; \
             `ulimit -r` now says {}",
            priority_limit().map_or_else(|| "unlimited".into(), |limit| limit.to_string())
        ),
        (Scheduling::Fifo { .. }, Some(libc::EINVAL)) => "EINVAL: priorities are 1 to 99".into(),
        (Scheduling::Deadline { .. }, Some(libc::EPERM)) => "EPERM: needs CAP_SYS_NICE".into(),
        (Scheduling::Deadline { .. }, Some(libc::EINVAL)) => {
            "EINVAL: needs 1024 ns <= runtime <= deadline <= period".into()
        }
        (Scheduling::Deadline { .. }, Some(libc::EBUSY)) => {
            "EBUSY: the kernel's admission test: other reservations leave less than this; the sum may be \
             sched_rt_runtime_us / sched_rt_period_us of each CPU"
                .into()
        }
        _ => symbol(error),
    }
}

/// The traps in which the kernel refuses even root.
fn denied_to_root(asked: Scheduling) -> String {
    match asked {
        Scheduling::Deadline { .. } => "EPERM though privileged: SCHED_DEADLINE is for threads \
            that may run on every CPU of their scheduling domain; leave `cpu` out, or shield it \
            (C), which makes a separate domain"
            .into(),
        Scheduling::Fifo { .. } => match group_without_real_time() {
            Some((group, file)) => format!(
                "EPERM though privileged: the kernel has RT_GROUP_SCHED, and this process is in the control \
                 group {group}, which has no real-time budget ({file} is 0): write 950000 to it, move the \
                 process to the root group, or start the kernel with rt_group_sched=0",
            ),
            None if cgroup_v2_below_root() => "EPERM though privileged: a kernel with RT_GROUP_SCHED gives \
                 real-time priorities in the root control group only, and this process is in another: write \
                 its number to /sys/fs/cgroup/cgroup.procs, or start the kernel with rt_group_sched=0"
                .into(),
            None => "EPERM though privileged: a security policy (seccomp, an LSM, a user \
                namespace) prevents it"
            .into(),
        },
    }
}

/// The control group of this process and the file of its real-time budget, if that is 0.
fn group_without_real_time() -> Option<(String, String)> {
    let (mount, group) = own_group(&fs::read_to_string("/proc/self/cgroup").ok()?, "cpu")?;
    let folder = mount.join(group.trim_start_matches('/'));
    let file = folder.join("cpu.rt_runtime_us");
    let budget = fs::read_to_string(&file).ok()?;
    (budget.trim() == "0").then(|| (group, file.display().to_string()))
}

/// Mount point of the hierarchy with this controller, and the group in it that `/proc/self/cgroup`
/// names.
fn own_group(groups: &str, controller: &str) -> Option<(PathBuf, String)> {
    let group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|it| it == controller).then(|| path.to_owned())
    })?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, place, "cgroup", options, ..] = fields[..] else { return None };
        options.split(',').any(|option| option == controller).then(|| Path::new(place).to_owned())
    })?;
    Some((mount, group))
}

fn cgroup_v2_below_root() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().any(|line| line.strip_prefix("0::").is_some_and(|path| path != "/"))
}

pub(super) fn memory_lock(error: &io::Error) -> String {
    let limit =
        memory::lock_limit().map_or_else(|| "unlimited".into(), |limit| format!("{} KiB", limit / 1024));
    match error.raw_os_error() {
        Some(code @ (libc::EPERM | libc::ENOMEM | libc::EAGAIN)) => format!(
            "{}: needs CAP_IPC_LOCK or a larger memlock limit in /etc/security/limits.conf; \
             `ulimit -l` now says {limit}",
            match code {
                libc::EPERM => "EPERM",
                libc::ENOMEM => "ENOMEM",
                _ => "EAGAIN",
            }
        ),
        _ => symbol(error),
    }
}

pub(super) fn cpu(error: &io::Error) -> String {
    let allowed = task::affinity(task::current()).unwrap_or_default();
    format!("{}: this process may use CPUs {allowed}", symbol(error))
}

/// True if the thread may change policies of others, independent of its limits: CAP_SYS_NICE.
fn may_schedule() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    task::is_effective(&status, task::CAP_SYS_NICE)
}

fn symbol(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) => "EINVAL".into(),
        Some(libc::EPERM) => "EPERM".into(),
        Some(libc::EBUSY) => "EBUSY".into(),
        _ => error.to_string(),
    }
}

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant<T> {
    /// Not requested.
    NotRequested,
    /// Requested and granted.
    Granted(T),
    /// Requested and refused.
    Refused {
        /// The request.
        requested: T,
        /// Reason of the refusal, and what to do.
        reason: String,
    },
}

impl<T: Copy> Grant<T> {
    pub(crate) fn ask(requested: Option<T>, request: impl FnOnce(T) -> Result<(), String>) -> Self {
        match requested {
            None => Self::NotRequested,
            Some(requested) => match request(requested) {
                Ok(()) => Self::Granted(requested),
                Err(reason) => Self::Refused { requested, reason },
            },
        }
    }

    /// True if it was requested and granted.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        matches!(self, Self::Granted(_))
    }

    /// The request, whether granted or not.
    #[must_use]
    pub fn requested(&self) -> Option<T> {
        match self {
            Self::NotRequested => None,
            Self::Granted(requested) | Self::Refused { requested, .. } => Some(*requested),
        }
    }

    /// Refusals and their reasons.
    #[must_use]
    pub fn refusal(&self) -> Option<(T, &str)> {
        match self {
            Self::Refused { requested, reason } => Some((*requested, reason)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_capability_and_the_limit() {
        let reason = memory_lock(&io::Error::from_raw_os_error(libc::ENOMEM));
        assert!(reason.starts_with("ENOMEM: needs CAP_IPC_LOCK"), "{reason}");
        let reason =
            scheduling(Scheduling::Fifo { priority: 100 }, &io::Error::from_raw_os_error(libc::EINVAL));
        assert_eq!(reason, "EINVAL: priorities are 1 to 99");
    }
}
