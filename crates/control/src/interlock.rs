//! Digital inputs that stop axes, or permit them to be enabled.
//!
//! Held by supervision, over any controller, and fail-safe: an input that is low, or not fresh for more than
//! [`BLIND_CYCLES`], stops or forbids. This is no safety function in the sense of ISO 13849 or IEC 62061: it runs in an
//! ordinary program on an ordinary computer.

use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use motion::supervision::{BLIND_CYCLES, InterlockState};
use thiserror::Error;
use types::{Interlock, InterlockKind};

use crate::axis::{Axes, Moment};

/// True if every interlock finds its input in the process data. [`crate::cycle::Cycle::with_interlocks`] asks the same; ask
/// here first to still have the bus in hand if the answer is no.
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
    sub_device: usize,
    field: PdoField,
    inverted: bool,
    kind: InterlockKind,
    axes: Vec<usize>,
    /// Cycles in a row without the input; `None` before it came for the first time.
    missed: Option<u64>,
    allows: bool,
}

impl Interlocks {
    pub(crate) fn bind(
        configurations: &[Interlock],
        main_device: &MainDevice,
    ) -> Result<Self, InterlockError> {
        let bind = |it: &Interlock| {
            let sub_device = main_device.sub_devices().get(it.sub_device);
            let field = sub_device.and_then(|found| {
                let field = found.mapping.digital_inputs().nth(it.channel.checked_sub(1)?)?;
                field.within(32, found.input_bytes())
            });
            let missing = || InterlockError {
                name: it.name.clone(),
                position: it.sub_device,
                channel: it.channel,
                found: sub_device.map_or(0, |it| it.mapping.digital_inputs().count()),
            };
            Ok(InterlockBinding {
                sub_device: it.sub_device,
                field: field.ok_or_else(missing)?,
                inverted: it.inverted,
                kind: it.kind,
                axes: it.axes.clone(),
                missed: None,
                allows: false,
            })
        };
        Ok(Self { list: configurations.iter().map(bind).collect::<Result<_, _>>()? })
    }

    /// Permissions from the inputs of this cycle, for the axes' supervision. The interlocks that have changed are reported
    /// by their places.
    pub(crate) fn look(
        &mut self,
        main_device: &MainDevice,
        moment: Moment,
        axes: &mut Axes,
        mut changed: impl FnMut(usize, bool),
    ) {
        if self.list.is_empty() {
            return;
        }
        axes.clear_interlocks();
        for (number, interlock) in self.list.iter_mut().enumerate() {
            let before = (interlock.missed.is_some(), interlock.allows);
            let state = interlock.look(main_device, moment);
            if before.0 && before.1 != interlock.allows {
                changed(number, interlock.allows);
            }
            for &axis in &interlock.axes {
                axes.set_interlock(axis, state);
            }
        }
    }
}

impl InterlockBinding {
    fn look(&mut self, main_device: &MainDevice, moment: Moment) -> InterlockState {
        if main_device.inputs_fresh(self.sub_device) && !moment.outdated {
            let high = self.field.read(main_device.inputs(self.sub_device)) != 0;
            self.allows = high != self.inverted;
            self.missed = Some(0);
        } else if let Some(missed) = &mut self.missed {
            *missed = missed.saturating_add(moment.stalled).saturating_add(1);
            self.allows &= *missed <= BLIND_CYCLES;
        }
        match (self.missed, self.allows, self.kind) {
            (Some(_), true, _) => InterlockState::Clear,
            (Some(_), false, InterlockKind::Stop) => InterlockState::Stop,
            // On the way up nothing has been seen yet: nothing is enabled, and nothing has to be reset for it.
            (None, ..) | (Some(_), false, InterlockKind::Enable) => InterlockState::NotPermitted,
        }
    }
}

/// An interlock whose input is not there.
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
