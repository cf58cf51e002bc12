//! Swings a servo drive, the first SubDevice, to and fro for ten seconds:
//! `cargo run -p onbeat-ethercat-linux --example csp_sine -- enp3s0`.

use std::f64::consts::TAU;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use onbeat_ethercat_linux::ethercat::cia402::object::{
    CONTROLWORD, MODES_OF_OPERATION, POSITION_ACTUAL_VALUE, STATUSWORD, TARGET_POSITION,
};
use onbeat_ethercat_linux::ethercat::cia402::{
    CyclicMode, Drive, DriveCommand, DriveInput, ModeOfOperation, Phase, Request, State, Statusword,
};
use onbeat_ethercat_linux::{Bus, Configuration, RunReport};

const PERIOD: Duration = Duration::from_millis(1);
/// Counts to each side, and seconds for a swing.
const AMPLITUDE: f64 = 1000.0;
const SWING: f64 = 2.0;

fn main() -> anyhow::Result<()> {
    let interface = std::env::args().nth(1).context("usage: csp_sine INTERFACE")?;
    let report = csp_sine(&mut Bus::open(&interface)?, 5.0)?;
    println!("{report}");
    Ok(())
}

/// Enables the drive at its position, moves it `swings` times to one side and back, and disables
/// it.
pub(crate) fn csp_sine(bus: &mut Bus, swings: f64) -> anyhow::Result<RunReport> {
    bus.bring_up(&Configuration::scan())?;
    let mode = ModeOfOperation::from(CyclicMode::Position).number();
    bus.subdevice(0).sdo_write(MODES_OF_OPERATION, 0, mode)?;
    let statusword = bus.subdevice(0).input::<u16>(STATUSWORD, 0)?;
    let position = bus.subdevice(0).input::<i32>(POSITION_ACTUAL_VALUE, 0)?;
    let controlword = bus.subdevice(0).output::<u16>(CONTROLWORD, 0)?;
    let target = bus.subdevice(0).output::<i32>(TARGET_POSITION, 0)?;

    // It never gets a target further than this from the last one.
    let largest_step = (AMPLITUDE * TAU / SWING * PERIOD.as_secs_f64()) as u32 + 2;
    let mut drive = Drive::new(CyclicMode::Position, largest_step);
    let (mut start, mut time) = (0, 0.0);
    let report = bus.run(PERIOD, |io| {
        let input = DriveInput {
            statusword: Statusword(io.get(statusword)),
            position: io.get(position),
            ..DriveInput::default()
        };
        let follows = drive.phase() == Phase::Following;
        // The swing waits while the drive exchanges no process data.
        if follows && io.is_fresh(position) {
            time += PERIOD.as_secs_f64();
        }
        let offset = (AMPLITUDE * (TAU * time / SWING).sin()) as i32;
        if !follows {
            // Begins, or continues after a gap, at the position of the drive.
            start = drive.holds_at().wrapping_sub(offset);
        }
        let done = time >= swings * SWING;
        let command = DriveCommand {
            request: if done { Request::Disable } else { Request::Enable },
            target_position: start.wrapping_add(offset),
            ..DriveCommand::default()
        };
        let output = drive.update(io.is_fresh(position).then_some(input), command);
        io.set(controlword, output.controlword.0);
        io.set(target, output.target_position);
        // The run ends when the drive stays out of Op.
        let faulted = drive.state().is_some_and(State::is_faulted);
        if faulted || done && drive.state() != Some(State::OperationEnabled) {
            io.stop();
        }
    })?;
    match drive.state() {
        Some(state) if !state.is_faulted() => Ok(report),
        state => Err(anyhow!("the drive ended in {state:?}")),
    }
}
