//! A custom controller with an axis and signals: the spindle turns while the door is closed, and a
//! lamp shows it. `cargo run -p onbeat --example door`; Enter stops it in order, the end of its
//! input (`</dev/null`) does not.

use onbeat::motion::{Radians, RadiansPerSecond};
use onbeat::*;

#[derive(Default)]
pub(crate) struct Door(Option<(Input<bool>, Output<bool>)>, Radians, RadiansPerSecond);

impl Controller for Door {
    fn init(&mut self, names: &Signals) -> Result<(), SignalError> {
        self.0 = Some((names.input("door closed")?, names.output("lamp green")?));
        Ok(())
    }
    fn update(&mut self, cycle: CycleInfo, io: &mut Io<'_>) {
        let Self(Some((door, lamp)), position, velocity) = self else { return };
        let turns = io.is_fresh(*door) && io.get(*door) && !cycle.stopping;
        io.set(*lamp, turns);
        if let Some(AxisPhase::HoldingAt(here)) = io.axis(0).map(|axis| axis.feedback.phase) {
            // set-points begin at its position
            (*position, *velocity) = (here, RadiansPerSecond(0.0));
        }
        let elapsed = cycle.period.as_secs_f64() * cycle.periods as f64;
        let (wanted, step) = (if turns { 10.0 } else { 0.0 }, 20.0 * elapsed); // rad/s, 20 rad/s²
        velocity.0 += (wanted - velocity.0).clamp(-step, step);
        position.0 += velocity.0 * elapsed;
        let Some(command) = io.command(0) else { return };
        (command.request, command.setpoint.position) = (Request::Enable, *position);
    }
}

fn main() -> Result<(), Error> {
    let (stop, robot) = (StopHandle::new(), Robot::load("examples/io-station.toml")?); // .interface("enp3s0")
    let enter = stop.clone();
    std::thread::spawn(move || std::io::stdin().lines().next().map(|_| enter.stop()));
    println!("{}", robot.stop(&stop).run(Door::default())?);
    Ok(())
}
