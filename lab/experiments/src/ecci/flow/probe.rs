//! SubDevice that turns its inputs over and notes the reaction, and the controller in the cycle's
//! thread that copies them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::controller::{Controller, CycleInfo, Io};
use control::signal::{Input, Output, SignalError, Signals};
use control::stop::StopHandle;
use ethercat::al_status_code::AlStatusCode;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use rt::clock::{Clock, MonotonicClock};
use simulator::application::sii::{digital_inputs, digital_outputs};
use simulator::application::{Application, ProcessDataLengths, StateChange};
use simulator::{EscDescription, Segment, SubDevice};
use types::signal::{Flow, OutputBehaviour};
use types::{Signal, ValueType};

use super::PERIOD;

/// When what happened.
#[derive(Default)]
pub(super) struct Stamps {
    pub(super) events: Vec<Instant>,
    /// By a controller in the cycle's thread.
    pub(super) seen: Vec<Instant>,
    pub(super) reactions: Vec<Instant>,
}

pub(super) type Shared = Arc<Mutex<Stamps>>;

fn stamp(shared: &Shared, add: impl FnOnce(&mut Stamps)) {
    add(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Copies the event to the reaction, in the cycle's thread. Its lock is held only briefly; it is no
/// controller for a robot.
pub(super) struct Echo {
    shared: Shared,
    input: Option<Input<u8>>,
    output: Option<Output<u8>>,
    last: u8,
}

impl Echo {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: Arc::clone(shared), input: None, output: None, last: 0 }
    }
}

impl Controller for Echo {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.input = Some(signals.input("event")?);
        self.output = Some(signals.output("reaction")?);
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        if let (Some(input), Some(output)) = (self.input, self.output) {
            let level = io.get(input);
            if std::mem::replace(&mut self.last, level) != level {
                stamp(&self.shared, |stamps| stamps.seen.push(MonotonicClock.now()));
            }
            io.set(output, level);
        }
    }
}

/// Its process data by name.
pub(super) fn signals() -> Vec<Signal> {
    let signal = |name: &str, flow| Signal {
        name: name.into(),
        sub_device: 0,
        bit_offset: 0,
        value_type: ValueType::Unsigned(8),
        unit: String::new(),
        scaling: None,
        range: None,
        flow,
    };
    vec![signal("event", Flow::Input), signal("reaction", Flow::Output(OutputBehaviour::default()))]
}

/// The bus: one such SubDevice, which asks for a stop behind its last event.
pub(super) fn segment(shared: &Shared, events: usize, stop: &StopHandle) -> Segment {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0E02, revision: 1, serial: 0 };
    let mut sii = digital_outputs(identity, "Probe", 8);
    sii.mapping.inputs = digital_inputs(identity, "Probe", 8).mapping.inputs;
    let probe = Probe {
        shared: Arc::clone(shared),
        left: events,
        next: None,
        level: 0,
        answered: 0,
        random: fastrand::Rng::with_seed(4),
        stop: stop.clone(),
    };
    Segment::new(vec![SubDevice::new(EscDescription::default(), sii.image().emit(), Box::new(probe))])
}

/// Turns its inputs over at random instants, one event after the reaction to the one before.
struct Probe {
    shared: Shared,
    left: usize,
    next: Option<Instant>,
    level: u8,
    answered: u8,
    random: fastrand::Rng,
    stop: StopHandle,
}

impl Application for Probe {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 1, inputs: 1 }
    }

    fn enter(&mut self, _: &StateChange) -> Result<(), AlStatusCode> {
        Ok(())
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let Some(&[output]) = outputs else { return };
        if self.level == self.answered {
            let random = &mut self.random;
            let next = *self.next.get_or_insert_with(|| {
                now + PERIOD * 4 + Duration::from_nanos(random.u64(..PERIOD.as_nanos() as u64))
            });
            if self.left == 0 {
                self.stop.stop();
            } else if now >= next {
                self.left -= 1;
                self.level ^= 1;
                stamp(&self.shared, |stamps| stamps.events.push(now));
            }
        } else if output == self.level {
            (self.answered, self.next) = (self.level, None);
            stamp(&self.shared, |stamps| stamps.reactions.push(now));
        }
        if let Some(input) = inputs.first_mut() {
            *input = self.level;
        }
    }
}
