//! Objects of an axis in the process data of its drive.

use ethercat::cia402::object::{
    CONTROLWORD, ERROR_CODE, FOLLOWING_ERROR_ACTUAL_VALUE, INTERPOLATION_DATA_RECORD, MAXIMUM_TORQUE,
    MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY, POSITION_ACTUAL_VALUE, PROFILE_ACCELERATION,
    PROFILE_DECELERATION, PROFILE_VELOCITY, STATUSWORD, TARGET_POSITION, TARGET_TORQUE, TARGET_VELOCITY,
    TORQUE_ACTUAL_VALUE, TORQUE_SLOPE, VELOCITY_ACTUAL_VALUE, of_axis,
};
use ethercat::cia402::{AxisMode, CyclicMode};
use ethercat::main_device::SubDevice;
use ethercat::pdo::PdoField;

/// Place of an object of a drive in its inputs: `index` for its axis at `drive_axis`.
pub(super) fn input(drive: &SubDevice, drive_axis: u8, index: u16) -> Option<PdoField> {
    let field = drive.mapping.input(of_axis(index, drive_axis), 0);
    field.and_then(|field| field.within(32, drive.input_bytes()))
}

/// True if a drive maps the torque of its axis at `drive_axis`.
pub(super) fn measures_torque(drive: &SubDevice, drive_axis: u8) -> bool {
    input(drive, drive_axis, TORQUE_ACTUAL_VALUE).is_some()
}

/// All of them.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) inputs: InputFields,
    pub(super) outputs: OutputFields,
}

#[derive(Debug)]
pub(super) struct InputFields {
    pub(super) statusword: PdoField,
    pub(super) position: PdoField,
    pub(super) velocity: Option<PdoField>,
    pub(super) torque: Option<PdoField>,
    pub(super) mode: Option<PdoField>,
    pub(super) error_code: Option<PdoField>,
    pub(super) following_error: Option<PdoField>,
}

#[derive(Debug)]
pub(super) struct OutputFields {
    pub(super) controlword: PdoField,
    pub(super) position: Option<PdoField>,
    pub(super) velocity: Option<PdoField>,
    pub(super) torque: Option<PdoField>,
    pub(super) mode: Option<PdoField>,
    /// 0x60C1:1.
    pub(super) interpolation: Option<PdoField>,
    /// Speed, ramps and slope of the profile modes.
    pub(super) profile_velocity: Option<PdoField>,
    pub(super) profile_acceleration: Option<PdoField>,
    pub(super) profile_deceleration: Option<PdoField>,
    pub(super) torque_slope: Option<PdoField>,
    /// Torque limit of the drive.
    pub(super) maximum_torque: Option<PdoField>,
}

/// An object that is not in the process data, and has to be.
#[derive(Debug)]
pub(super) struct Lacking {
    /// Index for the first axis of a drive, and name.
    pub(super) object: (u16, &'static str),
    /// "outputs" or "inputs".
    pub(super) direction: &'static str,
}

impl Fields {
    /// Finds the objects by `input` and `output`, which look for the index of the first axis of a
    /// drive, `output` with a sub-index.
    pub(super) fn find(
        mode: AxisMode,
        input: impl Fn(u16) -> Option<PdoField>,
        output_at: impl Fn(u16, u8) -> Option<PdoField>,
    ) -> Result<Self, Lacking> {
        let output = |index| output_at(index, 0);
        let interpolation = output_at(INTERPOLATION_DATA_RECORD, 1);
        let (object, sub_index) = target(mode);
        output_at(object.0, sub_index).ok_or_else(|| lacking_output(object))?;
        let needed_output = |object: (u16, _)| output(object.0).ok_or_else(|| lacking_output(object));
        let needed_input = |object: (u16, _)| input(object.0).ok_or_else(|| lacking_input(object));
        Ok(Self {
            inputs: InputFields {
                statusword: needed_input((STATUSWORD, "statusword"))?,
                position: needed_input((POSITION_ACTUAL_VALUE, "position actual value"))?,
                velocity: input(VELOCITY_ACTUAL_VALUE),
                torque: input(TORQUE_ACTUAL_VALUE),
                mode: input(MODES_OF_OPERATION_DISPLAY),
                error_code: input(ERROR_CODE),
                following_error: input(FOLLOWING_ERROR_ACTUAL_VALUE),
            },
            outputs: OutputFields {
                controlword: needed_output((CONTROLWORD, "controlword"))?,
                position: output(TARGET_POSITION),
                velocity: output(TARGET_VELOCITY),
                torque: output(TARGET_TORQUE),
                mode: output(MODES_OF_OPERATION),
                interpolation,
                profile_velocity: output(PROFILE_VELOCITY),
                profile_acceleration: output(PROFILE_ACCELERATION),
                profile_deceleration: output(PROFILE_DECELERATION),
                torque_slope: output(TORQUE_SLOPE),
                maximum_torque: output(MAXIMUM_TORQUE),
            },
        })
    }

    /// Checks that set-points of this mode can be sent.
    fn has_target(&self, mode: AxisMode) -> Result<(), Lacking> {
        let (object, _) = target(mode);
        let OutputFields { position, velocity, torque, interpolation, .. } = &self.outputs;
        let field = match object.0 {
            INTERPOLATION_DATA_RECORD => interpolation,
            TARGET_POSITION => position,
            TARGET_VELOCITY => velocity,
            _ => torque,
        };
        if field.is_some() { Ok(()) } else { Err(lacking_output(object)) }
    }

    /// Checks that the drive can be brought to this mode by process data.
    pub(super) fn takes(&self, mode: AxisMode) -> Result<(), Lacking> {
        self.changes_mode()?;
        self.has_target(mode)
    }

    /// Checks that the mode of operation can be changed by process data.
    pub(super) fn changes_mode(&self) -> Result<(), Lacking> {
        let (asked, shown) = (self.outputs.mode, self.inputs.mode);
        asked.ok_or_else(|| lacking_output((MODES_OF_OPERATION, "modes of operation")))?;
        shown.ok_or_else(|| lacking_input((MODES_OF_OPERATION_DISPLAY, "modes of operation display")))?;
        Ok(())
    }
}

/// Set-point of a mode, and its sub-index.
const fn target(mode: AxisMode) -> ((u16, &'static str), u8) {
    match mode.cyclic() {
        _ if matches!(mode, AxisMode::InterpolatedPosition) => {
            ((INTERPOLATION_DATA_RECORD, "interpolation data record, sub-index 1"), 1)
        }
        CyclicMode::Position => ((TARGET_POSITION, "target position"), 0),
        CyclicMode::Velocity => ((TARGET_VELOCITY, "target velocity"), 0),
        CyclicMode::Torque => ((TARGET_TORQUE, "target torque"), 0),
    }
}

fn lacking_output(object: (u16, &'static str)) -> Lacking {
    Lacking { object, direction: "outputs" }
}

fn lacking_input(object: (u16, &'static str)) -> Lacking {
    Lacking { object, direction: "inputs" }
}
