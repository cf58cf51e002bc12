//! Monitor of a running qemu: QMP, JSON in lines, on a Unix socket.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connection to the monitor.
#[derive(Debug)]
pub(super) struct Monitor(BufReader<UnixStream>);

impl Monitor {
    /// Connects to qemu's `-qmp unix:PATH,server=on,wait=off`.
    ///
    /// # Errors
    /// The socket has no listener, or that does not speak QMP.
    pub(super) fn connect(path: &Path) -> Result<Self, String> {
        let socket = UnixStream::connect(path).map_err(|error| format!("{}: {error}", path.display()))?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut monitor = Self(BufReader::new(socket));
        let greeting = monitor.line()?;
        if greeting["QMP"].is_null() {
            return Err(format!("qemu's monitor: expected a greeting, found {greeting}"));
        }
        monitor.command("qmp_capabilities", &json!({})).map(|_| monitor)
    }

    /// Plugs or pulls the cable of a network card, by the name of its netdev: the card has a
    /// carrier, or none.
    ///
    /// # Errors
    /// There is no such netdev.
    pub(super) fn set_link(&mut self, netdev: &str, up: bool) -> Result<(), String> {
        self.command("set_link", &json!({ "name": netdev, "up": up })).map(drop)
    }

    /// Path of the machine's own device of this type, as QOM has it.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn device(&mut self, kind: &str) -> Result<String, String> {
        let devices = self.command("qom-list", &json!({ "path": DEVICES }))?;
        let is_it = |device: &&Value| device["type"] == format!("child<{kind}>");
        let found = devices.as_array().and_then(|all| all.iter().find(is_it));
        let name = found.and_then(|device| device["name"].as_str());
        name.map(|name| format!("{DEVICES}/{name}")).ok_or_else(|| {
            format!("qemu's monitor: expected a device {kind} in {DEVICES}, found {devices}")
        })
    }

    fn command(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        let mut line = json!({ "execute": name, "arguments": arguments }).to_string();
        line.push('\n');
        self.0.get_mut().write_all(line.as_bytes()).map_err(failed)?;
        loop {
            let mut answer = self.line()?;
            if !answer["error"].is_null() {
                return Err(format!("qemu's monitor refuses {}: {}", line.trim(), answer["error"]));
            }
            // Events come in between.
            if !answer["return"].is_null() {
                return Ok(answer["return"].take());
            }
        }
    }

    fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.0.read_line(&mut line).map_err(failed)? {
            0 => Err("qemu's monitor: it has ended".into()),
            _ => serde_json::from_str(&line).map_err(failed),
        }
    }
}

/// Folder of the devices that a machine has by default.
const DEVICES: &str = "/machine/unattached";

fn failed(error: impl fmt::Display) -> String {
    format!("qemu's monitor: {error}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// A monitor that greets, reports an event before its second answer, refuses the third command,
    /// and lists devices.
    #[test]
    fn commands_are_answered_past_events_and_refusals_are_reported() {
        let path = std::env::temp_dir().join(format!("onbeat-qmp-test-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        let qemu = thread::spawn(move || {
            let (socket, _) = listener.accept().expect("a client");
            let mut lines = BufReader::new(&socket).lines();
            let say = |words: &str| (&socket).write_all(words.as_bytes()).expect("said");
            say("{\"QMP\":{}}\n");
            let mut asked = Vec::new();
            for answer in [
                "{\"return\":{}}\n",
                "{\"event\":\"X\"}\n{\"return\":{}}\n",
                "{\"error\":{\"desc\":\"no\"}}\n",
                "{\"return\":[{\"name\":\"device[0]\",\"type\":\"child<uart>\"},{\"name\":\"device[7]\",\"type\":\"child<pl061>\"}]}\n",
                "{\"return\":[]}\n",
            ] {
                asked.push(lines.next().expect("a command").expect("a line"));
                say(answer);
            }
            asked
        });
        let mut monitor = Monitor::connect(&path).expect("a greeting");
        assert_eq!(monitor.set_link("near0", false), Ok(()));
        let refused = monitor.set_link("near9", true).expect_err("an error");
        assert!(refused.contains("near9") && refused.contains("no"), "{refused}");
        assert_eq!(monitor.device("pl061"), Ok("/machine/unattached/device[7]".to_owned()));
        let none = monitor.device("pl061").expect_err("an error");
        assert!(none.contains("expected a device pl061"), "{none}");
        let asked = qemu.join().expect("five commands");
        let second: Value = serde_json::from_str(&asked[1]).expect("JSON");
        assert_eq!(second, json!({ "execute": "set_link", "arguments": { "name": "near0", "up": false } }));
        let _ = std::fs::remove_file(&path);
    }
}
