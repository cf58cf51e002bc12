//! Simulated brakes, for axes with brake feedback.

use std::time::Duration;

use robot::{ApplicationKind, RobotConfig};
use simulator::application::ShaftBrake;
use simulator::application::digital::{Contact, DigitalInputs, DigitalOutputs};
use simulator::application::servo::ServoDrive;

/// Brakes of a robot, with the places of what powers and shows them.
pub(super) struct Brakes<'a> {
    robot: &'a RobotConfig,
    /// Brake of each axis that has one.
    of_axes: Vec<Option<ShaftBrake>>,
}

impl<'a> Brakes<'a> {
    /// Brakes of `robot` with feedback: powered by their drives, or by outputs of simulated
    /// terminals.
    pub(super) fn of(robot: &'a RobotConfig) -> Self {
        let is_terminal = |position: usize| {
            let simulation = robot.bus.sub_devices.get(position).and_then(|it| it.simulation.as_ref());
            simulation.is_some_and(|it| it.application == ApplicationKind::DigitalOutputs)
        };
        let brake = |axis: &robot::Axis| {
            let brake = axis.brake?;
            brake.feedback.inputs().next()?;
            let is_simulated = brake.output.is_none_or(|it| is_terminal(it.sub_device));
            let time = |time: motion::Seconds| Duration::from_secs_f64(time.0.max(0.0));
            let (release, engage) = (time(brake.times.release), time(brake.times.engage));
            is_simulated.then(|| ShaftBrake::new(release, engage))
        };
        Self { robot, of_axes: robot.axes.iter().map(brake).collect() }
    }

    fn each(&self) -> impl Iterator<Item = (&'a robot::Axis, &ShaftBrake)> {
        let axes = self.robot.axes.iter().zip(&self.of_axes);
        axes.filter_map(|(axis, brake)| Some((axis, brake.as_ref()?)))
    }

    /// The terminal at this position, with the coils at its outputs.
    pub(super) fn power(&self, position: usize, terminal: DigitalOutputs) -> DigitalOutputs {
        self.each().fold(terminal, |terminal, (axis, brake)| {
            let output = axis.brake.and_then(|it| it.output).filter(|it| it.sub_device == position);
            match output.and_then(|it| from_0(it.channel)) {
                Some(output) => terminal.with_coil(output, brake.clone()),
                None => terminal,
            }
        })
    }

    /// The terminal at this position, with the contacts at its inputs.
    pub(super) fn show(&self, position: usize, terminal: DigitalInputs) -> DigitalInputs {
        let inputs = self.robot.brake_inputs().filter(|(.., it)| it.sub_device == position);
        inputs.fold(terminal, |terminal, (axis, shows, it)| {
            match self.of_axes[axis].clone().zip(from_0(it.channel)) {
                Some((brake, input)) => {
                    let inverted = it.inverted;
                    terminal.with_contact(Contact { input, brake, shows, inverted })
                }
                None => terminal,
            }
        })
    }

    /// Puts the brakes at the shafts of the drive at this position.
    pub(super) fn attach(&self, position: usize, drive: &mut ServoDrive) {
        for (axis, brake) in self.each().filter(|(axis, _)| axis.sub_device == position) {
            let is_powered = axis.brake.is_some_and(|it| it.output.is_none());
            drive.set_brake(axis.drive_axis.into(), brake.clone(), is_powered);
        }
    }
}

/// Channel of a terminal, from 0.
fn from_0(channel: usize) -> Option<u8> {
    u8::try_from(channel.checked_sub(1)?).ok()
}
