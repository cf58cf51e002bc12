//! Error counters and links of the SubDevices on a bus: read and cleared.

use std::thread;
use std::time::{Duration, Instant};

use control::bus::{latch_inputs, sub_device_status};
use ipc::bus::{BusStatus, LatchInput};

use super::{OwnBus, ToolBus};
use crate::failure::Failure;
use crate::output;

impl ToolBus {
    /// State of the bus now, with the error counters and links of all SubDevices that answer.
    pub(crate) fn diagnosed(&mut self) -> Result<BusStatus, Failure> {
        match self {
            Self::Own(bus) => bus.diagnosed(),
            Self::Running(bus) => bus.status(true),
        }
    }

    /// Clears the error counters of all SubDevices that answer.
    pub(crate) fn clear_errors(&mut self) -> Result<(), Failure> {
        match self {
            Self::Own(bus) => {
                bus.main_device.clear_error_counters();
                bus.until_read()
            }
            Self::Running(bus) => bus.clear_errors(),
        }
    }

    /// Latch inputs of a SubDevice with a clock. Reading them re-arms single-event latches.
    pub(crate) fn latches(&mut self, position: u16) -> Result<[LatchInput; 2], Failure> {
        match self {
            Self::Own(bus) => bus.latches(position),
            Self::Running(bus) => bus.latches(position),
        }
    }

    /// True while it is that of a running cycle.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Waits for `time`; false once the user asks for a stop, or the reader of standard output is
    /// gone.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let goes_on = || match self {
            Self::Own(bus) => !bus.stop.is_requested() && !output::is_closed(),
            Self::Running(_) => !output::is_closed(),
        };
        let begin = Instant::now();
        while begin.elapsed() < time && goes_on() {
            thread::sleep(time.saturating_sub(begin.elapsed()).min(output::LOOK));
        }
        goes_on()
    }
}

impl OwnBus {
    fn diagnosed(&mut self) -> Result<BusStatus, Failure> {
        self.main_device.read_error_counters();
        self.until_read()?;
        let frames = self.main_device.reception();
        Ok(BusStatus {
            phase: self.main_device.phase().to_string(),
            frames_sent: frames.sent,
            frames_answered: frames.accepted,
            frames_lost: frames.lost,
            reference_clock: self.main_device.clock().reference,
            sub_devices: self.main_device.sub_devices().iter().map(sub_device_status).collect(),
            ..BusStatus::default()
        })
    }

    fn latches(&mut self, position: u16) -> Result<[LatchInput; 2], Failure> {
        let place = usize::from(position);
        self.main_device.read_latches(place);
        let is_read = |main_device: &mut ethercat::main_device::MainDevice, _| {
            (!main_device.reads_latches(place)).then_some(())
        };
        self.pump().until(TIMEOUT, is_read)?;
        let latches = self.main_device.sub_devices().get(place).and_then(|it| it.latches);
        latches.map(latch_inputs).ok_or_else(|| {
            Failure::new(format!(
                "SubDevice {position} does not report its latch times: check power and cable"
            ))
        })
    }

    fn until_read(&mut self) -> Result<(), Failure> {
        let is_read = |main_device: &mut ethercat::main_device::MainDevice, _| {
            (!main_device.reads_error_counters()).then_some(())
        };
        Ok(self.pump().until(TIMEOUT, is_read)?)
    }
}

/// Time that all SubDevices may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
