//! `[cycle]` of a robot file: its keys and its profile.
//!
//! Watchdogs in the robot file: of the bus, of a device, of one SubDevice.

use std::time::Duration;

use ethercat::main_device::Watchdog;
use onbeat_robot::{Overrides, RobotConfig};
use support::{sentence, spoiled};

use crate::support;

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

const WATCHED: &str = r#"
[cycle]
period = "1ms"

[device.terminal]
simulate = { kind = "digital_outputs", channels = 8 }

[bus]

[[bus.sub_device]]
name = "one"
device = "terminal"

[[bus.sub_device]]
name = "two"
device = "terminal"

[[bus.sub_device]]
name = "three"
simulate = { kind = "digital_inputs", channels = 8 }
"#;

/// Process data watchdogs of the three.
fn watchdogs(text: &str) -> [Watchdog; 3] {
    let robot = RobotConfig::parse(text, "r.toml").expect("a good file");
    let [one, two, three] = &robot.bus.sub_devices[..] else { panic!("three") };
    [one, two, three].map(|it| it.process_data_watchdog)
}

fn after(milliseconds: u64) -> Watchdog {
    Watchdog::After(Duration::from_millis(milliseconds))
}

// feature(program): watchdogs in the robot file, in `scan -v`, and a warning where outputs have none
#[test]
fn the_nearest_key_wins() {
    assert_eq!(watchdogs(WATCHED), [after(100); 3]);
    let of_bus = WATCHED.replace("[bus]\n", "[bus]\nprocess_data_watchdog = \"40ms\"\n");
    assert_eq!(watchdogs(&of_bus), [after(40); 3]);
    let of_device =
        of_bus.replace("[device.terminal]", "[device.terminal]\nprocess_data_watchdog = \"off\"");
    assert_eq!(watchdogs(&of_device), [Watchdog::Off, Watchdog::Off, after(40)]);
    let of_one = of_device.replace("\"two\"", "\"two\"\nprocess_data_watchdog = \"7ms\"");
    assert_eq!(watchdogs(&of_one), [Watchdog::Off, after(7), after(40)]);
}

#[test]
fn pdi_watchdog_is_unchanged_unless_configured() {
    let pdi = |text: &str| RobotConfig::parse(text, "r.toml").unwrap().bus.sub_devices[1].pdi_watchdog;
    assert_eq!(pdi(WATCHED), None);
    assert_eq!(pdi(&WATCHED.replace("\"two\"", "\"two\"\npdi_watchdog = \"off\"")), Some(Watchdog::Off));
    assert_eq!(pdi(&WATCHED.replace("[bus]\n", "[bus]\npdi_watchdog = \"20ms\"\n")), Some(after(20)));
}

#[test]
fn a_long_period_has_a_longer_watchdog_by_default() {
    assert_eq!(watchdogs(&WATCHED.replace("\"1ms\"", "\"50ms\"")), [after(200); 3]);
}

#[test]
fn a_time_that_does_not_suit_the_cycle_is_refused() {
    let sentence = |value: &str| {
        let bad = format!("[bus]\nprocess_data_watchdog = {value}\n");
        spoiled(WATCHED, "[bus]\n", &bad).to_string()
    };
    assert_eq!(
        sentence("\"1ms\""),
        "r.toml:9:25: process_data_watchdog = 1ms, expected two periods of 1ms to 2min, or \"off\": choose \
         another time"
    );
    assert!(sentence("\"3min\"").contains("3min"), "{}", sentence("\"3min\""));
    for wrong in ["\"on\"", "100", "true"] {
        let found = sentence(wrong);
        assert!(found.contains("a duration in quotes, as in \"100ms\", or \"off\""), "{found}");
    }
    let pdi = spoiled(WATCHED, "[bus]\n", "[bus]\npdi_watchdog = \"0s\"\n").to_string();
    assert!(pdi.contains("pdi_watchdog = 0ns, expected 1us to 2min"), "{pdi}");
}

/// The example of six axes, with a key of its bus and one of its drives.
fn six_axis(bus: &str, drive: &str) -> Result<RobotConfig, String> {
    let text = include_str!("../../../examples/six-axis.toml");
    let drive = format!("device = \"servo\"\n{drive}");
    let text =
        text.replacen("[bus]\n", &format!("[bus]\n{bus}"), 1).replacen("device = \"servo\"\n", &drive, 1);
    RobotConfig::parse(&text, "r.toml").map_err(|error| error.to_string())
}

// feature(axes): the watchdog of a drive with axes cannot be switched off
#[test]
fn a_drive_with_axes_has_a_watchdog() {
    let off = "process_data_watchdog = \"off\"\n";
    for found in [six_axis(off, ""), six_axis("", off)] {
        let found = found.expect_err("off");
        let refused = "axis \"axis-1\" on \"drive-1\" with process_data_watchdog = \"off\", expected a drive that stops by itself";
        let remedy = ": give that SubDevice a time, as process_data_watchdog = \"100ms\"";
        assert!(found.contains(refused) && found.ends_with(remedy), "{found}");
    }
    assert!(six_axis(off, "process_data_watchdog = \"90ms\"\n").is_ok());
}

// feature(axes): `check` reports an `outage_time` that is not below the watchdog of a drive
#[test]
fn an_outage_time_is_below_the_watchdog() {
    let doubts = |watchdog: &str| {
        let key = format!("process_data_watchdog = \"{watchdog}\"\n");
        six_axis(&key, "").expect("a good file").doubts()
    };
    assert_eq!(doubts("81ms"), [""; 0]);
    for watchdog in ["80ms", "50ms"] {
        let found = doubts(watchdog);
        let [doubt] = &found[..] else { panic!("{found:?}") };
        let says = format!(
            "cycle: outage_time = 80ms is not below {watchdog}, the process_data_watchdog of axis \"axis-1\""
        );
        assert!(doubt.starts_with(&says), "{doubt}");
    }
    // By default it is 20 periods.
    let text = include_str!("../../../examples/first-drive.toml");
    let doubts = |period: &str| {
        let text = text.replace("period = \"1ms\"", &format!("period = \"{period}\""));
        RobotConfig::parse(&text, "r.toml").expect("a good file").doubts()
    };
    assert_eq!(doubts("4ms"), [""; 0]);
    let found = doubts("5ms");
    let says = "cycle: outage_time = 100ms (20 periods, the default) is not below 100ms";
    assert!(
        found.len() == 1 && found[0].starts_with(says) && found[0].ends_with("as \"50ms\""),
        "{found:?}"
    );
}

// feature(axes): `check` reports `after_outage = "resume"` where a drive is not simulated
#[test]
fn a_resume_on_a_wire_is_doubtful() {
    let doubts = |text: &str| RobotConfig::parse(text, "r.toml").expect("a good file").doubts();
    let simulated = include_str!("../../../examples/six-axis.toml");
    assert_eq!(doubts(simulated), [""; 0]);
    let simulate = simulated.find("[device.servo.simulate]").expect("a simulation");
    let next = simulate + 1 + simulated[simulate + 1..].find("\n[").expect("another table");
    let real = [&simulated[..simulate], &simulated[next..]].concat();
    let found = doubts(&real);
    let says = "cycle: after_outage = \"resume\", and the drive of axis \"axis-1\" is not simulated: ";
    assert!(found.len() == 1 && found[0].starts_with(says), "{found:?}");
    assert_eq!(doubts(&real.replace("after_outage = \"resume\"", "")), [""; 0]);
}

// feature(program): a bus of at most 4096 SubDevices, refused where it is read
#[test]
fn a_bus_has_no_more_sub_devices_than_can_be_addressed() {
    let many = |first: &str, count: u32| WATCHED.replace(first, &format!("\"many-{{}}\"\ncount = {count}"));
    let refused = |text: &str| RobotConfig::parse(text, "r.toml").unwrap_err().to_string();
    assert!(RobotConfig::parse(&many("\"one\"", 4094), "r.toml").is_ok());
    let found = refused(&many("\"one\"", 4095));
    assert!(found.contains("more than 4096 SubDevices"), "{found}");
    let found = refused(&many("\"one\"", 4097));
    assert!(found.contains("count = 4097, expected 1 to 4096"), "{found}");
}
