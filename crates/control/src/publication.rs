//! The one publication of a cycle: its state, put into words once. The words go to the clients of
//! the IPC, to a recording, and to the status in this process.

mod figures;

use std::time::Duration;

use ethercat::main_device::BringUpPhase;
use ethercat::time::Instant;
use ipc::state::{self, Rows, State, Writer, encode};
use motion::AxisSetpoint;
use record::CycleRecord;
use types::state::InputLevel;

use crate::controller::{AxisReport, ControllerOutput};
use crate::ipc::Ipc;
use crate::signal::{Counters, SignalState, Signals};
use crate::status::Status;
use figures::Figures;

/// State of the cycle, and its words.
#[derive(Debug)]
pub(crate) struct Publication {
    state: State,
    rows: Rows,
    words: Box<[u64]>,
    /// Region for clients.
    region: Option<Writer>,
    figures: Figures,
}

impl Publication {
    /// For a cycle of this period, with these axes.
    pub(crate) fn new(period: Duration, axes: usize) -> Self {
        let rows = Rows { axes, ..Rows::default() };
        Self {
            state: rows.blank(),
            rows,
            words: rows.blank_words().into(),
            region: None,
            figures: Figures::new(types::time::nanoseconds(period)),
        }
    }

    /// With so many signals and interlocks, unless a region gives their numbers.
    pub(crate) fn resize(&mut self, signals: usize, interlocks: usize) {
        let rows = Rows { signals, interlocks, ..self.rows };
        if self.region.is_none() && rows != self.rows {
            self.set_rows(rows);
        }
    }

    /// With the region that clients read, and its rows.
    pub(crate) fn set_region(&mut self, region: Option<Writer>) {
        let Some(region) = region else { return };
        let rows = region.rows();
        assert_eq!(rows.axes, self.rows.axes, "the axes of the IPC, and of the cycle");
        self.set_rows(rows);
        self.region = Some(region);
    }

    fn set_rows(&mut self, rows: Rows) {
        (self.state, self.rows) = (rows.blank(), rows);
        self.words = rows.blank_words().into();
    }

    /// Number of its axes, signals and interlocks.
    pub(crate) const fn rows(&self) -> Rows {
        self.rows
    }

    /// Notes the bus, the controller and the outcome of commands. The timing is of the previous
    /// cycles: this one has not ended.
    pub(crate) fn show_cycle(
        &mut self,
        status: &Status,
        release: Instant,
        ipc: Option<&mut Ipc>,
        output: &ControllerOutput,
    ) {
        let Self { state, figures, .. } = self;
        state.cycle = status.cycle;
        state.release_ns = release.as_nanos();
        state.bus = figures.bus(status);
        state.clock = figures::clock(status);
        state.timing = figures.timing();
        state.command = ipc.map(|ipc| ipc.note(output)).unwrap_or_default();
        state.control = output.control;
        state.base = state::Base {
            pose: [output.pose.x.0, output.pose.y.0, output.pose.yaw.0],
            twist: [output.twist.x.0, output.twist.y.0, output.twist.yaw.0],
        };
    }

    /// Notes the axes, with the set-points that were sent to their drives.
    pub(crate) fn show_axes<'a>(&mut self, axes: impl Iterator<Item = (&'a AxisReport, AxisSetpoint)>) {
        for (axis, (report, sent)) in self.state.axes.iter_mut().zip(axes) {
            *axis = report.shown(sent);
        }
    }

    /// Notes the signals, and the interlocks: the level of each, and whether it permits.
    pub(crate) fn show_process_data(
        &mut self,
        signals: &Signals,
        interlocks: impl Iterator<Item = (InputLevel, bool)>,
    ) {
        let shown = self.state.signals.iter_mut().zip(signals.states());
        for (signal, SignalState { value, fresh, forced }) in shown {
            *signal = state::Signal { word: value.word(), fresh, forced };
        }
        let Counters { clamped, refused } = signals.counters();
        self.state.signal_counters = state::SignalCounters { clamped, refused };
        for (shown, (level, permits)) in self.state.interlocks.iter_mut().zip(interlocks) {
            *shown = state::Interlock { level: level as u8, permits };
        }
    }

    /// Puts the state into words, and publishes them to all clients. Never waits, allocates nothing
    /// and makes no system call.
    pub(crate) fn encode(&mut self) -> &[u64] {
        encode(&self.state, self.rows, &mut self.words);
        if let Some(region) = &mut self.region {
            region.publish_words(&self.words);
        }
        &self.words
    }

    /// Words of the axes, as they were encoded last.
    pub(crate) fn axes(&self) -> &[u64] {
        self.words.get(self.rows.of_axes()).unwrap_or_default()
    }

    /// Notes the end of the cycle.
    pub(crate) fn record(&mut self, record: &CycleRecord, phase: BringUpPhase) {
        if phase == BringUpPhase::Op {
            self.figures.record(record);
        }
    }
}
