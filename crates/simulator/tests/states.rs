//! The EtherCAT state machine as a MainDevice meets it (ETG.1000.6, 6.4; ETG.1020).

mod bus;

use bus::{Bus, Echo, echo, sii};
use ethercat::al::AlState::{self, Bootstrap, Init, Op, PreOp, SafeOp};
use ethercat::al_status_code::AlStatusCode;
use ethercat::register::{self, SyncManager};
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

#[test]
fn process_data_flows_in_op_and_outputs_are_safe_before() {
    let mut bus = in_op();
    exchange(&mut bus);
    bus.wait(1);
    assert_eq!(exchange(&mut bus), [11, 21, 31, 41]);
    assert_eq!(bus.request(0, SafeOp), reached(SafeOp));
    assert_eq!(exchange(&mut bus), [0; 4]);
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

#[test]
fn a_mailbox_that_is_not_set_up_keeps_it_in_init() {
    let mut image = sii(0, 0);
    for (word, value) in [(0x18, 0x1000_u16), (0x19, 128), (0x1A, 0x1080), (0x1B, 128), (0x1C, 4)] {
        image[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
    }
    let mut bus = Bus::line(vec![SubDevice::from_sii(&image, Echo::new(0)).with_bootstrap()]);
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
fn the_application_can_refuse_with_a_code_of_its_own() {
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
    bus.wait(150);
    bus.request(0, Op);
    bus.wait(250);
    assert_eq!(bus.al_status(0), error(SafeOp, AlStatusCode::SYNC_MANAGER_WATCHDOG));
}

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
    assert_eq!(exchange(&mut bus), [0; 4]);
    assert_eq!(bus.read_word(0, register::WATCHDOG_STATUS) & 1, 1);
    bus.write(0, register::WATCHDOG_COUNTER_PROCESS_DATA, &[0]);
    assert_eq!(bus.read(0, register::WATCHDOG_COUNTER_PROCESS_DATA, 1).data, [0]);
    assert_eq!(bus.request(0, Op), reached(Op));
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
fn a_stopped_application_answers_nothing_and_its_watchdog_expires() {
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
