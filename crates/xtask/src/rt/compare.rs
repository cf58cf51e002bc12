//! Kernels compared: the papers' experiments, briefly and in virtual time, on Debian's ordinary and
//! PREEMPT_RT kernels, and their reports side by side, next to the papers' columns.
//!
//! Not part of `cargo xtask test`: it takes minutes for each kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::apt::Apt;
use super::guest::{Boot, Image, Results};
use super::kernel::{self, Flavour, Kernel};
use crate::report::{Outcome, Report};

/// A kernel among others.
struct Candidate {
    /// Name in heads of columns, and of its folder.
    name: &'static str,
    flavour: Flavour,
    /// True if it is Debian 13's instead of this machine's release's.
    is_newer: bool,
}

/// Debian 12's and Debian 13's, ordinary and PREEMPT_RT, where this machine is a Debian 12.
const CANDIDATES: [Candidate; 4] = [
    Candidate { name: "ordinary", flavour: Flavour::Ordinary, is_newer: false },
    Candidate { name: "rt", flavour: Flavour::RealTime, is_newer: false },
    Candidate { name: "trixie-ordinary", flavour: Flavour::Ordinary, is_newer: true },
    Candidate { name: "trixie-rt", flavour: Flavour::RealTime, is_newer: true },
];

/// Experiments, and their options of `onbeat measure`: short, because an emulated CPU is slow.
const EXPERIMENTS: [(&str, &str); 5] = [
    ("servo", "/robot.toml --duration 60s"),
    ("tasks", "--duration 20s"),
    (
        "interference",
        "--iface near --observer-iface far --period 1000us --load none,cpu,k-lock,irq --samples 5000 --load-processes 1",
    ),
    ("tuning", "/robot.toml --columns none,P,PM --load none,light --duration 1s"),
    ("ipc", "--samples 200 --rounds 1"),
];

/// Boots each kernel with `wanted` in its name, runs the experiments on it, and prints their
/// reports side by side.
pub(super) fn all(root: &Path, image: &Image, wanted: &str, report: &mut Report) {
    let candidates: Vec<&Candidate> = CANDIDATES.iter().filter(|it| it.name.contains(wanted)).collect();
    let mut runs: Vec<(String, PathBuf)> = Vec::new();
    for candidate in candidates {
        let step = format!("rt compare {}", candidate.name);
        report.step(&step, || {
            let folder = image.folder.join("compare").join(candidate.name);
            match candidate.kernel(image).map_err(Outcome::Skipped) {
                Ok(kernel) => {
                    println!("{}", kernel.package);
                    let of_kernel = Image { kernel, ..image.clone() };
                    let measured = measure(root, &of_kernel, candidate.name, &folder);
                    runs.push((label(&of_kernel.kernel.package), folder));
                    measured.map_or_else(Outcome::Failed, |()| Outcome::Passed)
                }
                Err(outcome) => outcome,
            }
        });
    }
    for (experiment, _) in EXPERIMENTS {
        let measured: Vec<&(String, PathBuf)> = runs
            .iter()
            .filter(|(_, folder)| folder.join(experiment).join("report.json").exists())
            .collect();
        if measured.len() > 1 {
            let page = image.folder.join("compare").join(format!("{experiment}.html"));
            report.step(&format!("rt compare: {experiment}"), || {
                let program = image.onbeat.with_file_name("onbeat-measure");
                Outcome::of(&mut side_by_side(&program, experiment, &measured, &page))
            });
        }
    }
}

impl Candidate {
    fn kernel(&self, image: &Image) -> Result<Kernel, String> {
        match self.is_newer {
            true => kernel::trixie_kernel(&image.folder, self.flavour),
            false => kernel::fetch(&Apt::default(), &image.folder, self.flavour),
        }
    }
}

/// Boots this kernel, and keeps the report of each experiment in a separate folder.
fn measure(root: &Path, image: &Image, name: &str, folder: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let disk = folder.join("disk");
    let made = fs::File::create(&disk).and_then(|file| file.set_len(DISK));
    made.map_err(|error| format!("{}: {error}", disk.display()))?;
    let mut files = vec![("robot.toml".to_owned(), super::robot(root, "1ms")?.into_bytes())];
    for (number, module) in
        image.kernel.modules_of(&["virtio_blk", "crc32c_generic", "ext4"])?.iter().enumerate()
    {
        let content = fs::read(module).map_err(|error| format!("{}: {error}", module.display()))?;
        files.push((format!("root/disk-{number:02}.ko"), content));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, it)| (path.as_str(), it.as_slice())).collect();
    let drive = format!("if=virtio,format=raw,cache=unsafe,file={}", disk.display());
    let results = image.boot(&Boot {
        name: &format!("compare-{name}"),
        // Two nanoseconds an instruction; a sleeping CPU jumps to its next timer.
        machine: &["-icount", "shift=1,sleep=off", "-drive", &drive],
        parameters: super::PARAMETERS,
        script: &script(),
        files: &files,
        longest: LONGEST,
    });
    let _ = fs::remove_file(&disk);
    let results = results?;
    println!("{}", results.section("kernel")?);
    keep(&results, folder)
}

/// Script of the virtual machine: a disk for the load of interrupts, then each experiment, its
/// report, and its messages.
fn script() -> String {
    let mut script = include_str!("compare.sh").to_owned();
    for (name, options) in EXPERIMENTS {
        script.push_str(&format!("measure {name} {options}\n"));
    }
    script
}

/// Writes the reports; missing ones are an error at the end.
fn keep(results: &Results, folder: &Path) -> Result<(), String> {
    let mut failures = Vec::new();
    for (name, _) in EXPERIMENTS {
        let report = results.json(&format!("{name}-report"));
        match report {
            Ok(report) => {
                let path = folder.join(name).join("report.json");
                let written = fs::create_dir_all(folder.join(name))
                    .and_then(|()| fs::write(&path, report.to_string()));
                written.map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Err(_) => {
                let said = results.section(&format!("{name}-said")).unwrap_or("it did not begin");
                failures.push(format!("{name}: no report: {}", said.lines().last().unwrap_or_default()));
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// `onbeat report` of the runs: as text, and as a page.
fn side_by_side(program: &Path, experiment: &str, runs: &[&(String, PathBuf)], page: &Path) -> Command {
    let labels: Vec<&str> = runs.iter().map(|(label, _)| label.as_str()).collect();
    let mut command = Command::new(program);
    command.arg("report").args(runs.iter().map(|(_, folder)| folder.join(experiment)));
    command.args(["--labels", &labels.join(","), "--html"]).arg(page);
    command
}

/// `6.1 RT` of `linux-image-6.1.0-56-rt-amd64`.
fn label(package: &str) -> String {
    let version = package.trim_start_matches("linux-image-");
    let numbers: Vec<&str> = version.split(['.', '-', '+']).take(2).collect();
    format!("{}{}", numbers.join("."), if version.contains("-rt") { " RT" } else { "" })
}

/// Size of the disk, bytes.
const DISK: u64 = 64 << 20;

/// Longest that one kernel may take.
const LONGEST: Duration = Duration::from_secs(1500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    #[test]
    fn kernels_have_short_names() {
        assert_eq!(label("linux-image-6.1.0-56-rt-amd64"), "6.1 RT");
        assert_eq!(label("linux-image-6.12.57+deb13-amd64"), "6.12");
    }

    #[test]
    fn the_script_measures_everything_and_the_reports_are_kept() {
        let script = script();
        for (name, options) in EXPERIMENTS {
            assert!(script.contains(&format!("\nmeasure {name} {options}\n")), "{script}");
        }
        let folder = std::env::temp_dir().join(format!("onbeat-compare-{}", std::process::id()));
        let text = "@ servo-report\n{\"title\":\"x\"}\n@ tasks-report\n@ tasks-said\none\nno right\n";
        let error = keep(&Results::parse(text), &folder).unwrap_err();
        let kept = fs::read_to_string(folder.join("servo/report.json"));
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(kept.unwrap(), "{\"title\":\"x\"}");
        assert!(
            error.starts_with("tasks: no report: no right\n") && error.contains("ipc: no report"),
            "{error}"
        );
    }

    #[test]
    fn reports_are_compared_under_the_names_of_their_kernels() {
        let runs = [("6.1".to_owned(), PathBuf::from("/a")), ("6.1 RT".to_owned(), PathBuf::from("/b"))];
        let runs: Vec<&(String, PathBuf)> = runs.iter().collect();
        let command = side_by_side(Path::new("measure"), "servo", &runs, Path::new("/c.html"));
        let words = command::words(&command);
        assert_eq!(words, "measure report /a/servo /b/servo --labels 6.1,6.1 RT --html /c.html");
    }
}
