//! The Debian package, made by `dpkg-deb` of a staged tree.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Pages, Programs, Target, VERSION, archive, copy, licences, read, write};
use crate::command;

/// Compression of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    /// To be handed out.
    Well,
    /// To be tried on this machine.
    Quickly,
}

/// Makes `onbeat_VERSION_ARCHITECTURE.deb` in `folder`.
///
/// # Errors
/// The file system's, or that of a program.
pub(super) fn make(
    root: &Path,
    folder: &Path,
    target: &Target,
    programs: &Programs,
    pages: &Pages,
    packed: Packed,
) -> Result<PathBuf, String> {
    let staged = folder.join("stage").join(format!("debian-{}", target.debian));
    let _ = fs::remove_dir_all(&staged);
    let usr = staged.join("usr");
    for program in programs.each() {
        copy(program, &usr.join("bin").join(program.file_name().unwrap_or_default()))?;
    }
    let share = usr.join("share");
    pages.put_manual(&share.join("man/man1"), true)?;
    pages.put_completions([
        share.join("bash-completion/completions/onbeat"),
        share.join("zsh/vendor-completions/_onbeat"),
        share.join("fish/vendor_completions.d/onbeat.fish"),
    ])?;
    copy(&root.join(archive::UNIT), &usr.join("lib/systemd/system/onbeat@.service"))?;
    copy(&root.join(archive::LAUNCH), &share.join(archive::LAUNCH_PLACE))?;
    let documentation = share.join("doc/onbeat");
    for file in archive::DOCUMENTATION {
        copy(&root.join(file), &documentation.join(file))?;
    }
    archive::put_folders(root, &documentation)?;
    let notices = documentation.join("THIRD-PARTY.txt");
    write(&notices, licences::notices(root, target.triple)?)?;
    command::output(Command::new("gzip").arg("-9n").arg(notices))?;
    write(&documentation.join("copyright"), copyright(root)?)?;
    fs::create_dir_all(staged.join("etc/onbeat")).map_err(|error| format!("etc/onbeat: {error}"))?;
    let package = folder.join(format!("onbeat_{VERSION}_{}.deb", target.debian));
    control(root, &staged, target)?;
    let mut build = Command::new("dpkg-deb");
    build.args((packed == Packed::Quickly).then_some("-Znone"));
    build.args(["--build", "--root-owner-group"]).arg(&staged).arg(&package);
    command::output(build.env("SOURCE_DATE_EPOCH", archive::time_of_commit(root)))?;
    Ok(package)
}

/// Writes what dpkg reads.
fn control(root: &Path, staged: &Path, target: &Target) -> Result<(), String> {
    let open = |path: &Path, mode| {
        let set = fs::set_permissions(path, Permissions::from_mode(mode));
        set.map_err(|error| format!("{}: {error}", path.display()))
    };
    let all = command::output(Command::new("find").args([".", "-type", "d"]).current_dir(staged))?;
    all.lines().try_for_each(|folder| open(&staged.join(folder), 0o755))?;
    let files = command::output(Command::new("find").args(["usr", "-type", "f"]).current_dir(staged))?;
    for file in files.lines() {
        let mode = if file.starts_with("usr/bin/") { 0o755 } else { 0o644 };
        open(&staged.join(file), mode)?;
    }
    let mut names: Vec<&str> = files.lines().collect();
    names.sort_unstable();
    let sums = command::output(Command::new("md5sum").args(&names).current_dir(staged))?;
    let size = command::output(Command::new("du").args(["-sk", "usr"]).current_dir(staged))?;
    let size = size.split_whitespace().next().unwrap_or_default();
    let folder = staged.join("DEBIAN");
    write(&folder.join("md5sums"), sums)?;
    let said = CONTROL
        .replace("{version}", VERSION)
        .replace("{architecture}", target.debian)
        .replace("{size}", size);
    write(&folder.join("control"), said)?;
    for script in ["postinst", "prerm", "postrm"] {
        copy(&root.join("packaging/debian").join(script), &folder.join(script))?;
        open(&folder.join(script), 0o755)?;
    }
    open(&folder, 0o755)
}

/// The copyright file; its last paragraph is the MIT licence.
fn copyright(root: &Path) -> Result<String, String> {
    let mut text = read(&root.join("packaging/debian/copyright"))?;
    for line in read(&root.join("LICENSE-MIT"))?.lines().skip(4) {
        text += &format!(" {}\n", if line.is_empty() { "." } else { line });
    }
    Ok(text)
}

/// `libcap2-bin` has `setcap`, `passwd` makes the group; the programs need no library.
const CONTROL: &str = "\
Package: onbeat
Version: {version}
Architecture: {architecture}
Maintainer: The Onbeat authors <onbeat@users.noreply.github.com>
Installed-Size: {size}
Depends: libcap2-bin, passwd
Recommends: ethtool, iproute2
Section: electronics
Priority: optional
Homepage: https://github.com/onbeat-rt/onbeat
Description: EtherCAT MainDevice and robot controller with a real-time cycle
 Onbeat runs robots and machines from ordinary Linux in real time: it brings
 up an EtherCAT bus, enables CiA 402 servo drives, moves them, and measures
 every cycle. It needs no kernel module, and no hardware to start with: the
 same frames go to SubDevices simulated down to their registers.
 .
 Members of the group onbeat may run it with the capabilities that it needs.
";
