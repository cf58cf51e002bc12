//! The whole MainDevice against a segment and a wire that follow the input: from the scan to Op and
//! back to Init, in virtual time.
//!
//! Properties for any input: inputs are called fresh only if the working counter of each of their
//! datagrams was right and the reply is one of this cycle; `poll_transmit` ends; bring-up and
//! mailbox requests succeed or are given up; the bus shuts down; nothing allocates in Op.
//!
//! The input is a byte of settings, and a row of deeds (`script.rs`).
#![no_main]

mod bus;
mod freshness;
mod progress;
mod script;
mod wire;

use core::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{
    BringUpPhase, Configuration, MainDevice, ProcessDataSource, StartupSdo, SubDeviceConfiguration, Sync0,
};
use libfuzzer_sys::fuzz_target;
use testkit::{CountingAllocator, allocations};

use script::Script;
use wire::Wire;

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

fuzz_target!(|bytes: &[u8]| {
    let Some((&settings, script)) = bytes.split_first() else { return };
    let configuration = configuration(settings);
    let target = configuration.target;
    let mut wire = Wire::new(configuration, bus::segment(), Script::new(script));
    up_to_pre_op(&mut wire);
    if target > AlState::PreOp {
        run(&mut wire);
    }
    serve_requests(&mut wire);
    wire.silent = settings & SILENT != 0;
    down(&mut wire);
});

const CLOCKS: u8 = 1;
const STARTUP: u8 = 2;
const MAPPED: u8 = 4;
const SILENT: u8 = 8;
const ONLY_SAFE_OP: u8 = 16;
const ONLY_PRE_OP: u8 = 32;
const PULSES: u8 = 64;

fn configuration(settings: u8) -> Configuration {
    let is_set = |bit| settings & bit != 0;
    let startup =
        StartupSdo { index: 0x1C12, sub_index: 0, complete_access: true, data: vec![1, 0, 0, 0x16] };
    let with_coe = SubDeviceConfiguration {
        startup: if is_set(STARTUP) { vec![startup] } else { Vec::new() },
        process_data: if is_set(MAPPED) {
            ProcessDataSource::Explicit(bus::mapping())
        } else {
            ProcessDataSource::Sii
        },
        sync0: (is_set(CLOCKS) && is_set(PULSES)).then_some(Sync0 { cycle: PERIOD, shift: PERIOD / 4 }),
        ..SubDeviceConfiguration::default()
    };
    let described = vec![with_coe, SubDeviceConfiguration::default()];
    Configuration {
        sub_devices: is_set(STARTUP | MAPPED | PULSES).then_some(described),
        target: match (is_set(ONLY_PRE_OP), is_set(ONLY_SAFE_OP)) {
            (true, _) => AlState::PreOp,
            (_, true) => AlState::SafeOp,
            _ => AlState::Op,
        },
        period: PERIOD,
        distributed_clocks: is_set(CLOCKS),
        ..Configuration::default()
    }
}

/// Without cycles until all are there, or until it is given up.
fn up_to_pre_op(wire: &mut Wire<'_>) {
    let since = wire.awake();
    while wire.main_device.phase() < BringUpPhase::PreOp {
        wire.pump();
        keeps_going(wire);
        let lost = u32::try_from(wire.main_device.reception().lost).unwrap_or(u32::MAX);
        let longest = LONGEST_BRING_UP + LOST_REPLY.saturating_mul(lost);
        assert!(wire.awake() - since < longest, "always a little further, for ever");
    }
    assert!(!wire.calm || wire.main_device.phase() == BringUpPhase::PreOp, "true replies, and no PreOp");
}

/// With cycles until all are where they should be, or until it is given up; and some more.
fn run(wire: &mut Wire<'_>) {
    // A request during bring-up changes its target.
    let reached = |it: &MainDevice| {
        if it.configuration().target == AlState::Op { BringUpPhase::Op } else { BringUpPhase::SafeOp }
    };
    while wire.main_device.phase() < reached(&wire.main_device) {
        wire.cycle(PERIOD);
        keeps_going(wire);
    }
    let (mut cycles, mut all_fresh) = (0, 0);
    while cycles < FEWEST_CYCLES || cycles < MOST_CYCLES && !wire.script_is_done() {
        all_fresh += usize::from(wire.cycle(PERIOD).all_fresh);
        cycles += 1;
    }
    assert!(
        !wire.calm || all_fresh == cycles,
        "true replies, and only {all_fresh} of {cycles} cycles fresh"
    );
}

/// Every request is answered, or given up.
fn serve_requests(wire: &mut Wire<'_>) {
    let (mut left, mut waited) = (wire.requests, wire.awake());
    while wire.requests > 0 {
        if wire.main_device.phase() == BringUpPhase::Op {
            _ = wire.cycle(PERIOD)
        } else {
            wire.pump()
        }
        if wire.requests != left {
            (left, waited) = (wire.requests, wire.awake());
        }
        assert!(wire.awake() - waited < LONGEST, "a mailbox request that is neither answered nor given up");
    }
}

/// Back to Init, whatever the replies.
fn down(wire: &mut Wire<'_>) {
    wire.ask_for(AlState::Init);
    while wire.main_device.phase() != BringUpPhase::Down {
        wire.pump();
        keeps_going(wire);
    }
}

fn keeps_going(wire: &Wire<'_>) {
    let lasted = wire.progress.missing_for(wire.now);
    assert!(
        lasted < LONGEST,
        "{:?}, and no progress for {lasted:?}: {:?}",
        wire.main_device.phase(),
        wire.main_device.awaited()
    );
}

const PERIOD: Duration = Duration::from_millis(1);

/// Cycles where the bus was to go: without any deed left, and with some.
const FEWEST_CYCLES: usize = 8;
const MOST_CYCLES: usize = 30;

/// Longest time to a new request, or until all is given up, with the default time-outs.
const LONGEST: Duration = Duration::from_secs(10);

/// Longest time of two SubDevices to PreOp, or until they are given up, whatever sizes they report.
/// The time-outs of lost replies are added: a wire that passes one frame in fifty is slow.
const LONGEST_BRING_UP: Duration = Duration::from_secs(60);

/// Longest time for which a reply is waited for.
const LOST_REPLY: Duration = Duration::from_millis(100);
