//! Buses for the comparison of cycles.

use control::axis::AxisConfiguration;
use control::controller::{Controller, CycleInfo, Io};
use control::signal::{Input, Output, SignalError, Signals};
use ethercat::cia402::{CyclicMode, Request};
use ethercat::sii::Identity;
use motion::{AxisPhase, AxisScale, AxisSetpoint, NewtonMetres, Radians};
use simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_inputs, digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use types::signal::{Flow, OutputBehaviour, Signal, ValueType};

use super::bench;
use super::bench::Bench;
use crate::Error;

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

/// Channels of a digital terminal.
const CHANNELS: usize = 8;

/// Contents of a bus.
#[derive(Clone, Copy, Debug)]
pub(super) enum Case {
    /// This many digital terminals, inputs and outputs in turn.
    Terminals(usize),
    /// This many servo drives, each an axis that holds its position.
    Axes(usize),
    /// 128 digital terminals, and this many of their channels as signals that a controller reads or
    /// sets in every cycle.
    Signals(usize),
    /// This many SubDevices that exchange so many bytes each, in each direction.
    Exchange(usize, usize),
}

/// Terminals below [`Case::Signals`].
const TERMINALS: usize = 128;

impl Case {
    /// Number that its table varies.
    pub(super) const fn number(self) -> usize {
        match self {
            Self::Terminals(number)
            | Self::Axes(number)
            | Self::Signals(number)
            | Self::Exchange(number, _) => number,
        }
    }

    /// Its bus.
    ///
    /// # Errors
    /// A simulated SubDevice that cannot be.
    pub(super) fn bench(self) -> Result<Bench, Error> {
        let (axes, signals, terminals) = match self {
            Self::Terminals(number) => (0, 0, number),
            Self::Axes(number) => (number, 0, 0),
            Self::Signals(number) => (0, number, TERMINALS),
            Self::Exchange(..) => (0, 0, 0),
        };
        let exchanging = match self {
            Self::Exchange(number, bytes) => (number, bytes),
            _ => (0, 0),
        };
        let exchanging = (0..exchanging.0).map(|_| Ok(bench::sub_device(IDENTITY, exchanging.1)));
        let drives = (0..axes).map(|_| drive());
        let terminals = (0..terminals).map(terminal);
        let devices = drives.chain(terminals).chain(exchanging).collect::<Result<Vec<_>, _>>();
        let devices = devices.map_err(|error| Error::other(format_args!("cost: {error}")))?;
        Ok(Bench {
            segment: Segment::new(devices),
            axes: (0..axes).map(axis).collect::<Option<_>>().unwrap_or_default(),
            signals: (0..signals).map(signal).collect(),
            controller: Box::new(Everything { signals, ..Everything::default() }),
        })
    }
}

type Made = Result<SubDevice, Box<dyn std::error::Error>>;

fn drive() -> Made {
    let sii = with_coe(IDENTITY, "Servo", default_mapping()).image().emit();
    let drive = ServoDrive::new(&ServoDescription::new(DeviceDescription::new(IDENTITY, "Servo")))?;
    Ok(SubDevice::new(EscDescription::default(), sii, Box::new(drive)))
}

fn terminal(position: usize) -> Made {
    let (channels, wires) = (CHANNELS as u8, Wires::new());
    Ok(if position % 2 == 0 {
        let sii = digital_inputs(IDENTITY, "Inputs", channels).image().emit();
        SubDevice::new(EscDescription::default(), sii, Box::new(DigitalInputs::new(channels, wires)?))
    } else {
        let sii = digital_outputs(IDENTITY, "Outputs", channels).image().emit();
        SubDevice::new(EscDescription::default(), sii, Box::new(DigitalOutputs::new(channels, wires)?))
    })
}

fn axis(position: usize) -> Option<AxisConfiguration> {
    let scale = AxisScale::new(f64::from(1 << 20), 1.0, NewtonMetres(2.4)).ok()?;
    let name = format!("axis {position}");
    Some(AxisConfiguration::new(&name, position, CyclicMode::Position, scale, Radians(0.1)))
}

/// Channels in the order of the terminals: the even ones are inputs.
fn signal(number: usize) -> Signal {
    let terminal = number / CHANNELS;
    let flow = if terminal % 2 == 0 { Flow::Input } else { Flow::Output(OutputBehaviour::default()) };
    Signal {
        name: format!("signal {number}"),
        sub_device: terminal,
        bit_offset: number % CHANNELS,
        value_type: ValueType::Bool,
        unit: String::new(),
        scaling: None,
        range: None,
        flow,
    }
}

/// Holds every axis, and copies every input to an output.
#[derive(Default)]
struct Everything {
    signals: usize,
    inputs: Vec<Input<bool>>,
    outputs: Vec<Output<bool>>,
}

impl Controller for Everything {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        for number in 0..self.signals {
            let name = format!("signal {number}");
            if (number / CHANNELS) % 2 == 0 {
                self.inputs.push(signals.input(&name)?);
            } else {
                self.outputs.push(signals.output(&name)?);
            }
        }
        Ok(())
    }

    fn update(&mut self, _info: CycleInfo, io: &mut Io<'_>) {
        let mut level = false;
        for input in &self.inputs {
            level ^= io.get(*input);
        }
        for output in &self.outputs {
            io.set(*output, level);
        }
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
            }
        }
    }
}
