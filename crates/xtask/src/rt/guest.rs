//! Virtual machine that boots, runs a script, and returns its results.
//!
//! The serial port is the kernel's console and goes to a log. A virtio port carries the results:
//! the output of the script, in sections that begin with a line `@ NAME`. Both files stay below
//! `target/rt`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::apt::Archive;
use super::kernel::Kernel;
use super::program;
use super::qmp::Qemu;

/// Contents of a virtual machine, and its hardware.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// Folder of logs and results.
    pub(super) folder: PathBuf,
    pub(super) qemu: Qemu,
    pub(super) kernel: Kernel,
    /// Path of a static busybox.
    pub(super) busybox: PathBuf,
    /// Path of our program; the experiments' is in the same folder.
    pub(super) onbeat: PathBuf,
}

/// Settings of one boot.
#[derive(Debug)]
pub(super) struct Boot<'a> {
    /// Name of the log and the results.
    pub(super) name: &'a str,
    /// CPUs, and the passing of their time, as options of qemu.
    pub(super) machine: &'a [&'a str],
    /// Kernel parameters besides the console.
    pub(super) parameters: &'a str,
    /// Shell script, run once everything is mounted.
    pub(super) script: &'a str,
    /// Files by path, besides the programs.
    pub(super) files: &'a [(&'a str, &'a [u8])],
    /// Wall-clock time after which it is killed.
    pub(super) longest: Duration,
}

/// Results of a virtual machine, by section.
#[derive(Debug)]
pub(super) struct Results(BTreeMap<String, String>);

impl Results {
    /// Text of a section, trimmed.
    ///
    /// # Errors
    /// There is no such section.
    pub(super) fn section(&self, name: &str) -> Result<&str, String> {
        self.0
            .get(name)
            .map(|text| text.trim())
            .ok_or_else(|| format!("the virtual machine's results have no `{name}`"))
    }

    /// JSON of a section.
    ///
    /// # Errors
    /// There is no such section, or it is not valid JSON.
    pub(super) fn json(&self, name: &str) -> Result<serde_json::Value, String> {
        let text = self.section(name)?;
        serde_json::from_str(text)
            .map_err(|error| format!("the virtual machine's `{name}`: {error}: {text}"))
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut sections: BTreeMap<String, String> = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines() {
            match line.strip_prefix("@ ") {
                Some(name) => current = name.trim().to_owned(),
                None => {
                    let section = sections.entry(current.clone()).or_default();
                    section.push_str(line);
                    section.push('\n');
                    continue;
                }
            }
            sections.entry(current.clone()).or_default();
        }
        Self(sections)
    }
}

impl Image {
    /// Boots, waits for the end, and returns the results.
    ///
    /// # Errors
    /// It did not start, or did not end in time or in order; with the kernel's last lines.
    pub(super) fn boot(&self, boot: &Boot<'_>) -> Result<Results, String> {
        self.boot_attended(boot, &mut |_| Ok(()))
    }

    /// The same; `attend` gets each section of the results as it begins.
    ///
    /// # Errors
    /// Also errors of `attend`.
    pub(super) fn boot_attended(
        &self,
        boot: &Boot<'_>,
        attend: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<Results, String> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}", boot.name));
        let (initramfs, log, results) = (file("cpio"), file("log"), file("out"));
        self.write_initramfs(boot, &initramfs)?;
        for stale in [&log, &results] {
            let _ = fs::remove_file(stale);
        }
        let mut qemu = self.qemu.command();
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        qemu.args(self.qemu.machine()).args(["-m", "768"]).args(boot.machine);
        qemu.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(&initramfs);
        // A panic ends the machine at once, which ends qemu.
        let console = self.qemu.console();
        qemu.args(["-append", &format!("console={console} quiet panic=-1 {}", boot.parameters)]);
        qemu.arg("-serial").arg(format!("file:{}", log.display()));
        qemu.arg("-chardev").arg(format!("file,id=results,path={}", results.display()));
        qemu.args(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=results"]);
        let mut attended = 0;
        let ended = run_until(&mut qemu, boot.longest, &mut || {
            let said = fs::read(&results).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let whole = said.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            for section in whole.filter_map(|line| line.strip_prefix("@ ")).skip(attended) {
                attended += 1;
                attend(section.trim())?;
            }
            Ok(())
        });
        let _ = fs::remove_file(&initramfs);
        let said = fs::read(&results).unwrap_or_default();
        let said = Results::parse(&String::from_utf8_lossy(&said));
        match ended {
            Ok(()) if said.section("end").is_ok() => Ok(said),
            Ok(()) => Err(format!("the virtual machine ended before its script{}", tail(&log, &results))),
            Err(why) => Err(format!("{why}{}", tail(&log, &results))),
        }
    }

    fn write_initramfs(&self, boot: &Boot<'_>, path: &Path) -> Result<(), String> {
        let mut archive = Archive::default();
        for directory in ["bin", "dev", "proc", "sys", "tmp", "run", "lib", "root"] {
            archive.directory(directory);
        }
        let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        archive.program("init", INIT.as_bytes());
        archive.program("bin/busybox", &read(&self.busybox)?);
        archive.program("bin/onbeat", &read(&self.onbeat)?);
        // At the same paths as on this machine: the programs look for them there.
        for library in program::libraries(&self.onbeat) {
            let path = library.to_string_lossy();
            archive.folders_of(path.trim_start_matches('/'));
            archive.program(path.trim_start_matches('/'), &read(&library)?);
        }
        archive.program("bin/onbeat-measure", &read(&self.onbeat.with_file_name("onbeat-measure"))?);
        archive.file("script", boot.script.as_bytes());
        for (number, module) in self.kernel.modules.iter().enumerate() {
            // Numbered in the order in which `init` loads them.
            archive.file(&format!("lib/{number:02}.ko"), &read(module)?);
        }
        for (path, content) in boot.files {
            archive.file(path, content);
        }
        fs::write(path, archive.finish()).map_err(|error| format!("{}: {error}", path.display()))
    }
}

const INIT: &str = include_str!("init.sh");

/// Runs qemu for at most `longest`, and looks meanwhile.
fn run_until(
    qemu: &mut Command,
    longest: Duration,
    look: &mut dyn FnMut() -> Result<(), String>,
) -> Result<(), String> {
    println!("$ {}", crate::command::words(qemu));
    let child = testkit::end_with_parent(qemu).stdin(Stdio::null()).spawn();
    let mut child = Machine(child.map_err(|error| format!("qemu does not start: {error}"))?);
    let deadline = Instant::now() + longest;
    loop {
        match child.0.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("qemu ended with {status}")),
            Ok(None) if Instant::now() < deadline => {
                look()?;
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(None) => {
                return Err(format!("the virtual machine did not finish within {} s", longest.as_secs()));
            }
            Err(error) => return Err(format!("qemu: {error}")),
        }
    }
}

/// Running qemu, ended when dropped.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Last lines of both files.
fn tail(log: &Path, results: &Path) -> String {
    let mut said = String::new();
    for (what, path) in [("results", results), ("kernel log", log)] {
        let text = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        said += &format!("\n--- end of its {what} ({})\n", path.display());
        said += &lines[lines.len().saturating_sub(25)..].join("\n");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_by_section() {
        let results = Results::parse("@ kernel\n6.1\n@ run\n{\"a\":\n1}\n@ end\n");
        assert_eq!(results.section("kernel"), Ok("6.1"));
        assert_eq!(results.json("run").map(|it| it["a"].clone()), Ok(1.into()));
        assert_eq!(results.section("end"), Ok(""));
        assert_eq!(results.section("x"), Err("the virtual machine's results have no `x`".into()));
    }
}
