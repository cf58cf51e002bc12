//! The bus in one cycle, in addition to its status; and both as other programs see them.

use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{
    CableEnd, ErrorCounters, LatchEdge, Latches, MainDevice, SubDevice, SyncPhase, WorkingCounter,
};
use ethercat::register::DlStatus;
use ethercat::register::dl::PORTS;
use ipc::bus::{
    BusStatus, ClockStatus, LatchInput, PortLink, SubDeviceStatus, SyncStatus, WorkingCounterHistory,
};
use types::LockState;

use super::working_counters::History;
use crate::status::{Status, SubDeviceExchange};

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

/// A SubDevice of a bus without cycles, for other programs.
#[must_use]
pub fn sub_device_status(it: &SubDevice) -> SubDeviceStatus {
    let status = SubDeviceExchange {
        al_status: it.al_status,
        al_status_code: it.al_status_code,
        absent: it.is_absent(),
        ..SubDeviceExchange::default()
    };
    let pictured = Pictured {
        clock_difference: it.clock_difference,
        delay: it.clock.map(|clock| clock.delay),
        sync: [None; 2],
        errors: it.error_counters,
        links: it.links,
        cable: it.cable(),
        receive_times: it.receive_times,
    };
    described(&status, &pictured)
}

fn described(it: &SubDeviceExchange, pictured: &Pictured) -> SubDeviceStatus {
    // An error, a clock and links from before are not reported for a SubDevice that may have lost
    // its power since.
    let code = if it.gone { AlStatusCode::NO_ERROR } else { it.al_status_code };
    SubDeviceStatus {
        state: match it {
            it if it.absent => SubDeviceStatus::ABSENT.to_owned(),
            it if it.gone => SubDeviceStatus::NO_ANSWER.to_owned(),
            it => it.al_status.to_string(),
        },
        al_status_code: code.0,
        al_status_text: if code.0 == 0 { String::new() } else { code.text().to_owned() },
        exchanges: it.exchanges,
        missed: it.missed,
        waits: it.waits,
        clock_difference_ns: pictured.clock_difference.filter(|_| !it.gone),
        delay_ns: pictured.delay.filter(|_| !it.absent),
        sync0: pictured.sync[0].filter(|_| !it.gone).map(sync_status),
        sync1: pictured.sync[1].filter(|_| !it.gone).map(sync_status),
        errors: pictured.errors,
        links: pictured.links.filter(|_| !it.gone).map(links),
        cable: pictured.cable,
        receive_times_ns: pictured.receive_times,
    }
}

pub(super) fn bus_status(status: &Status, picture: &Picture) -> BusStatus {
    BusStatus {
        cycle: status.cycle,
        phase: status.phase.to_string(),
        frames_sent: status.reception.sent,
        frames_answered: status.reception.accepted,
        frames_lost: status.reception.lost,
        working_counters: picture.working_counters.clone(),
        working_counter_history: WorkingCounterHistory {
            short_cycles: picture.history.short_cycles,
            short_since: picture.history.short_since,
            changes: picture.history.changes().collect(),
        },
        reference_clock: picture.reference_clock,
        clock: clock(status),
        ring: status.ring,
        sub_devices: status
            .sub_devices
            .iter()
            .zip(&picture.sub_devices)
            .map(|(it, pictured)| described(it, pictured))
            .collect(),
    }
}

fn clock(status: &Status) -> Option<ClockStatus> {
    let Status { lock, reference, .. } = status;
    let is_known = reference.fresh || reference.frame_phase_ns != 0 || lock.state != LockState::Off;
    is_known.then(|| ClockStatus {
        lock: lock.state.name().to_owned(),
        difference_ns: reference.difference_ns,
        frame_phase_ns: reference.frame_phase_ns,
        phase_error_ns: lock.phase_error_ns,
        drift_ppb: lock.drift_ppb,
        outliers: lock.outliers,
        losses: lock.losses,
    })
}

/// SYNC0 or SYNC1 of a SubDevice, for other programs.
#[must_use]
pub fn sync_status(it: SyncPhase) -> SyncStatus {
    let [cycle_ns, shift_ns, frame_phase_ns] = [it.cycle, it.shift, it.frame].map(types::time::nanoseconds);
    SyncStatus { cycle_ns, shift_ns, frame_phase_ns }
}

fn links(found: DlStatus) -> [PortLink; 4] {
    std::array::from_fn(|port| PortLink {
        link: found.link[port],
        loop_closed: found.loop_closed[port],
        communication: found.communication[port],
    })
}

/// Latch inputs for other programs.
#[must_use]
pub fn latch_inputs(latches: Latches) -> [LatchInput; 2] {
    let edge = |it: LatchEdge| ipc::bus::LatchEdge {
        time_ns: (it.time != 0).then_some(it.time),
        is_new: it.is_new,
    };
    latches.inputs.map(|it| LatchInput {
        high: it.high,
        rising: edge(it.rising),
        falling: edge(it.falling),
    })
}
