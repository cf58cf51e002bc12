//! A button on the second SubDevice lights a lamp on the third, every millisecond: `cargo run --example digital_io -- enp3s0`.
//! Ctrl-C ends it; the terminals' watchdogs then take the lamp back.

use std::time::Duration;

use onbeat_ethercat_linux::{Bus, Configuration, Error, RunReport};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let interface = std::env::args().nth(1).ok_or("usage: digital_io INTERFACE")?;
    digital_io(&mut Bus::open(&interface)?)?;
    Ok(())
}

/// Runs until it is stopped by the handle of `bus`.
pub(crate) fn digital_io(bus: &mut Bus) -> Result<RunReport, Error> {
    bus.bring_up(&Configuration::scan())?;
    let button = bus.subdevice(1).input::<bool>(0x6000, 1)?;
    let lamp = bus.subdevice(2).output::<bool>(0x7000, 1)?;
    bus.run(Duration::from_millis(1), |io| io.set(lamp, io.get(button)))
}
