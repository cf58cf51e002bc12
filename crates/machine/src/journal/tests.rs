//! Tests of journals in a folder of their own.

mod drivers;
mod never;

use super::*;
use crate::task;

/// Folder of a test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onbeat-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn journals(&self) -> usize {
        record::journals(&self.0).unwrap().len()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn changes_are_undone_in_reverse_and_the_file_is_gone() {
    let folder = Folder::new("undone");
    let (number, choice) =
        (folder.file("number", "0\n"), folder.file("choice", "always [madvise] never\n"));
    let fresh = folder.0.join("fresh");
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    journal.write(&number, "1").unwrap();
    journal.write(&number, "2").unwrap();
    journal.write(&choice, "never").unwrap();
    journal.write(&fresh, "here").unwrap();
    journal.make_directory(&folder.0.join("group")).unwrap();
    assert_eq!((text(&number).as_str(), journal.len(), folder.journals()), ("2", 5, 1));
    assert_eq!(journal.undo(), []);
    assert_eq!((text(&number).as_str(), text(&choice).as_str()), ("0", "madvise"));
    assert!(!fresh.exists() && !folder.0.join("group").exists());
    assert_eq!(folder.journals(), 0);
}

#[test]
fn a_drop_undoes_too_and_a_panic_drops() {
    let folder = Folder::new("dropped");
    let number = folder.file("number", "7");
    let panicked = std::panic::catch_unwind(|| {
        let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
        journal.write(&number, "8").unwrap();
        assert_eq!(text(&number), "8");
        panic!("as a controller might");
    });
    assert!(panicked.is_err());
    assert_eq!((text(&number).as_str(), folder.journals()), ("7", 0));
}

#[test]
fn a_change_that_fails_is_forgotten() {
    let folder = Folder::new("failing");
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    assert!(journal.write(&folder.0.join("no/such/folder"), "1").is_err());
    assert!(journal.make_directory(&folder.0).is_err());
    assert!(journal.run(&mut Command::new("false"), &["touch", "never"]).is_err());
    let code = journal.set_affinity(-5, &Cpus::one(0)).unwrap_err().raw_os_error();
    assert_eq!((code, journal.len()), (Some(libc::ESRCH), 0));
    let number = folder.file("number", "1");
    journal.write(&number, "2").unwrap();
    assert_eq!(journal.undo(), []);
    assert_eq!(text(&number), "1");
}

#[test]
fn living_and_persistent_journals_are_kept() {
    let folder = Folder::new("living");
    let (mine, kept) = (folder.file("mine", "1"), folder.file("kept", "1"));
    let mut journal = Journal::begin_in(&folder.0, "mine").unwrap();
    journal.write(&mine, "2").unwrap();
    let mut persistent = Journal::persistent_in(&folder.0, "kept").unwrap();
    persistent.write(&kept, "2").unwrap();
    drop(persistent);
    assert_eq!(restore_in(&folder.0, false).unwrap().restored, []);
    assert_eq!((text(&mine).as_str(), text(&kept).as_str()), ("2", "2"));
    let restored = restore_in(&folder.0, true).unwrap().restored;
    assert_eq!(restored.len(), 1);
    let expected = format!("kept, made by process {}: 1 of 1 changes undone", std::process::id());
    assert_eq!(restored[0].to_string(), expected);
    assert_eq!((text(&mine).as_str(), text(&kept).as_str()), ("2", "1"));
    assert_eq!(journal.undo(), []);
}

/// As left by a process that was killed in the middle of a line.
// feature(hold): each change written down before it is made
#[test]
fn a_line_cut_short_is_a_change_that_was_not_made() {
    let folder = Folder::new("cut");
    let number = folder.file("number", "2");
    let header = format!(r#"{{"what":"test","pid":1,"persistent":false,"boot":"{}"}}"#, record::boot());
    let change = format!(r#"{{"file":{{"path":"{}","before":"1"}}}}"#, number.display());
    folder.file("1-2-3.journal", &format!("{header}\n{change}\n{{\"file\":{{\"pa"));
    let restored = restore_in(&folder.0, false).unwrap().restored;
    assert_eq!((restored[0].changes, restored[0].failures.len()), (1, 0));
    assert_eq!((text(&number).as_str(), folder.journals()), ("1", 0));

    folder.file("1-2-4.journal", &header.replace(&record::boot(), "another"));
    assert_eq!(restore_in(&folder.0, true).unwrap().restored, []);
    assert_eq!(folder.journals(), 0);
    folder.file("1-2-5.journal", "no journal\n");
    let error = restore_in(&folder.0, true).unwrap().refused[0].to_string();
    assert!(error.contains("1-2-5.journal: line 1 is no line of a journal"), "{error}");
}

/// Creates a journal of a dead process that restores a file; returns the file.
fn left_behind(folder: &Folder, name: &str) -> PathBuf {
    let number = folder.file(&format!("{name}-number"), "2");
    let header = format!(r#"{{"what":"test","pid":1,"persistent":false,"boot":"{}"}}"#, record::boot());
    let change = format!(r#"{{"file":{{"path":"{}","before":"1"}}}}"#, number.display());
    let journal = folder.file(&format!("{name}.journal"), &format!("{header}\n{change}\n"));
    fs::set_permissions(journal, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    number
}

// feature(doctor): a journal that is garbage or another user's is named and left alone, the others are undone
#[test]
fn garbage_is_named_and_blocks_no_other_journal() {
    let folder = Folder::new("garbage");
    // Before and after all of them by name.
    let numbers = ["0", "m", "z"].map(|name| left_behind(&folder, name));
    let header = fs::read(folder.0.join("0.journal")).unwrap();
    let rows: [(&str, &[u8]); 6] = [
        ("a", b"\xff\xfe no text\n"),
        ("b", b""),
        ("c", &[0; 5000]),
        ("d", b"{}\n"),
        ("n", b"[[[[[[[["),
        ("o", &[&header[..], b"\xc3\x28\n"].concat()),
    ];
    for (name, bytes) in rows {
        fs::write(folder.0.join(format!("{name}.journal")), bytes).unwrap();
    }
    fs::create_dir(folder.0.join("p.journal")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.0.join("q.journal"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let restoration = restore_in(&folder.0, false).unwrap();
    assert_eq!(restoration.restored.len(), 3);
    assert_eq!(numbers.map(|number| text(&number)), ["1", "1", "1"]);
    let refused: Vec<String> = restoration.refused.iter().map(io::Error::to_string).collect();
    assert_eq!(refused.len(), 8, "{refused:?}");
    for (name, error) in ["a", "b", "c", "d", "n", "o", "p", "q"].iter().zip(&refused) {
        let path = folder.0.join(format!("{name}.journal"));
        assert!(error.starts_with(&*path.to_string_lossy()) && path.exists(), "{error}");
        assert!(error.contains("remove"), "{error}");
    }
}

// feature(doctor): a journal that is garbage or another user's is named and left alone, the others are undone
#[test]
fn foreign_journal_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let folder = Folder::new("foreign");
    let good = left_behind(&folder, "good");
    let mut foreign = vec![left_behind(&folder, "writable"), left_behind(&folder, "linked")];
    let mode = |name: &str, mode| {
        fs::set_permissions(folder.0.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("writable.journal", 0o666);
    fs::rename(folder.0.join("linked.journal"), folder.0.join("elsewhere")).unwrap();
    symlink(folder.0.join("elsewhere"), folder.0.join("linked.journal")).unwrap();
    let mut rows = vec![("linked", "a symbolic link"), ("writable", "other users may write to, mode 666")];
    if rustix::process::geteuid().is_root() {
        foreign.push(left_behind(&folder, "given"));
        chown(folder.0.join("given.journal"), Some(65_534), None).unwrap();
        rows.insert(0, ("given", "a file of user 65534"));
    }
    let restoration = restore_in(&folder.0, true).unwrap();
    assert_eq!((restoration.restored.len(), text(&good).as_str()), (1, "1"));
    for number in foreign {
        assert_eq!(text(&number), "2");
    }
    assert_eq!(restoration.refused.len(), rows.len());
    for ((name, why), error) in rows.iter().zip(&restoration.refused) {
        let error = error.to_string();
        assert!(error.contains(&format!("{name}.journal")) && error.contains(why), "{error}");
    }
}

#[test]
fn what_cannot_be_undone_is_named_and_stays_in_the_file() {
    let folder = Folder::new("stuck");
    let number = folder.file("number", "1");
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    journal.write(&number, "2").unwrap();
    let group = folder.0.join("group");
    journal.make_directory(&group).unwrap();
    let guest = folder.file("group/guest", "");
    let failures = journal.undo();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].kept && failures[0].to_string().contains("group could not be put back"));
    assert_eq!(text(&number), "1");
    fs::remove_file(guest).unwrap();
    let restored = restore_in(&folder.0, false).unwrap().restored;
    assert_eq!((restored.len(), restored[0].changes, folder.journals()), (1, 1, 0));
    assert!(!group.exists());
}

#[test]
fn writable_folder_is_refused() {
    let folder = Folder::new("open");
    fs::set_permissions(&folder.0, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let error = restore_in(&folder.0, true).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn sets_of_cpus_keep_what_others_changed_meanwhile() {
    let folder = Folder::new("sets");
    let (list, mask) = (folder.file("list", "0-3\n"), folder.file("mask", "0000000f\n"));
    let three: Cpus = "0,2-3".parse().unwrap();
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    journal.set_cpus(&list, CpuFormat::List, &three).unwrap();
    journal.set_cpus(&mask, CpuFormat::Mask, &three).unwrap();
    assert_eq!((text(&list).as_str(), text(&mask).as_str()), ("0,2-3", "0000000d"));
    // Another process takes CPU 2 as well.
    fs::write(&list, "0,3").unwrap();
    assert_eq!(journal.undo(), []);
    assert_eq!((text(&list).as_str(), text(&mask).as_str()), ("0-1,3", "0000000f"));
}

#[test]
fn affinities_come_back_also_to_threads_started_meanwhile() {
    let all = Cpus::online();
    if all.count() < 2 {
        return testkit::skip!("needs two CPUs");
    }
    let folder = Folder::new("affinity");
    std::thread::spawn(move || {
        task::set_affinity(task::current(), &all).unwrap();
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let child_tid = child.id() as i32;
        let fewer = all.without(&Cpus::one(all.last().unwrap()));
        let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
        journal.remember(Change::descendants()).unwrap();
        journal.set_affinity(child_tid, &fewer).unwrap();
        // The main thread of this process: a child started later is restored with it.
        let leader = std::process::id() as i32;
        let before = task::affinity(leader).unwrap();
        journal.set_affinity(leader, &fewer).unwrap();
        task::set_affinity(task::current(), &fewer).unwrap();
        let mut late = Command::new("sleep").arg("30").spawn().unwrap();
        let late_tid = late.id() as i32;
        assert_eq!(task::affinity(late_tid).unwrap(), fewer);
        assert_eq!(journal.undo(), []);
        assert_eq!(task::affinity(child_tid).unwrap(), all);
        assert_eq!(task::affinity(leader).unwrap(), before);
        assert_eq!(task::affinity(late_tid).unwrap(), before);
        for mut child in [child.kill().map(|()| child), late.kill().map(|()| late)].into_iter().flatten() {
            child.wait().unwrap();
        }
    })
    .join()
    .unwrap();
}

/// A process killed in the middle of a change has recorded it.
// feature(hold): each change written down before it is made
#[test]
fn a_change_is_in_the_file_before_it_is_made() {
    let folder = Folder::new("before");
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    let path = journal.path().to_owned();
    let look = || Ok(text(&path).contains(r#"{"claim":{"cpu":7}}"#));
    assert!(journal.make_with(Change::Claim { cpu: 7 }, look).unwrap());
}
