use std::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use proptest::prelude::*;

use super::{Fault, GRAMMAR, OtherIdentity, Port, Script, Share, Targets, Timed};
use crate::application::brake::Sticking;

const NAMES: [&str; 4] = ["coupler", "drive-1", "drive-2", "last one"];

fn targets() -> Targets {
    Targets::line(&NAMES)
}

fn parse(line: &str) -> Result<Timed, String> {
    Timed::parse(line, &targets()).map_err(|error| error.to_string())
}

fn fault(line: &str) -> Fault {
    let timed = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(timed.lasting, None, "{line}");
    timed.fault
}

#[test]
fn a_line_says_a_fault() {
    assert_eq!(fault("power off drive-1"), Fault::Power { position: 1, on: false });
    assert_eq!(fault("  POWER  cycle 3 "), Fault::PowerCycle(3));
    let at = Port { position: 2, port: 1 };
    assert_eq!(fault("cable pull drive-2:1"), Fault::Cable { at, plugged: false });
    let last = Port { position: 3, port: 0 };
    for name in ["\"last one:0\"", "\"last one\":0", "3:0"] {
        assert_eq!(fault(&format!("cable pull {name}")), Fault::Cable { at: last, plugged: false });
    }
    let named = Fault::Power { position: 3, on: false };
    assert_eq!(fault("power off \"last one\""), named);
    assert_eq!(named.named(&targets()), "power off \"last one\"");
    assert_eq!(fault("crc 2:1"), Fault::InvalidFrames { at, count: 1 });
    assert_eq!(fault("crc 2:1 0x10"), Fault::InvalidFrames { at, count: 16 });
    assert_eq!(fault("mailbox stuck 1"), Fault::Mailbox { position: 1, runs: false });
    let code = AlStatusCode(0x1D);
    let refused = Fault::RefuseState { position: 1, state: AlState::SafeOp, code };
    assert_eq!(fault("state refuse 1 safeop 0x1D"), refused);
    let identity = OtherIdentity { vendor: Some(5), serial: Some(0xFFFF_FFFF), ..OtherIdentity::default() };
    let line = "identity 1 serial=0xffffffff vendor=5";
    assert_eq!(fault(line), Fault::Identity { position: 1, identity });
    assert_eq!(fault("clock jump 1 -1.5us"), Fault::ClockJump { position: 1, by: -1500 });
    assert_eq!(fault("clock stale 2:1"), Fault::ReceiveTime { at, latches: false });
    assert_eq!(fault("latch high drive-2 1"), Fault::Latch { position: 2, input: 1, high: true });
    let input = |level| Fault::Input { position: 3, input: 2, level };
    for (word, level) in [("high", Some(true)), ("LOW", Some(false)), ("free", None)] {
        assert_eq!(fault(&format!("input \"last one\":3 {word}")), input(level));
    }
    let timed = parse("input 3:3 low for 2s").unwrap();
    assert_eq!(timed.fault.end(), Some(input(None)));
    let errors = [
        ("input 3:9 low", "an input of that terminal, 1 to 8"),
        ("input 3 low", "as inputs-1:3: add :CHANNEL"),
        ("input 1:1 low", "a simulated terminal with digital inputs"),
        ("input 3:1 on", "high, low or free"),
    ];
    for (line, expected) in errors {
        let error = parse(line).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
    let brake = |sticking| Fault::Brake { position: 2, axis: 1, sticking };
    assert_eq!(fault("brake stuck-closed drive-2:2"), brake(Sticking::Closed));
    let timed = parse("brake stuck-open 2:2 for 2s").unwrap();
    assert_eq!(timed.fault, brake(Sticking::Open));
    assert_eq!(timed.fault.end(), Some(fault("brake free 2:2")));
    let error = parse("brake stuck-open drive-2").unwrap_err();
    let expected =
        "column 18: found \"drive-2\", expected the drive of an axis with brake.feedback: name another";
    assert_eq!(error, expected);
    let encoder = |by, turned| Fault::Encoder { position: 2, axis: 0, by, turned };
    assert_eq!(fault("encoder 2 off by 1 turn"), encoder(1_000, false));
    assert_eq!(fault("encoder 2 turned by -0.5 turns"), encoder(-500, true));
    assert_eq!(fault("drive load 2 -0.5Nm"), Fault::DriveLoad { position: 2, axis: 0, torque: -500 });
    let reversed = Fault::DriveMotor { position: 2, axis: 1, reversed: true };
    assert_eq!(fault("drive motor reversed 2:2"), reversed);
    assert_eq!(fault("drive fault 2:2 1"), Fault::DriveFault { position: 2, axis: 1, code: 1 });
    assert_eq!(fault("frames lose 3"), Fault::LoseNext(3));
    assert_eq!(fault("frames lose 2.5%"), Fault::LoseFrames(Share::millionths(25_000).unwrap()));
    let by = Duration::from_micros(200);
    assert_eq!(fault("frames delay 200us"), Fault::DelayFrames { by, share: Share::ALL });
    let timed = parse("frames delay 200us for 1s").unwrap();
    assert_eq!((timed.fault, timed.lasting), (fault("frames delay 200us"), Some(Duration::from_secs(1))));
}

// feature(simulator): faults on demand as lines of text, each error with its place and what was expected
#[test]
fn error_is_a_sentence_with_its_column() {
    for (line, told) in [
        ("", "column 1: the line ends, expected power, cable, crc, "),
        ("pwer off 1", "column 1: found \"pwer\", expected power, cable, "),
        ("pwer off 1", ": did you mean \"power\"?"),
        ("power of 1", "column 7: found \"of\", expected off, on or cycle: did you mean \"off\"?"),
        (
            "power off",
            "column 10: the line ends, expected a SubDevice: a name, or a position from 0 to 3: add it",
        ),
        ("power off 4", "column 11: found \"4\", expected a SubDevice"),
        ("power off drve-2", "near it: \"drive-2\""),
        ("power off 1 2", "column 13: found \"2\", expected the end of the line: leave it out"),
        ("cable pull 1", "column 12: found \"1\", expected a SubDevice and its port, as 2:1: add :PORT"),
        ("cable pull 3:1", "found \"3:1\", expected a port with a cable, which are 0: correct the port"),
        ("cable pull 1:4", "expected a port with a cable, which are 0, 1: "),
        ("crc 1:0 256", "column 9: found \"256\", expected a number of errors, 1 to 255 or as 0xff"),
        ("crc 1:0 0", "expected a number of errors, 1 to 255"),
        ("state refuse 1 Init", "found \"Init\", expected PreOp, SafeOp or Op"),
        ("state refuse 1 Op 0", "expected an AL status code, 1 to 65535 or as 0xffff"),
        ("identity 1", "the line ends, expected vendor=N, product=N, revision=N or serial=N: add it"),
        ("identity 1 vendor", "found \"vendor\", expected vendor= and a number up to 0xffffffff"),
        ("identity 1 serial=1 serial=2", "column 21: found \"serial=2\", expected each of the four once"),
        ("clock jump 1 1ms", "found \"1ms\", expected a time with its sign, as +1ms or -200us"),
        ("clock jump 1 +0s", "expected a time with its sign"),
        ("latch high 1 2", "column 14: found \"2\", expected a latch input, 0 to 1"),
        ("drive fault coupler 1", "column 13: found \"coupler\", expected a servo drive: name another"),
        (
            "drive fault drive-1:3 1",
            "found \"drive-1:3\", expected an axis of that drive, 1 to 2: correct the axis",
        ),
        ("drive fault drive-1 0x10000", "expected an error code, 1 to 65535 or as 0xffff"),
        ("drive load drive-1 1", "expected a torque to three decimals, as 0.5Nm"),
        ("drive load drive-1 99999999Nm", "expected a torque"),
        ("frames lose 0", "expected a share of the frames, as 2.5%, or a number of them"),
        ("frames lose 101%", "expected a share of the frames"),
        ("frames corrupt 1", "found \"1\", expected a share of at most 100% to four decimals, as 2.5%"),
        ("frames delay soon", "expected a time, as 500us or 1.5s"),
        ("seed -1", "found \"-1\", expected a number, 0 to 18446744073709551615"),
        (
            "crc 1:0 for 1s",
            "column 9: found \"for\", expected the end of the line: this fault does not last: \
             leave out `for`",
        ),
        ("power on 1 for 1s", "leave out `for`"),
        ("power off 1 for", "the line ends, expected a time that it lasts, as 500us or 1.5s: add it"),
        ("power off \"last two\"", "column 11: found \"last two\", expected a SubDevice"),
        ("power off \"last", "column 11: found \"\\\"last\", expected a SubDevice"),
        ("µ power", "column 1: found \"µ\""),
        ("power µ 1", "column 7: found \"µ\""),
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.contains(told), "{line}: {error}");
    }
    let error = parse(&"x".repeat(100_000)).unwrap_err();
    assert!(error.len() < 300 && error.contains("x\"..., expected power"), "{error}");
    let error = parse("\u{1b}[2J").unwrap_err();
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

/// Every word of the first column begins a line, and the grammar lists every word.
#[test]
fn the_grammar_is_whole() {
    let told = parse("nothing").unwrap_err();
    let (_, known) = told.split_once("expected ").unwrap();
    let (known, _) = known.split_once(':').unwrap();
    let mut known: Vec<&str> = known.split([',', ' ']).filter(|word| !["", "or"].contains(word)).collect();
    let listed = GRAMMAR.map(|(form, _)| form.split(' ').next().unwrap());
    let mut listed: Vec<&str> = listed.into_iter().filter(|word| *word != "FAULT").collect();
    known.sort_unstable();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(known, listed);
}

#[test]
fn a_fault_of_what_a_sub_device_does_not_have_is_refused() {
    let targets = Targets::line(&["plain", "drive-1"]);
    for (line, expected) in [
        ("mailbox stuck plain", "column 15: found \"plain\", expected a SubDevice with a mailbox"),
        (
            "clock jump plain +1ms",
            "column 12: found \"plain\", expected a SubDevice with a distributed clock",
        ),
        (
            "clock stale plain:0",
            "column 13: found \"plain:0\", expected a SubDevice with a distributed clock",
        ),
        ("latch high plain 0", "column 12: found \"plain\", expected a SubDevice with a distributed clock"),
    ] {
        let sentence = Timed::parse(line, &targets).unwrap_err().to_string();
        assert!(sentence.contains(expected), "{sentence}");
        assert!(Timed::parse(&line.replace("plain", "drive-1"), &targets).is_ok());
    }
}

/// The page about faults.
const PAGE: &str = include_str!("../../../../docs/simulate.md");

#[test]
fn the_page_has_every_form_and_its_script_is_one() {
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    let forms = GRAMMAR.map(|(form, help)| format!("| `{}` | {help} |", form.replace('|', "\\|")));
    assert_eq!(rows, forms);
    let (_, script) = PAGE.split_once("```text\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let drives = Targets::line(&["drive-1", "drive-2", "drive-3"]);
    assert_eq!(Script::parse(script, &drives).map(|script| script.count()), Ok(6));
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let position = 0..NAMES.len();
    let drive = 1..3_usize;
    let port = (0..NAMES.len() - 1, 0..2_usize).prop_map(|(position, port)| Port { position, port });
    let share = || (0..=1_000_000_u32).prop_map(|count| Share::millionths(count).unwrap());
    let time = || any::<u64>().prop_map(Duration::from_nanos);
    let states = prop_oneof![Just(AlState::PreOp), Just(AlState::SafeOp), Just(AlState::Op)];
    let number = any::<Option<u32>>();
    let identity = (number.clone(), number.clone(), number, any::<u32>()).prop_map(
        |(vendor, product, revision, serial)| OtherIdentity {
            vendor,
            product,
            revision,
            serial: Some(serial),
        },
    );
    let of_devices = prop_oneof![
        (position.clone(), any::<bool>()).prop_map(|(position, on)| Fault::Power { position, on }),
        position.clone().prop_map(Fault::PowerCycle),
        (port.clone(), any::<bool>()).prop_map(|(at, plugged)| Fault::Cable { at, plugged }),
        (port, 1..=255_u8).prop_map(|(at, count)| Fault::InvalidFrames { at, count }),
        (position.clone(), any::<bool>()).prop_map(|(position, runs)| Fault::Mailbox { position, runs }),
        (position.clone(), any::<bool>())
            .prop_map(|(position, runs)| Fault::Application { position, runs }),
        (position.clone(), states, 1..=u16::MAX).prop_map(|(position, state, code)| {
            Fault::RefuseState { position, state, code: AlStatusCode(code) }
        }),
        (position.clone(), 0..2_usize, any::<bool>()).prop_map(|(position, input, high)| Fault::Latch {
            position,
            input,
            high
        }),
        (0..8_u8, any::<Option<bool>>()).prop_map(|(input, level)| Fault::Input {
            position: 3,
            input,
            level
        }),
        position.clone().prop_map(Fault::AllowStates),
        position.clone().prop_map(Fault::Watchdog),
        (position.clone(), identity)
            .prop_map(|(position, identity)| Fault::Identity { position, identity }),
        position.clone().prop_map(Fault::BlankSii),
        position.clone().prop_map(Fault::RestoreSii),
        position.clone().prop_map(Fault::SpoilSii),
        (position.clone(), any::<u32>()).prop_map(|(position, length)| Fault::CutSii { position, length }),
        (position, prop_oneof![1..=i64::MAX, -i64::MAX..=-1])
            .prop_map(|(position, by)| Fault::ClockJump { position, by }),
    ];
    prop_oneof![
        of_devices,
        (drive.clone(), 0..2_usize, 1..=u16::MAX).prop_map(|(position, axis, code)| Fault::DriveFault {
            position,
            axis,
            code
        }),
        (drive.clone(), any::<bool>()).prop_map(|(position, on)| Fault::DrivePower { position, on }),
        (drive.clone(), 0..2_usize, any::<bool>())
            .prop_map(|(position, axis, reversed)| Fault::DriveMotor { position, axis, reversed }),
        (drive.clone(), prop_oneof![Just(Sticking::Free), Just(Sticking::Closed), Just(Sticking::Open)])
            .prop_map(|(position, sticking)| Fault::Brake { position, axis: 1, sticking }),
        (drive, 0..2_usize, any::<i32>()).prop_map(|(position, axis, torque)| Fault::DriveLoad {
            position,
            axis,
            torque
        }),
        share().prop_map(Fault::LoseFrames),
        (1..=u32::MAX).prop_map(Fault::LoseNext),
        (time(), share()).prop_map(|(by, share)| Fault::DelayFrames { by, share }),
        share().prop_map(Fault::DuplicateFrames),
        share().prop_map(Fault::ReorderFrames),
        share().prop_map(Fault::CorruptFrames),
        any::<u64>().prop_map(Fault::Seed),
        Just(Fault::Clear),
    ]
}

proptest! {
    // feature(simulator): faults on demand as lines of text, each error with its place and what was expected
    #[test]
    fn every_fault_is_read_as_it_was_written(fault in any_fault(), lasting in any::<Option<u64>>()) {
        let lasting = lasting.map(Duration::from_nanos).filter(|_| fault.end().is_some());
        let timed = Timed { fault, lasting };
        prop_assert_eq!(Ok(timed), parse(&timed.to_string()));
        prop_assert_eq!(Ok(Timed { fault, lasting: None }), parse(&fault.named(&targets()).to_string()));
    }

    #[test]
    fn any_text_is_a_fault_or_an_error(text in "(power|cable|frames|for|drive|[0-9:.%x-]| |\\PC){0,12}") {
        let _ = parse(&text);
        let _ = Script::parse(&text, &targets());
    }

    /// The end of a fault has no further end, and replaces the fault.
    #[test]
    fn the_end_of_a_fault_is_the_end(fault in any_fault()) {
        if let Some(end) = fault.end() {
            prop_assert_eq!(end.end(), None);
            prop_assert_eq!(end.settled(), fault.settled());
        }
    }
}

// feature(simulator): a script of faults, checked whole before the first frame
#[test]
fn every_wrong_line_of_a_script_is_reported() {
    let text = "\
# Comment
1s power off drive-1 for 500ms  # another

0.5s frames lose 10%
2s powr off 1
3 clear
3s
  2.5s clear
2s seed 1 2
4s cable pull 9:1";
    let errors = Script::parse(text, &targets()).unwrap_err();
    let lines: Vec<String> = errors.iter().map(|(line, error)| format!("line {line}, {error}")).collect();
    let expected = [
        "line 4, column 1: the time goes back to 500ms, expected at least 1s, the time of line 2: put the lines",
        "line 5, column 4: found \"powr\", expected power, ",
        "line 6, column 1: found \"3\", expected a time since the start, as 500us or 1.5s: correct it",
        "line 7, column 3: the line ends, expected power, ",
        "line 8, column 3: the time goes back to 2500ms, expected at least 3s, the time of line 7: put the lines",
        "line 9, column 1: the time goes back to 2s, expected at least 3s, the time of line 7: put the lines",
        "line 9, column 11: found \"2\", expected the end of the line: leave it out",
        "line 10, column 15: found \"9:1\", expected a SubDevice",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_script_knows_its_length() {
    let script = Script::parse("1s power off 1 for 2s\n1.5s clear\n", &targets()).unwrap();
    assert_eq!((script.count(), script.length()), (2, Duration::from_secs(3)));
    assert_eq!(Script::parse("", &targets()).unwrap(), Script::default());
}
