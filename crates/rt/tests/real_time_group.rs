//! The trap of RT_GROUP_SCHED: root requests a real-time priority, is refused, and gets the reason.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use onbeat_rt::profile::{Granted, RealTimeProfile, Scheduling};

// feature(hold): the RT_GROUP_SCHED trap explained
#[test]
fn root_in_group_without_real_time_budget_is_reported() {
    let root = Path::new("/sys/fs/cgroup/cpu");
    if !root.join("cpu.rt_runtime_us").exists() {
        return testkit::skip!("needs cgroup v1 with cpu.rt_runtime_us (RT_GROUP_SCHED)");
    }
    let group = Group(root.join(format!("onbeat-test-{}", std::process::id())));
    if let Err(error) = fs::create_dir(&group.0) {
        return testkit::skip!("needs root ({error})");
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "asking_inside", "--ignored", "--nocapture"]).env(GROUP, &group.0);
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let refusal = said.lines().find(|line| line.contains("SCHED_FIFO 50")).unwrap_or_default();
    let name = format!("the control group /onbeat-test-{}", std::process::id());
    assert!(refusal.contains("EPERM though privileged: the kernel has RT_GROUP_SCHED"), "{said}");
    assert!(refusal.contains(&name) && refusal.contains("cpu.rt_runtime_us is 0"), "{said}");
    assert!(refusal.contains("move the process to the root group"), "{said}");
}

/// Variable that names the group for the process below.
const GROUP: &str = "ONBEAT_TEST_GROUP";

struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "a part of the test above, which starts it"]
fn asking_inside() {
    let group = PathBuf::from(std::env::var_os(GROUP).unwrap());
    fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let scheduling = Some(Scheduling::Fifo { priority: 50 });
    let granted = Granted::ask(&RealTimeProfile { scheduling, ..RealTimeProfile::ORDINARY });
    granted.refusals().for_each(|refusal| println!("\n{refusal}"));
}
