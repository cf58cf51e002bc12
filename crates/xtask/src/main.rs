//! Commands of the project: `cargo xtask test|check|bench|fuzz`.
//!
//! | module | contents |
//! |---|---|
//! | [`report`] | outcomes of steps, and the closing line |
//! | [`command`] | execution of other programs |
//! | [`setup`] | programs a machine needs, and their installation |
//! | [`check`] | formatting, lints, documentation, a target without an operating system |
//! | [`dist`] | releases: archives, Debian packages, the wheel |
//! | [`features`] | list of all features with their tests |
//! | [`fuzz`] | the fuzz targets, two at a time |
//! | [`judges`] | independent programs that check ours |
//! | [`quick`] | the fast checks before a commit |
//! | [`proofs`] | Miri and ThreadSanitizer over the lock-free code |
//! | [`python`] | the Python package |
//! | [`ros2`] | the ROS 2 node, a separate workspace |
//! | [`mod@tests`] | the tests of the workspace |
//! | [`rt`] | a PREEMPT_RT kernel in an emulated machine |
//! | [`mod@bench`] | measurements |
#![forbid(unsafe_code)]

mod bench;
mod check;
mod command;
mod dist;
mod features;
mod fuzz;
mod judges;
mod proofs;
mod python;
mod quick;
mod report;
mod ros2;
mod rt;
mod setup;
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use report::Report;

const USAGE: &str = "\
cargo xtask test                           everything CI runs; installs and reports what it needs
cargo xtask test NAME...                   the tests whose names contain one of these words
cargo xtask quick [CRATE...]               format, lints and unit tests of what changed; a few minutes
cargo xtask check                          formatting, lints, documentation, rules of the repository
cargo xtask check rules                    the rules alone: sizes, circles, edges, names and prose; seconds
cargo xtask features                       target/features.md: each feature and its tests
cargo xtask fuzz [--seconds N] [TARGET]    the fuzz targets, or one of them (default: 60 s each)
cargo xtask fuzz --keep TARGET FILE...     keeps inputs in fuzz/seeds/TARGET.tar
cargo xtask judges [NAME]                  conformance checks against other MainDevices and dissectors: cyclonedds,
                                           ros2, peers, tshark, simso, definitions, fastdds, or all of them
cargo xtask proofs                         Miri and ThreadSanitizer over the lock-free code, and the examples for a minute
cargo xtask python                         the Python package, built, tested and type-checked
cargo xtask dist [--target TARGET]         a release in target/dist: static programs as archives and Debian packages,
                                           the Python wheel, checksums
cargo xtask ros2 [run|build|test] [...]    the ROS 2 node: run it, build it, test it; more words go to the node or to cargo
cargo xtask package                        the Debian package of the tests' programs, installed in a fresh Debian
cargo xtask rt [GUEST]                     Debian's PREEMPT_RT kernel, booted in qemu with Onbeat: cards,
                                           interfaces, two-cpus, virtual-time, or all of them
cargo xtask rt --arch aarch64              the same kernel for 64-bit ARM on an emulated board: doctor, robot, tasks, lock-free code
cargo xtask rt compare [KERNEL]            the papers' experiments in virtual time on Debian's ordinary and PREEMPT_RT kernels,
                                           side by side
cargo xtask dissect FILE.pcapng            errors that tshark finds in a capture
cargo xtask bench wire [--rounds N]        round trips next to the raw socket and the peers; bring-up times; memory
cargo xtask bench bring-up                 bring-up times and memory alone, next to pysoem and ethercrab
cargo xtask bench explain [--rounds N]     cost of `onbeat run --explain` to the cycle
cargo xtask bench serve [--rounds N]       cost of `onbeat serve` pages to the cycle of the humanoid
cargo xtask bench soak [--seconds N] [--seed N]  the six axes with random faults: memory, descriptors, outcome
cargo xtask bench clone                    time from a fresh clone to the first cycle";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let mut report = Report::default();
    match words.as_slice() {
        ["test"] => test(&root, &mut report),
        ["test", names @ ..] => tests::named(&root, names, &mut report),
        ["quick", crates @ ..] => quick::run(&root, crates, &mut report),
        ["check"] => check::all(&root, &mut report),
        ["check", "rules"] => check::rules(&root, &mut report),
        ["features"] => report.step("target/features.md", || features::write(&root)),
        ["dissect", capture] => judges::tshark::file(Path::new(capture), &mut report),
        ["judges", only @ ..] if only.len() < 2 && only.iter().all(|name| judges::NAMES.contains(name)) => {
            setup::debian_packages(&mut report);
            judges::all(&root, only.first().copied(), &mut report);
        }
        ["proofs"] => {
            proofs::all(&root, &mut report);
            proofs::long_runs(&root, &mut report);
        }
        ["python"] => {
            setup::debian_packages(&mut report);
            python::all(&root, &mut report);
        }
        ["ros2", words @ ..] => match ros2::run(&root, words) {
            Ok(status) => return status,
            Err(why) => return misused(&why),
        },
        ["package"] => {
            setup::debian_packages(&mut report);
            report.step("Debian package", || dist::installed::test(&root));
        }
        ["dist"] => dist::all(&root, None, &mut report),
        ["dist", "--target", target] if dist::is_target(target) => {
            dist::all(&root, Some(target), &mut report)
        }
        ["rt", "compare", wanted @ ..] if wanted.len() < 2 => {
            setup::debian_packages(&mut report);
            rt::compare(&root, wanted.first().copied().unwrap_or_default(), &mut report);
        }
        ["rt", "--arch", "aarch64"] => {
            setup::debian_packages(&mut report);
            setup::arm_packages(&mut report);
            rt::arm(&root, &mut report);
        }
        ["rt", only @ ..] if only.iter().all(|name| rt::is_guest(name)) && only.len() < 2 => {
            setup::debian_packages(&mut report);
            rt::all(&root, |name| only.first().is_none_or(|only| *only == name), &mut report);
        }
        ["fuzz", options @ ..] => match fuzz::Options::parse(options) {
            Ok(options) => fuzz::all(&root, &options, &mut report),
            Err(error) => return misused(&error),
        },
        ["bench", words @ ..] => {
            if let Err(error) = bench::run(&root, words, &mut report) {
                return misused(&error);
            }
        }
        [] => return misused("no command"),
        _ => return misused(&format!("unknown command `{}`", words.join(" "))),
    }
    report.close()
}

/// Runs everything CI runs. What only needs the processor is done while the tests, most of which
/// wait for a robot, leave it idle.
fn test(root: &Path, report: &mut Report) {
    setup::disk(root, report);
    std::thread::scope(|scope| {
        // Both wait for the network, and no build needs them.
        let fetched = beside(scope, |report| {
            setup::debian_packages(report);
            check::packages(root, report);
        });
        check::all(root, report);
        check::bare_target(root, report);
        check::other_targets(root, report);
        tests::build(root, report);
        report.append(joined(fetched));
    });
    let (mut targets, mut python) = (Vec::new(), None);
    std::thread::scope(|scope| {
        let builds = beside(scope, |report| {
            command::only_when_idle();
            rt::fetch_ahead(root);
            // They install the nightly compiler that the fuzz targets are built with, too.
            proofs::all(root, report);
            targets = fuzz::prepare(root, None, report);
        });
        let others = beside(scope, |report| {
            command::only_when_idle();
            // Its clock counts instructions: parallel work does not change its times.
            rt::all(root, |name| name == rt::VIRTUAL, report);
            python = python::prepare(root, report);
            check::deny(root, report);
        });
        tests::run_all(root, report);
        let installed = beside(scope, |report| {
            report.step("Debian package", || dist::installed::test(root));
        });
        judges::all(root, None, report);
        [builds, others, installed].into_iter().for_each(|work| report.append(joined(work)));
    });
    std::thread::scope(|scope| {
        // Their answers are checked, not their times.
        let guests = beside(scope, |report| rt::all(root, rt::is_untimed, report));
        fuzz::test(root, targets, FUZZED, report);
        report.append(joined(guests));
    });
    python::test(root, python.as_deref(), report);
    rt::all(root, |name| name != rt::VIRTUAL && !rt::is_untimed(name), report);
}

/// Steps in a separate thread, parallel to others.
fn beside<'scope>(
    scope: &'scope Scope<'scope, '_>,
    steps: impl FnOnce(&mut Report) + Send + 'scope,
) -> ScopedJoinHandle<'scope, Report> {
    scope.spawn(|| {
        let mut report = Report::default();
        steps(&mut report);
        report
    })
}

fn joined(steps: ScopedJoinHandle<'_, Report>) -> Report {
    steps.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Run time of each fuzz target: two at a time, a minute for all, once they are built.
const FUZZED: Duration = Duration::from_secs(7);

fn misused(error: &str) -> ExitCode {
    eprintln!("{error}\n\n{USAGE}");
    ExitCode::from(2)
}

/// Root of the workspace, two folders above this package, which `cargo run` names.
fn workspace_root() -> PathBuf {
    let here =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or(env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.ancestors().nth(2).unwrap_or(&here).to_owned()
}
