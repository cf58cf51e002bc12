//! A controller of one's own: every axis nods about the place where it was enabled. Simulated, or on a network interface:
//! `cargo run --example own_controller -- examples/six-axis.toml [INTERFACE]`; Ctrl-C stops it in order.

use onbeat::motion::{Hertz, Radians, Seconds, SmoothSinusoid};
use onbeat::{AxisCommand, AxisPhase, AxisReport, Beat, Controller, Error, Request, Run};

/// What each axis does, for how long, and the pace of that time: it slows down to a stop.
pub(crate) struct Nod(pub(crate) Vec<Option<(SmoothSinusoid, Seconds, f64)>>);

impl Controller for Nod {
    fn update(&mut self, beat: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        let elapsed = Seconds(beat.period.as_secs_f64() * beat.periods as f64);
        for ((nod, report), command) in self.0.iter_mut().zip(reports).zip(commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(start) = report.feedback.phase {
                let sinusoid = SmoothSinusoid::new(start, Radians(0.3), Hertz(0.5), Seconds(2.0));
                *nod = sinusoid.ok().map(|sinusoid| (sinusoid, Seconds::ZERO, 1.0));
            }
            if let Some((sinusoid, time, pace)) = nod {
                *pace *= if beat.stopping { 0.99 } else { 1.0 };
                *time += elapsed * *pace;
                command.setpoint = sinusoid.at(*time).into();
            }
        }
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let run = Run::of(arguments.next().unwrap_or_else(|| "examples/six-axis.toml".to_owned()));
    let run = arguments.next().iter().fold(run, |run, interface| run.on(interface));
    println!("{}", run.with(|robot| Nod(vec![None; robot.axes().len()]))?);
    Ok(())
}
