//! Faults planted in a real-time task are found under the right name, and only there.
//!
//! The kernel's tracepoints need root: without, the tests that look through them say so and skip.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use diagnose::disturbance::{
    Counts, CycleWatch, Detail, Disturbance, Disturbances, Frame, Kind, Means, Watch,
};
use ethercat::main_device::BringUpPhase;
use ethercat_linux::link::{SIMULATED_SYSTEM_CALLS, SimulatedLink};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, MonotonicClock};
use rt::profile::{Granted, RealTimeProfile, Scheduling};
use rt::task::{Job, Settings};
use support::{Sway, cycle, segment};
use testkit::Turn;

const PERIOD: Duration = Duration::from_millis(4);
/// Periods of a run.
const PERIODS: u64 = 50;
/// The first in which a fault may be planted.
const PLANTED: u64 = 20;

fn settings(name: &str) -> Settings {
    Settings::every(name, PERIOD).with_priority(50)
}

/// Runs a task for `periods` and returns its disturbances. `planted` runs at the same time from its
/// period [`PLANTED`] on.
fn watched(
    watch: &Watch,
    settings: Settings,
    periods: u64,
    mut body: impl FnMut(&Job<'_>) + Send + 'static,
    planted: impl FnOnce(),
) -> Disturbances {
    let task = settings.create(move |job| {
        body(job);
        if job.release.cycle >= periods {
            job.stop();
        }
    });
    let (task, _records) = task.unwrap();
    watch.add(task.subject());
    assert!(task.wait_until_ready(Duration::from_secs(10)));
    task.start();
    // The last job that ends before the one that is disturbed; where releases were skipped, that
    // one waits already.
    let begin = Instant::now();
    while task.live().cycle + 1 < PLANTED.min(periods) && begin.elapsed() < LONGEST_WAY {
        thread::sleep(Duration::from_millis(1));
    }
    planted();
    wait_until(|| task.is_over());
    task.join().unwrap();
    watch.read().pop().unwrap()
}

/// Ten times what the jobs before the disturbed one take.
const LONGEST_WAY: Duration = PERIOD.saturating_mul(10 * PLANTED as u32);

fn wait_until(done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not come to an end");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A watch with all means, or `None` where there is none.
fn full_watch() -> Option<Watch> {
    let watch = Watch::start(Detail::Backtraces).unwrap();
    let (task, _records) = settings("try").create(|_| ()).unwrap();
    watch.add(task.subject());
    let tried = watch.read().remove(0);
    if tried.means != Means::Tracepoints {
        testkit::skip!("{}", tried.missing.join("; "));
        return None;
    }
    Some(watch)
}

/// Threads of the kernel take what they like, and its memory management moves a page now and then:
/// what this machine is to blame for, and not the task.
fn planted(disturbed: &Disturbances) -> Counts {
    for cause in disturbed.causes.iter().filter(|it| it.kind == Kind::Task) {
        let ours =
            ["the-", "watch", "main", "disturbances"].iter().any(|name| cause.name.starts_with(name));
        assert!(!ours, "{cause:?}");
    }
    assert_eq!(disturbed.lost, 0);
    Counts { preemptions: 0, minor_faults: 0, ..disturbed.counts }
}

fn cause<'a>(disturbed: &'a Disturbances, kind: Kind, name: &str) -> &'a Disturbance {
    let found = disturbed.causes.iter().find(|it| it.kind == kind && it.name == name);
    found.unwrap_or_else(|| panic!("no {kind} by {name}: {disturbed:#?}"))
}

/// The first of a kind was in a function of this name, in this file.
fn was_in(disturbed: &Disturbances, kind: Kind, function: &str) {
    let first = disturbed.firsts.iter().find(|first| first.kind == kind).unwrap();
    let here = |file: &String| file.ends_with("disturbances.rs");
    let found = first
        .backtrace
        .iter()
        .any(|frame| frame.function.contains(function) && frame.file.as_ref().is_some_and(here));
    assert!(found, "{function} is not in {first}");
    let start = ["task::run", "disturbances::watch_cycle"];
    let whole = |frame: &Frame| start.iter().any(|start| frame.function.contains(start));
    assert!(first.backtrace.iter().any(whole), "the stack ends too soon: {first}");
}

#[inline(never)]
fn reads_from_an_empty_pipe(pipe: &OwnedFd) {
    rustix::io::read(pipe, black_box(&mut [0])).unwrap();
}

/// One call that blocks, in the period [`PLANTED`].
fn reads_once(pipe: OwnedFd) -> impl FnMut(&Job<'_>) + Send + 'static {
    let mut done = false;
    move |job| {
        if job.release.cycle >= PLANTED && !std::mem::replace(&mut done, true) {
            reads_from_an_empty_pipe(&pipe);
        }
    }
}

const ONE_BLOCKING_CALL: Counts = Counts {
    preemptions: 0,
    sleeps: 1,
    minor_faults: 0,
    major_faults: 0,
    system_calls: 1,
    blocking_calls: 1,
};

// feature(tasks): a calm task shows zero
#[test]
fn a_task_that_does_nothing_wrong_shows_zero() {
    let _turn = Turn::take().unwrap();
    let Some(watch) = full_watch() else { return };
    let mut calm = false;
    // A page that the kernel moves meanwhile is no fault of the task.
    for _ in 0..5 {
        let mut sum = 0.0_f64;
        let body = move |job: &Job<'_>| sum = black_box(sum + job.release.cycle as f64).sqrt();
        let disturbed = watched(&watch, settings("calm"), PERIODS, body, || ());
        assert_eq!(planted(&disturbed), Counts::default(), "{disturbed:#?}");
        calm |= disturbed.counts.minor_faults == 0;
    }
    assert!(calm, "{:#?}", watch.read());
}

// feature(tasks): blocking calls, contention, sleeps, faults and preemption under the right name, the first with a backtrace
#[test]
fn a_read_that_blocks_is_counted_as_read() {
    let _turn = Turn::take().unwrap();
    let Some(watch) = full_watch() else { return };
    let (near, far) = rustix::pipe::pipe().unwrap();
    let disturbed = watched(&watch, settings("reader"), PERIODS, reads_once(near), || {
        thread::sleep(PERIOD * 3);
        rustix::io::write(&far, &[1]).unwrap();
    });
    assert_eq!(planted(&disturbed), ONE_BLOCKING_CALL, "{disturbed:#?}");
    for kind in [Kind::Sleep, Kind::SystemCall, Kind::BlockingCall] {
        assert!(cause(&disturbed, kind, "read").first_period >= PLANTED);
        was_in(&disturbed, kind, "reads_from_an_empty_pipe");
    }
    assert_eq!(disturbed.firsts.iter().find(|it| it.kind != Kind::Task).unwrap().name, "read");
}

// feature(tasks): blocking calls, contention, sleeps, faults and preemption under the right name, the first with a backtrace
#[test]
fn a_mutex_that_another_holds_is_counted_as_futex() {
    let _turn = Turn::take().unwrap();
    let Some(watch) = full_watch() else { return };
    #[inline(never)]
    fn locks_what_another_holds(mutex: &Mutex<u32>) {
        *mutex.lock().unwrap() += 1;
    }
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock().unwrap();
    let (ours, mut done) = (Arc::clone(&mutex), false);
    let body = move |job: &Job<'_>| {
        if job.release.cycle >= PLANTED && !std::mem::replace(&mut done, true) {
            locks_what_another_holds(&ours);
        }
    };
    let disturbed = watched(&watch, settings("locker"), PERIODS, body, || {
        thread::sleep(PERIOD * 3);
        drop(held);
    });
    // It may wake others on its way out.
    let calls = cause(&disturbed, Kind::SystemCall, "futex").count;
    let expected = Counts { system_calls: calls, ..ONE_BLOCKING_CALL };
    assert_eq!(planted(&disturbed), expected, "{disturbed:#?}");
    assert_eq!(cause(&disturbed, Kind::BlockingCall, "futex").count, 1);
    was_in(&disturbed, Kind::BlockingCall, "locks_what_another_holds");
}

// feature(tasks): blocking calls, contention, sleeps, faults and preemption under the right name, the first with a backtrace
#[test]
fn extra_sleep_differs_from_the_wait_for_the_period() {
    let _turn = Turn::take().unwrap();
    let Some(watch) = full_watch() else { return };
    #[inline(never)]
    fn sleeps_on_its_own(clock: MonotonicClock) {
        clock.sleep_until(clock.now() + PERIOD / 4);
    }
    // A release skipped by a stalled machine is made up for by the next.
    let mut done = false;
    let body = move |job: &Job<'_>| {
        if job.release.cycle >= PLANTED && !std::mem::replace(&mut done, true) {
            sleeps_on_its_own(MonotonicClock);
        }
    };
    let disturbed = watched(&watch, settings("sleeper"), PERIODS, body, || ());
    assert_eq!(planted(&disturbed), ONE_BLOCKING_CALL, "{disturbed:#?}");
    assert!(cause(&disturbed, Kind::BlockingCall, "clock_nanosleep").first_period >= PLANTED);
    was_in(&disturbed, Kind::SystemCall, "sleeps_on_its_own");
}

// feature(tasks): blocking calls, contention, sleeps, faults and preemption under the right name, the first with a backtrace
#[test]
fn fresh_memory_is_counted_as_minor_faults() {
    const PAGES: usize = 64;
    let _turn = Turn::take().unwrap();
    let Some(watch) = full_watch() else { return };
    #[inline(never)]
    fn touches_fresh_memory(memory: &mut [u8]) {
        memory.chunks_mut(4096).for_each(|page| page[0] = 1);
    }
    // Nothing locks it: the kernel gives its pages when they are touched.
    let mut memory = memmap2::MmapMut::map_anon(PAGES * 4096).unwrap();
    let scheduling = Some(Scheduling::Fifo { priority: 50 });
    let unlocked = RealTimeProfile { scheduling, ..RealTimeProfile::ORDINARY };
    let settings = settings("toucher").with_profile(unlocked);
    // A stalled machine skips releases: the intended one, or the first after it.
    let touched = Arc::new(AtomicU64::new(0));
    let when = Arc::clone(&touched);
    let body = move |job: &Job<'_>| {
        if job.release.cycle >= PLANTED && when.load(Ordering::Relaxed) == 0 {
            when.store(job.release.cycle, Ordering::Relaxed);
            touches_fresh_memory(&mut memory);
        }
    };
    let disturbed = watched(&watch, settings, PERIODS, body, || ());
    assert_eq!(planted(&disturbed), Counts::default(), "{disturbed:#?}");
    let cause = disturbed.causes.iter().filter(|it| it.kind == Kind::MinorFault).max_by_key(|it| it.count);
    let cause = cause.unwrap_or_else(|| panic!("no minor faults: {disturbed:#?}"));
    assert!(cause.count >= PAGES as u64, "{disturbed:#?}");
    let touched = touched.load(Ordering::Relaxed);
    assert_eq!(cause.last_period, touched);
    assert_eq!(cause.name, "anonymous memory");
    let first = disturbed.firsts.iter().find(|first| first.kind == Kind::MinorFault).unwrap();
    if first.period == touched {
        was_in(&disturbed, Kind::MinorFault, "touches_fresh_memory");
    }
}

// feature(tasks): blocking calls, contention, sleeps, faults and preemption under the right name, the first with a backtrace
#[test]
fn preempting_task_is_named() {
    let _turn = Turn::take().unwrap();
    let Some(watch) = full_watch() else { return };
    #[inline(never)]
    fn works_for_a_while(job: &Job<'_>) {
        let end = job.now() + PERIOD / 2;
        // Seldom in the vDSO, which cannot be unwound.
        while job.now() < end {
            (0..1_000).for_each(|number| _ = black_box(number));
        }
    }
    let cpu = machine::task::affinity(machine::task::current()).unwrap().last().unwrap();
    // A fraction of the period: it is released again and again while the other works.
    let higher = Settings::every("the-higher", PERIOD / 8).with_priority(60).on_cpu(cpu);
    let (higher, _records) = higher.create(|_| ()).unwrap();
    let lower = settings("lower").on_cpu(cpu);
    let release = Arc::new(AtomicU64::new(0));
    let released = Arc::clone(&release);
    let body = move |job: &Job<'_>| {
        released.store(job.release.instant.as_nanos(), Ordering::Relaxed);
        works_for_a_while(job);
    };
    // Between two releases of the lower, which on its own release would be preempted while it
    // wakes.
    let planted = || {
        let release = ethercat::time::Instant::from_nanos(release.load(Ordering::Relaxed));
        higher.start_at(release + PERIOD * 3 + PERIOD / 16);
    };
    let disturbed = watched(&watch, lower, PERIODS, body, planted);
    higher.join().unwrap();
    let by_higher = cause(&disturbed, Kind::Task, "the-higher");
    assert!(by_higher.count > PERIODS / 2, "{disturbed:#?}");
    let counts = Counts { preemptions: 0, minor_faults: 0, ..disturbed.counts };
    assert_eq!(counts, Counts::default(), "{disturbed:#?}");
    was_in(&disturbed, Kind::Task, "works_for_a_while");
}

/// Means of a user without privilege: the releases distinguish a sleep from the wait, and a long
/// one has a name.
#[test]
fn without_tracepoints_a_sleep_is_found_all_the_same() {
    let _turn = Turn::take().unwrap();
    let watch = Watch::start(Detail::Counts).unwrap().at_best(Means::SoftwareEvents);
    let (near, far) = rustix::pipe::pipe().unwrap();
    // Long enough for the sleep to end before the next release.
    let ordinary = || Settings::every("reader", PERIOD * 200).with_profile(RealTimeProfile::ORDINARY);
    let calm = watched(&watch, ordinary(), 3, |_| (), || ());
    if calm.means != Means::SoftwareEvents {
        return testkit::skip!("{}", calm.missing.join("; "));
    }
    assert_eq!((calm.counts.sleeps, calm.counts.blocking_calls), (0, 0), "{calm:#?}");
    let (tell, told) = std::sync::mpsc::channel();
    let mut tell = Some(tell);
    let body = move |job: &Job<'_>| {
        if let Some(tell) = tell.take_if(|_| job.release.cycle >= 1) {
            tell.send(()).unwrap();
            reads_from_an_empty_pipe(&near);
        }
    };
    let disturbed = thread::scope(|scope| {
        scope.spawn(move || {
            told.recv().unwrap();
            thread::sleep(PERIOD * 25);
            rustix::io::write(&far, &[1]).unwrap();
        });
        watched(&watch, ordinary(), 3, body, || ())
    });
    assert_eq!((disturbed.counts.sleeps, disturbed.counts.blocking_calls), (1, 1), "{disturbed:#?}");
    assert_eq!(cause(&disturbed, Kind::BlockingCall, "read").first_period, 1);
    assert!(disturbed.missing.iter().any(|it| it.contains("without tracepoints")), "{disturbed:#?}");
}

/// Means that are left where the kernel allows no events at all.
#[test]
fn with_counters_alone_a_sleep_is_counted_and_the_waits_are_not() {
    let _turn = Turn::take().unwrap();
    let watch = Watch::start(Detail::Backtraces).unwrap().at_best(Means::Counters);
    let (near, far) = rustix::pipe::pipe().unwrap();
    let ordinary = || settings("reader").with_profile(RealTimeProfile::ORDINARY);
    let calm = watched(&watch, ordinary(), PERIODS, |_| (), || ());
    assert_eq!((calm.means, calm.counts.sleeps), (Means::Counters, 0), "{calm:#?}");
    let disturbed = watched(&watch, ordinary(), PERIODS, reads_once(near), || {
        thread::sleep(PERIOD * 3);
        rustix::io::write(&far, &[1]).unwrap();
    });
    assert_eq!(disturbed.counts.sleeps, 1, "{disturbed:#?}");
    assert!(disturbed.firsts.iter().any(|it| it.kind == Kind::Sleep && it.period >= PLANTED));
    let missing = disturbed.missing.join("; ");
    assert!(missing.contains("no backtraces") && missing.contains("without events"), "{missing}");
}

/// The bus cycle: its link's calls are its work, and nothing else is.
// feature(tasks): the bus cycle is watched too
#[test]
fn only_link_calls_and_controller_reads_are_found() {
    let _turn = Turn::take().unwrap();
    if full_watch().is_none() {
        return;
    }
    let calm = watch_cycle(false);
    assert_eq!(planted(&calm), Counts::default(), "{calm:#?}");
    let careless = watch_cycle(true);
    let reads = cause(&careless, Kind::SystemCall, "read");
    assert!(reads.count > 1 && reads.first_period < reads.last_period, "{careless:#?}");
    was_in(&careless, Kind::SystemCall, "looks_into_a_file");
}

/// A cycle watched from Op on; a careless controller looks into a file once in ten cycles.
fn watch_cycle(careless: bool) -> Disturbances {
    const DRIVES: usize = 2;
    let controller = Careless { sway: Sway::new(DRIVES), careless };
    let configuration = CycleConfiguration::every(PERIOD);
    let link = SimulatedLink::new(segment(DRIVES));
    let (cycle, mut observer) = cycle(link, MonotonicClock, DRIVES, controller, configuration);
    let stop = StopHandle::new();
    let (tell, told) = std::sync::mpsc::channel();
    let disturbed = thread::scope(|scope| {
        let running = scope.spawn(|| {
            tell.send(machine::task::current()).unwrap();
            let _granted = Granted::ask(&RealTimeProfile::default());
            cycle.run(&stop)
        });
        let tid = told.recv().unwrap();
        let times = (PERIOD, Duration::ZERO);
        let watch = CycleWatch::start(Detail::Backtraces, tid, times, &SIMULATED_SYSTEM_CALLS).unwrap();
        let mut cycles = 0;
        while cycles < 200 {
            // The first cycles in Op still enable the drives; that allocates nothing either.
            let in_op = observer.status().phase == BringUpPhase::Op;
            while let Some(record) = observer.next_record() {
                if in_op {
                    watch.see(&record);
                    cycles += 1;
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        watch.close();
        stop.stop();
        assert_eq!(running.join().unwrap().failure, None);
        watch.read().remove(0)
    });
    assert_eq!(disturbed.name, "cycle");
    disturbed
}

struct Careless {
    sway: Sway,
    careless: bool,
}

impl Controller for Careless {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        if self.careless && info.cycle % 10 == 0 {
            looks_into_a_file();
        }
    }
}

#[inline(never)]
fn looks_into_a_file() {
    black_box(std::fs::read("/proc/self/comm").unwrap());
}
