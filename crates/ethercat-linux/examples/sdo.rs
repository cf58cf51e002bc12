//! Reads and writes objects of a drive, the first SubDevice:
//! `cargo run -p onbeat-ethercat-linux --example sdo -- enp3s0`.

use anyhow::Context as _;
use onbeat_ethercat_linux::{Bus, Configuration};

fn main() -> anyhow::Result<()> {
    let interface = std::env::args().nth(1).context("usage: sdo INTERFACE")?;
    let (name, vendor, window) = sdo(&mut Bus::open(&interface)?)?;
    println!("\"{name}\" of vendor {vendor:#010x}, following error window {window} counts");
    Ok(())
}

/// Its name, its vendor, and its following error window, which is doubled.
pub(crate) fn sdo(bus: &mut Bus) -> Result<(String, u32, u32), onbeat_ethercat_linux::Error> {
    bus.bring_up(&Configuration::scan())?;
    let mut drive = bus.subdevice(0);
    let name = drive.sdo_read(0x1008, 0)?;
    let vendor = drive.sdo_read(0x1018, 1)?;
    let window = drive.sdo_read::<u32>(0x6065, 0)?;
    drive.sdo_write(0x6065, 0, window * 2)?;
    Ok((name, vendor, drive.sdo_read(0x6065, 0)?))
}
