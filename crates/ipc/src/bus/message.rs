//! Messages of a connection to the bus, a line of JSON each.

use serde::{Deserialize, Serialize};
use types::late::LateReport;
use types::{CableEnd, ErrorCounters, RingStatus, Value, WorkingCounter, WorkingCounterChange};

use super::Bytes;

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Number that its replies repeat, chosen by the client.
    pub id: u64,
    /// Requested service.
    #[serde(flatten)]
    pub service: Service,
}

/// Service of the bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "service", rename_all = "snake_case")]
pub enum Service {
    /// Reads an object (SDO upload).
    Upload {
        /// Place of the SubDevice, from 0.
        position: u16,
        /// Index of the object.
        index: u16,
        /// Sub-index of the entry.
        sub_index: u8,
        /// All sub-indices from there on at once.
        #[serde(default)]
        complete_access: bool,
    },
    /// Writes an object (SDO download); only for clients that may command.
    Download {
        /// Place of the SubDevice, from 0.
        position: u16,
        /// Index of the object.
        index: u16,
        /// Sub-index of the entry.
        sub_index: u8,
        /// All sub-indices from there on at once.
        #[serde(default)]
        complete_access: bool,
        /// The value.
        data: Bytes,
        /// Also an object that the running cycle depends on.
        #[serde(default)]
        force: bool,
    },
    /// Reads the indices of the object dictionary (SDO information, Get OD List): the list type,
    /// then indices, u16 each.
    ObjectList {
        /// Place of the SubDevice, from 0.
        position: u16,
        /// List type: 1 for all objects.
        #[serde(default = "all_objects")]
        list: u16,
    },
    /// Reads the description of an object (SDO information, Get Object Description).
    DescribeObject {
        /// Place of the SubDevice, from 0.
        position: u16,
        /// Index of the object.
        index: u16,
    },
    /// Reads the description of an entry (SDO information, Get Entry Description).
    DescribeEntry {
        /// Place of the SubDevice, from 0.
        position: u16,
        /// Index of the object.
        index: u16,
        /// Sub-index of the entry.
        sub_index: u8,
        /// Values that follow the description, a bit each.
        #[serde(default)]
        value_info: u8,
    },
    /// State of the bus and of its SubDevices.
    Status {
        /// Reads the error counters and links of all SubDevices, too.
        #[serde(default)]
        errors: bool,
        /// Has one frame latch the receive times of all SubDevices, and reads them.
        #[serde(default)]
        receive_times: bool,
    },
    /// Clears the error counters of all SubDevices; only for clients that may command.
    ClearErrors,
    /// Reads the latch inputs of a SubDevice, which re-arms single-edge latches; only for clients
    /// that may command.
    Latches {
        /// Place of the SubDevice, from 0.
        position: u16,
    },
    /// Description of all SubDevices as they were found: a JSON array.
    Describe,
    /// Makes the run's flight recorder keep a recording; only for clients that may command.
    Record {
        /// Words for the recording.
        #[serde(default)]
        reason: String,
    },
    /// Late cycles of the last time with their causes; in a run without explanations as far as
    /// their records show them.
    Late {
        /// The time up to now, ns.
        last_ns: u64,
    },
    /// Events: the kept events, then with `follow` later ones; without it [`Outcome::Done`] ends
    /// them.
    Events {
        /// Continues until the connection ends.
        #[serde(default)]
        follow: bool,
    },
}

const fn all_objects() -> u16 {
    1
}

/// Reply of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Number of the request; 0 for a line that is none.
    pub id: u64,
    /// Outcome of the request.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing to return.
    Done(bool),
    /// Bytes read from a mailbox.
    Data(Bytes),
    /// State of the bus.
    Status(Box<BusStatus>),
    /// Latch inputs 0 and 1 of a SubDevice.
    Latches([LatchInput; 2]),
    /// Description of the SubDevices.
    SubDevices(serde_json::Value),
    /// Late cycles.
    Late(Box<LateReport>),
    /// An event.
    Event(Event),
    /// Events this reader was too slow for.
    Missed(u64),
    /// The request failed.
    Error {
        /// Sentence for people.
        text: String,
        /// SDO abort code, if the SubDevice ended the transfer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        abort_code: Option<u32>,
    },
}

impl Outcome {
    /// A failure of these words.
    pub fn error(text: impl std::fmt::Display) -> Self {
        Self::Error { text: text.to_string(), abort_code: None }
    }
}

/// State of the bus in one cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BusStatus {
    /// Number of the cycle.
    pub cycle: u64,
    /// Phase of the bus, as `Op`.
    pub phase: String,
    /// Frames sent, answered and lost since the start.
    pub frames_sent: u64,
    /// Frames answered.
    pub frames_answered: u64,
    /// Frames lost.
    pub frames_lost: u64,
    /// Process data datagrams of the cycle, in the order they were sent.
    pub working_counters: Vec<WorkingCounter>,
    /// Their history.
    pub working_counter_history: WorkingCounterHistory,
    /// Place of the reference clock.
    pub reference_clock: Option<u16>,
    /// The reference clock against this host's, and the cycle against it; none where no frame has
    /// had its time.
    pub clock: Option<ClockStatus>,
    /// Ring of SubDevices, if the bus is one.
    pub ring: Option<RingStatus>,
    /// SubDevices, in the order of positions.
    pub sub_devices: Vec<SubDeviceStatus>,
}

/// Reference clock of a bus, and the cycle against it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockStatus {
    /// Lock of the cycle to it: `off`, `searching`, `locked`, `lost`.
    pub lock: String,
    /// Its time less this host's, both since 2000-01-01, by the newest frame that passed it.
    pub difference_ns: i64,
    /// Time from the last SYNC0 without a shift to that frame's passage.
    pub frame_phase_ns: u64,
    /// Release against its place in the reference clock's period, with a lock; positive is late.
    pub phase_error_ns: i64,
    /// Rate of the reference clock against this host's, with a lock.
    pub drift_ppb: i64,
    /// Samples that did not count.
    pub outliers: u64,
    /// Times the lock was lost.
    pub losses: u64,
}

/// Working counters since all first took part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkingCounterHistory {
    /// Cycles in which one was short.
    pub short_cycles: u64,
    /// Cycle since which one working counter has been short; none while all are complete.
    pub short_since: Option<u64>,
    /// Their last changes, oldest first.
    pub changes: Vec<WorkingCounterChange>,
}

/// State of a SubDevice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubDeviceStatus {
    /// AL status, as `Op` or `SafeOp + error`; [`SubDeviceStatus::ABSENT`] where it is not on the
    /// bus, and need not be; [`SubDeviceStatus::NO_ANSWER`] where it should be and does not answer.
    pub state: String,
    /// AL status code; 0 without an error.
    pub al_status_code: u16,
    /// The same in words; empty without an error.
    pub al_status_text: String,
    /// True if its process data came and went in the cycle.
    pub exchanges: bool,
    /// Consecutive cycles without process data.
    pub missed: u32,
    /// It is there, and exchanges nothing while another of its group is absent.
    pub waits: bool,
    /// Difference of its clock from the reference clock as it was read last, ns.
    pub clock_difference_ns: Option<i32>,
    /// Delay of its clock behind the reference clock, ns, as it was measured at the bring-up or
    /// when it joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u32>,
    /// Its SYNC0; none without, and while no frame has had the reference clock's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync0: Option<SyncStatus>,
    /// The same of SYNC1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync1: Option<SyncStatus>,
    /// Error counters, if they were requested and the SubDevice answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorCounters>,
    /// Ports 0 to 3, if the error counters were requested and the SubDevice answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<[PortLink; 4]>,
    /// Cable by which frames reach it, the end on the MainDevice's side first, if its place is
    /// known: a SubDevice that has joined may be connected elsewhere than described.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable: Option<[CableEnd; 2]>,
    /// Receive times of ports 0 to 3 by one frame, local, ns, wrapping at 32 bits, if they were
    /// requested and the SubDevice answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_times_ns: Option<[u32; 4]>,
}

impl SubDeviceStatus {
    /// State of a SubDevice that is not on the bus, and need not be.
    pub const ABSENT: &'static str = "absent";
    /// State of a SubDevice that does not answer, such as a drive without power.
    pub const NO_ANSWER: &'static str = "no answer";

    /// True if it is not on the bus, and need not be.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.state == Self::ABSENT
    }

    /// Puts its current state, its place and the delay of its clock into the description from when
    /// it was found; an unknown place stays.
    pub fn describe(&self, found: &mut serde_json::Value) {
        let Some(found) = found.as_object_mut() else { return };
        found.insert("state".into(), self.state.as_str().into());
        if let Some(delay) = self.delay_ns {
            found.insert("delay_ns".into(), delay.into());
        }
        let Some([above, own]) = self.cable else { return };
        // The MainDevice's end has no position.
        let upstream =
            above.position.map(|position| serde_json::json!({ "position": position, "port": above.port }));
        found.insert("upstream".into(), upstream.unwrap_or_default());
        found.insert("entry_port".into(), own.port.into());
    }
}

/// SYNC0 or SYNC1 of a SubDevice, and the cycle's frame against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncStatus {
    /// Time between two pulses.
    pub cycle_ns: u64,
    /// Time from a multiple of that, in the time of the reference clock, to a pulse.
    pub shift_ns: u64,
    /// Time from the last pulse to the passage of the newest frame at the SubDevice.
    pub frame_phase_ns: u64,
}

/// Latch input of a SubDevice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatchInput {
    /// Level of its pin.
    pub high: bool,
    /// Rising edge.
    pub rising: LatchEdge,
    /// Falling edge.
    pub falling: LatchEdge,
}

/// Edge of a latch input: the newest, or where single edges are held the first since the times were
/// read before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatchEdge {
    /// Its time in the time of the bus; none if there was none.
    pub time_ns: Option<u64>,
    /// It came since the times were read before.
    pub is_new: bool,
}

/// Link of a port (DL status, register 0x0110).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortLink {
    /// There is a physical link.
    pub link: bool,
    /// Frames turn back here.
    pub loop_closed: bool,
    /// Frames can come in.
    pub communication: bool,
}

/// An event of the running cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Number of the cycle it happened in.
    pub cycle: u64,
    /// Time, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Severity, for display.
    #[serde(default)]
    pub severity: Severity,
    /// The event as a sentence, with the names of the robot's parts; also for an event that a
    /// reader does not know.
    #[serde(default)]
    pub sentence: String,
    /// Both ends of the cable concerned, the end on the MainDevice's side first: the cable where
    /// the ring is open, or the cable by which frames reach the SubDevice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[CableEnd; 2]>,
    /// Contents.
    #[serde(flatten)]
    pub what: Happening,
}

/// Severity of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be, or so again.
    Ok,
    /// A failure.
    Error,
    /// Warning; also a severity of a newer version.
    #[default]
    #[serde(other)]
    Warning,
}

impl Severity {
    /// Its name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Contents of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "fields: places among SubDevices, axes and interlocks, from 0, and the values reported"
)]
pub enum Happening {
    /// The bus reached a phase.
    Phase { phase: String },
    /// The bus failed and goes to Init.
    BusFailed { text: String },
    /// A SubDevice left the state it was brought to.
    StateChanged { position: usize, state: String, al_status_code: u16, al_status_text: String },
    /// A SubDevice does not answer any more.
    Unreachable { position: usize },
    /// A SubDevice is not on the bus, and need not be.
    Absent { position: usize },
    /// A SubDevice that was absent is in Op for the first time.
    Joined { position: usize },
    /// A SubDevice that was without power is configured again.
    Reconfiguring { position: usize },
    /// It is in Op again; `anew`: after it was configured again.
    Recovered { position: usize, anew: bool },
    /// A try to bring it back failed; none: it is left alone until it vanishes and comes again.
    NotRecovered { position: usize, text: String, again_in_ns: Option<u64> },
    /// An unexpected SubDevice is on the bus, not one of the SubDevices of the bring-up; `place`:
    /// in the order of frames. `expected`: position of the missing SubDevice that has this place.
    /// `known`: by its identity it is the missing SubDevice of this position, at another place.
    Stranger {
        place: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<usize>,
        known: Option<usize>,
        vendor_id: u32,
        product_code: u32,
        revision: u32,
        serial: u32,
    },
    /// SYNC0 of a SubDevice did not start, and is restarted.
    SyncMissed { position: usize, text: String },
    /// The clock of a SubDevice does not agree with the reference clock before the cycle begins;
    /// the bus continues.
    ClockUnsettled { position: usize, difference_ns: i32 },
    /// The process data of a SubDevice in Op does not come and go any more.
    SubDeviceLost { position: usize },
    /// It exchanges process data again, after so many cycles.
    SubDeviceBack { position: usize, after: u64 },
    /// A SubDevice sent an emergency.
    Emergency { position: usize, error_code: u16, error_register: u8, data: Bytes },
    /// A drive in fault reported the error code of an axis.
    DriveFault { axis: usize, position: usize, error_code: u16 },
    /// Supervision stopped an axis; `stopped_with`: the axis that it was stopped with; `interlock`:
    /// the interlock that stopped it or keeps it from being enabled; `stalled`: cycles of a host
    /// stall that caused an outage.
    AxisStopped {
        axis: usize,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped_with: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interlock: Option<usize>,
        #[serde(default, skip_serializing_if = "is_zero")]
        stalled: u32,
    },
    /// The controller of an axis gives it a set-point that its mode does not take, and no other:
    /// `given` and `takes` are "a position", "a velocity" or "a torque".
    SetpointIgnored { axis: usize, mode: String, given: String, takes: String },
    /// The drive of an axis did not carry out a quick stop; the axis was stopped by this step.
    QuickStopIgnored { axis: usize, step: String },
    /// An axis in a torque mode stopped so far, in rad, beyond a position limit.
    Overshoot { axis: usize, by: f64 },
    /// The axis is its controller's again.
    AxisFreed { axis: usize },
    /// The input of an interlock allows, or does not any more; `level`: its level.
    Interlock {
        interlock: usize,
        allows: bool,
        #[serde(default)]
        level: String,
    },
    /// A signal is forced: held at this value, at most for this time; `user`, `process`: the client
    /// that requested it.
    SignalForced { signal: String, value: Value, for_ns: u64, user: u32, process: u32 },
    /// It is released, after so many cycles, and goes back to this value; `user`, `process`: the
    /// client that released it, if a client did.
    SignalReleased {
        signal: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        reason: String,
        after: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<u32>,
    },
    /// A request of a client was accepted: enable, reset, or home; `refused`: the reason that it
    /// was not.
    Requested {
        request: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// A person gave the position of an axis, rad: measured and accepted, or set; `refused`: the
    /// reason that it was not taken.
    PositionGiven {
        axis: usize,
        accepted: bool,
        before: Option<f64>,
        position: f64,
        user: u32,
        process: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// The lock of the cycle to the reference clock has changed; the release is so much late, or
    /// early.
    ClockLock { state: String, phase_error_ns: i64 },
    /// The operating system takes or gives no frames: its error number.
    LinkFailed { code: i32 },
    /// The link works again, after so many cycles.
    LinkWorks { after: u64 },
    /// The ring of SubDevices is open at a cable; all SubDevices reachable from either end
    /// continue.
    RingOpen,
    /// It is closed again, after so many cycles.
    RingClosed { after: u64 },
    /// Another MainDevice is on the wire.
    OtherMainDevice { source: String, frames: u64 },
    /// The host stalled for so many cycles.
    Stalled { cycles: u64 },
    /// Pairs of events that repeat were counted, and not reported one by one: `of`: the newest
    /// begin; `others`: further axes or SubDevices of the same; `count`: pairs of the one with the
    /// most; `longest`: cycles of the longest; `lasts`: the last one has not ended.
    Repeated {
        of: Box<Happening>,
        others: Vec<usize>,
        count: u64,
        longest: u64,
        within_ns: u64,
        lasts: bool,
    },
    /// An event of a newer version, which this one does not know.
    #[serde(other)]
    Unknown,
}

/// True for a number that JSON leaves out.
fn is_zero(number: &u32) -> bool {
    *number == 0
}
