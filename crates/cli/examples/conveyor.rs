//! A machine without axes: the belt carries a part from one light barrier to the other.
//! `cargo run --example conveyor -- examples/conveyor.toml [INTERFACE]`; Ctrl-C stops it in order.

use onbeat::{Beat, Controller, Error, Input, Io, Output, Run, SignalError, Signals};

#[derive(Default)]
pub(crate) struct Conveyor {
    inputs: Option<[Input<bool>; 3]>,
    outputs: Option<[Output<bool>; 3]>,
    carries: bool,
}

impl Controller for Conveyor {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        let input = |name| signals.input(name);
        self.inputs = Some([input("part at start")?, input("part at end")?, input("stop")?]);
        let output = |name| signals.output(name);
        self.outputs = Some([output("belt")?, output("light green")?, output("light red")?]);
        Ok(())
    }

    fn exchange(&mut self, _: Beat, io: &mut Io<'_>) {
        let (Some([start, end, stop]), Some([belt, green, red])) = (self.inputs, self.outputs) else {
            return;
        };
        // Inputs that do not come stop the belt as the stop input does.
        let runs = io.is_fresh(stop) && !io.get(stop);
        self.carries = (self.carries || io.get(start)) && !io.get(end);
        io.set(belt, runs && self.carries);
        io.set(green, runs);
        io.set(red, !runs);
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let run = Run::of(arguments.next().unwrap_or_else(|| "examples/conveyor.toml".to_owned()));
    let run = arguments.next().iter().fold(run, |run, interface| run.on(interface));
    println!("{}", run.with(|_| Conveyor::default())?);
    Ok(())
}
