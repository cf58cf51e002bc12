//! `[cycle]` of a robot file: its keys and its profile.
use crate::support;

use std::time::Duration;

use onbeat_robot::{Overrides, RobotConfig};
use support::{sentence, spoiled};

const GOOD: &str = r#"
[cycle]
period = "1ms"
priority = 80

[[bus.sub_device]]
name = "hub"
simulate = { kind = "coupler" }

[controller]
kind = "hold"
"#;

#[test]
fn a_cycle_asks_for_what_there_is() {
    for (bad, sentence_of_it) in [
        (
            "profile = \"PQ\"",
            "r.toml:4:11: profile = \"PQ\", expected letters of PMCS, each once, or \"none\": P is priority, \
             M memory lock, C CPU shield, S spinning sleep, as in \"PM\"",
        ),
        (
            "memory_lock = true",
            "r.toml:4:1: unknown key \"memory_lock\", expected one of period, profile, priority, \
             deadline_runtime, cpu, spin_margin, prepare_nic, nic_cpu, overrun, frame_order, clock, outage_time, after_outage, reset_faults, reset_codes, loss_time: a cycle's memory lock is now the letter M \
             of its profile, as in profile = \"PM\"",
        ),
        (
            "overrun = \"catchup\"",
            "r.toml:4:11: unknown value \"catchup\", expected one of skip, catch-up, stop: did you mean \
             \"catch-up\"?",
        ),
        (
            "outage_time = \"500us\"",
            "r.toml:4:15: outage_time 500us, expected 1ms to 10s: choose some periods, less than the drives' watchdogs \
             wait, as \"20ms\"",
        ),
        (
            "after_outage = \"go\"",
            "r.toml:4:16: unknown value \"go\", expected one of stay, resume: correct or remove the value",
        ),
        (
            "loss_time = \"10ms\"",
            "r.toml:4:13: loss_time 10ms, expected 100ms to 24h: choose how long a cable may be out, as \"10s\", or \
             \"wait\"",
        ),
        (
            "spin_margin = \"2s\"",
            "r.toml:4:15: spin_margin 2s, expected 1us to 1s: choose a little more than the machine's usual \
             wake-up latency, as \"50us\"",
        ),
        (
            "deadline_runtime = \"2ms\"",
            "r.toml:4:20: deadline_runtime 2ms, expected 1024ns to 1ms: reserve what a cycle takes at most, and \
             no more than the period",
        ),
    ] {
        assert_eq!(spoiled(GOOD, "priority = 80", bad).to_string(), sentence_of_it);
    }
}

#[test]
fn value_requests_its_letter_unless_the_profile_excludes_it() {
    for (cycle, letters) in [
        ("cpu = 1", "M"),
        ("priority = 80", "PM"),
        ("deadline_runtime = \"100us\"", "PM"),
        ("spin_margin = \"20us\"", "MS"),
        ("profile = \"C\"\npriority = 80", "C"),
        ("profile = \"none\"\nspin_margin = \"20us\"", "none"),
        ("profile = \"PMCS\"", "PMCS"),
    ] {
        let robot = RobotConfig::parse(&GOOD.replacen("priority = 80", cycle, 1), "r.toml").unwrap();
        assert_eq!(robot.cycle.profile().to_string(), letters, "{cycle}");
    }
}

#[test]
fn a_value_in_the_place_of_the_files_asks_for_its_letter_too() {
    let us = Duration::from_micros;
    let spin = Overrides { spin_margin: Some(us(20)), ..Overrides::default() };
    let priority = Overrides { priority: Some(70), ..Overrides::default() };
    let reserved = Overrides { deadline_runtime: Some(us(300)), ..Overrides::default() };
    let letters = Overrides { profile: "C".parse().ok(), ..priority };
    for (cycle, by, profile) in [
        ("cpu = 1", Overrides::default(), "M"),
        ("cpu = 1", spin, "MS"),
        ("cpu = 1", priority, "PM"),
        ("cpu = 1", reserved, "PM"),
        ("profile = \"C\"", spin, "CS"),
        ("profile = \"none\"\npriority = 80", Overrides::default(), "none"),
        ("profile = \"none\"\npriority = 80", priority, "P"),
        ("spin_margin = \"30us\"", letters, "C"),
    ] {
        let text = GOOD.replacen("priority = 80", cycle, 1);
        let robot = RobotConfig::parse_with(&text, "r.toml", by).unwrap();
        assert_eq!(robot.cycle.profile().to_string(), profile, "{cycle} {by:?}");
    }
    let text = GOOD.replacen("priority = 80", "deadline_runtime = \"100us\"\nspin_margin = \"30us\"", 1);
    let cycle = |by| RobotConfig::parse_with(&text, "r.toml", by).unwrap().cycle;
    assert_eq!((cycle(priority).deadline_runtime, cycle(priority).priority()), (None, 70));
    assert_eq!((cycle(reserved).deadline_runtime, cycle(spin).spin_margin()), (Some(us(300)), us(20)));
    let long = Overrides { deadline_runtime: Some(us(1_001)), ..Overrides::default() };
    let refused = RobotConfig::parse_with(&text, "r.toml", long).unwrap_err().to_string();
    assert!(refused.contains("deadline_runtime 1001us, expected 1024ns to 1ms"), "{refused}");
}

/// An application that is synchronised to SYNC0 takes its process data with it.
#[test]
fn sync0_comes_once_for_each_exchange_unless_it_is_said() {
    let clocks = GOOD.replacen("[[bus", "[bus]\ndistributed_clocks = true\n\n[[bus", 1);
    let with = |keys: &str| {
        let file = clocks.replacen("name = \"hub\"", &format!("name = \"hub\"\n{keys}"), 1);
        RobotConfig::parse(&file, "r.toml").map(|it| it.bus.sub_devices[0].sync0.unwrap().cycle)
    };
    for (keys, cycle) in [
        ("dc = {}", 1),
        ("every = 4\ndc = {}", 4),
        ("every = 4\ndc = { shift = \"3ms\" }", 4),
        ("every = 4\ndc = { sync0 = \"1ms\" }", 1),
    ] {
        assert_eq!(with(keys).unwrap(), Duration::from_millis(cycle), "{keys}");
    }
    let slow = clocks.replacen("period = \"1ms\"", "period = \"10ms\"", 1);
    assert_eq!(
        sentence(&slow, "name = \"hub\"", "name = \"hub\"\nevery = 1000\ndc = {}"),
        "sync0 = 10s, expected 1us to 4s: give another sync0, or a smaller every"
    );
}
