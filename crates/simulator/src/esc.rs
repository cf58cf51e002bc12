//! One EtherCAT SubDevice controller: its memory, and the effects of reads and writes.
//!
//! No allocation while frames pass. Times are the arrival of a frame at this ESC.
//!
//! Simplifications: EEPROM emulation is missing; each kind has the physical read/write offset
//! (0x0108). An AL control request that comes before the previous one was served replaces it. The
//! digital I/O registers below 0x1000 have one buffer.

mod access;
mod changes;
mod clock;
mod distributed_clock;
mod fmmu;
mod kind;
mod led;
mod loop_control;
mod memory;
mod mii;
mod protection;
mod sii;
mod sync_manager;
mod watchdog;

use core::time::Duration;

use ethercat::al::{AlControl, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::register::{self, dc, dl};
use ethercat::time::Instant;

pub(crate) use changes::Changes;
pub use distributed_clock::Oscillator;
pub(crate) use distributed_clock::SyncSignal;
pub use kind::EscDescription;

pub(crate) use memory::{Combine, FIRST_SHARED};
pub(crate) use sync_manager::{Kind, SyncManagerUnit};

use distributed_clock::DistributedClock;
use fmmu::FmmuUnit;
use loop_control::TemporaryLoops;
use memory::Memory;
use mii::MiiInterface;
use sii::SiiInterface;
use watchdog::Watchdog;

/// One ESC.
#[derive(Clone)]
pub(crate) struct Esc {
    description: EscDescription,
    memory: Memory,
    fmmus: Vec<FmmuUnit>,
    sync_managers: Vec<SyncManagerUnit>,
    sii: SiiInterface,
    mii: MiiInterface,
    temporary_loops: TemporaryLoops,
    clock: DistributedClock,
    process_data_watchdog: Watchdog,
    application_watchdog: Watchdog,
    /// True if AL control was written and not yet served.
    state_requested: bool,
    sync_managers_switched: bool,
    /// Sets of outputs since the last query, in the first SyncManager of outputs, and the time of
    /// the newest.
    output_events: (u32, Instant),
    dl_status_changed: bool,
    /// Changes that the segment follows, since its last look.
    changes: Changes,
    al_status_changed: bool,
    reset_progress: usize,
    reset_requested: bool,
}

/// DL control: the loop settings hold for about a second.
const TEMPORARY_LOOPS: u8 = 1 << 1;

/// Passage of a frame through this ESC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// Time of its processing.
    pub(crate) now: Instant,
    /// Time at which the segment received it, and for each port the delay of its arrival there, in
    /// ns.
    pub(crate) begun: Instant,
    pub(crate) ports: [Option<u64>; dl::PORTS],
}

impl Passage {
    /// Ports to which it comes, and when.
    fn arrivals(&self) -> impl Iterator<Item = (u16, Instant)> {
        let at = |after: u64| Instant::from_nanos(self.begun.as_nanos().saturating_add(after));
        (0..).zip(self.ports).filter_map(move |(port, after)| Some((port, at(after?))))
    }
}

impl Esc {
    pub(crate) fn new(description: EscDescription, image: Vec<u8>, now: Instant) -> Self {
        let sii = SiiInterface::new(image, description.sii_reads_8_bytes);
        let clock = DistributedClock::new(
            description.oscillator,
            description.features.distributed_clocks_64_bit(),
            now,
        );
        let mut esc = Self {
            memory: Memory::up_to(description.memory_end()),
            fmmus: vec![FmmuUnit::OFF; usize::from(description.fmmus.min(16))],
            sync_managers: (0..description.sync_managers.min(16)).map(SyncManagerUnit::new).collect(),
            sii,
            mii: MiiInterface::new(description.port_descriptor),
            temporary_loops: TemporaryLoops::default(),
            clock,
            process_data_watchdog: Watchdog::default(),
            application_watchdog: Watchdog::default(),
            state_requested: false,
            sync_managers_switched: false,
            output_events: (0, now),
            dl_status_changed: false,
            changes: Changes::ALL,
            al_status_changed: false,
            reset_progress: 0,
            reset_requested: false,
            description,
        };
        esc.reset_registers();
        esc
    }

    /// Same ESC after losing and regaining power at `now`; the EEPROM keeps its contents.
    pub(crate) fn restarted(&self, now: Instant) -> Self {
        let mut esc = Self::new(self.description.clone(), self.sii.image().to_vec(), now);
        esc.clock.keep_pins(&mut esc.memory, &self.clock);
        esc
    }

    fn reset_registers(&mut self) {
        let memory = &mut self.memory;
        let it = &self.description;
        memory.set_byte(register::TYPE, it.controller_type);
        memory.set_byte(register::REVISION, it.revision);
        memory.store(register::BUILD, &it.build.to_le_bytes());
        memory.set_byte(register::FMMU_COUNT, self.fmmus.len() as u8);
        memory.set_byte(register::SYNC_MANAGER_COUNT, self.sync_managers.len() as u8);
        memory.set_byte(register::RAM_SIZE, it.ram_kib);
        memory.set_byte(register::PORT_DESCRIPTOR, it.port_descriptor);
        memory.store(register::FEATURES, &it.features.bits.to_le_bytes());
        memory.store(register::ESC_SPECIFIC, &it.specific);
        self.mii.reset_registers(memory);
        memory.set_byte(register::DL_CONTROL, 1);
        memory.store(register::AL_CONTROL, &[1, 0]);
        memory.store(register::AL_STATUS, &[1, 0]);
        memory.store(register::WATCHDOG_DIVIDER, &register::WATCHDOG_DIVIDER_DEFAULT.to_le_bytes());
        memory.store(register::WATCHDOG_TIME_PDI, &register::WATCHDOG_TIME_DEFAULT.to_le_bytes());
        memory.store(register::WATCHDOG_TIME_PROCESS_DATA, &register::WATCHDOG_TIME_DEFAULT.to_le_bytes());
        for sync_manager in &mut self.sync_managers {
            sync_manager.configure(memory);
        }
        if it.features.distributed_clocks() {
            DistributedClock::reset_registers(memory);
        }
        self.sii.load(memory);
    }

    pub(crate) fn sii(&self) -> &SiiInterface {
        &self.sii
    }

    /// True if the fieldbus has written to the EEPROM since the last call, by `now`.
    pub(crate) fn take_sii_written(&mut self, now: Instant) -> bool {
        self.sii.settle(&mut self.memory, now);
        self.sii.take_written()
    }

    pub(crate) fn sii_loaded(&self) -> bool {
        self.sii.is_loaded(&self.memory)
    }

    pub(crate) fn features(&self) -> register::EscFeatures {
        self.description.features
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn sync_managers(&self) -> &[SyncManagerUnit] {
        &self.sync_managers
    }

    /// SyncManager `number`, with the memory it guards.
    pub(crate) fn sync_manager_mut(
        &mut self,
        number: usize,
    ) -> Option<(&mut SyncManagerUnit, &mut Memory)> {
        Some((self.sync_managers.get_mut(number)?, &mut self.memory))
    }

    /// True if AL status follows AL control by itself: no application controller (0x0141 bit 0).
    pub(crate) fn emulates_device(&self) -> bool {
        self.memory.byte(register::ESC_CONFIGURATION) & 1 != 0
    }

    /// Takes the request in AL control, once.
    pub(crate) fn take_state_request(&mut self) -> Option<AlControl> {
        let requested = core::mem::take(&mut self.state_requested);
        requested.then(|| AlControl::from_bits(self.memory.word(register::AL_CONTROL)))
    }

    /// With device emulation copies AL control to AL status, acknowledge bit included.
    fn state_control_written(&mut self) {
        self.state_requested = true;
        if self.emulates_device() {
            let status = self.memory.word(register::AL_CONTROL) & 0x1F;
            self.set_al_status(AlStatus::from_bits(status), AlStatusCode::NO_ERROR);
        }
    }

    pub(crate) fn al_status(&self) -> AlStatus {
        AlStatus::from_bits(self.memory.word(register::AL_STATUS))
    }

    pub(crate) fn set_al_status(&mut self, status: AlStatus, code: AlStatusCode) {
        self.memory.store(register::AL_STATUS, &status.bits().to_le_bytes());
        self.memory.store(register::AL_STATUS_CODE, &code.0.to_le_bytes());
        if self.description.led_override {
            led::show(&mut self.memory, status, code);
        }
        self.al_status_changed = true;
    }

    /// True if a SyncManager was switched on or off since the last call.
    pub(crate) fn take_sync_managers_switched(&mut self) -> bool {
        core::mem::take(&mut self.sync_managers_switched)
    }

    /// Sets of outputs since the last call, and the time of the newest.
    pub(crate) fn take_output_events(&mut self) -> (u32, Instant) {
        let (sets, newest) = self.output_events;
        self.output_events.0 = 0;
        (sets, newest)
    }

    pub(crate) fn take_reset_request(&mut self) -> bool {
        core::mem::take(&mut self.reset_requested)
    }

    /// Shows the links and loops of `status`; the ESC itself adds the bits of the PDI.
    pub(crate) fn set_dl_status(&mut self, status: register::DlStatus) {
        let shown = register::DlStatus::from_bits(self.memory.word(register::DL_STATUS));
        let status = register::DlStatus {
            pdi_operational: self.sii_loaded(),
            pdi_watchdog_ok: shown.pdi_watchdog_ok,
            ..status
        };
        let bits = status.bits().to_le_bytes();
        if self.memory.array(register::DL_STATUS) != bits {
            self.memory.store(register::DL_STATUS, &bits);
            self.dl_status_changed = true;
        }
    }

    /// True if frames of other protocols end here (0x0100 bit 0).
    pub(crate) fn destroys_others(&self) -> bool {
        self.memory.byte(register::DL_CONTROL) & 1 != 0
    }

    /// Loop setting of `port`: 0 auto, 1 auto close, 2 open, 3 closed (0x0101).
    pub(crate) fn loop_control(&self, port: usize) -> u8 {
        self.memory.byte(register::DL_CONTROL + 1) >> (2 * port) & 3
    }

    /// Ends temporary loop settings that have expired by `now`.
    pub(crate) fn end_temporary_loops(&mut self, now: Instant) {
        if let Some(loops) = self.temporary_loops.end(now) {
            let others = self.memory.byte(register::DL_CONTROL) & !TEMPORARY_LOOPS;
            self.memory.store(register::DL_CONTROL, &[others, loops]);
            self.changes.links = true;
        }
    }

    /// Delay from port in to port out, in ns.
    pub(crate) fn forwarding_delay(&self) -> u64 {
        u64::from(self.description.forwarding_delay)
    }

    pub(crate) fn count_lost_link(&mut self, port: usize) {
        self.memory.count(register::LOST_LINK_COUNTERS + port as u16);
    }

    pub(crate) fn count_processing_unit_error(&mut self) {
        self.memory.count(register::PROCESSING_UNIT_ERROR_COUNTER);
    }

    pub(crate) fn count_invalid_frame(&mut self, port: usize) {
        self.memory.count(register::RX_ERROR_COUNTERS + 2 * port as u16);
    }

    pub(crate) fn count_forwarded_rx_error(&mut self, port: usize) {
        self.memory.count(register::FORWARDED_RX_ERROR_COUNTERS + port as u16);
    }

    /// Events that the fieldbus gets in every datagram: ECAT event request under its mask.
    pub(crate) fn interrupt(&self) -> u16 {
        match self.memory.word(register::ECAT_EVENT_MASK) {
            0 => 0,
            mask => self.fieldbus_events() & mask,
        }
    }

    fn fieldbus_events(&self) -> u16 {
        let sync_managers = self.sync_managers.iter().take(8).enumerate();
        let events = sync_managers
            .fold(0, |bits, (number, it)| bits | u16::from(it.fieldbus_event()) << (4 + number));
        let latched = self.features().distributed_clocks() && DistributedClock::holds_edge(&self.memory);
        events
            | u16::from(latched)
            | u16::from(self.dl_status_changed) << 2
            | u16::from(self.al_status_changed) << 3
    }

    fn application_events(&self) -> u32 {
        let sync_managers = self.sync_managers.iter().enumerate();
        let events = sync_managers
            .fold(0, |bits, (number, it)| bits | u32::from(it.application_event()) << (8 + number));
        let watchdog = self.memory.byte(register::WATCHDOG_STATUS) & 1 == 0;
        events
            | u32::from(self.state_requested)
            | u32::from(self.sync_managers_switched) << 4
            | u32::from(watchdog) << 6
    }

    /// SYNC0 cycle in ns while it is active.
    pub(crate) fn sync0_cycle(&self) -> Option<u32> {
        self.clock.sync0_cycle()
    }

    pub(crate) fn sync_due(&self) -> Option<(SyncSignal, Instant)> {
        self.clock.sync_due()
    }

    pub(crate) fn take_sync(&mut self, signal: SyncSignal) -> Option<u64> {
        self.clock.take_sync(&self.memory, signal)
    }

    /// Level of a latch input from now on.
    pub(crate) fn set_latch(&mut self, now: Instant, input: usize, high: bool) {
        if self.features().distributed_clocks() {
            self.clock.set_pin(&mut self.memory, now, input, high);
        }
    }

    pub(crate) fn jump_clock(&mut self, now: Instant, by: i64) {
        self.clock.jump(&self.memory, now, by);
    }

    pub(crate) fn set_receive_time_latches(&mut self, port: usize, latches: bool) {
        self.clock.set_latches(port, latches);
    }

    pub(crate) fn expire_process_data_watchdog(&mut self) {
        self.process_data_watchdog.expire();
    }

    pub(crate) fn set_sii(&mut self, image: Vec<u8>) {
        self.sii.set_image(image);
    }

    /// Skips the pulses of SYNC0 and SYNC1 before `now`, after a leap of time.
    pub(crate) fn skip_sync(&mut self, now: Instant) {
        self.clock.skip_sync(&self.memory, now);
    }

    /// Local time plus offset, in ns.
    pub(crate) fn system_time(&self, now: Instant) -> u64 {
        self.clock.system_time(&self.memory, now)
    }

    /// Checks the SyncManager watchdog; `true` at the moment it expires.
    pub(crate) fn process_data_watchdog_expires(&mut self, now: Instant) -> bool {
        let expired = self.process_data_watchdog.expires(now);
        if expired {
            self.set_watchdog_status(false);
            self.memory.count(register::WATCHDOG_COUNTER_PROCESS_DATA);
        }
        expired
    }

    /// True if outputs arrived in time, or are not supervised.
    pub(crate) fn process_data_watchdog_ok(&self) -> bool {
        self.memory.byte(register::WATCHDOG_STATUS) & 1 != 0
            || self.watchdog_period(register::WATCHDOG_TIME_PROCESS_DATA).is_none()
    }

    /// Registers an access by the application at `now`.
    pub(crate) fn application_alive(&mut self, now: Instant) {
        self.application_watchdog_expires(now);
        self.application_watchdog.trigger(now, self.watchdog_period(register::WATCHDOG_TIME_PDI));
        self.show_application_watchdog(true);
    }

    /// Checks the PDI watchdog.
    pub(crate) fn application_watchdog_expires(&mut self, now: Instant) {
        if self.application_watchdog.expires(now) {
            self.memory.count(register::WATCHDOG_COUNTER_PDI);
            self.show_application_watchdog(false);
        }
    }

    /// Shows the PDI watchdog in DL status bit 1.
    fn show_application_watchdog(&mut self, ok: bool) {
        let others = self.memory.byte(register::DL_STATUS) & !0x02;
        self.memory.set_byte(register::DL_STATUS, others | u8::from(ok) << 1);
    }

    fn watchdog_period(&self, time: u16) -> Option<Duration> {
        register::watchdog::time(self.memory.word(register::WATCHDOG_DIVIDER), self.memory.word(time))
    }

    fn set_watchdog_status(&mut self, ok: bool) {
        self.memory.set_byte(register::WATCHDOG_STATUS, u8::from(ok));
    }

    fn feed_process_data_watchdog(&mut self, now: Instant) {
        let period = self.watchdog_period(register::WATCHDOG_TIME_PROCESS_DATA);
        self.process_data_watchdog.trigger(now, period);
        self.set_watchdog_status(true);
    }

    /// Applies the FMMU registers.
    fn configure_fmmus(&mut self) {
        for (number, unit) in self.fmmus.iter_mut().enumerate() {
            let address = register::FMMU + number as u16 * register::fmmu::LENGTH;
            *unit = FmmuUnit::new(&self.memory.array::<{ register::fmmu::LENGTH as usize }>(address));
        }
    }

    /// Restarts the ESC after three bytes in turn: 'R', 'E', 'S' (0x0040).
    fn reset_written(&mut self) {
        let byte = self.memory.byte(register::ESC_RESET);
        self.reset_progress = match (self.reset_progress, byte) {
            (0 | 1, b'R') => 1,
            (1, b'E') => 2,
            (2, b'S') => 3,
            _ => 0,
        };
        self.reset_requested |= self.reset_progress == 3;
    }

    /// Latches when a frame passed the ports that did not pass the processing unit.
    pub(crate) fn latch_ports(&mut self, passage: &Passage) {
        if self.features().distributed_clocks() {
            self.clock.latch_ports(&mut self.memory, passage);
        }
    }

    fn clock_written(&mut self, passage: &Passage, written: &core::ops::Range<u32>, bytes: &[u8]) {
        let (memory, now) = (&mut self.memory, passage.now);
        let touches = |register: u16, length: u32| {
            written.start < u32::from(register) + length && written.end > u32::from(register)
        };
        if touches(dc::RECEIVE_TIME, 4) {
            self.clock.latch(memory, passage);
        }
        if written.start == u32::from(dc::SYSTEM_TIME) {
            let length = bytes.len().min(8);
            self.clock.system_time_written(memory, now, &bytes[..length]);
        }
        if touches(dc::SYSTEM_TIME_OFFSET, 12) {
            self.clock.reset_difference(memory, now);
        }
        if touches(dc::SPEED_COUNTER_START, 2) {
            self.clock.reset_filters(memory, now);
        }
        if touches(dc::ACTIVATION, 1) {
            self.clock.activation_written(memory, now);
        }
    }
}
