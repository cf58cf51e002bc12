//! The emulator: this machine's, or one below a folder.

use std::path::PathBuf;
use std::process::Command;

use crate::command;
use crate::setup::QEMU_ARM;

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
