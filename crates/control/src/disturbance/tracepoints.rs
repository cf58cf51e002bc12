//! The kernel's tracepoints that a watch needs: their numbers and the places of their fields, as tracefs tells them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Findings.
#[derive(Clone, Debug)]
pub(super) struct Tracepoints {
    /// The thread is switched out.
    pub(super) switch: Tracepoint,
    /// It enters a system call.
    pub(super) enter: Tracepoint,
    /// It comes back from one.
    pub(super) exit: Tracepoint,
    /// It enters `clock_nanosleep`; a kernel without `CONFIG_FTRACE_SYSCALLS` has none.
    pub(super) sleep: Option<Tracepoint>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracepoint {
    /// Number that perf_event_open(2) knows it by.
    pub(super) id: u64,
    /// Name, offset and size of each field.
    fields: Vec<(String, usize, usize)>,
}

impl Tracepoints {
    /// Reads them.
    ///
    /// # Errors
    /// tracefs cannot be opened, or a tracepoint is missing: a sentence.
    pub(super) fn read() -> Result<Self, String> {
        let (root, _mount) = open().map_err(|error| {
            format!("tracefs cannot be opened ({error}): it needs root, and a kernel with CONFIG_TRACING")
        })?;
        let read = |event: &str| {
            let folder = root.join("events").join(event);
            let text = fs::read_to_string(folder.join("format"));
            let text = text.map_err(|error| format!("the kernel's tracepoint {event}: {error}"))?;
            Tracepoint::parse(&text).ok_or_else(|| format!("the format of {event} is not understood"))
        };
        Ok(Self {
            switch: read("sched/sched_switch")?.with(&["prev_state", "next_comm"])?,
            enter: read("raw_syscalls/sys_enter")?.with(&["id", "args"])?,
            exit: read("raw_syscalls/sys_exit")?.with(&["id"])?,
            sleep: read("syscalls/sys_enter_clock_nanosleep").ok(),
        })
    }
}

impl Tracepoint {
    /// From the text of a `format` file.
    fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let field = |line: &str| {
            let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            let number = |name: &str| {
                let rest = rest.split(';').find_map(|part| part.trim().strip_prefix(name))?;
                rest.parse::<usize>().ok()
            };
            // "char next_comm[16]": the name is the last word, without its brackets.
            let name = declaration.split_whitespace().next_back()?.split('[').next()?;
            Some((name.to_owned(), number("offset:")?, number("size:")?))
        };
        Some(Self { id, fields: text.lines().filter_map(field).collect() })
    }

    fn with(self, names: &[&str]) -> Result<Self, String> {
        match names.iter().find(|name| self.field(name).is_none()) {
            None => Ok(self),
            Some(name) => Err(format!("tracepoint {} has no field {name}", self.id)),
        }
    }

    fn field(&self, name: &str) -> Option<(usize, usize)> {
        self.fields.iter().find(|(it, ..)| it == name).map(|&(_, offset, size)| (offset, size))
    }

    /// The bytes of a field in a record.
    pub(super) fn bytes<'a>(&self, record: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let (offset, size) = self.field(name)?;
        record.get(offset..offset + size)
    }

    /// A field of 4 or 8 bytes, as a signed number.
    pub(super) fn number(&self, record: &[u8], name: &str) -> Option<i64> {
        let bytes = self.bytes(record, name)?;
        match bytes.len() {
            8 => Some(i64::from_ne_bytes(bytes.try_into().ok()?)),
            4 => Some(i32::from_ne_bytes(bytes.try_into().ok()?).into()),
            _ => None,
        }
    }
}

/// tracefs where it is mounted, or else opened detached, without a mount point: gone with the descriptor.
fn open() -> io::Result<(PathBuf, Option<OwnedFd>)> {
    const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    if let Some(root) = MOUNTED.iter().find(|root| Path::new(root).join("events").is_dir()) {
        return Ok((root.into(), None));
    }
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;

print fmt: \"prev_comm=%s\", REC->prev_comm
";

    #[test]
    fn a_format_is_read_and_a_record_by_it() {
        let tracepoint = Tracepoint::parse(SWITCH).unwrap();
        assert_eq!(tracepoint.id, 372);
        let record: Vec<u8> = (0..40).collect();
        assert_eq!(tracepoint.number(&record, "prev_pid"), Some(0x1b1a_1918));
        assert_eq!(tracepoint.number(&record, "prev_state"), Some(0x2726_2524_2322_2120));
        assert_eq!(tracepoint.bytes(&record, "prev_comm"), Some(&record[8..24]));
        assert_eq!(tracepoint.number(&record[..36], "prev_state"), None, "a record cut short");
        assert_eq!(tracepoint.number(&record, "next_comm"), None);
        assert!(tracepoint.with(&["next_comm"]).unwrap_err().contains("no field next_comm"));
        for text in ["", "ID: x", "name: a\nformat:\n"] {
            assert_eq!(Tracepoint::parse(text), None, "{text:?}");
        }
    }
}
