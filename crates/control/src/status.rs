//! Status of a running cycle, seen from outside the real-time thread.

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::State;
use ethercat::main_device::{BringUpPhase, CycleReport, ReceptionCounters};
use ipc::state::{Rows, decode_axes};
use motion::supervision::StopReason;
use types::RingStatus;

use crate::clock_lock::{LockReport, ReferenceReport};
use crate::controller::AxisReport;
use rt::newest::{Reader, Writer, newest};

/// Status at the end of one cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Number of the cycle.
    pub cycle: u64,
    /// Cycle in which the stop began: the first one with the outputs of the stop.
    pub stop_began: Option<u64>,
    /// Phase of the bus.
    pub phase: BringUpPhase,
    /// Outcome of the cycle's process data.
    pub report: CycleReport,
    /// Frames sent and received since the start.
    pub reception: ReceptionCounters,
    /// Largest difference of a SubDevice's clock from the reference clock.
    pub clock_difference: Duration,
    /// Lock of the cycle to the reference clock.
    pub lock: LockReport,
    /// The reference clock against this host's.
    pub reference: ReferenceReport,
    /// Frames the operating system did not take or give since the start.
    pub link_errors: u64,
    /// Ring of SubDevices, if the link is one.
    pub ring: Option<RingStatus>,
    /// Status of the SubDevices, in the order of positions.
    pub sub_devices: Vec<SubDeviceExchange>,
    /// Reports of the axes, in their order.
    pub axes: Vec<AxisReport>,
}

/// Exchange of process data with a SubDevice, and its AL state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubDeviceExchange {
    /// Its process data went to and fro in this cycle; true where it has none.
    pub exchanges: bool,
    /// Consecutive cycles, in Op, in which it did not.
    pub missed: u32,
    /// It is not on the bus, and need not be.
    pub absent: bool,
    /// It is there, and exchanges nothing while another of its group is absent.
    pub waits: bool,
    /// It does not answer to its address, or no frame came back for three cycles; the values below
    /// are older.
    pub gone: bool,
    /// AL status (register 0x0130), as it was read last.
    pub al_status: AlStatus,
    /// AL status code (register 0x0134), read with it.
    pub al_status_code: AlStatusCode,
}

impl Default for SubDeviceExchange {
    /// Nothing is known of it.
    fn default() -> Self {
        let al_status = AlStatus::in_state(AlState::Init);
        Self {
            exchanges: false,
            missed: 0,
            absent: false,
            waits: false,
            gone: false,
            al_status,
            al_status_code: AlStatusCode::default(),
        }
    }
}

impl Status {
    /// Before the first cycle.
    #[must_use]
    pub fn initial(sub_devices: usize, axes: usize) -> Self {
        Self {
            cycle: 0,
            stop_began: None,
            phase: BringUpPhase::Scan,
            report: CycleReport::default(),
            reception: ReceptionCounters::default(),
            clock_difference: Duration::ZERO,
            lock: LockReport::default(),
            reference: ReferenceReport::default(),
            link_errors: 0,
            ring: None,
            sub_devices: vec![SubDeviceExchange::default(); sub_devices],
            axes: vec![AxisReport::default(); axes],
        }
    }

    /// True if the bus is in Op and axes wait to be enabled by a person: one waits for a start
    /// request, or none is enabled, requested to be, or in fault.
    #[must_use]
    pub fn waits_for_enable(&self) -> bool {
        let mut axes = self.axes.iter().filter(|it| !it.absent).peekable();
        if self.phase != BringUpPhase::Op || self.stop_began.is_some() || axes.peek().is_none() {
            return false;
        }
        let waits = |it: &AxisReport| it.stop == Some(StopReason::AwaitsStart);
        let is_off = |it: &AxisReport| {
            let off = [State::SwitchOnDisabled, State::ReadyToSwitchOn, State::SwitchedOn];
            it.waits == 0 && it.state.is_some_and(|state| off.contains(&state))
        };
        axes.clone().any(waits) || axes.all(is_off)
    }

    /// The same as `other`, which has as many SubDevices; its axes have these words of a
    /// publication. Allocates nothing.
    pub(crate) fn copy_from(&mut self, other: &Self, axes: &[u64]) {
        self.copy_bus_from(other);
        self.read_axes(axes);
    }

    /// Takes the reports of the axes from their words in a publication.
    pub(crate) fn read_axes(&mut self, words: &[u64]) {
        for (axis, read) in self.axes.iter_mut().zip(decode_axes(words)) {
            *axis = AxisReport::of(&read);
        }
    }

    fn copy_bus_from(&mut self, other: &Self) {
        let Self {
            cycle,
            stop_began,
            phase,
            report,
            reception,
            clock_difference,
            lock,
            reference,
            link_errors,
            ring,
            sub_devices,
            axes: _,
        } = other;
        (self.cycle, self.stop_began, self.phase, self.report, self.reception) =
            (*cycle, *stop_began, *phase, *report, *reception);
        (self.clock_difference, self.lock, self.reference, self.link_errors, self.ring) =
            (*clock_difference, *lock, *reference, *link_errors, *ring);
        self.sub_devices.copy_from_slice(sub_devices);
    }
}

/// A writer and a reader of a status with this many SubDevices and axes.
#[must_use]
pub fn status_cell(sub_devices: usize, axes: usize) -> (StatusWriter, StatusReader) {
    let rows = Rows { axes, ..Rows::default() };
    let axes = vec![0; rows.of_axes().len()].into();
    let initial = Published { bus: Status::initial(sub_devices, rows.axes), axes };
    let (writer, reader) = newest(&initial);
    (StatusWriter(writer), StatusReader(reader))
}

/// A status, with its axes in the words of the publication.
#[derive(Clone, Debug)]
struct Published {
    /// Without the axes, which are in the words.
    bus: Status,
    axes: Box<[u64]>,
}

/// The real-time side's end.
#[derive(Debug)]
pub struct StatusWriter(Writer<Published>);

impl StatusWriter {
    /// Replaces the status; `status` has the SubDevices the cell was made for. `axes` are the words
    /// of its axes in a publication ([`ipc::state::Rows::of_axes`]).
    pub fn publish(&mut self, status: &Status, axes: &[u64]) {
        self.0.write(|newest| {
            newest.bus.copy_bus_from(status);
            for (word, &value) in newest.axes.iter_mut().zip(axes) {
                *word = value;
            }
        });
    }
}

/// Reads the newest status, from any thread and as often as liked.
#[derive(Clone, Debug)]
pub struct StatusReader(Reader<Published>);

impl StatusReader {
    /// The newest status, always of one cycle.
    #[must_use]
    pub fn read(&self) -> Status {
        let Published { bus: mut status, axes } = self.0.read();
        status.read_axes(&axes);
        status
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ethercat::cia402::{AxisMode, CyclicMode, ModeOfOperation, Statusword};
    use ipc::state::encode;
    use motion::supervision::QuickStopStep;
    use motion::{AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond};

    use super::*;
    use types::state::InputLevel;

    use crate::controller::{BrakeInputCause, IgnoredSetpoint, InterlockCause};

    fn status(number: u64) -> Status {
        let n = number as f64;
        let phases = [AxisPhase::NotEnabled, AxisPhase::HoldingAt(Radians(n + 1.0)), AxisPhase::Following];
        let axis = AxisReport {
            state: State::ALL.get(number as usize % 9).copied(),
            feedback: AxisFeedback {
                position: Radians(n),
                velocity: RadiansPerSecond(-n),
                torque: NewtonMetres(n / 2.0),
                phase: phases[number as usize % 3],
                fresh: number % 2 == 0,
            },
            measures_torque: number % 11 == 0,
            homed: number % 5 == 0,
            homed_by_hand: number as u32 % 3,
            homing: number % 7 == 0,
            stop: StopReason::ALL.get(number as usize % (StopReason::ALL.len() + 1)).copied(),
            held: number as u32,
            quick_stop: QuickStopStep::ALL.get(number as usize % 5).copied(),
            overshoot: (number % 3 == 0).then_some(Radians(n)),
            stopped_with: Some(number as usize % 7),
            interlock: InputLevel::ALL.get(number as usize % 7).map(|&level| InterlockCause {
                interlock: number as usize % 5,
                level,
                permits: number % 2 == 0,
            }),
            brake: InputLevel::ALL
                .get(number as usize % 8)
                .map(|&level| BrakeInputCause { place: number as usize % 3, level }),
            stalled: number as u32 % 23,
            ended: number % 29 == 0,
            moved: (number % 37 == 0).then_some([Radians(n), Radians(n + 0.5)]),
            memory_error: (number % 31) as u8,
            statusword: Statusword(number as u16),
            mode: (number % 19 != 0).then(|| ModeOfOperation::from_number(number as i8)),
            error_code: !number as u16,
            missed: number as u32,
            waits: !number as u32,
            was_enabled: number % 13 == 0,
            counts: (number % 3 == 0).then_some((number as i32, n)),
            absent: number % 17 == 0,
            ignored: AxisMode::ALL.get(number as usize % 9).map(|&mode| {
                let given = if number % 2 == 0 { CyclicMode::Torque } else { CyclicMode::Velocity };
                IgnoredSetpoint { mode, given }
            }),
        };
        Status {
            cycle: number,
            stop_began: (number % 2 == 0).then_some(number),
            phase: BringUpPhase::ALL[number as usize % BringUpPhase::ALL.len()],
            report: CycleReport {
                frames_sent: number as u16,
                frames_lost: number as u16 ^ 0xFFFF,
                working_counter_errors: 7,
                all_fresh: number % 3 == 0,
                spread: number % 11 == 0,
            },
            reception: ReceptionCounters {
                sent: number,
                accepted: number + 1,
                lost: number + 2,
                late: number + 3,
                duplicate: number + 4,
                foreign: number + 5,
                truncated: number + 6,
                mismatched: number + 7,
                other_main_device: number + 8,
            },
            clock_difference: Duration::from_nanos(number * 3),
            lock: LockReport { outliers: number, drift_ppb: -(number as i64), ..LockReport::default() },
            reference: ReferenceReport {
                fresh: number % 2 == 1,
                difference_ns: -(number as i64),
                frame_phase_ns: number,
            },
            link_errors: number * 5,
            ring: (number % 4 != 0).then_some(RingStatus { open: None, since: number }),
            sub_devices: vec![
                SubDeviceExchange {
                    exchanges: number % 2 == 0,
                    missed: !number as u32,
                    absent: number % 3 == 0,
                    waits: number % 5 == 0,
                    gone: number % 7 == 0,
                    al_status: AlStatus::from_bits(number as u16 & 0x3F),
                    al_status_code: AlStatusCode(number as u16),
                };
                2
            ],
            axes: vec![axis; 3],
        }
    }

    /// Words of its axes, as the cycle publishes them.
    fn words(status: &Status) -> Vec<u64> {
        let sent = AxisSetpoint { position: Radians(7.0), ..AxisSetpoint::default() };
        let rows = Rows { axes: status.axes.len(), ..Rows::default() };
        let axes = status.axes.iter().map(|it| it.shown(sent)).collect();
        let mut words = vec![0; rows.words()];
        encode(&ipc::state::State { axes, ..rows.blank() }, rows, &mut words);
        words[rows.of_axes()].to_vec()
    }

    fn publish(writer: &mut StatusWriter, number: u64) {
        let status = status(number);
        writer.publish(&status, &words(&status));
    }

    #[test]
    fn axes_wait_for_enable_in_op_only() {
        let mut status = Status::initial(2, 2);
        status.axes.iter_mut().for_each(|it| it.state = Some(State::SwitchOnDisabled));
        assert!(!status.waits_for_enable(), "not in Op");
        status.phase = BringUpPhase::Op;
        assert!(status.waits_for_enable());
        status.axes[0].waits = 1;
        assert!(!status.waits_for_enable(), "it is on its way");
        (status.axes[0].waits, status.axes[0].state) = (0, Some(State::Fault));
        assert!(!status.waits_for_enable(), "a fault is another thing");
        status.axes[0].state = Some(State::OperationEnabled);
        assert!(!status.waits_for_enable());
        status.axes[1].stop = Some(StopReason::AwaitsStart);
        assert!(status.waits_for_enable(), "one waits for a start request");
        status.stop_began = Some(7);
        assert!(!status.waits_for_enable(), "the run ends");
    }

    #[test]
    fn what_is_published_is_read() {
        let (mut writer, reader) = status_cell(2, 3);
        assert_eq!(reader.read(), Status::initial(2, 3));
        for number in 0..1_000 {
            publish(&mut writer, number);
            assert_eq!(reader.read(), status(number));
        }
    }

    #[test]
    fn a_status_read_while_it_is_written_is_of_one_cycle() {
        let (mut writer, reader) = status_cell(2, 3);
        publish(&mut writer, 0);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let read = reader.read();
                    assert_eq!(read, status(read.cycle), "torn");
                    assert!(read.cycle >= last, "went back");
                    last = read.cycle;
                }
            });
            for number in 0..200_000 {
                publish(&mut writer, number);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
