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

fn causes(shares: &[(Kind, &str, u64)]) -> Causes {
    let mut causes = Causes::default();
    for &(kind, name, ns) in shares {
        causes.add(kind, name, ns);
    }
    causes
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
