//! The fresh Debian booted: systemd starts a robot, watches it, starts it again, and stops it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::write;
use crate::command;

/// Boots it, runs a robot in it as a service, and checks what is left afterwards. Without control
/// groups of version 2, which that systemd needs, it reports that it is skipped.
pub(super) fn test(fresh: &Path) -> Result<(), String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(|mount| mount.split(' ').nth(2) == Some("cgroup2")) {
        println!("boot of the fresh Debian skipped: no control groups of version 2 are mounted");
        return Ok(());
    }
    write(&fresh.join("etc/systemd/system/onbeat-test.service"), UNIT)?;
    write(&fresh.join("test.sh"), include_str!("booted.sh"))?;
    let wants = fresh.join("etc/systemd/system/multi-user.target.wants/onbeat-test.service");
    let wanted = wants.parent().map_or(Ok(()), fs::create_dir_all);
    wanted
        .and_then(|()| symlink("../onbeat-test.service", &wants))
        .map_err(|error| format!("{}: {error}", wants.display()))?;
    let boot = fresh.with_file_name("boot.sh");
    write(&boot, include_str!("boot.sh"))?;
    let ended = command::run_within(Command::new("sh").arg(&boot).arg(fresh), LONGEST);
    let read = |name: &str| fs::read_to_string(fresh.join(name)).unwrap_or_default();
    if read("outcome").trim() != "0" {
        let why = ended.err().map(|why| format!("{why}\n")).unwrap_or_default();
        return Err(format!("as a service: {why}{}", read("said").trim()));
    }
    summary(&read("summary.json")).and_then(|()| journal(&read("journal.jsonl")))?;
    let own = ["said", "state", "moved", "outcome", "summary.json", "journal.jsonl"];
    let units = ["etc/systemd/system/onbeat-test.service"];
    for name in own.iter().chain(&units) {
        let _ = fs::remove_file(fresh.join(name));
    }
    fs::remove_file(&wants).map_err(|error| format!("{}: {error}", wants.display()))
}

/// Its axis was brought to rest, with the rights that the unit gives.
fn summary(text: &str) -> Result<(), String> {
    let run: Value = serde_json::from_str(text).map_err(|error| format!("the run's own JSON: {error}"))?;
    let axis = &run["axes"][0];
    // It moved at 0.6 rad/s, a tenth of its limit; its loop settles for some time.
    let is_at_rest = axis["velocity"].as_f64().is_some_and(|velocity| velocity.abs() < 0.1);
    if !is_at_rest || !axis["stop"].is_null() {
        return Err(format!("expected an axis at standstill after the stop, found {axis}"));
    }
    let conditions = &run["conditions"];
    let granted = (&conditions["priority"]["granted"], &conditions["memory_lock"]["granted"]);
    match granted {
        (Value::Number(_), Value::Bool(true)) => Ok(()),
        (priority, lock) => Err(format!(
            "expected the service with a real-time priority and locked memory, found priority {priority}, locked {lock}"
        )),
    }
}

/// The journal has what happened, with fields to look for it.
fn journal(text: &str) -> Result<(), String> {
    let entries: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |event: &str| entries.iter().filter(|it| it["ONBEAT_EVENT"] == event).collect::<Vec<_>>();
    let began = of("run_began");
    for name in
        ["ONBEAT_VERSION", "ONBEAT_HOST", "ONBEAT_ROBOT", "ONBEAT_ROBOT_FILE_SHA256", "ONBEAT_KERNEL"]
    {
        if !began.iter().all(|it| it[name].is_string()) {
            return Err(format!("the journal: expected {name} where a run began, found {began:?}"));
        }
    }
    let ended = of("run_ended");
    let Some(last) = ended.last().filter(|_| began.len() >= 3) else {
        return Err(format!("the journal: expected three runs and an end, found {began:?}, {ended:?}"));
    };
    let is_whole = last["ONBEAT_EXIT_CODE"] == "0"
        && last["PRIORITY"] == "6"
        && last["ONBEAT_CYCLE"].as_str().is_some_and(|cycle| cycle != "0")
        && last["_SYSTEMD_UNIT"] == "onbeat@robot.service";
    match is_whole && !of("stopping").is_empty() {
        true => Ok(()),
        false => Err(format!("the journal: expected the end of the run with its fields, found {last}")),
    }
}

/// Time for everything in it, on a machine that is busy.
const LONGEST: Duration = Duration::from_secs(240);

/// Unit that runs once it has booted, and turns it off.
const UNIT: &str = "\
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /test.sh
StandardOutput=file:/said
StandardError=file:/said
ExecStopPost=/bin/systemctl poweroff --force
[Install]
WantedBy=multi-user.target
";
