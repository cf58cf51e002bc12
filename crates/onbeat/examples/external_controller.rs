//! A controller in a separate process: every axis nods, as with `own_controller.rs`.
//! Run `onbeat run examples/six-axis.toml --controller external`, then
//! `cargo run -p onbeat --example external_controller`.
//! Enter stops and disables the axes, the end of its input (`</dev/null`) does not.

use onbeat::ipc::client::Client;
use onbeat::{StopHandle, external};

#[allow(dead_code, reason = "its main is another program")]
#[path = "own_controller.rs"]
mod own_controller;

fn main() -> anyhow::Result<()> {
    let (cycle, stop) = (Client::find()?, StopHandle::new());
    let enter = stop.clone();
    std::thread::spawn(move || std::io::stdin().lines().next().map(|_| enter.stop()));
    let nod = own_controller::Nod(vec![None; cycle.description().axes.len()]);
    println!("{:?}", external::run(&cycle, nod, &stop)?);
    Ok(())
}
