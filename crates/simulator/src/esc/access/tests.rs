use super::*;
use crate::esc::EscDescription;
use ethercat::register::sync_manager::SyncManager;
use ethercat::register::{Fmmu, FmmuDirection};
use ethercat::time::Instant;

const PASSAGE: Passage = Passage { now: Instant::EPOCH, begun: Instant::EPOCH, ports: [None; 4] };

fn esc() -> Esc {
    Esc::new(EscDescription::default(), Vec::new(), Instant::EPOCH)
}

fn set(esc: &mut Esc, address: u16, bytes: &[u8]) -> bool {
    esc.write(&PASSAGE, address, bytes)
}

fn get<const N: usize>(esc: &mut Esc, address: u16) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    esc.read(&PASSAGE, address, &mut bytes, Combine::Replace).then_some(bytes)
}

fn sync_manager(esc: &mut Esc, number: u8, control: u8, physical_address: u16, length: u16) {
    let settings = SyncManager { physical_address, length, control, active: true };
    assert!(set(esc, SyncManager::register(number), &settings.emit()));
}

#[test]
fn read_only_registers_keep_their_value_and_do_not_count() {
    let mut esc = esc();
    assert!(!set(&mut esc, register::TYPE, &[0x77]));
    assert_eq!(get(&mut esc, register::TYPE), Some([0x11]));
    // A write that also reaches a writable register counts, and leaves the others alone.
    assert!(set(&mut esc, register::STATION_ADDRESS, &[1, 2, 3, 4]));
    assert_eq!(get(&mut esc, register::STATION_ADDRESS), Some([1, 2, 0, 0]));
    assert!(esc.stations().any(|address| address == 0x0201));
}

#[test]
fn memory_ends_where_the_ram_size_says() {
    let mut esc = esc();
    assert!(set(&mut esc, 0x2FFF, &[7]));
    assert_eq!(get(&mut esc, 0x2FFF), Some([7]));
    assert!(!set(&mut esc, 0x3000, &[7]));
    assert_eq!(get::<1>(&mut esc, 0x3000), None);
    // No wrap at the end of the address space.
    assert!(!set(&mut esc, 0xFFFF, &[1, 2, 3]));
    assert_eq!(get::<3>(&mut esc, 0xFFFF), None);
    assert_eq!(get(&mut esc, register::TYPE), Some([0x11]));
}

#[test]
fn lrw_exchanges_process_data_through_sync_managers_and_fmmus() {
    let mut esc = esc();
    sync_manager(&mut esc, 2, SyncManager::CONTROL_OUTPUTS, 0x1100, 3);
    sync_manager(&mut esc, 3, SyncManager::CONTROL_INPUTS, 0x1180, 3);
    let outputs = Fmmu::bytes(0x1_0002, 0x1100, 3, FmmuDirection::Write);
    let inputs = Fmmu::bytes(0x1_0002, 0x1180, 3, FmmuDirection::Read);
    set(&mut esc, register::FMMU, &outputs.emit());
    set(&mut esc, register::FMMU + 16, &inputs.emit());
    let (unit, memory) = esc.sync_manager_mut(3).unwrap();
    unit.application_write(memory, &[7, 8, 9]);
    let mut data = [0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5];
    assert!(esc.logical_spans().eq([0x1_0002..0x1_0005, 0x1_0002..0x1_0005]));
    assert!(esc.logical_write(&PASSAGE, 0x1_0000, &data));
    assert!(esc.logical_read(&PASSAGE, 0x1_0000, &mut data));
    assert_eq!(data, [0xA0, 0xA1, 7, 8, 9, 0xA5]);
    let (unit, memory) = esc.sync_manager_mut(2).unwrap();
    let mut taken = [0; 3];
    assert!(unit.application_read(memory, &mut taken));
    assert_eq!(taken, [0xA2, 0xA3, 0xA4]);
}

// feature(simulator): FMMUs bit by bit
#[test]
fn write_over_all_fmmus_changes_existing_ones() {
    let mut esc =
        Esc::new(EscDescription { fmmus: 2, ..EscDescription::default() }, Vec::new(), Instant::EPOCH);
    let mapping = Fmmu::bytes(0x1_0000, 0x1100, 3, FmmuDirection::Read).emit();
    let all: Vec<u8> = mapping.iter().copied().cycle().take(256).collect();
    assert!(set(&mut esc, register::FMMU, &all));
    assert_eq!(get(&mut esc, register::FMMU + 16), Some(mapping));
    assert_eq!(get(&mut esc, register::FMMU + 32), Some([0; 16]));
    assert_eq!(esc.logical_spans().count(), 2);
    // From inside one, and behind the last.
    assert!(set(&mut esc, register::FMMU + 31, &[0xAA; 2]));
    assert_eq!(get(&mut esc, register::FMMU + 31), Some([0xAA, 0]));
    assert!(!set(&mut esc, register::FMMU + 32, &mapping));
    set(&mut esc, register::WRITE_REGISTER_PROTECTION, &[1]);
    assert!(!set(&mut esc, register::FMMU, &[0; 32]), "the registers are protected");
    assert_eq!(get(&mut esc, register::FMMU), Some(mapping));
}

#[test]
fn two_terminals_share_a_logical_byte_bit_by_bit() {
    let mut esc = esc();
    sync_manager(&mut esc, 0, 0x44, 0x0F00, 1);
    let fmmu = Fmmu {
        logical_start_bit: 4,
        logical_end_bit: 7,
        ..Fmmu::bytes(0x1000, 0x0F00, 1, FmmuDirection::Write)
    };
    set(&mut esc, register::FMMU, &fmmu.emit());
    assert!(esc.logical_write(&PASSAGE, 0x1000, &[0b1001_0110]));
    assert_eq!(esc.memory().byte(0x0F00), 0b0000_1001);
    assert_eq!(esc.memory().byte(register::WATCHDOG_STATUS), 1, "outputs feed the watchdog");
    let fmmu = Fmmu { direction: FmmuDirection::Read, physical_address: 0x1800, ..fmmu };
    set(&mut esc, register::FMMU, &fmmu.emit());
    set(&mut esc, 0x1800, &[0b0110]);
    let mut data = [0b1111_1111];
    assert!(esc.logical_read(&PASSAGE, 0x1000, &mut data));
    assert_eq!(data, [0b0110_1111]);
}

#[test]
fn a_status_bit_of_a_mailbox_can_be_mapped_into_process_data() {
    let mut esc = esc();
    sync_manager(&mut esc, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1080, 4);
    let fmmu = Fmmu {
        logical_end_bit: 0,
        physical_start_bit: 3,
        ..Fmmu::bytes(0x50, 0x080D, 1, FmmuDirection::Read)
    };
    set(&mut esc, register::FMMU, &fmmu.emit());
    let mut data = [0xFF];
    assert!(esc.logical_read(&PASSAGE, 0x50, &mut data));
    assert_eq!(data, [0xFE]);
    let (unit, memory) = esc.sync_manager_mut(1).unwrap();
    unit.application_write(memory, &[1; 4]);
    assert!(esc.logical_read(&PASSAGE, 0x50, &mut data));
    assert_eq!(data, [0xFF]);
}

#[test]
fn an_access_across_a_full_mailbox_counts_for_the_rest_only() {
    let mut esc = esc();
    sync_manager(&mut esc, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1010, 4);
    assert!(set(&mut esc, 0x1010, &[1; 4]));
    assert!(!set(&mut esc, 0x1010, &[2; 4]));
    assert!(set(&mut esc, 0x100F, &[9; 6]));
    assert_eq!(esc.memory().array(0x100F), [9, 1, 1, 1, 1, 9]);
}

#[test]
fn broadcast_reads_combine_by_or_and_clear_the_event_they_read() {
    let mut esc = esc();
    esc.set_al_status(ethercat::al::AlStatus::from_bits(0x14), AlStatusCode(0x1B));
    set(&mut esc, register::ECAT_EVENT_MASK, &[0xFF, 0xFF]);
    assert_eq!(esc.interrupt(), 1 << 3);
    let mut data = [0x08, 0];
    esc.read(&PASSAGE, register::AL_STATUS, &mut data, Combine::Or);
    assert_eq!(data, [0x1C, 0]);
    assert_eq!(esc.interrupt(), 0);
}

#[test]
fn writing_an_error_counter_clears_its_group() {
    let mut esc = esc();
    esc.count_lost_link(1);
    esc.count_invalid_frame(2);
    assert_eq!(get(&mut esc, register::LOST_LINK_COUNTERS), Some([0, 1, 0, 0]));
    set(&mut esc, register::LOST_LINK_COUNTERS, &[0]);
    assert_eq!(get(&mut esc, register::LOST_LINK_COUNTERS), Some([0; 4]));
    assert_eq!(get(&mut esc, register::RX_ERROR_COUNTERS + 4), Some([1]));
}

#[test]
fn res_in_turn_asks_for_a_restart() {
    let mut esc = esc();
    for byte in *b"RXRES" {
        assert!(!esc.take_reset_request());
        set(&mut esc, register::ESC_RESET, &[byte]);
    }
    assert!(esc.take_reset_request());
}

// feature(simulator): write protection, of the registers and of the ESC
#[test]
fn protected_registers_accept_writes_only_in_unlocking_frame() {
    let mut esc = esc();
    assert!(set(&mut esc, register::WRITE_REGISTER_PROTECTION, &[1]));
    assert!(!set(&mut esc, register::STATION_ADDRESS, &[1, 0]));
    assert!(set(&mut esc, 0x0F80, &[7]) && set(&mut esc, 0x1000, &[7]), "RAM is not protected");
    assert!(set(&mut esc, register::WRITE_REGISTER_ENABLE, &[1]));
    assert!(set(&mut esc, register::STATION_ADDRESS, &[2, 0]));
    esc.close_protection();
    assert!(!set(&mut esc, register::STATION_ADDRESS, &[3, 0]));
    assert!(!set(&mut esc, register::WRITE_REGISTER_PROTECTION, &[0]), "nor is the protection taken off");
    // One datagram opens and writes.
    assert!(set(&mut esc, register::WRITE_REGISTER_ENABLE, &[1, 0]));
    esc.close_protection();
    assert!(set(&mut esc, register::STATION_ADDRESS, &[4, 0]));
    assert_eq!(get(&mut esc, register::STATION_ADDRESS), Some([4, 0]));
}

// feature(simulator): write protection, of the registers and of the ESC
#[test]
fn a_protected_esc_takes_no_write_at_all_unless_it_is_opened() {
    let mut esc = esc();
    sync_manager(&mut esc, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1010, 4);
    assert!(set(&mut esc, register::ESC_WRITE_PROTECTION, &[1]));
    for address in [register::STATION_ADDRESS, 0x0F80, 0x1000, 0x1010] {
        assert!(!set(&mut esc, address, &[1; 4]), "{address:#06x}");
    }
    // Enabling the registers alone does not help.
    assert!(set(&mut esc, register::WRITE_REGISTER_ENABLE, &[1]));
    assert!(!set(&mut esc, register::STATION_ADDRESS, &[1, 0]));
    assert!(set(&mut esc, register::ESC_WRITE_ENABLE, &[1]));
    assert!(set(&mut esc, register::STATION_ADDRESS, &[1, 0]) && set(&mut esc, 0x1010, &[1; 4]));
    esc.close_protection();
    assert!(!set(&mut esc, 0x1000, &[1; 4]));
}

// feature(simulator): temporary loop settings
#[test]
fn temporary_loops_end_by_themselves() {
    let mut esc = esc();
    assert!(set(&mut esc, register::DL_CONTROL, &[0b11, 0b1100]));
    assert_eq!((esc.loop_control(1), esc.take_changes().links), (3, true));
    let later = |milliseconds| Instant::EPOCH + core::time::Duration::from_millis(milliseconds);
    esc.end_temporary_loops(later(900));
    assert_eq!((esc.loop_control(1), esc.take_changes().links), (3, false));
    esc.end_temporary_loops(later(1_000));
    assert_eq!((esc.loop_control(1), esc.take_changes().links), (0, true));
    assert_eq!(get(&mut esc, register::DL_CONTROL), Some([1, 0]));
}

#[test]
fn an_esc_has_the_leds_and_phys_of_its_kind() {
    use types::EscKind;

    use crate::esc::EscDescription;
    let kind = |kind: EscKind| Esc::new(EscDescription::of_kind(kind), Vec::new(), Instant::EPOCH);
    let writes =
        |esc: &mut Esc| (set(esc, register::RUN_LED, &[0x1F]), set(esc, register::MII_PHY_ADDRESS, &[0]));
    assert_eq!(writes(&mut kind(EscKind::Lan9252)), (true, true));
    assert_eq!(writes(&mut kind(EscKind::Et1100)), (false, true));
    assert_eq!(writes(&mut kind(EscKind::Et1200)), (false, false));
    let mut esc = kind(EscKind::IpCore);
    assert!(set(&mut esc, register::RUN_LED, &[0x1E]));
    assert_eq!(get(&mut esc, register::RUN_LED), Some([0x1E]));
    assert!(set(&mut esc, register::AL_CONTROL, &[1]) && set(&mut esc, register::RUN_LED, &[0x0F]));
    assert_eq!(get(&mut esc, register::RUN_LED), Some([0x00]), "off in Init");
}
