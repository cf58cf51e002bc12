//! Changes that can never be undone, changes that can be undone later, and groups that are not
//! empty.

use std::process::{Child, Stdio};
use std::time::Duration;

use testkit::Turn;

use super::super::restore::left_behind_in;
use super::*;
use crate::journal::restore::remove_below;

/// Journal of a process that was killed, with these changes.
pub(super) fn killed(folder: &Folder, changes: &[Change]) {
    let header = format!(r#"{{"what":"test","pid":1,"persistent":false,"boot":"{}"}}"#, record::boot());
    let lines = changes.iter().map(|change| serde_json::to_string(change).unwrap());
    let text: String = std::iter::once(header).chain(lines).map(|line| line + "\n").collect();
    let journal = folder.file("killed.journal", &text);
    fs::set_permissions(journal, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// Failures of undoing the only journal.
pub(super) fn restored(folder: &Folder) -> Vec<Failure> {
    let restored = restore_in(&folder.0, false).unwrap().restored;
    assert_eq!(restored.len(), 1);
    restored[0].failures.clone()
}

/// Process that sleeps until it is dropped.
pub(super) struct Sleeper(Child);

impl Sleeper {
    pub(super) fn new() -> Self {
        Self::running("sleep", &["60"])
    }

    fn running(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        Self(testkit::end_with_parent(&mut command).spawn().unwrap())
    }

    pub(super) fn tid(&self) -> i32 {
        self.0.id() as i32
    }

    fn affinity(&self, before: &str, after: &str) -> Change {
        let started = Task::read(self.tid()).unwrap().started;
        Change::Affinity { tid: self.tid(), started, before: before.to_owned(), after: after.to_owned() }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As the kernel refuses a value, the CPUs of a thread, and what a damaged disk has made of a set.
// feature(hold): a change that cannot be undone is reported once and dropped; the others are undone
#[test]
fn impossible_undo_is_reported_once_and_the_rest_undone() {
    let folder = Folder::new("never");
    let (first, last) = (folder.file("first", "2"), folder.file("last", "2"));
    let sleeper = Sleeper::new();
    let now = task::affinity(sleeper.tid()).unwrap().to_string();
    let file = |path: PathBuf, before: &str| Change::File { path, before: Some(before.to_owned()) };
    killed(
        &folder,
        &[
            file(first.clone(), "1"),
            file(format!("/proc/{}/oom_score_adj", sleeper.tid()).into(), "5000"),
            sleeper.affinity("4000", &now),
            sleeper.affinity("none", &now),
            file(last.clone(), "1"),
        ],
    );
    let failures = restored(&folder);
    let told = ["none", "no CPU of 4000 is online", "oom_score_adj can never be put back"];
    assert_eq!(failures.len(), told.len(), "{failures:?}");
    for (failure, part) in failures.iter().zip(told) {
        let sentence = failure.to_string();
        assert!(!failure.kept && sentence.contains("can never be put back: "), "{sentence}");
        assert!(sentence.contains(part), "{sentence}");
    }
    assert_eq!((text(&first).as_str(), text(&last).as_str()), ("1", "1"));
    assert_eq!((folder.journals(), restore_in(&folder.0, true).unwrap().restored), (0, vec![]));
}

/// A thread of the kernel may have been free when its CPUs were written down.
#[test]
fn cpus_of_a_bound_thread_are_dropped() {
    let bound = |task: &Task| task.bound && task::affinity(task.tid).is_ok_and(|cpus| cpus.count() == 1);
    let all = Cpus::online();
    let thread = Task::all().into_iter().find(bound);
    let Some(thread) = thread.filter(|_| rustix::process::geteuid().is_root() && all.count() > 1) else {
        return testkit::skip!("needs root, two CPUs and the kernel's threads");
    };
    let folder = Folder::new("bound");
    let (tid, started) = (thread.tid, thread.started);
    let after = task::affinity(tid).unwrap().to_string();
    killed(&folder, &[Change::Affinity { tid, started, before: all.to_string(), after }]);
    let failures = restored(&folder);
    let sentence = failures[0].to_string();
    assert!(!failures[0].kept && sentence.contains("the kernel has bound it"), "{sentence}");
    assert!(sentence.contains(&format!("thread {tid}")) && sentence.contains(&thread.name), "{sentence}");
    assert_eq!(folder.journals(), 0);
}

/// It stays in the journal: the program may be installed later.
#[test]
fn a_command_that_is_not_installed_has_undone_nothing() {
    let folder = Folder::new("command");
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    journal.run(&mut Command::new("true"), &["onbeat-no-such-program"]).unwrap();
    let failures = journal.undo();
    assert_eq!(failures.iter().map(|failure| failure.kept).collect::<Vec<_>>(), [true], "{failures:?}");
    assert_eq!(folder.journals(), 1);
}

/// A process that is killed in the middle of it leaves the old file or the new one.
#[test]
fn a_journal_that_keeps_changes_is_replaced_as_a_whole() {
    use std::io::Read;
    let folder = Folder::new("whole");
    let (group, number) = (folder.0.join("group"), folder.file("number", "1"));
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    journal.make_directory(&group).unwrap();
    journal.write(&number, "2").unwrap();
    folder.file("group/guest", "");
    let before = text(journal.path());
    let mut old = fs::File::open(journal.path()).unwrap();
    let path = journal.path().to_owned();
    assert_eq!(journal.undo().len(), 1);
    let mut still = String::new();
    old.read_to_string(&mut still).unwrap();
    assert_eq!(still, before);
    assert_eq!(text(&path), before.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    let names = fs::read_dir(&folder.0).unwrap().flatten().map(|entry| entry.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
}

/// Ids of processes are given out again.
#[test]
fn children_of_a_reused_pid_are_untouched() {
    let all = task::affinity(task::current()).unwrap();
    if all.count() < 2 {
        return testkit::skip!("needs two CPUs");
    }
    let folder = Folder::new("reused");
    let fewer = all.without(&Cpus::one(all.last().unwrap()));
    let known = Change::descendants();
    let child = Sleeper::new();
    let (before, after) = (fewer.to_string(), all.to_string());
    killed(
        &folder,
        &[known, Change::Affinity { tid: std::process::id() as i32, started: 1, before, after }],
    );
    assert_eq!(restored(&folder), []);
    assert_eq!(task::affinity(child.tid()).unwrap(), all);
}

/// The doctor reports these; journals of living processes, and of `--fix`, are in order.
#[test]
fn leftovers_of_a_killed_process_are_listed() {
    let folder = Folder::new("listed");
    killed(&folder, &[Change::Claim { cpu: 1 }, Change::Claim { cpu: 2 }]);
    let _living = Journal::begin_in(&folder.0, "living").unwrap();
    drop(Journal::persistent_in(&folder.0, "kept").unwrap());
    let found = left_behind_in(&folder.0).unwrap();
    assert_eq!(found, [LeftBehind { what: "test".to_owned(), pid: 1, changes: 2 }]);
    assert_eq!(left_behind_in(&folder.0.join("nothing")).unwrap(), []);
    assert_eq!(folder.journals(), 3);
}

/// Control group of a test below the root of cpusets (cgroup v1), with one CPU; removed on drop.
struct Group {
    path: PathBuf,
    _turn: Turn,
}

impl Group {
    /// `None`, with the reason on standard error, where there are none to be had.
    fn new(name: &str) -> Option<Self> {
        let cpu = Cpus::online().last().filter(|&cpu| cpu > 0);
        let root = group::mount(Some("cpuset")).filter(|_| rustix::process::geteuid().is_root());
        let (Some(cpu), Some(root)) = (cpu, root) else {
            testkit::skip!("needs root, two CPUs and cpusets of cgroup v1");
            return None;
        };
        let turn = Turn::take().unwrap();
        let path = root.join(format!("{name}-{}", std::process::id()));
        let group = Self { path, _turn: turn };
        fs::create_dir(&group.path).unwrap();
        fs::write(group.path.join("cpuset.mems"), text(&root.join("cpuset.mems")).trim()).unwrap();
        fs::write(group.path.join("cpuset.cpus"), cpu.to_string()).unwrap();
        Some(group)
    }

    fn list(&self) -> PathBuf {
        self.path.join("tasks")
    }

    fn put(&self, process: &Sleeper) {
        fs::write(self.list(), process.tid().to_string()).unwrap();
    }

    /// Changes of a shield that made this group, for threads that came from `home`.
    fn changes(&self, home: &str) -> [Change; 2] {
        let from = self.path.with_file_name(home).join("tasks");
        [Change::Directory { path: self.path.clone() }, Change::Moved { from, to: self.list() }]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = group::remove(&self.path);
    }
}

/// The original group belonged to another shield and is gone; or the move was undone before, and
/// new threads started.
// feature(hold): a control group is removed though its threads cannot go back to where they came from, or start others
#[test]
fn threads_of_a_missing_group_go_to_its_parent() {
    let Some(group) = Group::new("onbeat-gone") else { return };
    let folder = Folder::new("gone");
    let [made, moved] = group.changes("onbeat-no-such-group");
    for changes in [vec![made.clone(), moved], vec![made]] {
        let _ = fs::create_dir(&group.path);
        for name in ["cpuset.mems", "cpuset.cpus"] {
            fs::write(group.path.join(name), text(&group.path.with_file_name(name)).trim()).unwrap();
        }
        let sleeper = Sleeper::new();
        group.put(&sleeper);
        killed(&folder, &changes);
        assert_eq!(restored(&folder), []);
        assert!(!group.path.exists());
        assert_eq!(group::of(sleeper.tid(), Some("cpuset")).as_deref(), Some("/"));
    }
}

/// Threads started meanwhile are in the group of their parent.
#[test]
fn forking_process_is_moved_with_its_children() {
    let Some(group) = Group::new("onbeat-busy") else { return };
    let folder = Folder::new("busy");
    let busy = Sleeper::running("sh", &["-c", "while :; do sleep 0.002 & sleep 0.001 & wait; done"]);
    group.put(&busy);
    killed(&folder, &group.changes("."));
    assert_eq!(restored(&folder), []);
    assert!(!group.path.exists());
}

/// A thread that was put into another group cannot have its CPUs back while it is there. The group
/// of another shield will go; any other may be forever.
#[test]
fn thread_without_its_cpus_waits_only_for_a_shield() {
    for (name, kept) in [("onbeat-other", true), ("other", false)] {
        let Some(group) = Group::new(name) else { return };
        let folder = Folder::new(name);
        let sleeper = Sleeper::new();
        group.put(&sleeper);
        let now = task::affinity(sleeper.tid()).unwrap().to_string();
        killed(&folder, &[sleeper.affinity("0", &now)]);
        let failures = restored(&folder);
        let place = group.path.file_name().unwrap().to_string_lossy().into_owned();
        let expected = format!("sleep: its control group /{place} has none of CPUs 0");
        assert_eq!((failures[0].kept, failures[0].why.as_str()), (kept, expected.as_str()));
        assert_eq!(folder.journals(), usize::from(kept));
        drop(group);
        if kept {
            assert_eq!(restored(&folder), []);
            assert_eq!(task::affinity(sleeper.tid()).unwrap(), Cpus::one(0));
        }
    }
}

/// The journal was removed, as its own error says to.
// feature(hold): control groups of a dead shield that no journal remembers are removed
#[test]
fn unlisted_groups_of_dead_shields_are_removed() {
    let Some(rest) = Group::new("onbeat-rest-77") else { return };
    let root = rest.path.parent().unwrap().to_owned();
    let sleeper = Sleeper::new();
    rest.put(&sleeper);
    let name = rest.path.file_name().unwrap().to_string_lossy().into_owned();
    let remove = |remembered: &str, age| remove_below(&root, remembered, Duration::from_secs(age));
    assert_eq!(remove(&format!("/{name}/tasks"), 0), []);
    assert_eq!(remove("", 3600), []);
    // The group of the shield's own thread.
    let own = root.join(format!("onbeat-cpu-1-{}", std::process::id()));
    fs::create_dir(&own).unwrap();
    for name in ["cpuset.mems", "cpuset.cpus"] {
        fs::write(own.join(name), text(&root.join(name)).trim()).unwrap();
    }
    let holder = Sleeper::new();
    fs::write(own.join("tasks"), holder.tid().to_string()).unwrap();
    assert_eq!(remove("", 0), []);
    drop(holder);
    let removed = remove("", 0);
    assert_eq!(removed.len(), 2);
    assert_eq!(removed.iter().flat_map(|it| it.failures.clone()).collect::<Vec<_>>(), []);
    let said = removed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(
        said.contains(&format!("{name}, in no journal, left behind by process 77: 1 of 1 changes")),
        "{said}"
    );
    assert!(!own.exists() && !rest.path.exists());
    assert_eq!(group::of(sleeper.tid(), Some("cpuset")).as_deref(), Some("/"));
}
