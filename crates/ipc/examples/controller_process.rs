//! A controller in a separate process: every axis swings about the position where it was enabled,
//! until the cycle ends. Run `onbeat run examples/six-axis.toml --controller external`, then
//! `cargo run -p onbeat-ipc --example controller_process`.

use onbeat_ipc::client::Client;
use onbeat_ipc::command::AxisTarget;
use onbeat_ipc::controller::DriveRequest;
use onbeat_ipc::units::{NewtonMetres, Radians, RadiansPerSecond};
use types::CyclicMode;

const SWING: f64 = 0.3;
const SPEED: f64 = std::f64::consts::PI;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ipc = Client::find()?;
    let modes: Vec<CyclicMode> = ipc.description().axes.iter().map(|axis| axis.mode.cyclic()).collect();
    let mut controller = ipc.controller()?;
    let mut swings = vec![(0.0, 0.0); modes.len()];
    let (mut last, mut pace) = (0, 1.0);
    while let Some(turn) = controller.wait() {
        let request = turn.request;
        // Cycles without a request, or with a request that was not seen, count as well.
        let periods = request.cycle.saturating_sub(std::mem::replace(&mut last, request.cycle)).min(10);
        pace *= if request.stopping { 0.99 } else { 1.0 };
        let elapsed = periods as f64 * request.period_ns as f64 * 1e-9 * pace;
        let axes = request.axes.iter().zip(&mut turn.answer.axes);
        for ((axis, answer), ((start, time), mode)) in axes.zip(swings.iter_mut().zip(&modes)) {
            // While it holds or has no torque, set-points begin where its target is.
            (*start, *time) =
                if axis.phase == 2 { (*start, *time + elapsed) } else { (axis.target_position, 0.0) };
            let (sine, cosine) = (SPEED * *time).sin_cos();
            answer.request = Some(DriveRequest::Enable);
            answer.target = Some(match mode {
                CyclicMode::Position => AxisTarget::Position(Radians(*start + SWING * (1.0 - cosine))),
                CyclicMode::Velocity => AxisTarget::Velocity(RadiansPerSecond(SWING * SPEED * sine * pace)),
                _ => AxisTarget::Effort(NewtonMetres(0.0)),
            });
        }
        turn.send();
    }
    Ok(())
}
