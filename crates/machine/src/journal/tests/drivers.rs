//! Changes of a driver's settings and of a thread's scheduling.

use testkit::{Side, Testbed};

use super::never::{Sleeper, killed, restored};
use super::*;

/// Looks as another program does.
fn gro(testbed: &Testbed) -> Option<bool> {
    let mut ethtool = Command::new("ethtool");
    ethtool.args(["-k", "near"]);
    let said = testbed.run_in(Side::Near, ethtool).output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let line = said.lines().find(|line| line.starts_with("generic-receive-offload: "))?;
    Some(line.contains("on"))
}

// feature(doctor): settings of drivers without the program `ethtool`, put back at the end, after a kill, and by `--restore`
#[test]
fn a_drivers_setting_is_put_back_at_the_end_and_after_a_kill() {
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let folder = Folder::new("driver");
    let Some(before) = gro(&testbed) else {
        return testkit::skip!("no ethtool here (Debian: ethtool)");
    };
    let other = (Setting::Gro, u32::from(!before));
    testbed.inside(Side::Near, || {
        let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
        journal.set_driver("near", &[other]).unwrap();
        assert_eq!(gro(&testbed), Some(!before));
        assert_eq!(journal.undo(), []);
        assert_eq!(gro(&testbed), Some(before));
        // As a killed process leaves it.
        ethtool::set_settings("near", &[other]).unwrap();
        let interface = "near".to_owned();
        killed(&folder, &[Change::Driver { interface, before: vec![(Setting::Gro, before.into())] }]);
        assert_eq!(restored(&folder), []);
        assert_eq!(gro(&testbed), Some(before));
        // The interface is gone with its settings, or the driver does not have this one.
        let gone = Change::Driver { interface: "gone".to_owned(), before: vec![other] };
        killed(&folder, &[gone]);
        assert_eq!(restored(&folder), []);
        let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
        let error = journal.set_driver("lo", &[(Setting::Eee, 0)]).unwrap_err();
        assert_eq!((error.raw_os_error(), journal.len()), (Some(libc::EOPNOTSUPP), 0));
    });
}

#[test]
fn a_threads_scheduling_is_put_back_at_the_end_and_after_a_kill() {
    let folder = Folder::new("scheduling");
    let sleeper = Sleeper::new();
    let scheduling = || task::scheduling(sleeper.tid()).unwrap();
    let before = scheduling();
    let mut journal = Journal::begin_in(&folder.0, "test").unwrap();
    if let Err(error) = journal.set_scheduling(sleeper.tid(), Scheduling::fifo(3)) {
        return testkit::skip!("needs the right to SCHED_FIFO: {error}");
    }
    assert_eq!(scheduling(), Scheduling::fifo(3));
    assert_eq!(journal.undo(), []);
    assert_eq!(scheduling(), before);
    let started = Task::read(sleeper.tid()).unwrap().started;
    task::set_scheduling(sleeper.tid(), Scheduling::fifo(3)).unwrap();
    // Another thread has the number by now.
    killed(&folder, &[Change::Scheduling { tid: sleeper.tid(), started: started + 1, before }]);
    assert_eq!(restored(&folder), []);
    assert_eq!(scheduling(), Scheduling::fifo(3));
    killed(&folder, &[Change::Scheduling { tid: sleeper.tid(), started, before }]);
    assert_eq!(restored(&folder), []);
    assert_eq!(scheduling(), before);
}
