//! The journal of systemd, where standard error is its stream: priorities of lines, and entries
//! with fields.

use std::borrow::Cow;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::OnceLock;

use ipc::bus::Severity;
use serde_json::Value;

/// Fields of an entry in addition to its message: names in capital letters and underscores. A name
/// may occur several times.
pub(crate) type Fields = Vec<(String, String)>;

/// True if standard error is the journal's (`$JOURNAL_STREAM`, systemd.exec(5)).
pub(crate) fn is_there() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| {
        let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
        rustix::fs::fstat(io::stderr()).is_ok_and(|it| stream == format!("{}:{}", it.st_dev, it.st_ino))
    })
}

/// Lines with their priority before each, for the journal (sd-daemon(3)).
pub(crate) fn with_priority(severity: Severity, lines: &str) -> Cow<'_, str> {
    if !is_there() {
        return lines.into();
    }
    let priority = priority(severity);
    lines.lines().map(|line| format!("<{priority}>{line}")).collect::<Vec<_>>().join("\n").into()
}

/// Adds an event's values to fields, each as `ONBEAT_` and its name; a value that is there already
/// is not repeated.
pub(crate) fn add(fields: &mut Fields, event: &Value) {
    for (name, value) in event.as_object().into_iter().flatten() {
        // They are the priority and the message.
        if name == "severity" || name == "sentence" || value.is_null() {
            continue;
        }
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let field = (format!("ONBEAT_{}", name.to_ascii_uppercase()), text);
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
}

/// Sends an entry with fields; false where standard error is not the journal's, or it does not take
/// it.
pub(crate) fn send(severity: Severity, message: &str, fields: &Fields) -> bool {
    static SOCKET: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    let socket = SOCKET.get_or_init(|| connected(Path::new("/run/systemd/journal/socket")).ok());
    let Some(socket) = socket.as_ref().filter(|_| is_there()) else { return false };
    socket.send(&entry(severity, message, fields)).is_ok()
}

fn connected(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

/// An entry in the journal's native protocol: a field a line, or with its length before it where it
/// has several lines.
fn entry(severity: Severity, message: &str, fields: &Fields) -> Vec<u8> {
    let priority = priority(severity).to_string();
    let own = [("PRIORITY", priority.as_str()), ("SYSLOG_IDENTIFIER", "onbeat"), ("MESSAGE", message)];
    let others = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut bytes = Vec::new();
    for (name, value) in own.into_iter().chain(others) {
        bytes.extend(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend((value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// Level of syslog(3).
const fn priority(severity: Severity) -> u8 {
    match severity {
        Severity::Ok => 6,
        Severity::Warning => 4,
        Severity::Error => 3,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_has_its_message_and_the_values_of_its_events() {
        let mut fields = Fields::new();
        let event = |axis: u8| json!({ "severity": "error", "sentence": "held", "event": "axis_stopped", "cycle": 7, "axis": axis, "with": null });
        add(&mut fields, &event(0));
        add(&mut fields, &event(1));
        let text = String::from_utf8(entry(Severity::Error, "both are held", &fields)).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let expected = [
            "MESSAGE=both are held",
            "ONBEAT_AXIS=0",
            "ONBEAT_AXIS=1",
            "ONBEAT_CYCLE=7",
            "ONBEAT_EVENT=axis_stopped",
            "PRIORITY=3",
            "SYSLOG_IDENTIFIER=onbeat",
        ];
        assert_eq!(lines, expected);
        let two_lines = entry(Severity::Ok, "one\ntwo", &Fields::new());
        assert!(two_lines.ends_with(b"MESSAGE\n\x07\0\0\0\0\0\0\0one\ntwo\n"), "{two_lines:?}");
    }
}
