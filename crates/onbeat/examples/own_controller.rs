//! A custom controller: every axis nods about its start position. Enter stops it, the end of input
//! does not. `cargo run -p onbeat --example own_controller -- examples/six-axis.toml [INTERFACE]`

use onbeat::motion::{Hertz, Radians, Seconds, SmoothSinusoid};
use onbeat::{AxisPhase, Controller, CycleInfo, Io, Request, Robot, StopHandle};

/// Movement of each axis, its time, and the pace of that time: it slows down to a stop.
pub(crate) struct Nod(pub(crate) Vec<Option<(SmoothSinusoid, Seconds, f64)>>);

impl Controller for Nod {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let elapsed = Seconds(info.period.as_secs_f64() * info.periods as f64);
        for ((nod, report), command) in self.0.iter_mut().zip(reports).zip(commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(start) = report.feedback.phase {
                let sinusoid = SmoothSinusoid::new(start, Radians(0.3), Hertz(0.5), Seconds(2.0));
                *nod = sinusoid.ok().map(|sinusoid| (sinusoid, Seconds::ZERO, 1.0));
            }
            if let Some((sinusoid, time, pace)) = nod {
                *pace *= if info.stopping { 0.99 } else { 1.0 };
                *time += elapsed * *pace;
                command.setpoint = sinusoid.at(*time).into();
                command.setpoint.velocity = command.setpoint.velocity * *pace;
            }
        }
    }
}

fn main() -> anyhow::Result<()> {
    let (stop, mut arguments) = (StopHandle::new(), std::env::args().skip(1));
    let robot = Robot::load(arguments.next().as_deref().unwrap_or("examples/six-axis.toml"))?;
    let robot = arguments.next().iter().fold(robot, |robot, interface| robot.interface(interface));
    let enter = stop.clone();
    std::thread::spawn(move || std::io::stdin().lines().next().map(|_| enter.stop()));
    let nod = Nod(vec![None; robot.axes().len()]);
    println!("{}", robot.stop(&stop).run(nod)?);
    Ok(())
}
