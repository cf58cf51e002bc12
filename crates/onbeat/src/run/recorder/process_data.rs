//! Process data of a recording: its signals, and their description in the header.

use control::cycle::Cycle;
use control::sampling::Samples;
use onbeat_ethercat_linux::link::Link;
use record::process_data::{FORCED, of_axis, of_force, of_signal};
use robot::RobotConfig;
use rt::clock::Clock;
use serde_json::{Value, json};
use types::Signal;

use crate::compose::signals::described;

/// Signals in a recording, in addition to the timing of each cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordedSignals {
    /// None, and no axes: timing alone.
    None,
    /// The signals that the robot file names, and all axes.
    #[default]
    Named,
    /// The signals of all process data, and all axes.
    All,
}

/// Process data that a recording is to have.
pub(super) struct Chosen {
    /// Places among the robot's signals.
    places: Vec<usize>,
    columns: Vec<String>,
    /// Descriptions of the signals.
    signals: Value,
}

/// Process data of a recording, cycle by cycle.
pub(super) struct ProcessData {
    pub(super) samples: Samples,
    /// Names of its columns.
    pub(super) columns: Vec<String>,
    /// Descriptions of its signals.
    pub(super) signals: Value,
}

impl Chosen {
    /// The recorded signals among these, if there is anything to record.
    pub(super) fn of(which: RecordedSignals, robot: &RobotConfig, signals: &[Signal]) -> Option<Self> {
        let is_chosen = |signal: &Signal| match which {
            RecordedSignals::None => false,
            RecordedSignals::Named => robot.names_signal(&signal.name),
            RecordedSignals::All => true,
        };
        let places: Vec<usize> = (0..signals.len()).filter(|&place| is_chosen(&signals[place])).collect();
        if which == RecordedSignals::None || places.is_empty() && robot.axes.is_empty() {
            return None;
        }
        let chosen: Vec<Signal> = places.iter().map(|&place| signals[place].clone()).collect();
        let of_signals = chosen.iter().flat_map(|signal| [of_signal(&signal.name), of_force(&signal.name)]);
        let of_axes = robot.axes.iter().flat_map(|axis| of_axis(&axis.name));
        let columns = std::iter::once(FORCED.to_owned()).chain(of_signals).chain(of_axes).collect();
        Some(Self { places, columns, signals: descriptions(robot, &chosen) })
    }

    /// Names of its columns.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Has the cycle hand it over.
    pub(super) fn sample<L: Link, C: Clock>(self, cycle: &mut Cycle<L, C>) -> ProcessData {
        let Self { places, columns, signals } = self;
        ProcessData { samples: cycle.sample(places), columns, signals }
    }
}

/// Signals as in the description for clients, and their scales.
fn descriptions(robot: &RobotConfig, signals: &[Signal]) -> Value {
    let with_scale = |(description, signal): (_, &Signal)| {
        let mut described = json!(description);
        if let Some(scaling) = signal.scaling {
            described["scale"] = scaling.scale.into();
            described["offset"] = scaling.offset.into();
        }
        described
    };
    described(robot, signals).into_iter().zip(signals).map(with_scale).collect()
}
