//! Checks an SII image against the kind of application that is simulated behind it.
//!
//! The kind, not the image, determines the behaviour of the simulated SubDevice. An image that
//! promises other behaviour misleads the MainDevice.

use ethercat::pdo::{Pdo, PdoMapping};
use ethercat::sii;
use robot::{ApplicationKind, RobotConfig, Simulation, SubDevice};
use simulator::application::sii::pdos;

use super::read_image;
use crate::{Error, SimulationError};

/// Checks the images of all SubDevices that are simulated.
///
/// # Errors
/// An image that cannot be read, or that contradicts its kind.
pub fn check_images(robot: &RobotConfig) -> Result<(), Error> {
    for (position, it) in robot.bus.sub_devices.iter().enumerate() {
        let Some((simulation, path)) = it.simulation.as_ref().and_then(|it| Some((it, it.sii.as_ref()?)))
        else {
            continue;
        };
        let (_, image) = read_image(path)?;
        check(&robot.name, position, it, simulation, &image)?;
    }
    Ok(())
}

/// Checks the image of one SubDevice.
pub(super) fn check(
    robot: &str,
    position: usize,
    it: &SubDevice,
    simulation: &Simulation,
    image: &sii::Image,
) -> Result<(), SimulationError> {
    let Some((found, expected)) = contradiction(simulation, image) else { return Ok(()) };
    Err(SimulationError::Contradiction {
        robot: robot.to_owned(),
        position,
        name: it.name.clone(),
        kind: simulation.application.name(),
        image: simulation.sii.clone().unwrap_or_default(),
        difference: format!("the image {found}, but {expected}").into(),
    })
}

/// Difference between the image and the kind.
fn contradiction(simulation: &Simulation, image: &sii::Image) -> Option<(String, String)> {
    let kind = simulation.application;
    let promises_coe = image.header.mailbox().is_some()
        && image.header.mailbox_protocols().contains(sii::MailboxProtocols::COE);
    let mapping = pdos(image);
    let used = |pdos: &[Pdo]| pdos.iter().any(|it| it.bit_length() > 0);
    let has_pdos = used(&mapping.outputs) || used(&mapping.inputs);
    match answers_coe(kind) {
        false if promises_coe => {
            Some(("promises the mailbox protocol CoE".to_owned(), "this kind has no mailbox".to_owned()))
        }
        false => {
            let (found, expected) = (bytes(&mapping), expected_bytes(simulation));
            let size = |bytes: usize| format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" });
            let words = |[outputs, inputs]: [usize; 2]| {
                format!("{} of outputs and {} of inputs", size(outputs), size(inputs))
            };
            let differ = found != expected;
            differ.then(|| {
                (format!("has PDOs of {}", words(found)), format!("this kind has {}", words(expected)))
            })
        }
        true if !has_pdos => Some((
            "has no PDOs".to_owned(),
            "this kind takes its process data from the image's PDOs".to_owned(),
        )),
        true => None,
    }
}

/// True if the application has a CoE mailbox.
fn answers_coe(kind: ApplicationKind) -> bool {
    !matches!(
        kind,
        ApplicationKind::Coupler | ApplicationKind::DigitalOutputs | ApplicationKind::DigitalInputs
    )
}

/// Bytes of outputs and inputs of a kind without CoE.
fn expected_bytes(simulation: &Simulation) -> [usize; 2] {
    let bytes = usize::from(simulation.channels).div_ceil(8);
    match simulation.application {
        ApplicationKind::DigitalOutputs => [bytes, 0],
        ApplicationKind::DigitalInputs => [0, bytes],
        _ => [0, 0],
    }
}

/// Bytes of outputs and inputs in all SyncManagers.
fn bytes(mapping: &PdoMapping) -> [usize; 2] {
    let of = |pdos: &[Pdo]| {
        let in_one = |sync_manager: u8| {
            let bits = pdos.iter().filter(|it| it.sync_manager == Some(sync_manager)).map(Pdo::bit_length);
            bits.sum::<usize>().div_ceil(8)
        };
        (0..=u8::MAX).map(in_one).sum()
    };
    [of(&mapping.outputs), of(&mapping.inputs)]
}

#[cfg(test)]
mod tests;
