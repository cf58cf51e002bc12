//! The bus in one cycle, in addition to its status.

use ethercat::main_device::{CableEnd, ErrorCounters, MainDevice, SyncPhase, WorkingCounter};
use ethercat::register::DlStatus;
use ethercat::register::dl::PORTS;

use super::working_counters::History;

/// Buffer that the cycle fills in: made by the ordinary thread, for as many SubDevices as there
/// are.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) reference_clock: Option<u16>,
    pub(super) working_counters: Vec<WorkingCounter>,
    pub(super) history: History,
    pub(super) sub_devices: Vec<Pictured>,
}

/// A SubDevice in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pictured {
    pub(super) clock_difference: Option<i32>,
    pub(super) delay: Option<u32>,
    /// SYNC0 and SYNC1.
    pub(super) sync: [Option<SyncPhase>; 2],
    pub(super) errors: Option<ErrorCounters>,
    pub(super) links: Option<DlStatus>,
    pub(super) cable: Option<[CableEnd; 2]>,
    pub(super) receive_times: Option<[u32; PORTS]>,
}

/// Requested parts of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Error counters and links.
    pub(super) errors: bool,
    /// Receive times, latched again.
    pub(super) receive_times: bool,
}

impl Picture {
    pub(super) fn new(sub_devices: usize) -> Self {
        // Filled once, so that every page is present before the cycle writes to it.
        let mut working_counters =
            vec![WorkingCounter { expected: 1, received: None }; 4 * sub_devices + 64];
        working_counters.clear();
        let sub_devices = vec![Pictured { clock_difference: Some(1), ..Pictured::default() }; sub_devices];
        Self { reference_clock: None, working_counters, history: History::default(), sub_devices }
    }

    /// Takes the bus as it is now, as far as there is space.
    pub(super) fn fill(&mut self, main_device: &MainDevice, history: &History, wanted: Wanted) {
        self.history = *history;
        self.reference_clock = main_device.clock().reference;
        let room = self.working_counters.capacity();
        self.working_counters.clear();
        self.working_counters.extend(main_device.working_counters().take(room));
        let sub_devices = main_device.sub_devices().iter().enumerate();
        for (pictured, (position, it)) in self.sub_devices.iter_mut().zip(sub_devices) {
            *pictured = Pictured {
                clock_difference: it.clock_difference,
                delay: it.clock.map(|clock| clock.delay),
                sync: main_device.sync_phases(position),
                errors: it.error_counters.filter(|_| wanted.errors),
                links: it.links.filter(|_| wanted.errors),
                cable: it.cable(),
                receive_times: it.receive_times.filter(|_| wanted.receive_times),
            };
        }
    }
}
