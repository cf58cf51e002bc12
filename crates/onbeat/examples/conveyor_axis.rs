//! A conveyor with an axis as its belt: it carries a part from one light barrier to the other. The
//! stop input is an interlock of the robot file: supervision stops the belt and disables it, until
//! the reset input is high. `cargo run -p onbeat --example conveyor_axis`; Enter stops it in order,
//! the end of its input (`</dev/null`) does not.

use onbeat::motion::RadiansPerSecond;
use onbeat::motion::supervision::StopReason;
use onbeat::{
    AxisPhase, Controller, CycleInfo, Input, Io, Output, Request, Robot, SignalError, Signals, StopHandle,
};

/// Velocity of the belt's axle in rad/s, and its acceleration in rad/s²: below the limits of the
/// robot file.
const VELOCITY: f64 = 10.0;
const ACCELERATION: f64 = 25.0;

#[derive(Default)]
pub(crate) struct Conveyor {
    inputs: Option<[Input<bool>; 3]>,
    lights: Option<[Output<bool>; 2]>,
    carries: bool,
    velocity: f64,
}

impl Controller for Conveyor {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        let input = |name| signals.input(name);
        self.inputs = Some([input("part at start")?, input("part at end")?, input("reset")?]);
        self.lights = Some([signals.output("light green")?, signals.output("light red")?]);
        Ok(())
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (Some([start, end, reset]), Some(lights)) = (self.inputs, self.lights) else { return };
        let Some(belt) = io.axis(0).copied() else { return };
        let runs = belt.stop.is_none() && io.is_fresh(start) && !info.stopping;
        // After a stop it does not start by itself.
        let stopped = belt.stop == Some(StopReason::Interlock);
        self.carries = (self.carries || io.get(start)) && !io.get(end) && !stopped;
        let wanted = if runs && self.carries { VELOCITY } else { 0.0 };
        let step = ACCELERATION * info.period.as_secs_f64() * info.periods as f64;
        self.velocity += (wanted - self.velocity).clamp(-step, step);
        if matches!(belt.feedback.phase, AxisPhase::HoldingAt(_) | AxisPhase::NotEnabled) {
            self.velocity = 0.0;
        }
        let resets = belt.stop.is_some() && io.get(reset);
        if let Some(command) = io.command(0) {
            command.request = if resets { Request::FaultReset } else { Request::Enable };
            command.setpoint.velocity = RadiansPerSecond(self.velocity);
        }
        io.set_all(lights, [runs, !runs]);
    }
}

fn main() -> anyhow::Result<()> {
    let (stop, robot) = (StopHandle::new(), Robot::load("examples/conveyor-axis.toml")?); // .interface("enp3s0")
    let enter = stop.clone();
    std::thread::spawn(move || std::io::stdin().lines().next().map(|_| enter.stop()));
    println!("{}", robot.stop(&stop).run(Conveyor::default())?);
    Ok(())
}
