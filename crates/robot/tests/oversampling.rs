//! Oversampling in a robot file: SYNC0 and SYNC1 of a factor, signals that are the samples of a
//! channel.
use crate::support;

use std::time::Duration;

use ethercat::main_device::{Oversampling, Sync0, Sync1};
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use onbeat_robot::{ApplicationKind, RobotConfig, TerminalModel};
use types::{Signal, ValueType};

const VIBRATION: &str = include_str!("../../../examples/vibration.toml");

/// Inputs of an EL3702 with four samples of each channel, in two SyncManagers.
fn el3702() -> PdoMapping {
    let pdo = |index: u16, sync_manager: u8, value: u32| {
        let entry = PdoEntry { data_type: 0x0003, ..PdoEntry::from_mapping_value(value) };
        Pdo {
            index,
            sync_manager: Some(sync_manager),
            fixed: true,
            name: String::new(),
            entries: vec![entry],
        }
    };
    let samples = |index: u16, place: u8, value: u32| {
        (0..4_u16).map(move |number| pdo(index + number, place, value + (u32::from(number) << 20)))
    };
    let first = [pdo(0x1B00, 0, 0x6800_0110)].into_iter().chain(samples(0x1A00, 0, 0x6000_0110));
    let second = [pdo(0x1B01, 1, 0x6800_0210)].into_iter().chain(samples(0x1A80, 1, 0x6000_0210));
    PdoMapping { outputs: Vec::new(), inputs: first.chain(second).collect() }
}

const FILE: &str = r#"
[cycle]
period = "1ms"
[bus]
distributed_clocks = true
[[bus.sub_device]]
name = "adc"
dc = { oversampling = 4 }
"#;

/// Signals of the terminal with these lines of one.
fn signals(lines: &str) -> Result<Vec<Signal>, String> {
    let text = format!("{FILE}[[signal]]\nname = \"it\"\nsub_device = \"adc\"\n{lines}\n");
    let robot = RobotConfig::parse(&text, "r.toml").map_err(|error| error.to_string())?;
    let mapping = el3702();
    robot.signals(|_| Some(&mapping)).map_err(|error| error.to_string())
}

/// The factor divides the time from one exchange to the next: SYNC0 is the part, SYNC1 the whole.
// feature(signals): oversampling: `oversampling` in `dc`, signals that are the samples of a channel in a cycle
#[test]
fn a_factor_gives_sync0_and_sync1_their_cycles() {
    let robot = RobotConfig::parse(VIBRATION, "r.toml").unwrap();
    let [outputs, inputs] = [1, 2].map(|position| &robot.bus.sub_devices[position]);
    let (us, ms) = (Duration::from_micros, Duration::from_millis);
    assert_eq!(outputs.sync0, Some(Sync0 { cycle: us(100), shift: us(0) }));
    assert_eq!(inputs.sync0, Some(Sync0 { cycle: us(100), shift: us(50) }));
    assert_eq!(inputs.sync1, Some(Sync1 { cycle: ms(1), delay: us(0) }));
    let expected = Oversampling { samples: 10, pdos: vec![0x1A00, 0x1A80] };
    assert_eq!(inputs.oversampling, Some(expected.clone()));
    assert_eq!(inputs.configuration().oversampling, Some(expected));
    let simulation = inputs.simulation.as_ref().unwrap();
    assert_eq!(
        (simulation.application, simulation.terminal, simulation.channels),
        (ApplicationKind::AnalogueInput, Some(TerminalModel::El3702), 2)
    );
    // With process data every third cycle they are samples of three cycles.
    let slow = FILE.replace("oversampling = 4 }", "oversampling = 8, sync1_delay = \"5us\" }\nevery = 3");
    let robot = RobotConfig::parse(&slow, "r.toml").unwrap();
    let slow = &robot.bus.sub_devices[0];
    assert_eq!(slow.sync0, Some(Sync0 { cycle: us(375), shift: us(0) }));
    assert_eq!(slow.sync1, Some(Sync1 { cycle: ms(3), delay: us(5) }));
}

/// Factors that SYNC0 does not fit, that no terminal offers, or next to keys with the same meaning.
// feature(signals): oversampling: `oversampling` in `dc`, signals that are the samples of a channel in a cycle
#[test]
fn a_factor_that_does_not_fit_is_refused() {
    let good = "oversampling = 4";
    let model = |kind: &str| format!("{good} }}\nsimulate = {{ kind = \"{kind}\"");
    for (good, bad, expected) in [
        (
            good,
            "oversampling = 7",
            "oversampling = 7, expected a factor that divides the 1ms from one exchange of the process data to the next into times \
             of whole ns, 1us at least: choose another, as 2, 4, 5, 8 or 10",
        ),
        (good, "oversampling = 101", "oversampling = 101, expected 2 to 100: correct oversampling"),
        (good, "oversampling = 1", "oversampling = 1, expected 2 to 100: correct oversampling"),
        (
            good,
            "oversampling = 4, sync0 = \"250us\"",
            "sync0 together with oversampling = 4, expected one of the two: oversampling gives \
             SYNC0 and SYNC1 their cycles: remove sync0",
        ),
        (
            good,
            "samples = [0x1A00]",
            "samples without oversampling, expected oversampling, how many samples these PDOs hold: add it",
        ),
        (
            "distributed_clocks = true",
            "",
            "dc on a bus without distributed clocks, expected them on: set distributed_clocks = true in [bus] or remove dc",
        ),
        (
            "dc = { oversampling = 4 }",
            "simulate = { kind = \"el3702\" }",
            "a simulated el3702 without SYNC1, expected dc = { oversampling = 10 } or the like: SYNC0 samples, SYNC1 hands over: add dc",
        ),
    ] {
        assert_eq!(support::sentence(FILE, good, bad), expected);
    }
    let fast = FILE.replace("1ms", "200us").replace("= 4", "= 40");
    assert_eq!(
        support::sentence(&fast, "oversampling = 40", &model("el4732").replace("= 4 ", "= 40 ")),
        "a sample every 5us of a simulated el4732, expected 10us at least: lower oversampling"
    );
}

/// A channel is a sampled one, its elements are the samples; each is a separate INT with unit and
/// scale.
// feature(signals): oversampling: `oversampling` in `dc`, signals that are the samples of a channel in a cycle
#[test]
fn elements_are_the_samples_of_a_channel() {
    let of = |lines: &str| -> Vec<(String, usize, ValueType)> {
        let all = signals(lines).unwrap();
        let own = all.into_iter().filter(|it| it.name.starts_with("it"));
        own.map(|it| (it.name, it.bit_offset, it.value_type)).collect()
    };
    let int = ValueType::Signed(16);
    let named = |offsets: [usize; 4]| -> Vec<_> {
        (0..4).map(|number| (format!("it[{number}]"), offsets[number], int)).collect()
    };
    assert_eq!(of("channel = 1\nelements = 4"), named([16, 32, 48, 64]));
    assert_eq!(of("channel = 2\nelements = 4"), named([96, 112, 128, 144]));
    assert_eq!(of("entry = { index = 0x6000, sub_index = 2 }\nelements = 4"), named([96, 112, 128, 144]));
    // Not from the first sample on, and the counter of the blocks.
    assert_eq!(
        of("entry = { index = 0x6030, sub_index = 1 }\nelements = 1"),
        [("it[0]".to_owned(), 64, int)]
    );
    assert_eq!(of("entry = { index = 0x6800, sub_index = 1 }").len(), 1);
    let scaled = signals("channel = 1\nelements = 4\nunit = \"V\"\nscale = 0.5").unwrap();
    let scaled: Vec<_> = scaled.iter().filter(|it| it.name.starts_with("it")).collect();
    assert!(scaled.iter().all(|it| it.unit == "V" && it.scaling.is_some_and(|it| it.scale == 0.5)));
}

/// One name for an array is no value; more elements than samples would reach into another channel.
// feature(signals): oversampling: `oversampling` in `dc`, signals that are the samples of a channel in a cycle
#[test]
fn a_name_of_one_value_and_too_many_elements_are_refused() {
    for (lines, expected) in [
        (
            "channel = 1",
            "signal \"it\" of one value on 0x6000:01 (16 bits), expected elements = 4, the samples that \"adc\" has there each cycle: \
             add elements, or elements = 1 for this sample alone",
        ),
        (
            "entry = { index = 0x6020, sub_index = 1 }\nelements = 3",
            "3 elements of the signal \"it\" from 0x6020:01 (16 bits) on, expected at most 2, the samples that \"adc\" has there each cycle: \
             correct elements",
        ),
        (
            "channel = 2\nelements = 5",
            "5 elements of the signal \"it\" from 0x6000:02 (16 bits) on, expected at most 4, the samples that \"adc\" has there each cycle: \
             correct elements",
        ),
        (
            "channel = 3\nelements = 4",
            "channel 3 for the signal \"it\", expected 1 to 2, the input channels of \"adc\": correct channel",
        ),
    ] {
        let error = signals(lines).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
}
