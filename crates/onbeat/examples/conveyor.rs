//! A machine without axes: the belt carries a part from one light barrier to the other.
//! `cargo run -p onbeat --example conveyor`; Enter stops it, the end of its input does not.

use onbeat::{Controller, CycleInfo, Input, Io, Output, Robot, SignalError, Signals, StopHandle};

type Handles = ([Input<bool>; 3], [Output<bool>; 3]);

#[derive(Default)]
pub(crate) struct Conveyor {
    signals: Option<Handles>,
    carries: bool,
}

impl Controller for Conveyor {
    fn init(&mut self, names: &Signals) -> Result<(), SignalError> {
        let inputs = [names.input("part at start")?, names.input("part at end")?, names.input("stop")?];
        let outputs = [names.output("belt")?, names.output("light green")?, names.output("light red")?];
        self.signals = Some((inputs, outputs));
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let Some(([start, end, stop], [belt, green, red])) = self.signals else { return };
        // Inputs that do not come stop the belt as the stop input does.
        let runs = io.is_fresh(stop) && !io.get(stop);
        self.carries = (self.carries || io.get(start)) && !io.get(end);
        io.set(belt, runs && self.carries);
        io.set(green, runs);
        io.set(red, !runs);
    }
}

fn main() -> anyhow::Result<()> {
    let (stop, robot) = (StopHandle::new(), Robot::load("examples/conveyor.toml")?); // .interface("enp3s0")
    let enter = stop.clone();
    std::thread::spawn(move || std::io::stdin().lines().next().map(|_| enter.stop()));
    println!("{}", robot.stop(&stop).run(Conveyor::default())?);
    Ok(())
}
