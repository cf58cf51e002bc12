//! How a running cycle stands, seen from outside the real-time thread.

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::{State, Statusword};
use ethercat::main_device::{BringUpPhase, CycleReport, ReceptionCounters};
use ipc::state::Stop;

use motion::supervision::StopReason;
use motion::{AxisFeedback, AxisPhase, NewtonMetres, Radians, RadiansPerSecond};

use crate::cell::{self, WordReader, WordWriter};
use crate::controller::AxisReport;

/// A cycle at the end of one cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Number of the cycle.
    pub cycle: u64,
    /// How far the bus is.
    pub stage: BringUpPhase,
    /// What the cycle's process data came to.
    pub report: CycleReport,
    /// Frames sent and received since the start.
    pub reception: ReceptionCounters,
    /// Largest difference of a SubDevice's clock from the reference clock.
    pub clock_difference: Duration,
    /// Frames the operating system did not take or give since the start.
    pub link_errors: u64,
    /// What the SubDevices show, in the order of positions.
    pub sub_devices: Vec<SubDeviceStatus>,
    /// What the axes report, in their order.
    pub axes: Vec<AxisReport>,
}

/// What a SubDevice shows.
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

impl SubDeviceStatus {
    fn encode(self) -> u64 {
        let Self { exchanges, missed, al_status, al_status_code } = self;
        u64::from(exchanges)
            // Bit 15 of AL status is reserved.
            | u64::from(al_status.bits() & 0x7FFF) << 1
            | u64::from(al_status_code.0) << 16
            | u64::from(missed) << 32
    }

    fn decode(word: u64) -> Self {
        Self {
            exchanges: word & 1 != 0,
            missed: (word >> 32) as u32,
            al_status: AlStatus::from_bits((word >> 1) as u16 & 0x7FFF),
            al_status_code: AlStatusCode((word >> 16) as u16),
        }
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

    fn encode(&self, words: &mut [u64]) {
        let CycleReport { frames_sent, frames_lost, working_counter_errors, all_fresh, spread } =
            self.report;
        let r = &self.reception;
        let bus = [
            self.cycle,
            stage_number(self.stage).into(),
            u64::from(frames_sent)
                | u64::from(frames_lost) << 16
                | u64::from(working_counter_errors) << 32
                | u64::from(all_fresh) << 48
                | u64::from(spread) << 49,
            r.sent,
            r.accepted,
            r.lost,
            r.late,
            r.duplicate,
            r.foreign,
            r.truncated,
            r.mismatched,
            r.other_main_device,
            self.clock_difference.as_nanos() as u64,
            self.link_errors,
        ];
        words[..BUS_WORDS].copy_from_slice(&bus);
        let (of_sub_devices, of_axes) = words[BUS_WORDS..].split_at_mut(self.sub_devices.len());
        for (sub_device, word) in self.sub_devices.iter().zip(of_sub_devices) {
            *word = sub_device.encode();
        }
        for (axis, words) in self.axes.iter().zip(of_axes.chunks_exact_mut(AXIS_WORDS)) {
            let state = axis.state.and_then(|state| State::ALL.iter().position(|&other| other == state));
            let AxisFeedback { position, velocity, torque, phase, fresh } = axis.feedback;
            let (phase, holds_at) = match phase {
                AxisPhase::NotEnabled => (0, 0.0),
                AxisPhase::HoldingAt(position) => (1, position.0),
                AxisPhase::Following => (2, 0.0),
            };
            words.copy_from_slice(&[
                u64::from(fresh)
                    | u64::from(axis.homed) << 1
                    | u64::from(axis.homing) << 2
                    | u64::from(axis.was_enabled) << 3
                    | phase << 8
                    | state.map_or(0, |state| state as u64 + 1) << 16
                    | axis.stop.map_or(0, |stop| stop_code(stop) as u64) << 24
                    | u64::from(axis.waits) << 32,
                position.0.to_bits(),
                velocity.0.to_bits(),
                torque.0.to_bits(),
                f64::to_bits(holds_at),
                u64::from(axis.error_code)
                    | u64::from(axis.statusword.0) << 16
                    | u64::from(axis.missed) << 32,
            ]);
        }
    }

    fn decode(words: &[u64], sub_devices: usize) -> Self {
        let byte = |word: u64, shift: u32| usize::from((word >> shift) as u8);
        let axis = |words: &[u64]| AxisReport {
            state: byte(words[0], 16).checked_sub(1).and_then(|state| State::ALL.get(state).copied()),
            feedback: AxisFeedback {
                position: Radians(f64::from_bits(words[1])),
                velocity: RadiansPerSecond(f64::from_bits(words[2])),
                torque: NewtonMetres(f64::from_bits(words[3])),
                phase: match byte(words[0], 8) {
                    1 => AxisPhase::HoldingAt(Radians(f64::from_bits(words[4]))),
                    2 => AxisPhase::Following,
                    _ => AxisPhase::NotEnabled,
                },
                fresh: words[0] & 1 != 0,
            },
            homed: words[0] & 2 != 0,
            homing: words[0] & 4 != 0,
            stop: stop_reason((words[0] >> 24) as u8),
            error_code: words[5] as u16,
            statusword: Statusword((words[5] >> 16) as u16),
            missed: (words[5] >> 32) as u32,
            waits: (words[0] >> 32) as u32,
            was_enabled: words[0] & 8 != 0,
        };
        let (of_sub_devices, of_axes) = words[BUS_WORDS..].split_at(sub_devices);
        Self {
            cycle: words[0],
            stage: STAGES.get(words[1] as usize).copied().unwrap_or(BringUpPhase::Scan),
            report: CycleReport {
                frames_sent: words[2] as u16,
                frames_lost: (words[2] >> 16) as u16,
                working_counter_errors: (words[2] >> 32) as u16,
                all_fresh: words[2] >> 48 & 1 != 0,
                spread: words[2] >> 49 & 1 != 0,
            },
            reception: ReceptionCounters {
                sent: words[3],
                accepted: words[4],
                lost: words[5],
                late: words[6],
                duplicate: words[7],
                foreign: words[8],
                truncated: words[9],
                mismatched: words[10],
                other_main_device: words[11],
            },
            clock_difference: Duration::from_nanos(words[12]),
            link_errors: words[13],
            sub_devices: of_sub_devices.iter().map(|&word| SubDeviceStatus::decode(word)).collect(),
            axes: of_axes.chunks_exact(AXIS_WORDS).map(axis).collect(),
        }
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

pub(crate) fn stop_reason(code: u8) -> Option<StopReason> {
    StopReason::ALL.into_iter().find(|&reason| stop_code(reason) as u8 == code)
}

const BUS_WORDS: usize = 14;
const AXIS_WORDS: usize = 6;
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
    let length = BUS_WORDS + sub_devices + axes * AXIS_WORDS;
    let (words, reader) = cell::words(length);
    let mut writer = StatusWriter { words, scratch: vec![0; length].into_boxed_slice() };
    writer.publish(&Status::initial(sub_devices, axes));
    (writer, StatusReader { words: reader, sub_devices })
}

/// The real-time side's end.
#[derive(Debug)]
pub struct StatusWriter {
    words: WordWriter,
    scratch: Box<[u64]>,
}

impl StatusWriter {
    /// Replaces the status; `status` has the SubDevices and axes the cell was made for.
    pub fn publish(&mut self, status: &Status) {
        status.encode(&mut self.scratch);
        self.words.write(&self.scratch);
    }
}

/// Reads the newest status, from any thread and as often as liked.
#[derive(Clone, Debug)]
pub struct StatusReader {
    words: WordReader,
    sub_devices: usize,
}

impl StatusReader {
    /// The newest status, always of one cycle.
    #[must_use]
    pub fn read(&self) -> Status {
        let mut words = vec![0; self.words.length()];
        self.words.read(&mut words);
        Status::decode(&words, self.sub_devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

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
    fn a_stop_goes_to_other_processes_and_back_by_its_name() {
        for reason in StopReason::ALL {
            let code = stop_code(reason) as u8;
            let shown = Stop::from_code(code).map(|stop| format!("{stop:?}"));
            assert_eq!(shown, Some(format!("{reason:?}")), "code {code}");
            assert_eq!(stop_reason(code), Some(reason), "code {code}");
        }
        let codes = (0..=u8::MAX).filter(|&code| Stop::from_code(code).is_some());
        assert_eq!(codes.count(), StopReason::ALL.len());
        assert_eq!(stop_reason(0), None);
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
