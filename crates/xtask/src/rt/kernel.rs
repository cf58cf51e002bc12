//! Debian's kernel packages: fetched and unpacked below `target/`, never installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::{AMD64, Apt};
use super::qmp::Qemu;
use crate::command;

/// Kind of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    RealTime,
    Ordinary,
}

impl Flavour {
    /// Package that depends on the newest kernel of this kind, whatever its version.
    fn meta_package(self, architecture: &str) -> String {
        match self {
            Self::RealTime => format!("linux-image-rt-{architecture}"),
            Self::Ordinary => format!("linux-image-{architecture}"),
        }
    }
}

/// Modules that every virtual machine loads; others only if one of these depends on them.
const MODULES: &[&str] = &["veth", "virtio_pci", "virtio_console"];

/// Kernel with its modules.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// Name of the package.
    pub(super) package: String,
    /// Image for qemu to boot.
    pub(super) image: PathBuf,
    /// Options that it was built with.
    configuration: PathBuf,
    /// Modules in loading order.
    pub(super) modules: Vec<PathBuf>,
    /// Folders of other modules.
    libraries: [PathBuf; 2],
}

impl Kernel {
    /// True if it was built with this option.
    pub(super) fn has(&self, option: &str) -> bool {
        let options = fs::read_to_string(&self.configuration).unwrap_or_default();
        options.lines().any(|line| line == format!("{option}=y"))
    }

    /// These modules and their dependencies, in loading order.
    ///
    /// # Errors
    /// The module that this kernel lacks.
    pub(super) fn modules_of(&self, names: &[&str]) -> Result<Vec<PathBuf>, String> {
        modules_of(names, &self.libraries)
    }
}

/// Fetches the current kernel into `folder`, unless it is there.
///
/// # Errors
/// The kernel cannot be fetched.
pub(super) fn fetch(apt: &Apt, folder: &Path, flavour: Flavour) -> Result<Kernel, String> {
    let (package, unpacked) = apt.fetch(|apt| {
        let package = resolve(apt, &flavour.meta_package(apt.architecture))?;
        let unpacked = folder.join(&package);
        unpack(apt, &package, &unpacked).map(|()| (package, unpacked))
    })?;
    let boot = unpacked.join("boot");
    let packed = only_file(&boot, |name| name.starts_with("vmlinuz-"))?;
    let configuration = only_file(&boot, |name| name.starts_with("config-"))?;
    // Debian 13 moved /lib below /usr.
    let libraries = [unpacked.join("lib/modules"), unpacked.join("usr/lib/modules")];
    let modules = modules_of(MODULES, &libraries)?;
    let kernel = Kernel { package, image: packed, configuration, modules, libraries };
    // qemu starts an unpacked one that has the entry for it. Without the program that unpacks it
    // the kernel does so itself.
    match decompressed_image(&kernel.image).filter(|_| kernel.has("CONFIG_PVH")) {
        Some(image) => Ok(Kernel { image, ..kernel }),
        None => Ok(kernel),
    }
}

/// Unpacks a package into a separate folder, unless it is there.
///
/// # Errors
/// It cannot be fetched.
pub(super) fn unpack(apt: &Apt, package: &str, unpacked: &Path) -> Result<(), String> {
    if unpacked.join("complete").exists() {
        return Ok(());
    }
    println!("fetching {package} (apt-get download), not installing it");
    let made = fs::remove_dir_all(unpacked).or(Ok(())).and_then(|()| fs::create_dir_all(unpacked));
    made.map_err(|error| format!("{}: {error}", unpacked.display()))?;
    command::output(apt.command("apt-get").args(["-q", "download", package]).current_dir(unpacked))?;
    let archive = only_file(unpacked, |name| name.ends_with(".deb"))?;
    command::output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(unpacked))?;
    let done = fs::remove_file(&archive).and_then(|()| fs::write(unpacked.join("complete"), ""));
    done.map_err(|error| format!("{}: {error}", unpacked.display()))
}

fn modules_of(names: &[&str], libraries: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut modules = Vec::new();
    for module in names {
        with_dependencies(module, libraries, &mut modules)?;
    }
    Ok(modules)
}

/// Package that the meta-package depends on.
fn resolve(apt: &Apt, meta_package: &str) -> Result<String, String> {
    let depends = command::output(apt.command("apt-cache").args(["depends", meta_package]))?;
    let mut lines = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let name = lines.find(|name| name.starts_with("linux-image-")).map(str::to_owned);
    name.ok_or_else(|| format!("apt knows no kernel behind {meta_package}"))
}

/// Puts a module's dependencies before it. The package has no `modules.dep`, which is made at
/// installation, but every module names its dependencies.
fn with_dependencies(module: &str, libraries: &[PathBuf], found: &mut Vec<PathBuf>) -> Result<(), String> {
    let file_of = |ending: &str| {
        let file = format!("{module}{ending}");
        // In file names and in lists of dependencies `-` and `_` are equivalent.
        let is_it = |name: &str| name.replace('-', "_") == file.replace('-', "_");
        libraries.iter().find_map(|library| find(library, &is_it))
    };
    let path = match (file_of(".ko"), file_of(".ko.xz")) {
        (Some(path), _) => path,
        // Debian 13 compresses them.
        (None, Some(packed)) => decompressed(&packed)?,
        (None, None) if is_built_in(module, libraries) => return Ok(()),
        (None, None) => return Err(format!("the kernel package has no module {module}.ko or .ko.xz")),
    };
    if found.contains(&path) {
        return Ok(());
    }
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    for dependency in dependencies(&bytes) {
        with_dependencies(&dependency, libraries, found)?;
    }
    found.push(path);
    Ok(())
}

/// True if it is no module but part of the kernel image, which the package lists.
fn is_built_in(module: &str, libraries: &[PathBuf]) -> bool {
    let file = format!("/{}.ko", module.replace('-', "_"));
    let list = libraries.iter().find_map(|library| find(library, &|name| name == "modules.builtin"));
    let list = list.and_then(|list| fs::read_to_string(list).ok()).unwrap_or_default();
    list.lines().any(|line| line.replace('-', "_").ends_with(&file))
}

/// Decompresses a module into the same folder.
fn decompressed(packed: &Path) -> Result<PathBuf, String> {
    command::output(Command::new("xz").args(["--decompress", "--keep"]).arg(packed))?;
    Ok(packed.with_extension(""))
}

/// The kernel within a compressed image, in the same folder: to unpack itself takes an emulated
/// machine as long as the rest of the start. `None` if it is of another kind, or cannot be
/// unpacked.
fn decompressed_image(packed: &Path) -> Option<PathBuf> {
    let name = packed.file_name()?.to_str()?;
    let image = packed.with_file_name(name.replacen("vmlinuz-", "vmlinux-", 1));
    if image.exists() {
        return Some(image);
    }
    let bytes = fs::read(packed).ok()?;
    let (program, stream, size) = payload(&bytes)?;
    let (from, to) = (image.with_extension("packed"), image.with_extension("part"));
    fs::write(&from, stream).ok()?;
    let unpacking = Command::new(program)
        .arg("-dc")
        .stdin(File::open(&from).ok()?)
        .stdout(File::create(&to).ok()?)
        .status();
    let _ = fs::remove_file(&from);
    let whole = unpacking.is_ok_and(|status| status.success()) && fs::metadata(&to).ok()?.len() == size;
    let kept = if whole { fs::rename(&to, &image) } else { fs::remove_file(&to) };
    (whole && kept.is_ok()).then_some(image)
}

/// Program that unpacks an x86 image's compressed kernel, the kernel, and its size afterwards
/// (Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`, `payload_length`).
fn payload(image: &[u8]) -> Option<(&'static str, &[u8], u64)> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?));
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = usize::from(*image.get(0x1f1)?);
    let start = (sectors + 1) * 512 + word(0x248)? as usize;
    // The last word is the size.
    let end = start.checked_add(word(0x24c)? as usize)?.checked_sub(4)?;
    let stream = image.get(start..end)?;
    let (_, program) = PACKED.iter().find(|(magic, _)| stream.starts_with(magic))?;
    Some((program, stream, word(end)?.into()))
}

/// Beginnings of compressed kernels, and the programs that unpack them.
const PACKED: [(&[u8], &str); 2] = [(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];

/// Names after `depends=` in a module's information, which is text separated by zeros.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let start = module.windows(KEY.len()).position(|window| window == KEY);
    let Some(rest) = start.and_then(|start| module.get(start + KEY.len()..)) else { return Vec::new() };
    let text = String::from_utf8_lossy(rest.split(|&byte| byte == 0).next().unwrap_or_default());
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn find(folder: &Path, wanted: &impl Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() {
            return find(&path, wanted);
        }
        path.file_name()?.to_str().is_some_and(wanted).then_some(path.clone())
    })
}

fn only_file(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let is_wanted = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted);
    let found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_wanted).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        _ => Err(format!("{}: expected one such file, found {}", folder.display(), found.len())),
    }
}

/// Release of Debian 13.
const RELEASE: &str = "trixie";
/// Package of qemu for x86.
const PACKAGE: &str = "qemu-system-x86";

/// Fetches qemu and the kernel of Debian 13 below `folder`, unless they are there.
///
/// # Errors
/// One of them cannot be fetched, or does not start here.
pub(super) fn fetch_trixie(folder: &Path) -> Result<(Qemu, Kernel), String> {
    let folder = folder.join(RELEASE);
    let apt = Apt::of_release(RELEASE, AMD64, &folder)?;
    let qemu = fetch_qemu(&apt, &folder)?;
    println!("{}, of Debian 13", qemu.version()?);
    Ok((qemu, fetch(&apt, &folder, Flavour::RealTime)?))
}

/// Fetches one of the kernels of Debian 13 alone below `folder`, unless it is there.
///
/// # Errors
/// It cannot be fetched.
pub(super) fn trixie_kernel(folder: &Path, flavour: Flavour) -> Result<Kernel, String> {
    let folder = folder.join(RELEASE);
    fetch(&Apt::of_release(RELEASE, AMD64, &folder)?, &folder, flavour)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules as Debian 13 packs them, one of which needs the other, and one that is part of the
    /// kernel.
    #[test]
    fn compressed_modules_are_unpacked_with_their_dependencies() {
        if !command::works("xz", &["--version"]) {
            return eprintln!("skipped: needs xz (Debian: xz-utils)");
        }
        let folder = std::env::temp_dir().join(format!("onbeat-modules-{}", std::process::id()));
        fs::create_dir_all(folder.join("net")).expect("a folder");
        fs::write(folder.join("net/some-card.ko"), b"ELF\0depends=i2c_bits\0license=GPL\0")
            .expect("a file");
        fs::write(folder.join("i2c-bits.ko"), b"ELF\0license=GPL\0").expect("a file");
        fs::write(folder.join("modules.builtin"), "kernel/drivers/virtio-pci.ko\n").expect("a file");
        let mut xz = Command::new("xz");
        command::output(xz.args(["net/some-card.ko", "i2c-bits.ko"]).current_dir(&folder)).expect("packed");
        let libraries = [folder.clone()];
        for _ in ["packed", "and unpacked"] {
            let found = modules_of(&["virtio_pci", "some_card"], &libraries).expect("both modules");
            assert_eq!(found, [folder.join("i2c-bits.ko"), folder.join("net/some-card.ko")]);
        }
        assert_eq!(
            modules_of(&["other"], &libraries),
            Err("the kernel package has no module other.ko or .ko.xz".to_owned())
        );
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_compressed_kernel_is_found_in_its_image() {
        let mut image = vec![0; 0x400];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&4_u32.to_le_bytes());
        let stream = b"\xfd7zXZ\0 and so on";
        image[0x24c..0x250].copy_from_slice(&(stream.len() as u32 + 4).to_le_bytes());
        image.extend(b"code");
        image.extend(stream);
        image.extend(70_000_u32.to_le_bytes());
        assert_eq!(payload(&image), Some(("xz", &stream[..], 70_000)));
        for end in [0x201, 0x240, 0x404, image.len() - 1] {
            assert_eq!(payload(&image[..end]), None, "{end}");
        }
        image[0x404] = 0;
        assert_eq!(payload(&image), None);
        image[0x202] = 0;
        assert_eq!(payload(&image), None);
    }

    #[test]
    fn a_modules_dependencies_are_read_from_its_information() {
        assert_eq!(dependencies(b"\x7fELF..license=GPL\0depends=stp,llc\0retpoline=Y\0"), ["stp", "llc"]);
        assert_eq!(dependencies(b"license=GPL\0depends=\0vermagic=6.1"), [""; 0]);
        assert_eq!(dependencies(b"nothing of the kind"), [""; 0]);
    }
}
