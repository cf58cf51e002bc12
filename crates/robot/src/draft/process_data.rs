//! PDOs of a drive, and the mode that they allow.

use ethercat::cia402::ModeOfOperation;
use ethercat::cia402::object::{SUPPORTED_DRIVE_MODES, of_axis};
use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoEntry, PdoMapping};
use ethercat::sii::CoeDetails;
use types::CyclicMode;
use types::signal::Direction;

use super::found::Found;
use super::text::{quoted, shown, wrapped};
use crate::{ModeObject, RobotConfig, mode_objects};

/// PDOs of a drive as the file gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chosen {
    /// Mode of all its axes; `None` where no PDOs for a cyclic mode are known.
    pub(super) mode: Option<CyclicMode>,
    /// PDOs to be written into the file; `None` leaves them to the SII.
    pub(super) mapping: Option<PdoMapping>,
    /// Assumption, if there was one.
    pub(super) assumed: Option<&'static str>,
}

/// Modes in the order in which they are preferred.
const MODES: [CyclicMode; 3] = [CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque];

/// PDOs and mode for these axes: the first supported mode with all objects in the PDOs in use, or
/// in others that the SII lists; else the shortest possible PDOs, if the drive takes an assignment.
pub(super) fn chosen(found: &Found, axes: &[u8]) -> Chosen {
    let modes: Vec<CyclicMode> =
        MODES.into_iter().filter(|mode| axes.iter().all(|axis| supports(found, *axis, *mode))).collect();
    // A drive that supports none by its own words may have said so for want of a motor.
    let modes = if modes.is_empty() { MODES.to_vec() } else { modes };
    for mode in &modes {
        if holds(&found.mapping, axes, *mode) {
            let mapping =
                Some(found.mapping.clone()).filter(|it| found.coe && is_assigned(it) && can_be_written(it));
            return Chosen { mode: Some(*mode), mapping, assumed: None };
        }
        let other = offered(found, axes, *mode).filter(|it| found.coe && can_be_written(it));
        if other.is_some() {
            let assumed = Some("it offers these PDOs for its mode; others are assigned without a file");
            return Chosen { mode: Some(*mode), mapping: other, assumed };
        }
    }
    let configurable =
        found.coe_details.contains(CoeDetails::PDO_CONFIGURATION) || found.coe_details.0 == 0;
    if !(found.coe && configurable) {
        return Chosen::default();
    }
    let assumed = Some("the shortest PDOs for its mode; its manual lists the PDOs that it supports");
    Chosen { mode: Some(modes[0]), mapping: Some(shortest(axes, modes[0])), assumed }
}

/// True if the axis lists the mode as supported, or lists none.
fn supports(found: &Found, axis: u8, mode: CyclicMode) -> bool {
    let bit = ModeOfOperation::from(mode).number() - 1;
    found.of_axis(axis, SUPPORTED_DRIVE_MODES, 0).is_none_or(|modes| modes >> bit & 1 == 1)
}

fn holds(mapping: &PdoMapping, axes: &[u8], mode: CyclicMode) -> bool {
    axes.iter().all(|axis| {
        mode_objects(mode.into()).iter().all(|object| {
            let index = of_axis(object.index, *axis);
            match object.direction {
                Direction::Output => mapping.output(index, object.sub_index).is_some(),
                Direction::Input => mapping.input(index, object.sub_index).is_some(),
            }
        })
    })
}

/// For each axis the first PDO of each direction that holds all the mode needs.
fn offered(found: &Found, axes: &[u8], mode: CyclicMode) -> Option<PdoMapping> {
    let of = |direction: Direction, pdos: &[Pdo]| -> Option<Vec<Pdo>> {
        let mut chosen: Vec<Pdo> = Vec::new();
        for axis in axes {
            let has = |pdo: &&Pdo, object: &ModeObject| {
                let index = of_axis(object.index, *axis);
                pdo.entries.iter().any(|it| (it.index, it.sub_index) == (index, 0))
            };
            let objects = mode_objects(mode.into());
            let mut needed = objects.iter().filter(|it| it.direction == direction);
            let pdo = pdos.iter().find(|pdo| needed.clone().all(|object| has(pdo, object)))?;
            needed.next()?;
            if chosen.iter().all(|it| it.index != pdo.index) {
                chosen.push(pdo.clone());
            }
        }
        Some(chosen)
    };
    let outputs = of(Direction::Output, &found.offered.outputs)?;
    Some(PdoMapping { outputs, inputs: of(Direction::Input, &found.offered.inputs)? })
}

fn shortest(axes: &[u8], mode: CyclicMode) -> PdoMapping {
    let mut mapping = PdoMapping::default();
    for axis in axes {
        let pdo = |first: u16, direction: Direction| {
            let entry = |object: &ModeObject| {
                let index = of_axis(object.index, *axis);
                let bits = if is_word(object.index) { 16 } else { 32 };
                let entry = PdoEntry::from_mapping_value(u32::from(index) << 16 | bits);
                PdoEntry { name: object.name.to_owned(), ..entry }
            };
            let objects = mode_objects(mode.into());
            let entries = objects.iter().filter(|it| it.direction == direction).map(entry).collect();
            let index = first + 0x10 * u16::from(*axis);
            Pdo { index, sync_manager: None, fixed: false, name: String::new(), entries }
        };
        mapping.outputs.push(pdo(MAPPING_OUTPUTS, Direction::Output));
        mapping.inputs.push(pdo(MAPPING_INPUTS, Direction::Input));
    }
    mapping
}

/// Controlword, statusword and target torque.
const fn is_word(index: u16) -> bool {
    matches!(index, 0x6040 | 0x6041 | 0x6071)
}

/// True if its PDOs can be assigned by 0x1C12 and 0x1C13, which are SyncManagers 2 and 3: CoE does
/// not assign others.
fn is_assigned(mapping: &PdoMapping) -> bool {
    let all = |pdos: &[Pdo], number| pdos.iter().all(|it| it.sync_manager.is_none_or(|it| it == number));
    all(&mapping.outputs, 2) && all(&mapping.inputs, 3)
}

/// True if a robot file may have this mapping.
fn can_be_written(mapping: &PdoMapping) -> bool {
    let file = format!(
        "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"drive\"\n[bus.sub_device.pdos]\n{}",
        rows(mapping)
    );
    RobotConfig::parse(&file, "").is_ok()
}

/// Rows of a table `pdos`.
pub(super) fn rows(mapping: &PdoMapping) -> String {
    [("outputs", &mapping.outputs), ("inputs", &mapping.inputs)]
        .map(|(direction, pdos)| {
            let pdos: String = pdos.iter().map(pdo_rows).collect();
            format!("{direction} = [\n{pdos}]\n")
        })
        .concat()
}

fn pdo_rows(pdo: &Pdo) -> String {
    let entry = |it: &PdoEntry| {
        let sub_index = match it.sub_index {
            0 => String::new(),
            sub_index => format!(", sub_index = {sub_index:#04x}"),
        };
        let name = match shown(&it.name).as_str() {
            "" => String::new(),
            name => format!(", name = {}", quoted(name)),
        };
        match it.index {
            0 => format!("        {{ index = 0, bits = {} }},\n", it.bit_length),
            index => {
                format!("        {{ index = 0x{index:04X}{sub_index}, bits = {}{name} }},\n", it.bit_length)
            }
        }
    };
    let name = match shown(&pdo.name).as_str() {
        "" => String::new(),
        name => format!("name = {}, ", quoted(name)),
    };
    let fixed = if pdo.fixed { "fixed = true, " } else { "" };
    let entries: String = pdo.entries.iter().map(entry).collect();
    format!("    {{ index = 0x{:04X}, {name}{fixed}entries = [\n{entries}    ] }},\n", pdo.index)
}

/// PDOs that are left to the SII, as comments.
pub(super) fn comments(mapping: &PdoMapping) -> String {
    let pdo = |kind: &str, pdo: &Pdo| {
        let entry = |it: &PdoEntry| {
            let what = match it.index {
                0 => "padding".to_owned(),
                index => {
                    format!("0x{index:04X}:{:02X} {}", it.sub_index, shown(&it.name)).trim_end().to_owned()
                }
            };
            format!("{what} ({})", it.bit_length)
        };
        let entries: Vec<String> = pdo.entries.iter().map(entry).collect();
        let name = format!("{kind} 0x{:04X} {}", pdo.index, shown(&pdo.name));
        wrapped(&format!("{}:", name.trim_end()), &entries)
    };
    let outputs = mapping.outputs.iter().map(|it| pdo("RxPDO", it));
    outputs.chain(mapping.inputs.iter().map(|it| pdo("TxPDO", it))).collect()
}
