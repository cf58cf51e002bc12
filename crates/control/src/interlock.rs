//! Digital inputs that stop axes, or permit them to be enabled, jogged, or moved automatically.
//!
//! Held by supervision, over any controller, and fail-safe: an input that is low, or not fresh for
//! more than [`BLIND_CYCLES`](motion::supervision::BLIND_CYCLES), stops or forbids. A signal that
//! is forced may withdraw a permission, never grant one. This is no safety function in the sense of
//! ISO 13849 or IEC 62061: it runs in an ordinary program on an ordinary computer.

use ethercat::main_device::MainDevice;
use motion::supervision::InterlockState;
use thiserror::Error;
use types::state::InputLevel;
use types::{Interlock, InterlockKind};

use crate::axis::Axes;
use crate::controller::InterlockCause;
use crate::digital_input::DigitalInput;
use crate::signal::{Moment, Signals};

/// True if every interlock finds its input in the process data.
/// [`crate::cycle::Cycle::with_interlocks`] asks the same; ask here first to still have the bus in
/// hand if the answer is no.
///
/// # Errors
/// The first that does not.
pub fn check(configurations: &[Interlock], main_device: &MainDevice) -> Result<(), InterlockError> {
    Interlocks::bind(configurations, main_device).map(drop)
}

/// All interlocks of a robot, bound to the process image.
#[derive(Debug, Default)]
pub(crate) struct Interlocks {
    list: Vec<InterlockBinding>,
}

#[derive(Debug)]
struct InterlockBinding {
    input: DigitalInput,
    inverted: bool,
    kind: InterlockKind,
    axes: Vec<usize>,
    /// Places of the signals that have its input.
    signals: Vec<usize>,
    level: InputLevel,
    allows: bool,
}

impl Interlocks {
    pub(crate) fn bind(
        configurations: &[Interlock],
        main_device: &MainDevice,
    ) -> Result<Self, InterlockError> {
        let bind = |it: &Interlock| {
            let missing = |found| InterlockError {
                name: it.name.clone(),
                position: it.sub_device,
                channel: it.channel,
                found,
            };
            Ok(InterlockBinding {
                input: DigitalInput::bind(main_device, it.sub_device, it.channel).map_err(missing)?,
                inverted: it.inverted,
                kind: it.kind,
                axes: it.axes.clone(),
                signals: Vec::new(),
                level: InputLevel::Unknown,
                allows: false,
            })
        };
        Ok(Self { list: configurations.iter().map(bind).collect::<Result<_, _>>()? })
    }

    /// Finds the signals of their inputs, which may be forced.
    pub(crate) fn find_signals(&mut self, signals: &Signals) {
        for interlock in &mut self.list {
            let input = &interlock.input;
            interlock.signals = signals.inputs_at(input.sub_device(), input.field()).collect();
        }
    }

    /// Number of interlocks.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Level of each input, and whether it permits.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (InputLevel, bool)> + '_ {
        self.list.iter().map(|it| (it.level, it.allows))
    }

    /// Permissions from the inputs of this cycle, for the axes' supervision. The interlocks that
    /// have changed are reported by their places.
    pub(crate) fn look(
        &mut self,
        main_device: &MainDevice,
        moment: Moment,
        signals: &Signals,
        axes: &mut Axes,
        mut changed: impl FnMut(usize, bool, InputLevel),
    ) {
        if self.list.is_empty() {
            return;
        }
        axes.clear_interlocks();
        for (number, interlock) in self.list.iter_mut().enumerate() {
            let before = (interlock.input.is_read(), interlock.allows);
            let state = interlock.look(main_device, moment, signals);
            if before.0 && before.1 != interlock.allows {
                changed(number, interlock.allows, interlock.level);
            }
            let cause = InterlockCause { interlock: number, level: interlock.level, permits: false };
            for &axis in &interlock.axes {
                match interlock.kind {
                    InterlockKind::Stop | InterlockKind::Enable => axes.set_interlock(axis, state, cause),
                    InterlockKind::Jog if !interlock.allows => axes.forbid_jog(axis),
                    InterlockKind::Automatic if !interlock.allows => axes.set_up(axis, cause),
                    InterlockKind::Jog | InterlockKind::Automatic => {}
                }
            }
        }
    }
}

impl InterlockBinding {
    fn look(&mut self, main_device: &MainDevice, moment: Moment, signals: &Signals) -> InterlockState {
        self.input.look(main_device, moment);
        let (permission, withdrawn) = (!self.inverted, self.withdrawn_by_force(signals));
        self.level = match self.input.level() {
            InputLevel::High if permission && withdrawn => InputLevel::ForcedLow,
            InputLevel::Low if !permission && withdrawn => InputLevel::ForcedHigh,
            level => level,
        };
        self.allows = match self.level {
            InputLevel::Low => !permission,
            InputLevel::High => permission,
            _ => false,
        };
        match (self.level, self.allows, self.kind) {
            (_, true, _) => InterlockState::Clear,
            // On the way up nothing has been seen yet: nothing is enabled, and nothing has to be
            // reset for it.
            (InputLevel::Unknown, ..) => InterlockState::NotYet,
            // The end of a force must not enable anything.
            (InputLevel::ForcedLow | InputLevel::ForcedHigh, ..) | (.., InterlockKind::Stop) => {
                InterlockState::Stop
            }
            (.., InterlockKind::Enable) => InterlockState::NotPermitted,
            // No matter of being enabled: see `Interlocks::look`.
            (.., InterlockKind::Jog | InterlockKind::Automatic) => InterlockState::Clear,
        }
    }

    /// True if a forced signal has the input at the level that does not permit.
    fn withdrawn_by_force(&self, signals: &Signals) -> bool {
        let forced = |&place: &usize| signals.forced_level(place, self.input.field());
        self.signals.iter().filter_map(forced).any(|high| high == self.inverted)
    }
}

/// An interlock with a missing input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "interlock \"{name}\": digital input {channel} of SubDevice {position}, but that has {found} digital inputs; \
     correct its sub_device or channel"
)]
pub struct InterlockError {
    /// Its name.
    pub name: String,
    /// Place of its SubDevice, from 0.
    pub position: usize,
    /// The input, from 1.
    pub channel: usize,
    /// Digital inputs there are.
    pub found: usize,
}
