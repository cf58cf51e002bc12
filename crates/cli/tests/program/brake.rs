//! A brake on a terminal's digital output: the whole program, and what its frames did to the
//! terminal.

use ethercat::cia402::{State, Statusword};
use ethercat::register;
use ethercat::register::fmmu::{Fmmu, FmmuDirection};
use ethercat::wire::datagram::Command;
use ethercat::wire::frame::places;

use crate::common::{file, run};

/// One cycle's frame as it came back: what the drive and the terminal were sent, and what the drive
/// reported.
#[derive(Clone, Copy, Debug)]
struct LateCycle {
    time_ns: u64,
    state: Option<State>,
    target: i32,
    /// The terminal's outputs.
    outputs: u8,
}

impl LateCycle {
    fn enabled(&self) -> bool {
        self.state == Some(State::OperationEnabled)
    }

    /// Power on the brake's coil, at the fourth output.
    fn power(&self) -> bool {
        self.outputs == 1 << 3
    }
}

/// Frames of a pcapng file, oldest first, with their times and whether they came back.
pub(crate) fn frames(capture: &[u8]) -> impl Iterator<Item = (u64, bool, &[u8])> {
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    let mut rest = capture;
    let blocks = std::iter::from_fn(move || {
        let length = number(rest.get(..8)?, 4) as usize;
        let (block, behind) = rest.split_at(length);
        rest = behind;
        Some(block)
    });
    blocks.filter(move |block| number(block, 0) == 6).map(move |block| {
        let time = u64::from(number(block, 12)) << 32 | u64::from(number(block, 16));
        let length = number(block, 20) as usize;
        // Behind the frame, padded to four bytes: the option epb_flags, its code and length before
        // it.
        let flags = number(block, 28 + length.next_multiple_of(4) + 4);
        (time, flags & 3 == 1, &block[28..28 + length])
    })
}

/// The FMMUs the MainDevice wrote to the SubDevices.
fn fmmus(capture: &[u8]) -> Vec<Fmmu> {
    let mut found = Vec::new();
    for (_, _, frame) in frames(capture).filter(|(_, came_back, _)| !came_back) {
        let written = places(frame).filter(|place| {
            let range = register::FMMU..register::FMMU + 16 * register::fmmu::LENGTH;
            place.header.command == Command::Fpwr && range.contains(&place.header.ado())
        });
        found.extend(written.filter_map(|place| Fmmu::parse(&frame[place.data()])).filter(|it| it.active));
    }
    found
}

/// The bytes that `fmmu` maps, in a frame that came back from all.
fn mapped(frame: &[u8], fmmu: Fmmu) -> Option<&[u8]> {
    places(frame).filter(|place| place.header.command.is_logical()).find_map(|place| {
        let offset = usize::try_from(fmmu.logical_address.checked_sub(place.header.address)?).ok()?;
        frame[place.data()].get(offset..offset + usize::from(fmmu.length))
    })
}

/// The cycles that carried the process data of the terminal and of the drive of
/// examples/io-station.toml.
fn cycles(capture: &[u8]) -> Vec<LateCycle> {
    let fmmus = fmmus(capture);
    let one = |length: u16, direction: FmmuDirection| {
        let is = |fmmu: &&Fmmu| (fmmu.length, fmmu.direction) == (length, direction);
        *fmmus.iter().filter(is).min_by_key(|fmmu| fmmu.logical_address).expect("its process data")
    };
    // The lamps have the one byte of outputs; the drive has eight, as the first of several, and six
    // of inputs.
    let lamps = one(1, FmmuDirection::Write);
    let (sent, reported) = (one(8, FmmuDirection::Write), one(6, FmmuDirection::Read));
    let cycle = |(time_ns, _, frame)| {
        let (sent, reported) = (mapped(frame, sent)?, mapped(frame, reported)?);
        Some(LateCycle {
            time_ns,
            state: Statusword(u16::from_le_bytes([reported[4], reported[5]])).state(),
            target: i32::from_le_bytes([sent[0], sent[1], sent[2], sent[3]]),
            // Without the green lamp.
            outputs: mapped(frame, lamps)?[0] & !(1 << 1),
        })
    };
    frames(capture).filter(|(_, came_back, _)| *came_back).filter_map(cycle).collect()
}

/// The cycles of a run that the machine did not disturb, and the longest time from one to the next.
fn undisturbed() -> (Vec<LateCycle>, u64) {
    let path = file("brake.pcapng", "");
    for _ in 0..5 {
        let arguments = ["run", "examples/io-station.toml", "--cycles", "1500", "--json", "--capture"];
        let end = run(&[&arguments[..], &[path.to_str().expect("UTF-8")]].concat()).json();
        assert_eq!(end["axes"][0]["state"], "Operation enabled", "{end}");
        let cycles = cycles(&std::fs::read(&path).expect("the capture"));
        let gaps = cycles.windows(2).map(|pair| pair[1].time_ns.saturating_sub(pair[0].time_ns));
        let longest = gaps.max().expect("cycles");
        if longest < 10_000_000 {
            return (cycles, longest);
        }
        eprintln!("the machine stood still for {} ms: once more", longest / 1_000_000);
        testkit::await_calm(std::time::Duration::from_secs(60));
    }
    panic!("the machine stands still all the time");
}

// feature(axes): a brake on a digital output, from the robot file to the terminal
#[test]
fn brake_output_is_on_only_while_the_axis_may_move() {
    let (cycles, longest) = undisturbed();
    let first = |from: usize, what: &str, is: &dyn Fn(&LateCycle) -> bool| {
        let place = cycles[from..].iter().position(is);
        from + place.unwrap_or_else(|| panic!("never {what}, from cycle {from} on"))
    };
    let time = |from: usize, to: usize| cycles[to].time_ns - cycles[from].time_ns;
    assert!(cycles.iter().all(|it| it.outputs == 0 || it.power()), "an output that is nobody's");

    // Power comes once the drive holds the axis; the axis is moved once the brake is open.
    let enabled = first(0, "enabled", &LateCycle::enabled);
    let on = first(0, "power", &LateCycle::power);
    assert!(on >= enabled, "power on cycle {on}, enabled on {enabled}");
    let held = cycles[on].target;
    let moved = first(on, "moved", &|it| it.target != held);
    let waited = time(on, moved);
    assert!(waited + 2 * longest >= 80_000_000, "moved {waited} ns after power came");

    // It goes once the axis rests; the drive keeps its torque until the brake holds.
    let off = first(on, "without power", &|it| !it.power());
    assert!(off > moved && cycles[off].enabled(), "power off on cycle {off}, moved on {moved}");
    let rests = cycles[off].target;
    assert!(cycles[off..].iter().take_while(|it| it.enabled()).all(|it| it.target == rests));
    let left = first(off, "disabled", &|it| !it.enabled());
    let waited = time(off, left);
    assert!(waited + 2 * longest >= 50_000_000, "no torque {waited} ns after power went");
    assert!(cycles[off..].iter().all(|it| it.outputs == 0), "it stays off");
    let turned = cycles[moved..off].iter().map(|it| it.target.abs_diff(held)).max();
    assert!(turned > Some(10_000), "the axis hardly moved: {turned:?}");
}
