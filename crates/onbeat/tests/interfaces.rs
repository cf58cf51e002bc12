//! Runs on network interfaces, with simulated SubDevices at their other ends: each pair has a
//! separate cable.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use onbeat::{Control, Controller, Error, OpenError, Phase, Progress, Reporter, Robot, Summary};
use onbeat_ethercat_linux::serve::Server;
use testkit::{Side, Testbed};

/// Leaves all axes as they are.
struct Still;

impl Controller for Still {}

fn robot() -> Robot {
    let six_axis = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml");
    Robot::load(six_axis).unwrap().without_ipc().interface(Side::Near.interface())
}

/// Runs `work` at the near end of a cable with a robot's SubDevices at the other end.
fn at_a_robot<T: Send>(testbed: &Testbed, work: impl FnOnce() -> T + Send) -> T {
    let stop = AtomicBool::new(false);
    let mut segment = onbeat::compose::segment::segment(robot().config()).unwrap();
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface()).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| server.run(&mut segment, &stop).unwrap());
        let done = testbed.inside(Side::Near, work);
        stop.store(true, Ordering::Relaxed);
        done
    })
}

fn ran(run: Result<Summary, Error>) -> u64 {
    let summary = run.unwrap();
    assert!(summary.failure.is_none() && summary.conditions.link.starts_with("near"), "{summary:?}");
    summary.cycles()
}

// feature(library): concurrent runs, simulated and on separate interfaces
#[test]
fn runs_on_two_interfaces_are_concurrent() {
    let testbeds = match (Testbed::new(), Testbed::new()) {
        (Ok(one), Ok(other)) => [one, other],
        (Err(skip), _) | (_, Err(skip)) => return testkit::skip!("{skip}"),
    };
    let run = |cycles: u64| move || ran(robot().cycles(cycles).run(Still));
    thread::scope(|scope| {
        let beside = scope.spawn(|| at_a_robot(&testbeds[1], run(1_000)));
        assert_eq!(at_a_robot(&testbeds[0], run(300)), 300);
        assert!(!beside.is_finished());
        assert_eq!(beside.join().unwrap(), 1_000);
    });
}

// feature(library): errors to match on: interface, robot file, signal, bring-up, recording, panic
#[test]
fn second_run_on_an_interface_is_refused() {
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let (cycles, second) = at_a_robot(&testbed, || {
        let (tell, measuring) = mpsc::channel();
        thread::scope(|scope| {
            let first = robot().program("first").cycles(2_000);
            let first = move || first.run_by(Control::own(Still), &mut Tells(tell));
            let first = scope.spawn(first);
            measuring.recv().unwrap();
            let second = robot().cycles(10).run(Still);
            (ran(first.join().unwrap()), second)
        })
    });
    let Err(Error::Interface(OpenError::Held { owner, .. })) = second else { panic!("{second:?}") };
    assert_eq!(owner.doing, "first run, robot \"six-axis\"");
    assert_eq!(cycles, 2_000);
    // After the first the interface is free again.
    assert_eq!(at_a_robot(&testbed, || ran(robot().cycles(50).run(Still))), 50);
}

/// Signals that a run measures.
struct Tells(Sender<()>);

impl Reporter for Tells {
    fn progress(&mut self, progress: &Progress<'_>) {
        if progress.phase == Phase::Measuring {
            // The first time counts.
            let _ = self.0.send(());
        }
    }
}
