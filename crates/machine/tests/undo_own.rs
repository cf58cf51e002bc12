//! Undoing of all journals of a process that ends without dropping them. Alone in its process,
//! because it undoes all of them.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use onbeat_machine::journal::{Journal, restore_in, undo_own};

#[test]
fn own_journals_are_undone_and_persistent_ones_stay() {
    let folder = std::env::temp_dir().join(format!("onbeat-own-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let file = |name: &str| {
        let path = folder.join(name);
        fs::write(&path, "1").unwrap();
        path
    };
    let files = [file("first"), file("second"), file("kept")];
    let mut first = Journal::begin_in(&folder, "first").unwrap();
    let mut second = Journal::begin_in(&folder, "second").unwrap();
    let mut kept = Journal::persistent_in(&folder, "kept").unwrap();
    for (journal, path) in [&mut first, &mut second, &mut kept].into_iter().zip(&files) {
        journal.write(path, "2").unwrap();
    }
    assert_eq!(undo_own(), []);
    let text = || files.each_ref().map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(text(), ["1", "1", "2"]);
    // As a second Ctrl-C during the first one's exit does: undoing again changes nothing.
    assert_eq!((first.undo(), second.undo()), (vec![], vec![]));
    assert_eq!(text(), ["1", "1", "2"]);
    drop(kept);
    assert_eq!(restore_in(&folder, true).unwrap().restored.len(), 1);
    assert_eq!(text(), ["1", "1", "1"]);
    fs::remove_dir_all(&folder).unwrap();
}
