//! EtherCAT state machine as seen by a MainDevice (ETG.1000.6, 6.4; ETG.1020).

use crate::bus;

use std::time::Duration;

use bus::{Bus, Echo, echo, sii};
use ethercat::al::AlState::{self, Bootstrap, Init, Op, PreOp, SafeOp};
use ethercat::al_status_code::AlStatusCode;
use ethercat::link::Segment as _;
use ethercat::register::{self, SyncManager, sync_manager};
use ethercat::wire::{Address, Command};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::{NoApplication, ProcessDataLengths};

/// AL status with the error bit, and its code.
fn error(state: AlState, code: AlStatusCode) -> (u16, u16) {
    (u16::from(state.number()) | 0x10, code.0)
}

fn reached(state: AlState) -> (u16, u16) {
    (u16::from(state.number()), 0)
}

fn in_op() -> Bus {
    let mut bus = Bus::line(vec![echo(4)]);
    bus.map_process_data(0, 0, 4);
    assert_eq!(bus.request(0, PreOp), reached(PreOp));
    assert_eq!(bus.request(0, SafeOp), reached(SafeOp));
    exchange(&mut bus);
    assert_eq!(bus.request(0, Op), reached(Op));
    bus
}

fn exchange(bus: &mut Bus) -> Vec<u8> {
    let reply = bus.send(Command::Lrw, Address::Logical(0), &[10, 20, 30, 40]);
    assert_eq!(reply.working_counter, 3);
    reply.data
}

/// Working counter of one exchange, in any state.
fn counted(bus: &mut Bus) -> u16 {
    bus.send(Command::Lrw, Address::Logical(0), &[10, 20, 30, 40]).working_counter
}

/// True if the SubDevice itself has switched SyncManagers 2 and 3 off (PDI control bit 0).
fn switched_off(bus: &mut Bus) -> [bool; 2] {
    [2, 3].map(|number| {
        let register = SyncManager::register(number) + sync_manager::PDI_CONTROL_OFFSET;
        bus.read(0, register, 1).data[0] & sync_manager::PDI_CONTROL_DEACTIVATED != 0
    })
}

#[test]
fn process_data_flows_in_op_and_outputs_are_safe_before() {
    let mut bus = in_op();
    exchange(&mut bus);
    bus.wait(1);
    assert_eq!(exchange(&mut bus), [11, 21, 31, 41]);
    assert_eq!(bus.request(0, SafeOp), reached(SafeOp));
    let reply = bus.send(Command::Lrw, Address::Logical(0), &[10, 20, 30, 40]);
    assert_eq!((reply.working_counter, reply.data), (1, vec![0; 4]), "safe inputs, and outputs go nowhere");
}

// feature(simulator): SyncManagers, and so working counters and mailboxes, follow the AL state
#[test]
fn the_working_counter_follows_the_state() {
    let mut bus = Bus::line(vec![echo(4)]);
    bus.map_process_data(0, 0, 4);
    bus.wait(1);
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (0, [true; 2]), "Init");
    bus.request(0, PreOp);
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (0, [true; 2]), "PreOp");
    bus.request(0, SafeOp);
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (3, [false; 2]), "SafeOp on the way up");
    assert_eq!(bus.request(0, Op), reached(Op));
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (3, [false; 2]), "Op");
    bus.request(0, SafeOp);
    for _ in 0..50 {
        assert_eq!((counted(&mut bus), switched_off(&mut bus)), (1, [true, false]), "SafeOp after Op");
        bus.wait(1);
    }
    assert_eq!(bus.request(0, Op), reached(SafeOp), "Op is asked for, outputs have not come");
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (3, [false; 2]), "outputs are waited for");
    bus.wait(1);
    assert_eq!(bus.al_status(0), reached(Op));
    bus.request(0, PreOp);
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (0, [true; 2]), "PreOp after Op");
    bus.request(0, SafeOp);
    assert_eq!(counted(&mut bus), 3, "SafeOp from PreOp anew");
    bus.request(0, Init);
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (0, [true; 2]), "Init after SafeOp");
}

#[test]
fn outputs_are_switched_off_again_where_op_is_refused() {
    let mut bus = in_op();
    bus.request(0, SafeOp);
    bus.request(0, Op);
    assert_eq!(switched_off(&mut bus), [false; 2]);
    bus.wait(250);
    assert_eq!(bus.al_status(0), error(SafeOp, AlStatusCode::SYNC_MANAGER_WATCHDOG), "no outputs came");
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (1, [true, false]));
    // On the way up they were on before, and stay so.
    bus.request(0, PreOp);
    bus.request(0, SafeOp);
    bus.request(0, Op);
    bus.wait(250);
    assert_eq!(bus.al_status(0), error(SafeOp, AlStatusCode::SYNC_MANAGER_WATCHDOG));
    assert_eq!(counted(&mut bus), 3);
}

#[test]
fn every_way_down_is_open() {
    for to in [SafeOp, PreOp, Init] {
        let mut bus = in_op();
        assert_eq!(bus.request(0, to), reached(to));
    }
}

#[test]
fn impossible_and_unknown_states_are_refused_until_acknowledged() {
    let mut bus = Bus::line(vec![echo(4)]);
    assert_eq!(bus.request(0, Op), error(Init, AlStatusCode::INVALID_REQUESTED_STATE_CHANGE));
    // Without acknowledge nothing happens.
    bus.write(0, register::AL_CONTROL, &[2, 0]);
    bus.wait(1);
    assert_eq!(bus.al_status(0), error(Init, AlStatusCode::INVALID_REQUESTED_STATE_CHANGE));
    assert_eq!(bus.request(0, Init), reached(Init));
    bus.write(0, register::AL_CONTROL, &[0x07, 0]);
    bus.wait(1);
    assert_eq!(bus.al_status(0), error(Init, AlStatusCode::UNKNOWN_REQUESTED_STATE));
    assert_eq!(bus.request(0, Bootstrap), error(Init, AlStatusCode::BOOTSTRAP_NOT_SUPPORTED));
    assert_eq!(bus.request(0, PreOp), reached(PreOp));
}

#[test]
fn process_data_of_another_length_is_refused() {
    let mut bus = Bus::line(vec![echo(4)]);
    bus.request(0, PreOp);
    bus.sync_manager(0, 2, SyncManager::CONTROL_OUTPUTS, 0x1100, 3);
    assert_eq!(bus.request(0, SafeOp), error(PreOp, AlStatusCode::INVALID_OUTPUT_CONFIGURATION));
    bus.write(0, SyncManager::register(2) + 6, &[0]);
    bus.sync_manager(0, 2, SyncManager::CONTROL_OUTPUTS, 0x1100, 4);
    assert_eq!(bus.request(0, SafeOp), error(PreOp, AlStatusCode::INVALID_INPUT_CONFIGURATION));
    bus.sync_manager(0, 3, SyncManager::CONTROL_INPUTS, 0x1400, 4);
    assert_eq!(bus.request(0, SafeOp), reached(SafeOp));
}

// feature(simulator): SyncManagers on each other or outside the memory are refused
#[test]
fn sync_managers_outside_memory_or_overlapping_are_refused() {
    use AlStatusCode as Code;
    const OUT: u8 = SyncManager::CONTROL_OUTPUTS;
    const IN: u8 = SyncManager::CONTROL_INPUTS;
    // Mailboxes are at 0x1000 to 0x1100, memory ends at 0x3000; 100 bytes of process data have
    // three buffers.
    for (why, outputs, inputs, expected) in [
        ("side by side", 0x1100, 0x122C, reached(SafeOp)),
        ("up to the end", 0x1100, 0x3000 - 300, reached(SafeOp)),
        ("inputs in the first buffer of the outputs", 0x1100, 0x1100, error(PreOp, Code(0x1D))),
        ("inputs in the third buffer of the outputs", 0x1100, 0x122B, error(PreOp, Code(0x1D))),
        ("outputs in the third buffer of the inputs", 0x122B, 0x1100, error(PreOp, Code(0x1D))),
        ("outputs on a mailbox", 0x10FF, 0x1400, error(PreOp, Code(0x1D))),
        ("inputs on a mailbox", 0x1400, 0x1080, error(PreOp, Code(0x1E))),
        ("outputs below the memory", 0x0F80, 0x1400, error(PreOp, Code(0x1D))),
        ("inputs below the memory", 0x1400, 0x0FFF, error(PreOp, Code(0x1E))),
        ("outputs behind the memory", 0x3000, 0x1400, error(PreOp, Code(0x1D))),
        ("outputs partly behind the memory", 0x3000 - 299, 0x1400, error(PreOp, Code(0x1D))),
        ("inputs at the end of all addresses", 0x1400, 0xFFFF, error(PreOp, Code(0x1E))),
    ] {
        let mut bus = Bus::line(vec![with_mailbox(100)]);
        bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1000, 128);
        bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1080, 128);
        bus.request(0, PreOp);
        bus.sync_manager(0, 2, OUT, outputs, 100);
        bus.sync_manager(0, 3, IN, inputs, 100);
        assert_eq!(bus.request(0, SafeOp), expected, "{why}");
    }
    for (why, outward, inward) in [
        ("below the memory", 0x0F80, 0x1080),
        ("behind the memory", 0x1000, 0x3000 - 127),
        ("on each other", 0x1000, 0x107F),
    ] {
        let mut bus = Bus::line(vec![with_mailbox(100)]);
        bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, outward, 128);
        bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, inward, 128);
        assert_eq!(bus.request(0, PreOp), error(Init, Code(0x16)), "{why}");
    }
    // A mode the standard does not define.
    let mut bus = Bus::line(vec![echo(4)]);
    bus.map_process_data(0, 0, 4);
    bus.sync_manager(0, 4, 0x01, 0x2000, 4);
    bus.request(0, PreOp);
    assert_eq!(bus.request(0, SafeOp), error(PreOp, Code(0x17)));
}

/// A SubDevice with mailboxes in its SII, at 0x1000 and 0x1080, of 128 bytes.
fn with_mailbox(length: usize) -> SubDevice {
    let mut image = sii(0, 0);
    for (word, value) in [(0x18, 0x1000_u16), (0x19, 128), (0x1A, 0x1080), (0x1B, 128), (0x1C, 4)] {
        image[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
    }
    SubDevice::from_sii(&image, Echo::new(length))
}

// feature(simulator): SyncManagers, and so working counters and mailboxes, follow the AL state
#[test]
fn the_mailbox_works_from_pre_op_on() {
    let mut bus = Bus::line(vec![with_mailbox(0)]);
    bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1000, 128);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1080, 128);
    bus.wait(1);
    assert_eq!(bus.write(0, 0x1000, &[0; 128]), 0, "Init");
    bus.request(0, PreOp);
    assert_eq!(bus.write(0, 0x1000, &[0; 128]), 1, "PreOp");
    bus.wait(1);
    bus.request(0, Init);
    assert_eq!(bus.read(0, 0x1080, 128).working_counter, 0, "Init again: the answer is gone");
    bus.request(0, PreOp);
    assert_eq!(bus.read(0, 0x1080, 128).working_counter, 0, "an answer of before Init is not for now");
}

// feature(simulator): AL control before SyncManagers; Init always accepted; up again and again
#[test]
fn init_is_accepted_after_any_sync_manager_and_error_state() {
    let no_sync_managers = [0; 32];
    // Cleared this long before the request for Init, and again this long after it.
    for (before, behind) in [(0, 0), (0, 5), (1, 0), (5, 1), (50, 0)] {
        let mut bus = mailbox_in_op();
        assert_eq!(bus.write(0, register::SYNC_MANAGER, &no_sync_managers), 1);
        bus.wait(before);
        bus.write(0, register::AL_CONTROL, &[1, 0]);
        bus.wait(behind);
        bus.write(0, register::SYNC_MANAGER, &no_sync_managers);
        bus.wait(1);
        assert_eq!(bus.al_status(0), reached(Init), "{before} ms before, {behind} ms behind");
    }
    let mut bus = Bus::line(vec![with_mailbox(0)]);
    assert_eq!(bus.request(0, PreOp), error(Init, AlStatusCode::INVALID_MAILBOX_PRE_OP));
    bus.write(0, register::AL_CONTROL, &[1, 0]);
    bus.wait(1);
    assert_eq!(bus.al_status(0), reached(Init), "a further Init clears the error, unacknowledged");
}

/// A SubDevice with mailboxes, brought to Op.
fn mailbox_in_op() -> Bus {
    let mut bus = Bus::line(vec![with_mailbox(4)]);
    bring_up(&mut bus);
    bus
}

/// Init to Op, with all that belongs to it.
fn bring_up(bus: &mut Bus) {
    bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1000, 128);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1080, 128);
    assert_eq!(bus.request(0, PreOp), reached(PreOp));
    bus.map_process_data(0, 0, 4);
    assert_eq!(bus.request(0, SafeOp), reached(SafeOp));
    exchange(bus);
    assert_eq!(bus.request(0, Op), reached(Op));
    exchange(bus);
}

/// First broadcasts of MainDevices on a bus that another one may have left in Op. AL control is
/// requested with and without acknowledge, before and after FMMUs and SyncManagers are cleared.
// feature(simulator): AL control before SyncManagers; Init always accepted; up again and again
#[test]
fn it_comes_up_again_and_again_however_a_main_device_begins() {
    /// Register, data.
    type Step = (u16, &'static [u8]);
    const INIT: Step = (register::AL_CONTROL, &[0x01, 0]);
    const INIT_ACKNOWLEDGED: Step = (register::AL_CONTROL, &[0x11, 0]);
    const FMMUS: Step = (register::FMMU, &[0; 256]);
    const SYNC_MANAGERS: Step = (register::SYNC_MANAGER, &[0; 128]);
    let styles: [(&str, &[Step]); 5] = [
        ("ethercrab: Init with acknowledge, then all cleared", &[INIT_ACKNOWLEDGED, FMMUS, SYNC_MANAGERS]),
        ("SOEM: all cleared, then Init with acknowledge", &[FMMUS, SYNC_MANAGERS, INIT_ACKNOWLEDGED]),
        ("KickCAT: SyncManagers and FMMUs cleared, then Init", &[SYNC_MANAGERS, FMMUS, INIT]),
        ("Init twice, cleared between", &[INIT, SYNC_MANAGERS, FMMUS, INIT]),
        ("Init only at the end, and once more", &[SYNC_MANAGERS, INIT, INIT]),
    ];
    for (style, steps) in styles {
        for pause in [0, 1, 300] {
            let mut bus = mailbox_in_op();
            for time in 2..=4 {
                for (register, data) in steps {
                    bus.send(Command::Bwr, Address::Broadcast { register: *register }, data);
                    bus.wait(pause);
                }
                bus.wait(1);
                assert_eq!(bus.al_status(0), reached(Init), "{style}, time {time}, {pause} ms");
                for number in 0..4 {
                    bus.write(0, SyncManager::register(number), &[0; 8]);
                }
                bring_up(&mut bus);
            }
        }
    }
}

#[test]
fn a_mailbox_that_is_not_set_up_keeps_it_in_init() {
    let mut bus = Bus::line(vec![with_mailbox(0).with_bootstrap()]);
    assert_eq!(bus.request(0, PreOp), error(Init, AlStatusCode::INVALID_MAILBOX_PRE_OP));
    assert_eq!(bus.request(0, Bootstrap), error(Init, AlStatusCode::INVALID_MAILBOX_BOOTSTRAP));
    bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1000, 128);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1040, 128);
    assert_eq!(bus.request(0, PreOp), error(Init, AlStatusCode::INVALID_MAILBOX_PRE_OP), "they overlap");
    bus.write(0, SyncManager::register(1) + 6, &[0]);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1080, 128);
    assert_eq!(bus.request(0, PreOp), reached(PreOp));
    // Taken away again, it falls back by itself.
    bus.write(0, SyncManager::register(1) + 6, &[0]);
    bus.wait(1);
    assert_eq!(bus.al_status(0), error(Init, AlStatusCode::INVALID_MAILBOX_PRE_OP));
}

#[test]
fn application_can_refuse_with_custom_code() {
    let code = AlStatusCode::DC_INVALID_SYNC_CYCLE_TIME;
    let application = Echo { lengths: ProcessDataLengths::default(), refuse: Some((SafeOp, code)) };
    let mut bus = Bus::line(vec![SubDevice::from_sii(&sii(0, 0), Box::new(application))]);
    bus.request(0, PreOp);
    assert_eq!(bus.request(0, SafeOp), error(PreOp, code));
}

#[test]
fn op_waits_for_outputs_and_gives_up_if_none_come() {
    let mut bus = Bus::line(vec![echo(4)]);
    bus.map_process_data(0, 0, 4);
    bus.request(0, PreOp);
    bus.request(0, SafeOp);
    assert_eq!(bus.request(0, Op), reached(SafeOp));
    exchange(&mut bus);
    bus.wait(1);
    assert_eq!(bus.al_status(0), reached(Op));
    bus.request(0, SafeOp);
    bus.request(0, Op);
    bus.wait(250);
    assert_eq!(bus.al_status(0), error(SafeOp, AlStatusCode::SYNC_MANAGER_WATCHDOG));
}

// feature(simulator): SyncManager watchdog: SafeOp + 0x1B
#[test]
fn outputs_that_stop_take_it_back_to_safe_op() {
    let mut bus = in_op();
    for _ in 0..50 {
        exchange(&mut bus);
        bus.wait(10);
    }
    assert_eq!(bus.al_status(0), reached(Op));
    bus.wait(89);
    assert_eq!(bus.al_status(0), reached(Op), "99 ms after the last frame");
    bus.wait(2);
    assert_eq!(bus.al_status(0), error(SafeOp, AlStatusCode::SYNC_MANAGER_WATCHDOG));
    assert_eq!(bus.read_word(0, register::WATCHDOG_STATUS) & 1, 0);
    assert_eq!(bus.read(0, register::WATCHDOG_COUNTER_PROCESS_DATA, 1).data, [1]);
    // A MainDevice that ignores AL status sees it in the working counter.
    assert_eq!((counted(&mut bus), switched_off(&mut bus)), (1, [true, false]));
    assert_eq!(bus.read_word(0, register::WATCHDOG_STATUS) & 1, 0);
    bus.write(0, register::WATCHDOG_COUNTER_PROCESS_DATA, &[0]);
    assert_eq!(bus.read(0, register::WATCHDOG_COUNTER_PROCESS_DATA, 1).data, [0]);
    assert_eq!(bus.request(0, Op), reached(SafeOp));
    exchange(&mut bus);
    bus.wait(1);
    assert_eq!(bus.al_status(0), reached(Op));
    assert_eq!(bus.read_word(0, register::WATCHDOG_STATUS) & 1, 1);
}

#[test]
fn a_watchdog_that_is_switched_off_never_expires() {
    let mut bus = Bus::line(vec![echo(4)]);
    bus.write(0, register::WATCHDOG_TIME_PROCESS_DATA, &[0, 0]);
    bus.map_process_data(0, 0, 4);
    bus.request(0, PreOp);
    bus.request(0, SafeOp);
    exchange(&mut bus);
    assert_eq!(bus.request(0, Op), reached(Op));
    bus.wait(900);
    assert_eq!(bus.al_status(0), reached(Op));
}

#[test]
fn a_sync_manager_switched_off_in_op_takes_it_to_pre_op() {
    let mut bus = in_op();
    bus.write(0, SyncManager::register(3) + 6, &[0]);
    bus.wait(1);
    assert_eq!(bus.al_status(0), error(PreOp, AlStatusCode::INVALID_INPUT_CONFIGURATION));
}

#[test]
fn an_esc_with_device_emulation_follows_at_once() {
    let mut bus = Bus::line(vec![SubDevice::from_sii(&sii(0x0100, 0), Box::new(NoApplication))]);
    for state in [PreOp, SafeOp, Op, Init] {
        bus.write(0, register::AL_CONTROL, &[state.number(), 0]);
        assert_eq!(bus.al_status(0), reached(state), "with no time passing");
    }
}

#[test]
fn stopped_application_is_silent_and_its_watchdog_expires() {
    let mut bus = Bus::line(vec![echo(4)]);
    bus.wait(1);
    bus.segment.sub_device_mut(0).unwrap().set_application_runs(false);
    assert_eq!(bus.request(0, PreOp), reached(Init));
    assert_eq!(bus.read_word(0, register::DL_STATUS) & 2, 2);
    bus.wait(101);
    assert_eq!(bus.read(0, register::WATCHDOG_COUNTER_PDI, 1).data, [1]);
    assert_eq!(bus.read_word(0, register::DL_STATUS) & 2, 0);
    bus.segment.sub_device_mut(0).unwrap().set_application_runs(true);
    bus.wait(1);
    assert_eq!(bus.al_status(0), reached(PreOp));
}

#[test]
fn a_written_reset_restarts_it() {
    let mut bus = in_op();
    bus.write(0, register::STATION_ADDRESS, &[5, 0]);
    for byte in *b"RES" {
        bus.write(0, register::ESC_RESET, &[byte]);
    }
    bus.wait(1);
    assert_eq!(bus.al_status(0), reached(Init));
    assert_eq!(bus.read_word(0, register::STATION_ADDRESS), 0);
    assert_eq!(bus.read_word(0, register::DL_STATUS) & 0x11, 0x11, "links are found again");
}

/// MainDevices clear all SyncManagers and request Init in the next frame, and read no error in
/// between.
// feature(simulator): SyncManagers cleared just before a request for Init show no transient AL error
#[test]
fn clearing_sync_managers_before_init_shows_no_error() {
    for gap in [12, 100, 400] {
        let mut shown = Vec::new();
        // Where the clear falls between two steps of the application.
        for offset in (0..250).step_by(10) {
            let mut bus = mailbox_in_op();
            pass(&mut bus, offset);
            for number in 0..4 {
                bus.write(0, SyncManager::register(number), &[0; 8]);
            }
            pass(&mut bus, gap);
            shown.push(bus.al_status(0));
            bus.write(0, register::AL_CONTROL, &[1, 0]);
            for _ in 0..200 {
                pass(&mut bus, 5);
                shown.push(bus.al_status(0));
            }
            assert_eq!(shown.last(), Some(&reached(Init)));
        }
        let errors: Vec<_> = shown.iter().filter(|(_, code)| *code != 0).collect();
        assert!(errors.is_empty(), "{gap} us before the request: {errors:x?}");
    }
}

/// Advances some microseconds without a frame.
fn pass(bus: &mut Bus, microseconds: u64) {
    bus.now = bus.now + Duration::from_micros(microseconds);
    bus.segment.advance(bus.now);
}
