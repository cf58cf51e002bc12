//! The simulated SubDevices of a robot, and the cables between them.

mod brakes;
mod promises;

use std::array;
use std::collections::HashMap;
use std::f64::consts::TAU;
use std::path::Path;

use ethercat::pdo::{Pdo, PdoMapping};
use ethercat::sii;
use robot::{AnalogueSource, ApplicationKind, Axis, RobotConfig, Simulation, SubDevice};
use rt::profile::Scheduling;
use simulator::Segment;
use simulator::application::analogue::{self, AnalogueInputs};
use simulator::application::analogue_output::{self, AnalogueOutputs};
use simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use simulator::application::encoder::{self, Encoders};
use simulator::application::force_torque::{self, ForceTorqueSensor};
use simulator::application::servo::{self, Encoder, PlantParameters, ServoDescription, ServoDrive};
use simulator::application::sii::{
    SiiDescription, coupler, digital_inputs, digital_outputs, pdos, with_coe,
};
use simulator::application::{
    self, Level, NoApplication, OversamplingInputs, OversamplingOutputs, SerialLines, Signal,
    TimeStampedInputs, serial, terminal,
};
use simulator::coe::DeviceDescription;
use simulator::segment::{Attachment, TopologyError};
use simulator::{EscDescription, Oscillator, TerminalModel};

pub use promises::check_images;

use super::sii_files::{SiiFiles, image_file, is_xml};
use crate::{Error, SimulationError};
use brakes::Brakes;

/// Clocks gain or lose up to this much where nothing else is said, each another amount: 20 ppm, as
/// inexpensive crystals do.
const DRIFT_PPM: [f64; 5] = [0.0, 11.0, -17.0, 6.0, -20.0];

/// The segment that simulates `robot`.
///
/// # Errors
/// SubDevices that cannot be simulated as the robot file says.
pub fn segment(robot: &RobotConfig) -> Result<Segment, Error> {
    segment_keeping(robot, None)
}

/// The same as [`segment`], with the SIIs kept in `files`.
///
/// # Errors
/// As [`segment`], and files that cannot be read or written, or are no SIIs.
pub fn segment_keeping(robot: &RobotConfig, files: Option<&SiiFiles>) -> Result<Segment, Error> {
    // An input reads the outputs described before it.
    let mut wires = Wires::new();
    let mut levels: [Level; analogue_output::MAXIMUM_CHANNELS] = Default::default();
    let shafts: HashMap<&str, Level> =
        robot.bus.sub_devices.iter().map(|it| (it.name.as_str(), Level::default())).collect();
    let brakes = Brakes::of(robot);
    let mut devices = Vec::new();
    let mut attachments = Vec::new();
    let mut ports = Vec::new();
    for (position, it) in robot.bus.sub_devices.iter().enumerate() {
        let Some(simulation) = &it.simulation else {
            let (robot, name) = (robot.name.clone(), it.name.clone());
            return Err(SimulationError::NotDescribed { robot, position, name }.into());
        };
        match simulation.application {
            ApplicationKind::DigitalOutputs => wires = Wires::new(),
            ApplicationKind::AnalogueOutput => {
                levels = array::from_fn(|_| match simulation.terminal {
                    Some(TerminalModel::El4732) => Level::with_course(),
                    _ => Level::default(),
                });
            }
            _ => {}
        }
        let mut image = built(it, simulation)?;
        if let (Some((_, image)), Some(_)) = (&image, &simulation.sii) {
            promises::check(&robot.name, position, it, simulation, image)?;
        }
        let store = match files {
            None => None,
            Some(files) => {
                let fresh = || match &image {
                    Some((bytes, _)) => bytes.clone(),
                    None => description(it, simulation, None).image().emit(),
                };
                let kept = files.keep(&it.name, fresh)?;
                image = Some((kept.bytes, kept.image));
                Some(kept.store)
            }
        };
        let image = image;
        let description = description(it, simulation, image.as_ref().map(|(_, image)| image));
        let shaft = |name: &str| shafts.get(name).cloned().unwrap_or_default();
        let axes = || robot.axes.iter().filter(|axis| axis.sub_device == position);
        let encoders = axes().map(|axis| (usize::from(axis.drive_axis), encoder_of(axis))).collect();
        let around = Around {
            position,
            wires: &wires,
            levels: &levels,
            own: shaft(&it.name),
            shaft: &shaft,
            encoders,
            brakes: &brakes,
        };
        let application = application(simulation, &description, &around).map_err(|source| {
            let (robot, name) = (robot.name.clone(), it.name.clone());
            SimulationError::Application { robot, position, name, source }
        })?;
        let kind = simulation.esc;
        let esc = EscDescription::of(kind, image.as_ref().map(|(_, image)| image));
        let esc = EscDescription { oscillator: oscillator(position, simulation), ..esc };
        ports.push(esc.port_descriptor);
        if let Some(parent) = it.parent.filter(|it| !has_port(ports[it.position], it.port)) {
            let (robot, sub_devices) = (robot.name.clone(), &robot.bus.sub_devices);
            let (name, parent, port) =
                (it.name.clone(), sub_devices[parent.position].name.clone(), parent.port);
            return Err(SimulationError::Port { robot, position, name, port, parent }.into());
        }
        let bytes = image.map_or_else(|| description.image().emit(), |(bytes, _)| bytes);
        let device = simulator::SubDevice::new(esc, bytes, application);
        devices.push(match store {
            Some(store) => device.with_sii_store(store),
            None => device,
        });
        attachments.extend(it.parent.map(|parent| Attachment::new(parent.position, parent.port.into())));
    }
    let topology = |source| SimulationError::Topology { robot: robot.name.clone(), source };
    let mut segment = Segment::with_topology(devices, &attachments).map_err(topology)?;
    if robot.bus.ring {
        close_ring(&mut segment, &attachments).map_err(topology)?;
    }
    Ok(segment)
}

/// Leads from the last OUT, port 1, of the line that the first SubDevice begins to the MainDevice's
/// second interface.
///
/// # Errors
/// That port is taken, or the segment has no SubDevice.
pub fn close_ring(segment: &mut Segment, attachments: &[Attachment]) -> Result<(), TopologyError> {
    let behind = |position: usize| {
        let next = attachments.iter().position(|it| (it.parent, it.port) == (position, 1));
        next.map(|place| place + 1)
    };
    let last = std::iter::successors(Some(0), |&position| behind(position)).last().unwrap_or(0);
    segment.close_ring(last, 1)
}

/// Image that a SubDevice begins with, if it is not made from the robot file.
fn built(
    it: &SubDevice,
    simulation: &Simulation,
) -> Result<Option<(Vec<u8>, sii::Image)>, SimulationError> {
    if let Some(path) = &simulation.sii {
        return read_image(path).map(Some);
    }
    Ok(simulation.terminal.map(|model| {
        let image = terminal::image(model, it.alias.unwrap_or(0));
        (image.emit(), image)
    }))
}

/// True if an ESC with the ports of `descriptor` (0x0007) has `port`: E-bus or MII.
fn has_port(descriptor: u8, port: u8) -> bool {
    descriptor >> (2 * port) & 0b10 != 0
}

/// SII of a SubDevice: `image`, or the content from the robot file and the kind of application.
fn description(it: &SubDevice, simulation: &Simulation, image: Option<&sii::Image>) -> SiiDescription {
    let identity = it.identity.map_or(sii::Identity::default(), |identity| sii::Identity {
        vendor_id: identity.vendor_id,
        product_code: identity.product_code,
        revision: identity.revision.unwrap_or(0),
        serial: 0,
    });
    let name = it.name.as_str();
    let alias = it.alias.unwrap_or(0);
    let explicit = it.explicit_mapping().map(assigned);
    let channels = simulation.channels;
    let with_coe = |usual: PdoMapping| with_coe(identity, name, explicit.unwrap_or(usual));
    let described = match simulation.application {
        ApplicationKind::Coupler => coupler(identity, name),
        ApplicationKind::DigitalOutputs => digital_outputs(identity, name, channels),
        ApplicationKind::DigitalInputs => digital_inputs(identity, name, channels),
        ApplicationKind::AnalogueInput => with_coe(analogue::mapping(channels.into())),
        ApplicationKind::AnalogueOutput => with_coe(analogue_output::mapping(channels.into())),
        ApplicationKind::Encoder => with_coe(encoder::mapping(channels.into())),
        ApplicationKind::ForceTorqueSensor => with_coe(force_torque::mapping()),
        ApplicationKind::SerialLines => with_coe(serial::mapping()),
        ApplicationKind::ServoDrive => with_coe(servo::default_mapping_of(simulation.axes)),
    };
    let described = SiiDescription { alias, ..described };
    match image {
        None => described,
        Some(image) => SiiDescription {
            identity: image.header.identity(),
            name: image.name(),
            mapping: pdos(image),
            ..described
        },
    }
}

/// `mapping` with its PDOs at the SyncManagers of a SubDevice with CoE (ETG.1000.6, 5.6.7.4).
fn assigned(mapping: &PdoMapping) -> PdoMapping {
    let at = |pdos: &[Pdo], sync_manager| {
        pdos.iter().map(|pdo| Pdo { sync_manager: Some(sync_manager), ..pdo.clone() }).collect()
    };
    PdoMapping { outputs: at(&mapping.outputs, 2), inputs: at(&mapping.inputs, 3) }
}

/// Physical quantities that a SubDevice drives or reads.
struct Around<'a> {
    /// Position of the SubDevice.
    position: usize,
    wires: &'a Wires,
    levels: &'a [Level],
    /// Its own shaft.
    own: Level,
    /// Shaft of the SubDevice of a name.
    shaft: &'a dyn Fn(&str) -> Level,
    /// Encoders of its axes, by their numbers.
    encoders: Vec<(usize, Encoder)>,
    brakes: &'a Brakes<'a>,
}

fn application(
    simulation: &Simulation,
    sii: &SiiDescription,
    around: &Around<'_>,
) -> Result<Box<dyn application::Application>, application::DescriptionError> {
    let device = || DeviceDescription::new(sii.identity, &sii.name);
    let (wires, channels) = (around.wires, simulation.channels);
    let is = |model| simulation.terminal == Some(model);
    Ok(match simulation.application {
        ApplicationKind::Coupler => Box::new(NoApplication),
        ApplicationKind::DigitalOutputs => {
            let outputs = DigitalOutputs::new(channels, wires.clone())?;
            Box::new(around.brakes.power(around.position, outputs))
        }
        ApplicationKind::DigitalInputs if is(TerminalModel::El1252) => {
            Box::new(TimeStampedInputs::new(wires.clone()))
        }
        ApplicationKind::DigitalInputs => {
            let inputs = DigitalInputs::new(channels, wires.clone())?;
            let inputs = around.brakes.show(around.position, inputs);
            Box::new(inputs.with_initial(&simulation.initial))
        }
        ApplicationKind::AnalogueInput => {
            let signal = |channel| analogue_signal(channel, simulation, around.levels);
            if is(TerminalModel::El3702) {
                return Ok(Box::new(OversamplingInputs::new([0, 1].map(signal))?));
            }
            if is(TerminalModel::El3104) {
                return Ok(Box::new(AnalogueInputs::el3104(&device(), &[0, 1, 2, 3].map(signal))?));
            }
            Box::new(AnalogueInputs::new(&device(), &(0..channels).map(signal).collect::<Vec<_>>())?)
        }
        ApplicationKind::AnalogueOutput if is(TerminalModel::El4732) => {
            Box::new(OversamplingOutputs::new([0, 1].map(|channel: usize| around.levels[channel].clone())))
        }
        ApplicationKind::AnalogueOutput => {
            let driven = &around.levels[..usize::from(channels).min(around.levels.len())];
            Box::new(AnalogueOutputs::new(&device(), driven)?)
        }
        ApplicationKind::Encoder if is(TerminalModel::El5101) => {
            Box::new(Encoders::el5101(&device(), counts(simulation, around.shaft))?)
        }
        ApplicationKind::SerialLines => Box::new(SerialLines::new(&device())),
        ApplicationKind::Encoder => {
            let signals: Vec<_> = (0..channels).map(|_| counts(simulation, around.shaft)).collect();
            Box::new(Encoders::new(&device(), &signals)?)
        }
        ApplicationKind::ForceTorqueSensor => {
            let Simulation { amplitude, frequency, .. } = *simulation;
            let signals = [0, 1, 2, 3, 4, 5].map(|axis| {
                let amplitude = if axis < 3 { amplitude } else { 0.1 * amplitude };
                course(axis, false, [0.0, amplitude, frequency])
            });
            Box::new(ForceTorqueSensor::new(&device(), signals)?)
        }
        ApplicationKind::ServoDrive => {
            let mut drive = ServoDrive::new(&servo_description(sii, simulation))?;
            for &(axis, encoder) in &around.encoders {
                drive.set_encoder(axis, encoder);
            }
            around.brakes.attach(around.position, &mut drive);
            Box::new(drive.with_shaft(around.own.clone()))
        }
    })
}

fn servo_description(sii: &SiiDescription, it: &Simulation) -> ServoDescription {
    ServoDescription {
        mapping: sii.mapping(),
        axes: it.axes,
        plant: PlantParameters {
            inertia: it.inertia,
            viscous_friction: it.viscous_friction,
            coulomb_friction: it.coulomb_friction,
            torque_limit: it.torque_limit,
        },
        limit_switches: it.limit_switches,
        home_switch: it.home_switch,
        touch_probes: [it.touch_probe, None],
        quick_stop: it.quick_stop,
        encoder_counts: it.encoder_counts,
        rated_torque: it.rated_torque,
        ..ServoDescription::new(DeviceDescription::new(sii.identity, &sii.name))
    }
}

/// Encoder of a simulated drive: from the axis, otherwise an absolute one.
fn encoder_of(axis: &Axis) -> Encoder {
    match (axis.encoder, axis.encoder_turns()) {
        (None, _) => Encoder::Unlimited,
        (Some(_), None) => Encoder::Incremental,
        (Some(_), Some(turns)) => Encoder::Absolute { turns },
    }
}

fn analogue_signal(channel: u8, it: &Simulation, outputs: &[Level]) -> Signal {
    let values = [it.offset, it.amplitude, it.frequency];
    match it.source {
        AnalogueSource::Sine => course(channel, false, values),
        AnalogueSource::Ramp => course(channel, true, values),
        AnalogueSource::Outputs => {
            let level = outputs.get(usize::from(channel)).cloned().unwrap_or_default();
            Signal::Level { level, scale: 1.0 }
        }
    }
}

/// A signal to look at on every channel, each slower than the one before.
fn course(channel: u8, ramp: bool, [offset, amplitude, frequency]: [f64; 3]) -> Signal {
    let number = f64::from(channel);
    let frequency = frequency / (1.0 + number);
    match ramp {
        false => Signal::Sine { offset, amplitude, frequency, phase: number / 16.0 },
        true => Signal::Ramp { from: offset - amplitude, to: offset + amplitude, frequency },
    }
}

/// Counts of an encoder.
fn counts(it: &Simulation, shaft: &dyn Fn(&str) -> Level) -> Signal {
    /// Counts after which a counter begins again.
    const WRAP: f64 = 4_294_967_296.0;
    match &it.follows {
        None => Signal::Ramp { from: 0.0, to: WRAP.copysign(it.rate), frequency: it.rate.abs() / WRAP },
        Some(drive) => Signal::Level { level: shaft(drive), scale: f64::from(it.encoder_counts) / TAU },
    }
}

fn oscillator(position: usize, simulation: &Simulation) -> Oscillator {
    Oscillator {
        drift_ppm: simulation.drift_ppm.unwrap_or(DRIFT_PPM[position % DRIFT_PPM.len()]),
        jitter: u32::try_from(simulation.jitter.as_nanos()).unwrap_or(u32::MAX),
        seed: position as u64,
        ..Oscillator::default()
    }
}

fn read_image(path: &Path) -> Result<(Vec<u8>, sii::Image), SimulationError> {
    let bytes =
        image_file(path).map_err(|source| SimulationError::ImageFile { path: path.to_owned(), source })?;
    let image = sii::Image::parse(&bytes).map_err(|source| match is_xml(&bytes) {
        true => SimulationError::EsiFile { path: path.to_owned() },
        false => SimulationError::Image { path: path.to_owned(), source },
    })?;
    Ok((bytes, image))
}

/// Scheduling of simulated SubDevices: programs do not hold up real ones either. And real ones take
/// no CPU from the cycle: they come one priority below it.
pub fn scheduling(robot: &RobotConfig) -> Option<Scheduling> {
    let below = |priority: u8| priority.saturating_sub(1).max(1);
    robot.cycle.fifo_priority().map(|priority| Scheduling::Fifo { priority: below(priority) })
}

#[cfg(test)]
mod tests;
