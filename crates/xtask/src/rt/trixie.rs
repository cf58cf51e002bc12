//! Debian 13's qemu and real-time kernel: newer than in the release before, which this machine may
//! have. Their packages are unpacked below `target/rt/trixie`, and never installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::apt::{AMD64, Apt};
use super::kernel::{self, Flavour, Kernel};
use super::qemu::Qemu;
use crate::command;

/// Release of Debian 13.
const RELEASE: &str = "trixie";
/// Package of qemu for x86.
const PACKAGE: &str = "qemu-system-x86";

/// Fetches both below `folder`, unless they are there.
///
/// # Errors
/// One of them cannot be fetched, or does not start here.
pub(super) fn fetch(folder: &Path) -> Result<(Qemu, Kernel), String> {
    let folder = folder.join(RELEASE);
    let apt = Apt::of_release(RELEASE, AMD64, &folder)?;
    let qemu = fetch_qemu(&apt, &folder)?;
    println!("{}, of Debian 13", qemu.version()?);
    Ok((qemu, kernel::fetch(&apt, &folder, Flavour::RealTime)?))
}

/// Fetches one of its kernels alone below `folder`, unless it is there.
///
/// # Errors
/// It cannot be fetched.
pub(super) fn kernel(folder: &Path, flavour: Flavour) -> Result<Kernel, String> {
    let folder = folder.join(RELEASE);
    kernel::fetch(&Apt::of_release(RELEASE, AMD64, &folder)?, &folder, flavour)
}

fn fetch_qemu(apt: &Apt, folder: &Path) -> Result<Qemu, String> {
    let (root, archives) = (folder.join("qemu"), folder.join("cache/archives"));
    if !root.join("complete").exists() {
        println!("fetching {PACKAGE} of Debian 13 (apt-get), not installing it");
        let _ = fs::remove_dir_all(&root);
        apt.fetch(|apt| {
            let mut get = apt.command("apt-get");
            command::output(get.args([
                "-q",
                "-y",
                "--download-only",
                "--no-install-recommends",
                "install",
                PACKAGE,
            ]))
        })?;
        let place = |error| format!("{}: {error}", archives.display());
        for package in fs::read_dir(&archives).map_err(place)?.flatten().map(|entry| entry.path()) {
            if package.extension().is_some_and(|it| it == "deb") {
                command::output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
                fs::remove_file(&package).map_err(place)?;
            }
        }
        fs::write(root.join("complete"), "").map_err(|error| format!("{}: {error}", root.display()))?;
    }
    Ok(Qemu::Below(root))
}
