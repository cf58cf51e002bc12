use super::*;

fn ordinary(name: &str, period: Duration) -> Settings {
    Settings::every(name, period).with_profile(RealTimeProfile::ORDINARY)
}

/// Waits until it has ended by itself.
fn until_over<T>(task: &Task<T>) {
    let begin = Elapsed::now();
    while !task.is_over() {
        assert!(begin.elapsed() < Duration::from_secs(40), "it does not end");
        thread::sleep(LOOK_AGAIN);
    }
}

// feature(tasks): tasks with periods of their own, and their records
#[test]
fn a_body_is_called_once_a_period_and_leaves_a_record_each_time() {
    let (task, mut records) = ordinary("counter", Duration::from_millis(2))
        .create(|job| {
            if job.release.cycle >= 20 {
                job.stop();
            }
        })
        .unwrap();
    assert_eq!(task.live().jobs, 0, "not before it is started");
    let first = MonotonicClock.now() + Duration::from_millis(5);
    task.start_at(first);
    until_over(&task);
    let ended = task.join().unwrap();
    let taken: Vec<_> = std::iter::from_fn(|| records.next_record()).collect();
    assert!(records.is_over());
    assert_eq!((taken.len() as u64, records.dropped()), (ended.live.jobs, 0));
    assert_eq!(taken.iter().filter(|record| record.overrun).count() as u64, ended.live.overruns);
    for record in &taken {
        let release = first + Duration::from_millis(2 * record.cycle);
        assert_eq!(record.release_ns, release.as_nanos());
        assert!(record.release_ns <= record.start_ns && record.start_ns <= record.end_ns);
    }
    assert!(taken.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "one job at a time");
}

#[test]
fn a_loop_sets_up_waits_and_returns_its_own() {
    let (task, _records) = ordinary("loop", Duration::from_millis(1))
        .create_loop(|periods| {
            let mut cycles = Vec::with_capacity(16);
            while cycles.len() < 5 {
                let Some(release) = periods.wait_period() else { break };
                cycles.push(release.cycle);
            }
            cycles
        })
        .unwrap();
    assert!(task.wait_until_ready(Duration::from_secs(10)));
    task.start();
    until_over(&task);
    let ended = task.join().unwrap();
    assert_eq!(ended.value.len(), 5);
    assert!(ended.value.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn a_task_that_was_never_started_is_stopped_and_joined() {
    let (task, _records) = ordinary("idle", Duration::from_secs(3600)).create(|_| ()).unwrap();
    assert_eq!(task.join().unwrap().live.jobs, 0);
    drop(ordinary("dropped", Duration::from_secs(3600)).create(|_| ()).unwrap());
}

// feature(tasks): tasks with periods of their own, and their records
#[test]
fn unread_records_are_dropped_and_counted() {
    let settings = Settings { records: 4, ..ordinary("many", Duration::from_micros(200)) };
    let (task, mut records) = settings.create(|_| ()).unwrap();
    task.start();
    while task.live().jobs < 10 {
        thread::sleep(Duration::from_millis(1));
    }
    let ended = task.join().unwrap();
    assert_eq!(ended.live.dropped_records, ended.live.jobs - 4);
    assert_eq!(records.dropped(), ended.live.dropped_records);
    assert_eq!(std::iter::from_fn(|| records.next_record()).count(), 4);
}

#[test]
fn an_overrun_is_counted_and_the_policy_stop_ends_the_task() {
    let (task, mut records) = ordinary("late", Duration::from_millis(1))
        .with_overrun(OverrunPolicy::Stop)
        .create(|_| thread::sleep(Duration::from_millis(3)))
        .unwrap();
    task.start();
    until_over(&task);
    let ended = task.join().unwrap();
    assert_eq!((ended.live.jobs, ended.live.overruns, ended.overruns.count), (1, 1, 1));
    assert!(records.next_record().unwrap().overrun);
}

#[test]
fn missed_releases_are_skipped_and_reported_with_the_next() {
    let (task, mut records) = ordinary("long", Duration::from_millis(1))
        .create(|job| {
            thread::sleep(Duration::from_millis(if job.release.cycle < 3 { 4 } else { 0 }));
            if job.release.cycle > 30 {
                job.stop();
            }
        })
        .unwrap();
    task.start();
    until_over(&task);
    let live = task.join().unwrap().live;
    let taken: Vec<_> = std::iter::from_fn(|| records.next_record()).collect();
    for pair in taken.windows(2) {
        assert_eq!(pair[1].cycle - pair[0].cycle, u64::from(pair[1].skipped) + 1, "{pair:?}");
    }
    let skipped: u64 = taken.iter().map(|record| u64::from(record.skipped)).sum();
    assert!(skipped >= 3 && live.skipped == skipped, "{skipped} {live:?}");
}

#[test]
fn a_body_that_is_long_in_coming_is_not_waited_for_for_ever() {
    let (go_on, wait) = mpsc::channel();
    let (task, _records) = ordinary("slow", Duration::from_millis(1))
        .create_loop(move |periods| {
            let _ = wait.recv();
            while periods.wait_period().is_some() {}
        })
        .unwrap();
    assert!(!task.wait_until_ready(Duration::from_millis(20)));
    go_on.send(()).unwrap();
    assert!(task.wait_until_ready(Duration::from_secs(40)));
}

#[test]
fn join_reports_a_panic() {
    let (task, _records) = ordinary("careless", Duration::from_millis(1))
        .create(|job| assert!(job.release.cycle < 2, "on purpose"))
        .unwrap();
    task.start();
    until_over(&task);
    assert_eq!(task.join().unwrap_err().to_string(), "task `careless` panicked: on purpose");
}

#[test]
fn settings_no_thread_can_have_are_refused() {
    let second = Duration::from_secs(1);
    for (settings, expected) in [
        (ordinary("", second), "at least one letter"),
        (ordinary("zero\0byte", second), "without a zero byte"),
        (ordinary("p", Duration::ZERO), "its period is 0"),
        (
            ordinary("s", second).with_stack(1000),
            "its stack is 1000 bytes: 64 KiB to 65536 KiB are expected",
        ),
    ] {
        let error = settings.create(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// 256 KiB of arrays on a stack of 512 KiB, all of it touched before.
#[test]
fn body_has_the_requested_stack() {
    #[inline(never)]
    fn deep(level: usize) -> usize {
        let block = std::hint::black_box([level; 1024]);
        if level == 0 { block[7] } else { deep(level - 1) + block[level] }
    }
    for memory in [None, Some(Residency { heap: 0, stack: 0 })] {
        let profile = RealTimeProfile { memory, ..RealTimeProfile::ORDINARY };
        let (task, _records) = Settings::every("deep", Duration::from_millis(1))
            .with_profile(profile)
            .with_stack(512 << 10)
            .create_loop(|_| deep(10))
            .unwrap();
        assert_eq!(task.join().unwrap().value, 55);
    }
}
