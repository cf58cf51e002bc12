//! Flight recorder on the running kernel; skipped without the right to use it.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::thread;
use std::time::Duration;

use onbeat_diagnose::trace::tracefs::{Instance, Tracefs, Unavailable};
use onbeat_diagnose::trace::{Name, Recorder, What};
use rt::clock::now_ns;
use rustix::process::getpid;
use rustix::thread::{CpuSet, gettid, sched_setaffinity, set_name};

/// Value made, or `None` with the reason on stderr if the kernel's trace is unavailable.
fn available<T>(made: Result<T, Unavailable>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(error @ (Unavailable::Tracefs(_) | Unavailable::Instance(_))) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Thread on CPU 0 that has slept twenty times: its id, the interval, and the number of sleeps by
/// the kernel's count. On a busy machine a sleep can be over before the thread was taken off its
/// CPU.
fn sleeper() -> (i32, u64, u64, usize) {
    let sleep = || {
        let mut cpus = CpuSet::new();
        cpus.set(0);
        sched_setaffinity(None, &cpus).unwrap();
        set_name(c"blamed-sleeper").unwrap();
        let (before, from) = (times_slept(), now_ns());
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(2));
        }
        (gettid().as_raw_nonzero().get(), from, now_ns(), times_slept() - before)
    };
    thread::spawn(sleep).join().unwrap()
}

fn times_slept() -> usize {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    count.trim().parse().unwrap()
}

#[test]
fn sleeping_and_waking_thread_is_recorded() {
    for _ in 0..5 {
        let Some(mut recorder) = available(Recorder::start(&[0])) else { return };
        assert!(recorder.missing().iter().all(|event| event.contains(':')));
        let (thread, from, to, sleeps) = sleeper();
        recorder.drain().unwrap();
        if recorder.complete_since(to).is_none_or(|since| since > from) {
            // So many other events happened that the start was overwritten.
            continue;
        }
        let events = recorder.events(from, to);
        assert!(events.is_sorted_by_key(|event| event.time_ns));
        assert!(events.iter().all(|event| event.cpu == 0 && (from..=to).contains(&event.time_ns)));
        let came = events.iter().filter(|event| {
            matches!(event.what, What::Switch { next, .. }
                if next.thread == thread && next.name == Name::from("blamed-sleeper"))
        });
        let slept = events.iter().filter(|event| {
            matches!(event.what, What::Switch { previous, preempted: false, .. } if previous.thread == thread)
        });
        let woken =
            events.iter().filter(|event| matches!(event.what, What::Waking { thread: it } if it == thread));
        let (came, slept, woken) = (came.count(), slept.count(), woken.count());
        assert!(sleeps > 0 && came >= sleeps && woken >= sleeps, "{came} {woken} of {sleeps}");
        assert_eq!(slept, sleeps);
        return;
    }
    panic!("the trace of a few milliseconds is overwritten again and again");
}

// feature(explain): tracefs left as found, also after a kill
#[test]
fn tracefs_is_left_as_it_was_found() {
    let Some(tracefs) = available(Tracefs::open()) else { return };
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let ours = |instances: Vec<String>| -> Vec<String> {
        let prefix = format!("onbeat-{}-", getpid().as_raw_nonzero());
        instances.into_iter().filter(|name| name.starts_with(&prefix)).collect()
    };
    let Some(recorder) = available(Recorder::start(&[0])) else { return };
    let name = recorder.instance().to_owned();
    assert!(ours(tracefs.instances()).contains(&name));
    tracefs.remove_stale();
    assert!(ours(tracefs.instances()).contains(&name), "an instance in use is not stale");
    drop(recorder);
    assert!(!ours(tracefs.instances()).contains(&name));
    assert_eq!(std::fs::read_to_string("/proc/self/mounts").unwrap(), mounts);
}

#[test]
fn instances_of_dead_processes_are_removed_by_the_next() {
    let Some(instance) = available(Instance::create()) else { return };
    // As left by a killed process: no process has its id, and its pipes are closed.
    let stale = instance.path("../onbeat-4194999-5-0");
    std::fs::create_dir(&stale).unwrap();
    let Some(_next) = available(Instance::create()) else { return };
    assert!(!stale.exists());
    assert!(instance.path("").exists());
}
