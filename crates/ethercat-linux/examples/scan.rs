//! Lists the SubDevices at an interface and their process data:
//! `cargo run -p onbeat-ethercat-linux --example scan -- enp3s0`.

use std::fmt::Write as _;

use anyhow::Context as _;
use onbeat_ethercat_linux::{Bus, Configuration};

fn main() -> anyhow::Result<()> {
    let interface = std::env::args().nth(1).context("usage: scan INTERFACE")?;
    print!("{}", scan(&mut Bus::open(&interface)?)?);
    Ok(())
}

/// A line for each SubDevice, and one for each entry of its process data.
pub(crate) fn scan(bus: &mut Bus) -> anyhow::Result<String> {
    bus.bring_up(&Configuration::scan())?;
    let mut text = String::new();
    for it in bus.sub_devices() {
        writeln!(text, "{} \"{}\"  {}  {}", it.position, it.name, it.identity, it.al_status)?;
        let (outputs, inputs) = (&it.mapping.outputs, &it.mapping.inputs);
        for (word, pdos) in [("out", outputs), ("in", inputs)] {
            for entry in pdos.iter().flat_map(|pdo| &pdo.entries).filter(|entry| entry.index != 0) {
                writeln!(text, "  {word:<3} {entry}")?;
            }
        }
    }
    Ok(text)
}
