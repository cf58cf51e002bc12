//! Monitor of a running qemu: QMP, JSON in lines, on a Unix socket.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::command;
use crate::setup::QEMU_ARM;

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

pub(super) const QEMU: &str = "qemu-system-x86_64";

/// qemu.
#[derive(Clone, Debug)]
pub(super) enum Qemu {
    /// The one that is installed.
    Installed,
    /// The one for ARM's machines that is installed.
    Arm,
    /// One of unpacked packages, with all they depend on, below this folder.
    Below(PathBuf),
}

impl Qemu {
    /// Command that starts it.
    pub(super) fn command(&self) -> Command {
        let root = match self {
            Self::Installed => return Command::new(QEMU),
            Self::Arm => return Command::new(QEMU_ARM),
            Self::Below(root) => root,
        };
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        // Its C library is newer than this machine's: its own loader starts it.
        let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(&libraries).arg(root.join("usr/bin").join(QEMU));
        for data in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
            command.arg("-L").arg(root.join(data));
        }
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command
    }

    /// The machine that it emulates, as options.
    pub(super) const fn machine(&self) -> [&str; 4] {
        match self {
            Self::Installed | Self::Below(_) => ["-machine", "q35", "-cpu", "max"],
            // The processor of a Raspberry Pi 4.
            Self::Arm => ["-machine", "virt", "-cpu", "cortex-a72"],
        }
    }

    /// Name of its first serial port.
    pub(super) const fn console(&self) -> &str {
        match self {
            Self::Installed | Self::Below(_) => "ttyS0",
            Self::Arm => "ttyAMA0",
        }
    }

    /// First line that it says of itself.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn version(&self) -> Result<String, String> {
        let said = command::output(self.command().arg("--version"))?;
        Ok(said.lines().next().unwrap_or_default().to_owned())
    }

    /// True if it emulates such a device. The list of all devices would need modules that are not
    /// installed.
    pub(super) fn has_device(&self, name: &str) -> bool {
        let said = command::output(self.command().args(["-device", &format!("{name},help")]));
        said.is_ok_and(|said| said.contains(&format!("{name} options")))
    }
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
