//! A fresh Debian with the package in it: installed, used, upgraded, removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::booted;
use super::debian::{self, Packed};
use super::target::{Programs, TARGETS, of_processor};
use super::{Pages, copy, write};
use crate::command;
use crate::report::Outcome;

/// Packs the programs that the tests were built with, and tries that package.
pub(crate) fn test(root: &Path) -> Outcome {
    if let Some(lack) = lack() {
        return Outcome::Skipped(lack);
    }
    let folder = root.join("target/debian");
    let target = of_processor(std::env::consts::ARCH).unwrap_or(&TARGETS[0]);
    let packed = crate::tests::build_programs(root)
        .and_then(|()| stripped(&Programs::in_folder(&root.join("target/debug")), &folder))
        .and_then(|programs| {
            let pages = Pages::make(&programs, &folder)?;
            debian::make(root, &folder, target, &programs, &pages, Packed::Quickly)
        });
    packed.map_or_else(Outcome::Failed, |package| tried(root, &package))
}

/// Installs a package in a fresh Debian, uses it, and removes it.
pub(super) fn tried(root: &Path, package: &Path) -> Outcome {
    if let Some(lack) = lack() {
        return Outcome::Skipped(lack);
    }
    let fresh = match fresh(&root.join("target/debian")) {
        Ok(fresh) => fresh,
        Err(lack) => return Outcome::Skipped(lack),
    };
    let outcome = copy(package, &fresh.join("onbeat.deb"))
        .and_then(|()| inside(&fresh, include_str!("installed.sh")))
        .and_then(|()| verify_unit(&fresh))
        .and_then(|()| booted::test(&fresh))
        .and_then(|()| inside(&fresh, include_str!("removed.sh")));
    let _ = fs::remove_dir_all(&fresh);
    outcome.map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Programs that this machine lacks for it.
fn lack() -> Option<String> {
    if !command::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
        return Some("needs root".to_owned());
    }
    let needed = [("debootstrap", "--version"), ("dpkg-deb", "--version"), ("unshare", "--version")];
    let missing = needed.iter().find(|(program, probe)| !command::works(program, &[probe]));
    missing.map(|(program, _)| format!("no {program}"))
}

/// Programs without their lines, which would make a package of gigabytes.
fn stripped(programs: &Programs, folder: &Path) -> Result<Programs, String> {
    let small = folder.join("programs");
    for program in programs.each() {
        let to = small.join(program.file_name().unwrap_or_default());
        copy(program, &to)?;
        command::output(Command::new("strip").arg("--strip-debug").arg(&to))?;
    }
    Ok(Programs::in_folder(&small))
}

/// A copy of a Debian that debootstrap has made, of this machine's release: the tests' programs
/// need its C library.
fn fresh(folder: &Path) -> Result<PathBuf, String> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.ok_or("this is no Debian: /etc/os-release has no VERSION_CODENAME")?;
    let base = folder.join(name);
    if !base.join("complete").exists() || !base.join("sbin/init").exists() {
        let _ = fs::remove_dir_all(&base);
        let mut bootstrap = Command::new("debootstrap");
        bootstrap
            .args(["--variant=minbase", "--include=libcap2-bin,systemd,systemd-sysv", name])
            .arg(&base);
        println!("installing Debian {name} below target (debootstrap)");
        command::output(&mut bootstrap)?;
        fs::write(base.join("complete"), "").map_err(|error| format!("{}: {error}", base.display()))?;
    }
    let fresh = folder.join("fresh");
    let _ = fs::remove_dir_all(&fresh);
    command::output(Command::new("cp").args(["-a", "--reflink=auto"]).arg(&base).arg(&fresh))?;
    fs::remove_file(fresh.join("complete")).map_err(|error| format!("{}: {error}", fresh.display()))?;
    Ok(fresh)
}

/// Runs a script in it, without a network and in a separate process namespace.
fn inside(fresh: &Path, script: &str) -> Result<(), String> {
    write(&fresh.join("test.sh"), script)?;
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "chroot"]).arg(fresh);
    shell.args(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "sh", "/test.sh"]);
    command::run(&mut shell)
}

/// Has systemd read the unit, with the programs that it names.
fn verify_unit(fresh: &Path) -> Result<(), String> {
    let mut analyse = Command::new("systemd-analyze");
    analyse.arg("verify").arg("--man=no").arg("--recursive-errors=no");
    analyse.arg(format!("--root={}", fresh.display())).arg("onbeat@m4k.service");
    let said = analyse.output().map_err(|error| format!("systemd-analyze does not start: {error}"))?;
    let errors = String::from_utf8_lossy(&said.stderr);
    if said.status.success() && !errors.contains("onbeat") {
        return Ok(());
    }
    Err(format!("systemd-analyze verify: {}: {}", said.status, errors.trim()))
}
