//! Debian's PREEMPT_RT kernel, booted in qemu without hardware support (TCG), with our program in
//! it.
//!
//! | module | contents |
//! |---|---|
//! | [`apt`] | packages of this machine's release of Debian, or of another |
//! | [`kernel`] | the kernel package: resolved, fetched, unpacked, not installed |
//! | [`program`] | our programs, linked statically |
//! | [`mod@arm`] | Debian's kernel for 64-bit ARM: robot, tasks, GPIO edges, lock-free code |
//! | [`guest`] | virtual machine that boots, runs a script, and returns its results |
//! | [`cards`] | our links, and a ring, on emulated network cards |
//! | [`qmp`] | qemu's monitor, which pulls their cables |
//! | [`interfaces`] | our drivers on the kernel's I2C, SPI and GPIO |
//! | [`lines`] | wires between GPIO lines, and a sonar on two of them |
//! | [`two_cpus`] | robot on a cable between two CPUs |
//! | [`culprit`] | check of explanations against the culprit's record |
//! | [`mod@compare`] | the papers' experiments on several kernels, side by side |
//! | [`mod@virtual_time`] | latencies on one CPU with a clock that counts instructions |

mod apt;
mod arm;
mod cards;
mod compare;
mod culprit;
mod guest;
mod interfaces;
mod kernel;
mod lines;
mod program;
mod qmp;
mod two_cpus;
mod virtual_time;

use crate::command;
use crate::report::{Outcome, Report, timed};
use apt::Apt;
use guest::Image;
use kernel::Flavour;
use qmp::{QEMU, Qemu};
use std::path::{Path, PathBuf};

/// Check of one virtual machine.
type Judge = fn(&Path, &Image) -> Result<(), String>;

/// Guests, by the names that `cargo xtask rt NAME` knows.
const GUESTS: [(&str, &str, Judge); 4] = [
    (CARDS, "rt network cards", cards::judge),
    ("interfaces", "rt interfaces", interfaces::judge),
    ("two-cpus", "rt two CPUs", two_cpus::judge),
    (VIRTUAL, "rt virtual time", virtual_time::judge),
];

/// True if there is a virtual machine of this name.
pub(crate) fn is_guest(name: &str) -> bool {
    GUESTS.iter().any(|(guest, ..)| *guest == name)
}

/// Runs the guests wanted, each as a step.
pub(crate) fn all(root: &Path, wanted: impl Fn(&str) -> bool, report: &mut Report) {
    let mut image = None;
    report.step("rt prepare", || match prepare(root, program::of_tests) {
        Ok(prepared) => {
            println!("{}", prepared.kernel.package);
            image = Some(prepared);
            Outcome::Passed
        }
        Err(outcome) => outcome,
    });
    let Some(image) = image else { return };
    let wanted = || GUESTS.iter().filter(|(name, ..)| wanted(name));
    let cards = wanted().any(|(name, ..)| *name == CARDS).then(|| with_newer_cards(&image, report));
    let image_of = |name: &str| cards.as_ref().filter(|_| name == CARDS).unwrap_or(&image);
    let judged = |name: &str, judge: &Judge| timed(|| twice(|| judge(root, image_of(name))));
    std::thread::scope(|scope| {
        // Their answers are checked, not their times.
        let untimed = wanted().filter(|(name, ..)| is_untimed(name));
        let untimed: Vec<_> =
            untimed.map(|(name, step, judge)| (step, scope.spawn(move || judged(name, judge)))).collect();
        for (step, judge) in untimed {
            match judge.join() {
                Ok((took, outcome)) => report.record(step, took, outcome),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    for (_, step, judge) in wanted().filter(|(name, ..)| !is_untimed(name)) {
        report.step(step, || twice(|| judge(root, &image)));
    }
}

/// The same image on Debian 13's qemu and kernel, where this machine's qemu lacks a card; without
/// them the card is skipped.
fn with_newer_cards(image: &Image, report: &mut Report) -> Image {
    let mut newer = image.clone();
    let Some(lack) = cards::lack_of_igb(&image.qemu) else { return newer };
    report.step("rt Debian 13", || match kernel::fetch_trixie(&image.folder) {
        Ok((qemu, kernel)) => {
            println!("{}", kernel.package);
            newer = Image { qemu, kernel, ..image.clone() };
            Outcome::Passed
        }
        Err(why) => Outcome::Skipped(format!("{lack}; Debian 13's cannot be had: {why}")),
    });
    newer
}

/// Fetches in advance the network resources of [`all`], parallel to other work.
pub(crate) fn fetch_ahead(root: &Path) {
    if possible().is_ok() && cards::lack_of_igb(&Qemu::Installed).is_some() {
        // A missing package is reported when it is needed.
        let _ = kernel::fetch_trixie(&root.join(FOLDER));
    }
}

/// Compares the kernels with names that contain `wanted`.
pub(crate) fn compare(root: &Path, wanted: &str, report: &mut Report) {
    let mut image = None;
    report.step("rt prepare", || {
        prepare(root, |root, folder| program::build(root, folder, program::AMD64)).map_or_else(
            |lack| lack,
            |prepared| {
                image = Some(prepared);
                Outcome::Passed
            },
        )
    });
    if let Some(image) = image {
        compare::all(root, &image, wanted, report);
    }
}

/// Boots the kernel for 64-bit ARM.
pub(crate) fn arm(root: &Path, report: &mut Report) {
    report.step("rt aarch64", || {
        let image = arm::prepare(root, &root.join(FOLDER).join(apt::ARM64));
        image.map_or_else(|lack| lack, |image| twice(|| arm::judge(root, &image)))
    });
}

/// Static busybox of this machine.
const BUSYBOX: &str = "/bin/busybox";

/// Folder of kernels, logs and results.
const FOLDER: &str = "target/rt";

/// Guests that run in parallel.
const UNTIMED: [&str; 2] = [CARDS, "interfaces"];

/// True if the answers of this virtual machine are checked, but not their times.
pub(crate) fn is_untimed(name: &str) -> bool {
    UNTIMED.contains(&name)
}

/// Name of the virtual machine with network cards.
const CARDS: &str = "cards";

/// Name of the virtual machine with a clock that counts instructions: parallel work does not
/// change its times.
pub(crate) const VIRTUAL: &str = "virtual-time";

/// Build of our programs in a folder; gives `onbeat`'s path.
type Programs = fn(&Path, &Path) -> Result<PathBuf, String>;

/// Fetches the kernel and builds our programs for it, unless both are there.
///
/// # Errors
/// The outcome of a step that needs them.
fn prepare(root: &Path, programs: Programs) -> Result<Image, Outcome> {
    possible().map_err(Outcome::Skipped)?;
    let folder = root.join(FOLDER);
    let kernel = kernel::fetch(&Apt::default(), &folder, Flavour::RealTime).map_err(Outcome::Skipped)?;
    let onbeat = programs(root, &folder).map_err(Outcome::Failed)?;
    Ok(Image { folder, qemu: Qemu::Installed, kernel, busybox: BUSYBOX.into(), onbeat })
}

/// Kernel parameters of all guests: they skip self-tests of the emulated time stamp counter, and
/// mitigations of cache attacks that do not apply.
const PARAMETERS: &str = "tsc=reliable mitigations=off";

/// Kernel parameters of the checked guests: their kernels do not clear the memory that they
/// allocate for themselves either, which takes an emulated machine seconds. (Memory of programs is
/// cleared.)
const QUICK: &str = "tsc=reliable mitigations=off init_on_alloc=0";

/// The six-axis robot's file with another period.
fn robot(root: &Path, period: &str) -> Result<String, String> {
    let path = root.join("examples/six-axis.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.replace("period = \"1ms\"", &format!("period = \"{period}\"")))
}

/// Runs a check, and once more if it fails. The host's timing affects an emulated machine: all of
/// it without `-icount`, and even with it the instants at which devices answer. A first failure is
/// shown; a second one counts.
fn twice(judge: impl Fn() -> Result<(), String>) -> Outcome {
    let second = judge().or_else(|first| {
        println!("not so the first time, tried again: {first}");
        judge()
    });
    second.map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Checks that this machine can run the guests at all.
fn possible() -> Result<(), String> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(format!("the booted kernel is x86_64's, this machine is {}", std::env::consts::ARCH));
    }
    if !command::works(QEMU, &["--version"]) {
        return Err(format!("no {} (Debian: qemu-system-x86)", QEMU));
    }
    if !Path::new(BUSYBOX).exists() {
        return Err(format!("no {BUSYBOX} (Debian: busybox-static)"));
    }
    if !command::works("dpkg-deb", &["--version"]) {
        return Err("no dpkg-deb: this is not Debian".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_fails_twice_has_failed() {
        let failing = |times: u32| {
            let tries = Cell::new(0);
            let outcome = twice(|| {
                tries.set(tries.get() + 1);
                if tries.get() > times { Ok(()) } else { Err("no".into()) }
            });
            (matches!(outcome, Outcome::Passed), tries.get())
        };
        assert_eq!([failing(0), failing(1), failing(2)], [(true, 1), (true, 2), (false, 2)]);
    }
}
