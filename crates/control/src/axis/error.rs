//! Errors of an axis that cannot be run.

use ethercat::cia402::AxisMode;
use ethercat::cia402::object::axis_of;
use motion::supervision::SettingsError;
use thiserror::Error;
use types::state::BrakeInput;

/// Reason that an axis cannot be bound to its drive.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AxisError {
    /// The drive is not there.
    #[error("axis \"{axis}\": SubDevice {position} is its drive, but the bus has {found} SubDevice{}", if *found == 1 { "" } else { "s" })]
    NoSubDevice {
        /// Name of the axis.
        axis: String,
        /// Place its drive should have, from 0.
        position: usize,
        /// SubDevices there are.
        found: usize,
    },
    /// Another axis has it.
    #[error(
        "axis \"{axis}\": axis {} of SubDevice {position} is that of axis \"{other}\"; give it another drive_axis",
        drive_axis + 1
    )]
    Taken {
        /// Name of the axis.
        axis: String,
        /// Name of the other.
        other: String,
        /// Place of the drive, from 0.
        position: usize,
        /// Axis of the drive, from 0.
        drive_axis: u8,
    },
    /// An object its mode needs is not in the process data.
    #[error(
        "axis \"{axis}\": {object} ({index:#06x}) is not among the {direction} of SubDevice \"{sub_device}\"; map \
         it there{}", if axis_of(*index).is_some_and(|axis| axis > 0) { ", or correct drive_axis" } else { "" }
    )]
    NotMapped {
        /// Name of the axis.
        axis: String,
        /// Name of its drive.
        sub_device: String,
        /// Name of the object.
        object: &'static str,
        /// Its index.
        index: u16,
        /// "outputs" or "inputs".
        direction: &'static str,
    },
    /// A number of its supervision means nothing.
    #[error("axis \"{axis}\": {error}")]
    Supervision {
        /// Name of the axis.
        axis: String,
        /// Error of the settings.
        error: SettingsError,
    },
    /// Its drive homes independently, and nothing would stop the axis if it does not.
    #[error("axis \"{axis}\": its drive homes it, and it has no supervision; give it some")]
    UnsupervisedHoming {
        /// Name of the axis.
        axis: String,
    },
    /// Its drive makes the motion, and nothing would keep that within limits.
    #[error("axis \"{axis}\": in mode {} its drive makes the motion, and it has no supervision; give it some", mode.name())]
    UnsupervisedProfile {
        /// Name of the axis.
        axis: String,
        /// Its mode.
        mode: AxisMode,
    },
    /// It stops an axis that is not there.
    #[error("axis \"{axis}\": it stops the axis at place {place}, but there are {found} axes")]
    StopsNobody {
        /// Name of the axis.
        axis: String,
        /// Place of the other, from 0.
        place: usize,
        /// Axes there are.
        found: usize,
    },
    /// It is to be stopped with others, or others with it, and nothing would.
    #[error(
        "axis \"{axis}\": it is stopped with others, or they with it, and it has no supervision; give it some"
    )]
    UnsupervisedStop {
        /// Name of the axis.
        axis: String,
    },
    /// Its brake hangs on an output that is not there.
    #[error(
        "axis \"{axis}\": its brake is at digital output {channel} of SubDevice {position}, which has {found} digital \
         outputs; correct it"
    )]
    NoBrakeOutput {
        /// Name of the axis.
        axis: String,
        /// Place of the SubDevice, from 0.
        position: usize,
        /// The output, from 1.
        channel: usize,
        /// Digital outputs it has.
        found: usize,
    },
    /// An input of the feedback of its brake is not there.
    #[error(
        "axis \"{axis}\": {input} of its brake is digital input {channel} of SubDevice {position}, which has {found} \
         digital inputs; correct it"
    )]
    NoBrakeInput {
        /// Name of the axis.
        axis: String,
        /// The input: `released` or `closed`.
        input: BrakeInput,
        /// Place of the SubDevice, from 0.
        position: usize,
        /// Its number, from 1.
        channel: usize,
        /// Digital inputs it has.
        found: usize,
    },
}
