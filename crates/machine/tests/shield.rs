//! CPU shield that is raised, lowered, and restored after its process was killed: the machine is as
//! before.
//!
//! Each scenario runs in a separate PID namespace with its own `/run`, so that it can move only its
//! own threads. Interrupts and control groups are the machine's, for a second.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use onbeat_machine::cpus::Cpus;
use onbeat_machine::journal::{self, Restored};
use onbeat_machine::shield::{Method, Shield, ShieldError};
use onbeat_machine::task::{self, Task};

// feature(hold): CPU shield by cpuset and by affinity masks
#[test]
fn a_shield_is_raised_and_lowered() {
    alone("scenario_raised_and_lowered", false);
}

// feature(hold): CPU shield by cpuset and by affinity masks
#[test]
fn a_shield_of_masks_is_raised_and_lowered() {
    alone("scenario_raised_and_lowered", true);
}

// feature(hold): everything undone at the end, after Ctrl-C, and after a kill
#[test]
fn shield_of_a_killed_process_is_undone() {
    alone("scenario_killed", false);
}

#[test]
fn mask_shield_of_a_killed_process_is_undone() {
    alone("scenario_killed", true);
}

/// A program built on the library puts nothing back by itself first.
#[test]
fn shield_after_a_kill_restores_the_first_state() {
    alone("scenario_raised_after_a_kill", false);
}

/// Runs one of the scenarios below in separate namespaces; without control groups if `masks`.
fn alone(scenario: &str, masks: bool) {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", scenario, "--ignored", "--nocapture"].map(OsStr::new);
    let arguments = [&[program.as_os_str()], &arguments[..]].concat();
    let masks = (MASKS, if masks { "1" } else { "" });
    let output = match testkit::alone(&arguments, masks, |journals| drop(put_back(journals))) {
        Ok(output) => output,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Undoes what a scenario left behind, which it does where it fails.
fn put_back(journals: &Path) -> Vec<Restored> {
    journal::restore_in(journals, true).map(|it| it.restored).unwrap_or_default()
}

/// Control groups and interrupts are the machine's: no other program puts them back.
#[test]
fn what_a_scenario_that_fails_has_changed_is_put_back() {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "scenario_fails", "--ignored"].map(OsStr::new);
    let mut restored = Vec::new();
    let put_back = |journals: &Path| restored.extend(put_back(journals));
    let output =
        match testkit::alone(&[&[program.as_os_str()], &arguments[..]].concat(), (MASKS, ""), put_back) {
            Ok(output) => output,
            Err(skip) => return testkit::skip!("{skip}"),
        };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    let shields: Vec<_> = restored.iter().filter(|it| it.what.starts_with("shield of CPU ")).collect();
    assert!(!shields.is_empty() && shields.iter().all(|it| it.failures.is_empty()), "{restored:?} {text}");
}

#[test]
#[ignore = "a part of the test above, which starts it in namespaces of its own"]
fn scenario_fails() {
    prepare();
    let _shield = Shield::raise(Cpus::online().last().unwrap()).unwrap();
    std::process::exit(3);
}

/// Variable that makes a scenario run without control groups.
const MASKS: &str = "ONBEAT_TEST_MASKS";

/// Hides control groups if required; true if masks are to be used.
fn prepare() -> bool {
    assert!(Task::all().iter().all(|task| !task.of_kernel), "this is no PID namespace of its own");
    let masks = std::env::var_os(MASKS).is_some_and(|it| !it.is_empty());
    if masks {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        for line in mounts.lines().filter(|line| line.contains(" cgroup")) {
            let place = line.split(' ').nth(1).unwrap();
            assert!(Command::new("umount").args(["--lazy", place]).status().unwrap().success());
        }
    }
    masks
}

#[test]
#[ignore = "a part of the tests above, which start it in namespaces of its own"]
fn scenario_raised_and_lowered() {
    let masks = prepare();
    let (cpu, all) = (Cpus::online().last().unwrap(), Cpus::online());
    let rest = all.without(&Cpus::one(cpu));
    let (free, bound, pinned) = (Sleeper::on(&all), Sleeper::on(&rest), Sleeper::on(&Cpus::one(cpu)));
    let (ask, asked) = mpsc::channel();
    let (tell, started) = mpsc::channel();
    thread::spawn(move || {
        while asked.recv().is_ok() {
            tell.send(Sleeper::inheriting()).unwrap();
        }
    });
    let before = Snapshot::take();
    let (late, report) = thread::scope(|scope| {
        let (ask, started, all, rest, pinned) = (&ask, started, &all, &rest, &pinned);
        let holder = scope.spawn(move || {
            let shield = Shield::raise(cpu).unwrap();
            let report = shield.report().clone();
            assert_eq!(task::affinity(task::current()).unwrap(), Cpus::one(cpu));
            for task in Task::all().iter().filter(|task| task.tid != task::current()) {
                assert!(!task::affinity(task.tid).unwrap().contains(cpu), "{task:?}");
            }
            assert_eq!(
                task::affinity(pinned.tid()).unwrap(),
                *rest,
                "what only ran there runs on the others"
            );
            let interrupts = Snapshot::take().interrupts;
            let still = |(number, cpus): &(&String, &String)| {
                cpus.parse::<Cpus>().unwrap().contains(cpu)
                    && !report
                        .left
                        .iter()
                        .any(|left| left.what.iter().any(|what| what.starts_with(*number)))
            };
            assert_eq!(
                interrupts.iter().find(still),
                None,
                "an interrupt that is neither moved nor reported"
            );
            // Started by a neighbour, it inherits the neighbour's affinity.
            ask.send(()).unwrap();
            let late = started.recv().unwrap();
            assert!(!task::affinity(late.tid()).unwrap().contains(cpu));
            assert_eq!(shield.lower(), []);
            assert_eq!(task::affinity(task::current()).unwrap(), *all);
            assert_eq!(task::affinity(pinned.tid()).unwrap(), Cpus::one(cpu));
            (late, report)
        });
        holder.join().unwrap()
    });
    eprintln!("{report}");
    assert_eq!(report.method == Method::Masks, masks);
    assert!(report.threads >= 3, "{report:?}");
    assert_eq!(task::affinity(late.tid()).unwrap(), all);
    assert_eq!(task::affinity(free.tid()).unwrap(), all);
    assert_eq!(task::affinity(bound.tid()).unwrap(), rest);
    drop(late);
    Snapshot::take().assert_is(&before);
    assert_eq!(journals(), 0);
}

#[test]
#[ignore = "a part of the tests above, which start it in namespaces of its own"]
fn scenario_killed() {
    prepare();
    let (cpu, all) = (Cpus::online().last().unwrap(), Cpus::online());
    let rest = all.without(&Cpus::one(cpu));
    let (free, bound) = (Sleeper::on(&all), Sleeper::on(&rest));
    let before = Snapshot::take();
    let mut holder = Holder::start();

    assert_eq!(task::affinity(free.tid()).unwrap(), rest);
    assert_eq!(journal::restore().unwrap().restored, [], "its process lives");
    match Shield::raise(cpu) {
        Err(ShieldError::Taken { cpu: taken, pid }) => assert_eq!((taken, pid), (cpu, holder.0.id())),
        other => panic!("{other:?}"),
    }
    holder.kill();
    assert_eq!(task::affinity(free.tid()).unwrap(), rest, "the shield stands without its process");
    assert_eq!(journals(), 1);

    let restored = journal::restore().unwrap().restored;
    assert_eq!(restored.len(), 1);
    assert_eq!(restored[0].failures, []);
    assert!(restored[0].to_string().starts_with(&format!("shield of CPU {cpu}, left behind by process")));
    assert_eq!(task::affinity(free.tid()).unwrap(), all);
    assert_eq!(task::affinity(bound.tid()).unwrap(), rest);
    Snapshot::take().assert_is(&before);
    assert_eq!(journals(), 0);
    assert_eq!(journal::restore().unwrap().restored, []);
}

#[test]
#[ignore = "a part of the tests above, which start it in namespaces of its own"]
fn scenario_raised_after_a_kill() {
    prepare();
    let cpu = Cpus::online().last().unwrap();
    let free = Sleeper::on(&Cpus::online());
    let before = Snapshot::take();
    Holder::start().kill();
    assert!(!task::affinity(free.tid()).unwrap().contains(cpu));
    let here = task::current();
    thread::scope(|scope| {
        let raised = scope.spawn(|| {
            let shield = Shield::raise(cpu).unwrap();
            assert_eq!(journals(), 1, "that of the killed process is gone");
            assert!(!task::affinity(here).unwrap().contains(cpu));
            assert_eq!(shield.lower(), []);
        });
        raised.join().unwrap();
    });
    Snapshot::take().assert_is(&before);
    assert_eq!(journals(), 0);
}

/// Process that holds a shield of the last CPU.
struct Holder(Child);

impl Holder {
    fn start() -> Self {
        let mut holder = Command::new(std::env::current_exe().unwrap());
        holder.args(["--exact", "scenario_hold", "--ignored", "--nocapture"]).stdout(Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        let said = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
        let up = said.into_iter().find(|line| line.contains("shield: "));
        assert!(up.is_some(), "the holder ended");
        Self(holder)
    }

    /// SIGKILL: the process cannot clean up.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
#[ignore = "a part of the tests above: the process that is killed"]
fn scenario_hold() {
    let shield = Shield::raise(Cpus::online().last().unwrap()).unwrap();
    println!("shield: {}", shield.report());
    thread::sleep(Duration::from_secs(20));
}

fn journals() -> usize {
    fs::read_dir(journal::DIRECTORY).map_or(0, Iterator::count)
}

/// Process that sleeps until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn on(cpus: &Cpus) -> Self {
        let sleeper = Self::inheriting();
        task::set_affinity(sleeper.tid(), cpus).unwrap();
        sleeper
    }

    fn inheriting() -> Self {
        Self(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn tid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// State of everything a shield changes.
#[derive(Debug, PartialEq)]
struct Snapshot {
    /// Affinities by thread.
    affinities: BTreeMap<i32, String>,
    /// Affinities by interrupt.
    interrupts: BTreeMap<String, String>,
    /// Contents by path: masks of the kernel, and every cpuset.
    files: BTreeMap<String, String>,
}

impl Snapshot {
    fn take() -> Self {
        let affinity = |task: &Task| Some((task.tid, task::affinity(task.tid).ok()?.to_string()));
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let mut files = BTreeMap::new();
        for path in ["/proc/irq/default_smp_affinity", "/proc/sys/kernel/watchdog_cpumask"] {
            files.insert(path.to_owned(), read(Path::new(path)));
        }
        let workqueues = Path::new("/sys/devices/virtual/workqueue");
        let mut folders = vec![workqueues.to_owned(), "/sys/fs/cgroup/cpuset".into()];
        while let Some(folder) = folders.pop() {
            for name in ["cpumask", "cpuset.cpus", "cpuset.sched_load_balance"] {
                let path = folder.join(name);
                if path.exists() {
                    files.insert(path.display().to_string(), read(&path));
                }
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            folders.extend(
                entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())).map(|it| it.path()),
            );
        }
        let interrupts = fs::read_dir("/proc/irq").unwrap().flatten().filter_map(|entry| {
            let list = entry.path().join("smp_affinity_list");
            list.exists().then(|| (entry.file_name().into_string().unwrap(), read(&list)))
        });
        Self {
            affinities: Task::all().iter().filter_map(affinity).collect(),
            interrupts: interrupts.collect(),
            files,
        }
    }

    fn assert_is(&self, before: &Self) {
        assert_eq!(self.interrupts, before.interrupts);
        assert_eq!(self.files, before.files);
        assert_eq!(self.affinities, before.affinities);
    }
}
