//! A button on the third SubDevice lights a lamp on the second, every millisecond: `cargo run -p
//! onbeat-ethercat-linux --example digital_io -- enp3s0`. `onbeat simulate examples/conveyor.toml
//! --iface NIC` simulates such a bus at the other end of the cable. Ctrl-C ends the program; the
//! terminals' watchdogs then switch the lamp off.

use std::time::Duration;

use anyhow::Context as _;
use onbeat_ethercat_linux::{Bus, Configuration, Error, RunReport};

fn main() -> anyhow::Result<()> {
    let interface = std::env::args().nth(1).context("usage: digital_io INTERFACE")?;
    println!("{}", digital_io(&mut Bus::open(&interface)?)?);
    Ok(())
}

/// Runs until it is stopped by the handle of `bus`.
pub(crate) fn digital_io(bus: &mut Bus) -> Result<RunReport, Error> {
    bus.bring_up(&Configuration::scan())?;
    let lamp = bus.subdevice(1).output::<bool>(0x7000, 1)?;
    let button = bus.subdevice(2).input::<bool>(0x6000, 1)?;
    bus.run(Duration::from_millis(1), |io| io.set(lamp, io.get(button)))
}
