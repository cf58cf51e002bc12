//! Status of a running cycle, seen from outside the real-time thread.

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{BringUpPhase, CycleReport, ReceptionCounters};
use ipc::state::Stop;

use motion::supervision::StopReason;

use crate::cell::{Reader, Writer, newest};
use crate::controller::AxisReport;

/// A cycle at the end of one cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Number of the cycle.
    pub cycle: u64,
    /// Phase of the bus.
    pub stage: BringUpPhase,
    /// Outcome of the cycle's process data.
    pub report: CycleReport,
    /// Frames sent and received since the start.
    pub reception: ReceptionCounters,
    /// Largest difference of a SubDevice's clock from the reference clock.
    pub clock_difference: Duration,
    /// Frames the operating system did not take or give since the start.
    pub link_errors: u64,
    /// Status of the SubDevices, in the order of positions.
    pub sub_devices: Vec<SubDeviceStatus>,
    /// Reports of the axes, in their order.
    pub axes: Vec<AxisReport>,
}

/// Status of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubDeviceStatus {
    /// Its process data went to and fro in this cycle; true where it has none.
    pub exchanges: bool,
    /// Cycles in a row, in Op, in which it did not.
    pub missed: u32,
    /// AL status (register 0x0130), as it was read last.
    pub al_status: AlStatus,
    /// AL status code (register 0x0134), read with it.
    pub al_status_code: AlStatusCode,
}

impl Default for SubDeviceStatus {
    /// Nothing is known of it.
    fn default() -> Self {
        let al_status = AlStatus::in_state(AlState::Init);
        Self { exchanges: false, missed: 0, al_status, al_status_code: AlStatusCode::default() }
    }
}

impl Status {
    /// Before the first cycle.
    #[must_use]
    pub fn initial(sub_devices: usize, axes: usize) -> Self {
        Self {
            cycle: 0,
            stage: BringUpPhase::Scan,
            report: CycleReport::default(),
            reception: ReceptionCounters::default(),
            clock_difference: Duration::ZERO,
            link_errors: 0,
            sub_devices: vec![SubDeviceStatus::default(); sub_devices],
            axes: vec![AxisReport::default(); axes],
        }
    }

    /// The same as `other`, which has as many SubDevices and axes; allocates nothing.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        let Self { cycle, stage, report, reception, clock_difference, link_errors, sub_devices, axes } =
            other;
        (self.cycle, self.stage, self.report, self.reception) = (*cycle, *stage, *report, *reception);
        (self.clock_difference, self.link_errors) = (*clock_difference, *link_errors);
        self.sub_devices.copy_from_slice(sub_devices);
        self.axes.copy_from_slice(axes);
    }
}

/// A stage as [`ipc::state::Bus`] counts it.
pub(crate) fn stage_number(stage: BringUpPhase) -> u8 {
    STAGES.iter().position(|&other| other == stage).unwrap_or(0) as u8
}

/// Why an axis was stopped, for other processes.
#[must_use]
pub const fn stop_code(reason: StopReason) -> Stop {
    match reason {
        StopReason::Stale => Stop::Stale,
        StopReason::PositionLimit => Stop::PositionLimit,
        StopReason::VelocityLimit => Stop::VelocityLimit,
        StopReason::Step => Stop::Step,
        StopReason::FollowingError => Stop::FollowingError,
        StopReason::Fault => Stop::Fault,
        StopReason::NotFinite => Stop::NotFinite,
        StopReason::HomingError => Stop::HomingError,
        StopReason::HomingTimedOut => Stop::HomingTimedOut,
        StopReason::Outage => Stop::Outage,
        StopReason::Interlock => Stop::Interlock,
        StopReason::NotPermitted => Stop::NotPermitted,
        StopReason::Ending => Stop::Ending,
    }
}

const STAGES: [BringUpPhase; 10] = [
    BringUpPhase::Scan,
    BringUpPhase::Clocks,
    BringUpPhase::Configuration,
    BringUpPhase::PreOp,
    BringUpPhase::ToSafeOp,
    BringUpPhase::SafeOp,
    BringUpPhase::ToOp,
    BringUpPhase::Op,
    BringUpPhase::ToInit,
    BringUpPhase::Down,
];

/// A writer and a reader of a status with this many SubDevices and axes.
#[must_use]
pub fn status_cell(sub_devices: usize, axes: usize) -> (StatusWriter, StatusReader) {
    let (writer, reader) = newest(&Status::initial(sub_devices, axes));
    (StatusWriter(writer), StatusReader(reader))
}

/// The real-time side's end.
#[derive(Debug)]
pub struct StatusWriter(Writer<Status>);

impl StatusWriter {
    /// Replaces the status; `status` has the SubDevices and axes the cell was made for.
    pub fn publish(&mut self, status: &Status) {
        self.0.write(|newest| newest.copy_from(status));
    }
}

/// Reads the newest status, from any thread and as often as liked.
#[derive(Clone, Debug)]
pub struct StatusReader(Reader<Status>);

impl StatusReader {
    /// The newest status, always of one cycle.
    #[must_use]
    pub fn read(&self) -> Status {
        self.0.read()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ethercat::cia402::{State, Statusword};
    use motion::{AxisFeedback, AxisPhase, NewtonMetres, Radians, RadiansPerSecond};

    use super::*;

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
            homed: number % 5 == 0,
            homing: number % 7 == 0,
            stop: StopReason::ALL.get(number as usize % (StopReason::ALL.len() + 1)).copied(),
            statusword: Statusword(number as u16),
            error_code: !number as u16,
            missed: number as u32,
            waits: !number as u32,
            was_enabled: number % 13 == 0,
        };
        Status {
            cycle: number,
            stage: STAGES[number as usize % STAGES.len()],
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
            link_errors: number * 5,
            sub_devices: vec![
                SubDeviceStatus {
                    exchanges: number % 2 == 0,
                    missed: !number as u32,
                    al_status: AlStatus::from_bits(number as u16 & 0x3F),
                    al_status_code: AlStatusCode(number as u16),
                };
                2
            ],
            axes: vec![axis; 3],
        }
    }

    #[test]
    fn what_is_published_is_read() {
        let (mut writer, reader) = status_cell(2, 3);
        assert_eq!(reader.read(), Status::initial(2, 3));
        for number in 0..1_000 {
            writer.publish(&status(number));
            assert_eq!(reader.read(), status(number));
        }
    }

    /// Every reason is published by its own name, and there is no other code.
    #[test]
    fn a_stop_goes_to_other_processes_by_its_name() {
        for reason in StopReason::ALL {
            let code = stop_code(reason) as u8;
            let shown = Stop::from_code(code).map(|stop| format!("{stop:?}"));
            assert_eq!(shown, Some(format!("{reason:?}")), "code {code}");
        }
        let codes = (0..=u8::MAX).filter(|&code| Stop::from_code(code).is_some());
        assert_eq!(codes.count(), StopReason::ALL.len());
    }

    #[test]
    fn a_status_read_while_it_is_written_is_of_one_cycle() {
        let (mut writer, reader) = status_cell(2, 3);
        writer.publish(&status(0));
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
                writer.publish(&status(number));
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
