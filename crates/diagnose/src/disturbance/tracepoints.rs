//! The kernel's tracepoints that a watch needs.

use crate::trace::format::EventFormat;
use crate::trace::tracefs::Tracefs;

/// Formats of the tracepoints; their ids are what perf_event_open(2) knows them by.
#[derive(Clone, Debug)]
pub(super) struct Tracepoints {
    /// The thread is switched out.
    pub(super) switch: EventFormat,
    /// It enters a system call.
    pub(super) enter: EventFormat,
    /// It comes back from one.
    pub(super) exit: EventFormat,
    /// It enters `clock_nanosleep`; a kernel without `CONFIG_FTRACE_SYSCALLS` has none.
    pub(super) sleep: Option<EventFormat>,
}

impl Tracepoints {
    /// Reads them.
    ///
    /// # Errors
    /// tracefs cannot be opened, or a tracepoint is missing: a sentence.
    pub(super) fn read() -> Result<Self, String> {
        let tracefs = Tracefs::open().map_err(|error| error.to_string())?;
        let read = |event: &str, fields: &[&str]| {
            let text = tracefs.read(&format!("events/{event}/format"));
            let text = text.map_err(|error| format!("the kernel's tracepoint {event}: {error}"))?;
            let format = EventFormat::parse(&text);
            let format = format.ok_or_else(|| format!("the format of {event} is not understood"))?;
            match fields.iter().find(|name| format.field(name).is_none()) {
                None => Ok(format),
                Some(name) => Err(format!("tracepoint {event} has no field {name}")),
            }
        };
        Ok(Self {
            switch: read("sched/sched_switch", &["prev_state", "next_comm"])?,
            enter: read("raw_syscalls/sys_enter", &["id", "args"])?,
            exit: read("raw_syscalls/sys_exit", &["id"])?,
            sleep: read("syscalls/sys_enter_clock_nanosleep", &[]).ok(),
        })
    }
}
