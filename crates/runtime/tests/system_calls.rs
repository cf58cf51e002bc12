//! strace sees the cycle on a real interface, with a seam that others read and write all the time: one call to send a
//! frame, one to take it, one to sleep.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ethercat::cia402::State;
use onbeat_runtime::clock::MonotonicClock;
use onbeat_runtime::controller::{Asked, AxisCommand, AxisReport, Beat, Controller, Told};
use onbeat_runtime::cycle::CycleConfiguration;
use onbeat_runtime::link::PacketLink;
use onbeat_runtime::serve::Server;
use support::{Peers, SeamFolder, Servant, cycle_of, rules, seam, segment, supervised};
use testbed::{Side, Testbed};

const DRIVES: usize = 6;

/// strace makes every system call slow: a period with room for it.
const PERIOD: Duration = Duration::from_millis(20);

/// Beats between the two marks.
const BEATS: u64 = 100;

#[test]
fn a_beat_makes_two_system_calls_a_frame_and_one_sleep() {
    if Command::new("strace").arg("-V").output().is_err() {
        return eprintln!("skipped: needs strace (Debian: strace)");
    }
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return eprintln!("skipped: {skip}"),
    };
    let server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
    let stop = AtomicBool::new(false);
    let trace = std::env::temp_dir().join(format!("onbeat-strace-{}", std::process::id()));
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&mut segment(DRIVES), &stop));
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(&trace).arg(std::env::current_exe().unwrap());
        strace.args(["--exact", "cycle_under_strace", "--ignored", "--nocapture"]);
        let output = testbed.run_in(Side::Near, strace).output().unwrap();
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    let calls = calls_between_marks(&trace);
    std::fs::remove_file(&trace).unwrap();
    let frames = calls.get("sendto").copied().unwrap_or(0);
    assert!(frames >= BEATS, "{calls:?}");
    let count = |name: &str| calls.get(name).copied().unwrap_or(0);
    // Where a busy machine let a reply come too late, the look for it found nothing, and the reply that the
    // last mark cut off may be missing.
    let in_vain = count(IN_VAIN);
    assert!(in_vain <= BEATS / 4, "the machine is too busy to tell: {calls:?}");
    assert!((frames - in_vain..=frames + in_vain).contains(&count("recvfrom")), "{calls:?}");
    assert_eq!(count("clock_nanosleep"), BEATS, "{calls:?}");
    let known = ["sendto", "recvfrom", "clock_nanosleep", IN_VAIN];
    assert!(calls.keys().all(|name| known.contains(&name.as_str())), "{calls:?}");
}

/// System calls of the thread that made the marks, between the first mark and the last, by name.
fn calls_between_marks(trace: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(trace).unwrap();
    let marked: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(MARK))
        .filter_map(|(number, line)| Some((number, line.split_whitespace().next()?)))
        .collect();
    let [(first, thread), .., (last, _)] = marked[..] else {
        panic!("no two marks in the trace: {marked:?}")
    };
    let mut calls = BTreeMap::new();
    for line in text.lines().take(last).skip(first + 1) {
        // "1234  sendto(4, ...) = 92", or "1234  <... sendto resumed>) = 92" for one already counted.
        let Some(call) = line.strip_prefix(thread).map(str::trim_start) else { continue };
        if let Some((name, rest)) = call.split_once('(') {
            let name = if rest.contains("EAGAIN") { IN_VAIN } else { name };
            if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    calls
}

/// A receive that found nothing.
const IN_VAIN: &str = "receive_in_vain";

/// What a mark looks like in the trace: a system call that nothing else here makes.
const MARK: &str = "sched_yield(";

/// Marks the first enabled beat, and the one [`BEATS`] later.
struct Marking {
    servant: Servant,
    enabled: u64,
}

impl Controller for Marking {
    fn hear(&mut self, asked: &Asked) {
        self.servant.hear(asked);
    }

    fn tell(&self) -> Told {
        self.servant.tell()
    }

    fn update(&mut self, beat: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        self.servant.update(beat, reports, commands);
        if reports.iter().all(|report| report.state == Some(State::OperationEnabled)) {
            if self.enabled == 0 || self.enabled == BEATS {
                thread::yield_now();
            }
            self.enabled += 1;
        }
    }
}

#[test]
#[ignore = "a part of the test above, which starts it under strace"]
fn cycle_under_strace() {
    let link = PacketLink::open(Side::Near.interface(), Duration::from_secs(5)).unwrap();
    let controller = Marking { servant: Servant::new(DRIVES, 1.0), enabled: 0 };
    let configuration =
        CycleConfiguration { beats: Some(BEATS + 100), ..CycleConfiguration::every(PERIOD) };
    let axes = supervised(DRIVES);
    let (cycle, _observer) = cycle_of(link, MonotonicClock, &axes, controller, configuration);
    let folder = SeamFolder::new("system-calls");
    let (seam, _door, attachment) = seam(&folder, rules(DRIVES));
    let peers = Peers::start(&attachment, DRIVES);
    assert_eq!(cycle.with_seam(seam).run(&AtomicBool::new(false)).failure, None);
    let (read, sent) = peers.stop();
    let command = attachment.state().read().unwrap().command;
    assert!(read > 10 && sent > 10 && command.accepted > 10, "{read} {sent} {command:?}");
}
