//! Driver of two driven wheels, on the bus of the cycle or simulated.

use std::path::PathBuf;
use std::time::Duration;

use ipc::client::Client;
use ipc::command::{AxisTarget, Command, Writer};
use ipc::state::{ReadError, Reader, State};
use ipc::units::RadiansPerSecond;
use rt::clock::now_ns;

use crate::pair::{DeviceError, Driver};
use crate::task::actuators::{Feedback, Velocities};

/// Interface between the driver and two drives.
pub trait Drives: Send + 'static {
    /// Location of the drives, for messages.
    fn place(&self) -> String;

    /// Opens the drives; returns a description of them, for messages.
    ///
    /// # Errors
    /// They cannot be opened.
    fn open(&mut self) -> Result<String, DeviceError>;

    /// Sends velocities to the drives and reads their positions and velocities. False if there is
    /// no feedback yet.
    ///
    /// # Errors
    /// They cannot be reached, or were stopped.
    fn exchange(&mut self, velocities: [f64; 2], feedback: &mut Feedback) -> Result<bool, DeviceError>;

    /// Stops the drives, because requests have ended.
    ///
    /// # Errors
    /// They cannot be reached.
    fn rest(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Remark since the last call, for messages.
    fn remark(&mut self) -> Option<String> {
        None
    }

    /// Releases the drives.
    fn close(&mut self);
}

/// Driver of two driven wheels.
#[derive(Debug)]
pub struct Actuators<D> {
    drives: D,
}

impl<D: Drives> Actuators<D> {
    /// Creates a driver of these drives.
    #[must_use]
    pub fn new(drives: D) -> Self {
        Self { drives }
    }
}

impl<D: Drives> Driver for Actuators<D> {
    type Request = Velocities;
    type Sample = Feedback;
    const ASKED: bool = true;

    fn device(&self) -> String {
        self.drives.place()
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        self.drives.open()
    }

    fn exchange(
        &mut self,
        request: &Velocities,
        sample: &mut Feedback,
        _timeout: Duration,
    ) -> Result<bool, DeviceError> {
        // The ordinary task may have stalled, and requests have waited.
        let stale = now_ns().saturating_sub(request.stamp_ns) > TIME_TO_LIVE.as_nanos() as u64;
        self.drives.exchange(if stale { [0.0; 2] } else { request.wheels }, sample)
    }

    fn unasked(&mut self) -> Result<(), DeviceError> {
        self.drives.rest()
    }

    fn remark(&mut self) -> Option<String> {
        self.drives.remark()
    }

    fn close(&mut self) {
        self.drives.close();
    }
}

/// Two axes of a running cycle, moved as by any other client: over its shared-memory interface,
/// with its command lease. Its controller must be `joint_velocity`, and no other client may hold
/// the lease.
pub struct OfCycle {
    ipc: PathBuf,
    axes: [String; 2],
    held: Option<HeldCommand>,
}

struct HeldCommand {
    writer: Writer,
    reader: Reader,
    places: [usize; 2],
    command: Command,
    state: State,
}

/// Time-to-live of a command: some periods of the actuators' task.
const TIME_TO_LIVE: Duration = Duration::from_millis(100);

impl OfCycle {
    /// Creates drives for the axes of these names, left and right, of the cycle that listens at
    /// this socket.
    #[must_use]
    pub fn new(ipc: impl Into<PathBuf>, axes: [String; 2]) -> Self {
        Self { ipc: ipc.into(), axes, held: None }
    }
}

impl Drives for OfCycle {
    fn place(&self) -> String {
        format!("axes {} and {} of the cycle at {}", self.axes[0], self.axes[1], self.ipc.display())
    }

    fn open(&mut self) -> Result<String, DeviceError> {
        let ipc =
            Client::open(&self.ipc).map_err(|error| DeviceError::new("attaching to the cycle", error))?;
        let axes = &ipc.description().axes;
        let place = |name: &String| {
            axes.iter().position(|axis| axis.name == *name).ok_or_else(|| {
                let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
                DeviceError(format!("no axis \"{name}\": expected one of {}", known.join(", ")))
            })
        };
        let places = [place(&self.axes[0])?, place(&self.axes[1])?];
        let writer = ipc.command().map_err(|error| DeviceError::new("the command lease", error))?;
        let command = Command {
            time_to_live_ns: TIME_TO_LIVE.as_nanos() as u64,
            axes: vec![None; axes.len()],
            ..Command::default()
        };
        let found = format!("the cycle of {}", ipc.description().robot);
        self.held =
            Some(HeldCommand { writer, reader: ipc.state(), places, command, state: State::default() });
        Ok(found)
    }

    fn exchange(&mut self, velocities: [f64; 2], feedback: &mut Feedback) -> Result<bool, DeviceError> {
        let held = self.held.as_mut().ok_or_else(|| DeviceError("it is not open".into()))?;
        for (&place, velocity) in held.places.iter().zip(velocities) {
            held.command.axes[place] = Some(AxisTarget::Velocity(RadiansPerSecond(velocity)));
        }
        held.writer.send(&held.command).map_err(|error| DeviceError::new("commanding", error))?;
        held.state = match held.reader.read() {
            Ok(state) => state,
            // No state before the first cycle: no feedback.
            Err(ReadError::Nothing) => return Ok(false),
            Err(error) => return Err(DeviceError::new("its state", error)),
        };
        let axes = held.places.map(|place| held.state.axes.get(place).copied().unwrap_or_default());
        *feedback = Feedback {
            stamp_ns: held.state.release_ns,
            positions: axes.map(|axis| axis.position),
            velocities: axes.map(|axis| axis.velocity),
            stops: 0,
        };
        // No feedback before the drives have answered either.
        Ok(axes.iter().all(|axis| axis.fresh))
    }

    fn close(&mut self) {
        self.held = None;
    }
}
