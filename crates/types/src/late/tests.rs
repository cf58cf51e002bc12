use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;

use super::*;

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

#[test]
fn causes_are_readable() {
    let told = |kind, name: &str, ns| Cause { kind, name: name.to_owned(), ns }.to_string();
    assert_eq!(told(Kind::Task, "kworker/1:2", 120_000), "kworker/1:2 ran 120 us");
    assert_eq!(told(Kind::Irq, "24 eth0", 61_200), "irq 24 eth0 61 us");
    assert_eq!(told(Kind::Steal, "hypervisor", 3_400_000), "asleep in the hypervisor 3.4 ms: steal");
    assert_eq!(told(Kind::Own, "controller", 412_000), "our own controller took 412 us");
    assert_eq!(told(Kind::Unknown, "nothing recorded", 400), "nothing recorded 0.4 us: unknown");
    assert_eq!(
        [ShortTime(9_960), ShortTime(999_600), ShortTime(1_200_000_000)].map(|it| it.to_string()),
        ["10 us", "1.0 ms", "1.2 s"]
    );
}

/// The sentence of a cycle with its largest causes is the sentence of the cycle.
#[test]
fn left_out_causes_do_not_change_the_sentence() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let causes = names.map(|name| cause(Kind::Task, name, 1_000)).to_vec();
    let (all, largest) = (late_by(causes.clone()), late_by(causes).with_largest_causes());
    assert_eq!(largest.causes.len(), NAMED);
    assert_eq!(largest.to_string(), all.to_string());
    assert!(all.to_string().ends_with("e ran 1.0 us, others 2.0 us"), "{all}");
}
