//! Samples of a cycle as one: the effective value of a vibration, of ten samples in each cycle.
//! `cargo run -p onbeat --example vibration`; Enter stops it in order.

use onbeat::{Controller, CycleInfo, Input, Io, Robot, SignalError, Signals, StopHandle};

/// Effective value over the newest samples.
#[derive(Default)]
pub(crate) struct Vibration {
    inputs: Vec<Input<f64>>,
    block: Option<Input<u16>>,
    samples: Vec<f64>,
    /// The newest block, and blocks that were missed or read twice.
    newest: Option<u16>,
    pub(crate) irregular: u64,
    pub(crate) effective: f64,
}

impl Controller for Vibration {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.inputs = signals.input_slice("vibration")?;
        self.block = Some(signals.input("block")?);
        // As many as the robot file says; `update` allocates nothing.
        self.samples = vec![0.0; self.inputs.len()];
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let Some(block) = self.block.filter(|block| io.is_fresh(*block)) else { return };
        let number = io.get(block);
        let expected = self.newest.replace(number).map(|newest| newest.wrapping_add(1));
        self.irregular += u64::from(expected.is_some_and(|expected| expected != number));
        io.get_slice(&self.inputs, &mut self.samples);
        let squares: f64 = self.samples.iter().map(|sample| sample * sample).sum();
        // Over some hundred samples.
        let newest = squares / self.samples.len() as f64;
        self.effective = (0.98 * self.effective * self.effective + 0.02 * newest).sqrt();
    }
}

fn main() -> anyhow::Result<()> {
    let (stop, robot) = (StopHandle::new(), Robot::load("examples/vibration.toml")?); // .interface("enp3s0")
    let enter = stop.clone();
    std::thread::spawn(move || std::io::stdin().lines().next().map(|_| enter.stop()));
    println!("{}", robot.stop(&stop).run(Vibration::default())?);
    Ok(())
}
