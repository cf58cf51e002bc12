//! Profiles on this machine, with the privileges of the test.

use std::time::Duration;

use types::Profile;

use super::*;

fn letters(letters: &str) -> Profile {
    letters.parse().unwrap()
}

/// Policy and affinity stay with the thread they were given.
fn on_a_thread_of_its_own<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn asking_for_nothing_changes_nothing_and_says_so() {
    on_a_thread_of_its_own(|| {
        let granted = Granted::ask(&RealTimeProfile::ORDINARY);
        assert_eq!(granted.to_string(), "SCHED_OTHER, memory not locked, any CPU");
        assert_eq!(granted.refusals().count(), 0);
        assert_eq!((granted.requested(), granted.letters()), (Profile::NONE, Profile::NONE));
        assert_eq!(granted.release(), Vec::<String>::new());
    });
}

#[test]
fn refused_letters_have_reasons_and_the_others_are_granted() {
    on_a_thread_of_its_own(|| {
        let scheduling = Some(Scheduling::Fifo { priority: 100 });
        let profile = RealTimeProfile { scheduling, cpu: Some(1_000_000), ..RealTimeProfile::ORDINARY };
        let granted = Granted::ask(&profile);
        assert_eq!(granted.scheduling.requested(), scheduling);
        let text = granted.to_string();
        assert!(text.contains("SCHED_FIFO 100 refused (EINVAL: priorities are 1 to 99)"), "{text}");
        assert!(text.contains("CPU 1000000 refused (EINVAL: this process may use CPUs "), "{text}");
        assert_eq!(granted.refusals().count(), 2);
        assert_eq!((granted.requested(), granted.letters()), (letters("P"), Profile::NONE));
    });
}

// feature(hold): P, M, C and S: each requested alone, granted or refused with a reason, restored
#[test]
fn each_letter_is_requested_separately() {
    let fifo = Some(Scheduling::Fifo { priority: 10 });
    let all = RealTimeProfile {
        scheduling: fifo,
        memory: Some(Residency::default()),
        shield: true,
        spin: Some(Profile::SPIN_MARGIN),
        cpu: None,
    };
    assert_eq!(all.letters(), letters("PMCS"));
    assert_eq!(RealTimeProfile { scheduling: None, ..all }.letters(), letters("MCS"));
    assert_eq!(RealTimeProfile { memory: None, ..all }.letters(), letters("PCS"));
    assert_eq!(RealTimeProfile { shield: false, ..all }.letters(), letters("PMS"));
    assert_eq!(RealTimeProfile { spin: None, ..all }.letters(), letters("PMC"));
}

// feature(hold): P, M, C and S: each requested alone, granted or refused with a reason, restored
#[test]
fn what_was_granted_is_given_back() {
    on_a_thread_of_its_own(|| {
        let before = (scheduling::attributes().unwrap(), task::affinity(task::current()).unwrap());
        let cpu = before.1.last();
        let granted = Granted::ask(&RealTimeProfile { cpu, ..RealTimeProfile::default() });
        if granted.scheduling.is_granted() {
            assert_ne!(scheduling::attributes().unwrap(), before.0);
        } else {
            eprintln!("skipped in part: {granted}");
        }
        assert_eq!(task::affinity(task::current()).unwrap(), Cpus::one(cpu.unwrap()));
        assert_eq!(granted.release(), Vec::<String>::new());
        let after = (scheduling::attributes().unwrap(), task::affinity(task::current()).unwrap());
        assert_eq!(after, before);
    });
}

// feature(hold): SCHED_DEADLINE instead of SCHED_FIFO
#[test]
fn a_spin_longer_than_the_reservation_is_refused() {
    on_a_thread_of_its_own(|| {
        let (runtime, period) = (Duration::from_micros(40), Duration::from_millis(1));
        let scheduling = Some(Scheduling::Deadline { runtime, deadline: period, period });
        let profile =
            RealTimeProfile { scheduling, spin: Some(Profile::SPIN_MARGIN), ..RealTimeProfile::ORDINARY };
        let granted = Granted::ask(&profile);
        assert!(granted.spin.refusal().unwrap().1.contains("40µs would be spun away"), "{granted}");
        assert_eq!(granted.spin_margin(), Duration::ZERO);
    });
}

// feature(hold): SCHED_DEADLINE instead of SCHED_FIFO
#[test]
fn a_reservation_is_granted_or_says_why_not() {
    on_a_thread_of_its_own(|| {
        let (runtime, period) = (Duration::from_micros(100), Duration::from_millis(10));
        let scheduling = Scheduling::Deadline { runtime, deadline: period, period };
        let profile = RealTimeProfile { scheduling: Some(scheduling), ..RealTimeProfile::ORDINARY };
        let granted = Granted::ask(&profile);
        match granted.scheduling.refusal() {
            None => assert!(granted.to_string().starts_with("SCHED_DEADLINE 100µs in 10ms"), "{granted}"),
            Some((asked, why)) => {
                eprintln!("skipped in part: {why}");
                assert_eq!(asked, scheduling);
            }
        }
    });
}

// feature(program): the actual scheduling of a thread, read back; a policy set from outside is reported
#[test]
fn external_policy_is_read_back_and_reported() {
    on_a_thread_of_its_own(|| {
        let outside = Scheduling::Fifo { priority: 50 };
        if let Err(error) = scheduling::schedule(outside) {
            return testkit::skip!("{}", refusal::scheduling(outside, &error));
        }
        let kept = Granted::ask(&RealTimeProfile::ORDINARY);
        assert!(kept.to_string().starts_with("SCHED_FIFO 50, memory"), "{kept}");
        let notes: Vec<_> = kept.notes().collect();
        assert!(
            notes.contains(&"scheduled as SCHED_FIFO 50, which it was started with".to_owned()),
            "{notes:?}"
        );
        assert_eq!(kept.release(), Vec::<String>::new());

        let scheduling = Some(Scheduling::Fifo { priority: 79 });
        let changed = Granted::ask(&RealTimeProfile { scheduling, ..RealTimeProfile::ORDINARY });
        let text = changed.to_string();
        assert!(text.starts_with("SCHED_FIFO 79 (it was started with SCHED_FIFO 50), memory"), "{text}");
        assert!(changed.notes().any(|it| it.contains("instead of SCHED_FIFO 50")));
        assert_eq!(changed.release(), Vec::<String>::new());

        let scheduling = Some(Scheduling::Fifo { priority: 100 });
        let refused =
            Granted::ask(&RealTimeProfile { scheduling, ..RealTimeProfile::ORDINARY }).to_string();
        assert!(refused.contains("1 to 99), SCHED_FIFO 50 instead,"), "{refused}");
    });
}
