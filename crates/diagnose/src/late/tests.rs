use super::*;

#[test]
fn a_cycle_is_late_by_its_start_or_by_its_end() {
    let cycle = |start, end| CycleTimes {
        record: CycleRecord { end_ns: end, ..CycleRecord::begin(1, 1_000, start) },
        previous: None,
        period_ns: 1_000,
        thread: 7,
        waits_for_reply: false,
    };
    assert_eq!(cycle(1_050, 1_900).lateness(), (Late::Start, 50));
    assert_eq!(cycle(1_050, 2_040).lateness(), (Late::Start, 50));
    assert_eq!(cycle(1_050, 2_300).lateness(), (Late::End, 300));
    assert_eq!(cycle(1_000, 1_000).lateness(), (Late::Start, 0));
}

fn cause(kind: Kind, name: &str, ns: u64) -> Cause {
    Cause { kind, name: name.to_owned(), ns }
}

fn late_by(causes: Vec<Cause>) -> LateCycle {
    let late_ns = causes.iter().map(|cause| cause.ns).sum();
    LateCycle {
        cycle: 48_213,
        late_ns,
        late: Late::Start,
        release_ns: 0,
        start_ns: late_ns,
        end_ns: late_ns,
        causes,
    }
}

#[test]
fn a_late_cycle_is_one_line() {
    let cycle = late_by(vec![
        cause(Kind::Task, "kworker/1:2", 120_000),
        cause(Kind::Irq, "24 eth0", 61_000),
        cause(Kind::Unknown, "waking up", 1_700),
    ]);
    assert_eq!(
        cycle.to_string(),
        "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61 us, others 1.7 us"
    );
}

fn causes(shares: &[(Kind, &str, u64)]) -> Causes {
    let mut causes = Causes::default();
    for &(kind, name, ns) in shares {
        causes.add(kind, name, ns);
    }
    causes
}

#[test]
fn causes_are_readable() {
    let told = |kind, name: &str, ns| Cause { kind, name: name.to_owned(), ns }.to_string();
    assert_eq!(told(Kind::Task, "kworker/1:2", 120_000), "kworker/1:2 ran 120 us");
    assert_eq!(told(Kind::Irq, "24 eth0", 61_200), "irq 24 eth0 61 us");
    assert_eq!(told(Kind::Steal, "hypervisor", 3_400_000), "asleep in the hypervisor 3.4 ms: steal");
    assert_eq!(told(Kind::Own, "controller", 412_000), "our own controller took 412 us");
    assert_eq!(told(Kind::Unknown, NOT_RECORDED, 400), "nothing recorded 0.4 us: unknown");
    assert_eq!(
        [Time(9_960), Time(999_600), Time(1_200_000_000)].map(|it| it.to_string()),
        ["10 us", "1.0 ms", "1.2 s"]
    );
}

#[test]
fn what_is_missing_is_unknown_and_what_is_too_much_is_shared() {
    let few =
        causes(&[(Kind::Task, "a", 30), (Kind::Irq, "b", 10), (Kind::Task, "a", 20)]).adding_up_to(100);
    assert_eq!(few.iter().map(|it| it.ns).collect::<Vec<_>>(), [50, 40, 10]);
    assert_eq!((few[1].kind, few[1].name.as_str()), (Kind::Unknown, NOT_RECORDED));
    let many =
        causes(&[(Kind::Task, "a", 100), (Kind::Steal, "b", 200), (Kind::Irq, "c", 1)]).adding_up_to(150);
    assert_eq!(
        many.iter().map(|it| (it.name.as_str(), it.ns)).collect::<Vec<_>>(),
        [("b", 101), ("a", 49)]
    );
    assert!(causes(&[(Kind::Task, "a", 5)]).adding_up_to(0).is_empty());
}
