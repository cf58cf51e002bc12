//! Watchdogs in the robot file: of the bus, of a device, of one SubDevice.

use crate::support;

use std::time::Duration;

use ethercat::main_device::Watchdog;
use onbeat_robot::RobotConfig;
use support::spoiled;

const GOOD: &str = r#"
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
    assert_eq!(watchdogs(GOOD), [after(100); 3]);
    let of_bus = GOOD.replace("[bus]\n", "[bus]\nprocess_data_watchdog = \"40ms\"\n");
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
    assert_eq!(pdi(GOOD), None);
    assert_eq!(pdi(&GOOD.replace("\"two\"", "\"two\"\npdi_watchdog = \"off\"")), Some(Watchdog::Off));
    assert_eq!(pdi(&GOOD.replace("[bus]\n", "[bus]\npdi_watchdog = \"20ms\"\n")), Some(after(20)));
}

#[test]
fn a_long_period_has_a_longer_watchdog_by_default() {
    assert_eq!(watchdogs(&GOOD.replace("\"1ms\"", "\"50ms\"")), [after(200); 3]);
}

#[test]
fn a_time_that_does_not_suit_the_cycle_is_refused() {
    let sentence = |value: &str| {
        let bad = format!("[bus]\nprocess_data_watchdog = {value}\n");
        spoiled(GOOD, "[bus]\n", &bad).to_string()
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
    let pdi = spoiled(GOOD, "[bus]\n", "[bus]\npdi_watchdog = \"0s\"\n").to_string();
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
    let many = |first: &str, count: u32| GOOD.replace(first, &format!("\"many-{{}}\"\ncount = {count}"));
    let refused = |text: &str| RobotConfig::parse(text, "r.toml").unwrap_err().to_string();
    assert!(RobotConfig::parse(&many("\"one\"", 4094), "r.toml").is_ok());
    let found = refused(&many("\"one\"", 4095));
    assert!(found.contains("more than 4096 SubDevices"), "{found}");
    let found = refused(&many("\"one\"", 4097));
    assert!(found.contains("count = 4097, expected 1 to 4096"), "{found}");
}
