//! MII management: registers of the PHYs behind the ESC (ESC data sheet, section II, 2.13; IEEE
//! 802.3, 22.2.4). Each MII port has a PHY; its address is the number of the port.
//!
//! Simplifications: an access takes a fixed time; the ESC never does one by itself. Settings of a
//! PHY are stored and have no effect, except for its reset. The application never takes the
//! interface.

use core::time::Duration;

use ethercat::register::dl::PORTS;
use ethercat::register::{DL_STATUS, MII_CONTROL, MII_PHY_ADDRESS, MII_PHY_DATA, MII_PHY_REGISTER};
use ethercat::time::Instant;

use super::memory::Memory;

/// Time of an access: 64 bits at 2.5 MHz, and some.
const ACCESS_TIME: Duration = Duration::from_micros(30);

const WRITE_ENABLE: u16 = 1 << 0;
/// The application may take the interface; the ESC looks for links by it.
const ABILITIES: u16 = 1 << 1 | 1 << 2;
const COMMANDS: u16 = 3 << 8;
const COMMAND_READ: u16 = 1 << 8;
const COMMAND_WRITE: u16 = 2 << 8;
const READ_ERROR: u16 = 1 << 13;
const COMMAND_ERROR: u16 = 1 << 14;
const BUSY: u16 = 1 << 15;

/// Interface and PHYs.
#[derive(Clone, Debug)]
pub(super) struct MiiInterface {
    phys: [Option<Phy>; PORTS],
    running: Option<(Instant, MiiCommand)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MiiCommand {
    Read,
    Write,
}

/// A PHY for 100 Mbit/s.
#[derive(Clone, Copy, Debug)]
struct Phy {
    control: u16,
    advertised: u16,
}

impl MiiInterface {
    /// Interface of an ESC with the ports of `port_descriptor`.
    pub(super) fn new(port_descriptor: u8) -> Self {
        let is_mii = |port: usize| port_descriptor >> (2 * port) & 3 == 3;
        Self { phys: core::array::from_fn(|port| is_mii(port).then(Phy::new)), running: None }
    }

    /// True if there is an MII port.
    pub(super) fn exists(&self) -> bool {
        self.phys.iter().any(Option::is_some)
    }

    /// Stores the register values after power-on.
    pub(super) fn reset_registers(&self, memory: &mut Memory) {
        if self.exists() {
            memory.store(MII_CONTROL, &ABILITIES.to_le_bytes());
        }
    }

    /// True while its registers cannot be written.
    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Starts the command written to the control register at `now`.
    pub(super) fn control_written(&mut self, memory: &mut Memory, now: Instant) {
        let request = memory.word(MII_CONTROL);
        let command = match request & COMMANDS {
            0 => Ok(None),
            COMMAND_READ => Ok(Some(MiiCommand::Read)),
            COMMAND_WRITE if request & WRITE_ENABLE != 0 => Ok(Some(MiiCommand::Write)),
            _ => Err(COMMAND_ERROR),
        };
        let status = match command {
            Ok(Some(command)) => {
                self.running = Some((now + ACCESS_TIME, command));
                BUSY | request & COMMANDS
            }
            Ok(None) => 0,
            Err(error) => error,
        };
        memory.store(MII_CONTROL, &(ABILITIES | status).to_le_bytes());
    }

    /// Completes an access that ends by `now`.
    pub(super) fn settle(&mut self, memory: &mut Memory, now: Instant) {
        let Some((_, command)) = self.running.filter(|(end, _)| *end <= now) else { return };
        self.running = None;
        let port = usize::from(memory.byte(MII_PHY_ADDRESS) & 0x1F);
        let register = memory.byte(MII_PHY_REGISTER) & 0x1F;
        let mut status = ABILITIES;
        match (self.phys.get_mut(port).and_then(Option::as_mut), command) {
            (Some(phy), MiiCommand::Read) => {
                let linked = memory.word(DL_STATUS) >> (4 + port) & 1 != 0;
                memory.store(MII_PHY_DATA, &phy.read(register, linked).to_le_bytes());
            }
            (Some(phy), MiiCommand::Write) => phy.write(register, memory.word(MII_PHY_DATA)),
            // Nothing drives the data line, which is pulled up.
            (None, MiiCommand::Read) => {
                memory.store(MII_PHY_DATA, &[0xFF; 2]);
                status |= READ_ERROR;
            }
            (None, MiiCommand::Write) => {}
        }
        memory.store(MII_CONTROL, &status.to_le_bytes());
    }
}

/// Basic control after power-on: 100 Mbit/s, auto-negotiation, full duplex.
const CONTROL: u16 = 0x3100;
/// Advertised: 10 and 100 Mbit/s in both duplex modes, IEEE 802.3.
const ADVERTISED: u16 = 0x01E1;
/// Basic status: the same abilities, without a link, and with a link and complete negotiation.
const STATUS: u16 = 0x7809;
const STATUS_LINKED: u16 = STATUS | 1 << 5 | 1 << 2;
/// Identifier of a KS8721BL, common next to ESCs.
const IDENTIFIER: [u16; 2] = [0x0022, 0x1619];

impl Phy {
    const fn new() -> Self {
        Self { control: CONTROL, advertised: ADVERTISED }
    }

    fn read(&self, register: u8, linked: bool) -> u16 {
        match register {
            0 => self.control,
            1 => {
                if linked {
                    STATUS_LINKED
                } else {
                    STATUS
                }
            }
            2 => IDENTIFIER[0],
            3 => IDENTIFIER[1],
            4 => self.advertised,
            // The partner has acknowledged the same.
            5 if linked => ADVERTISED | 1 << 14,
            6 if linked => 0x0001,
            _ => 0,
        }
    }

    fn write(&mut self, register: u8, value: u16) {
        const RESET: u16 = 1 << 15;
        match register {
            0 if value & RESET != 0 => *self = Self::new(),
            0 => self.control = value,
            4 => self.advertised = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a command; returns the status at its start and at its end.
    fn run(mii: &mut MiiInterface, memory: &mut Memory, phy: u8, register: u8, request: u16) -> (u16, u16) {
        memory.store(MII_PHY_ADDRESS, &[phy, register]);
        memory.store(MII_CONTROL, &request.to_le_bytes());
        mii.control_written(memory, Instant::EPOCH);
        let before = memory.word(MII_CONTROL);
        mii.settle(memory, Instant::EPOCH + ACCESS_TIME);
        (before, memory.word(MII_CONTROL))
    }

    // feature(simulator): PHY registers by MII management
    #[test]
    fn a_phy_is_read_and_written_and_shows_its_link() {
        // Port 0 is MII, port 1 E-bus.
        let (mut mii, mut memory) = (MiiInterface::new(0b1011), Memory::up_to(0x1_0000));
        let read = run(&mut mii, &mut memory, 0, 2, COMMAND_READ);
        assert_eq!(
            (read, memory.word(MII_PHY_DATA)),
            ((ABILITIES | BUSY | COMMAND_READ, ABILITIES), 0x0022)
        );
        run(&mut mii, &mut memory, 0, 1, COMMAND_READ);
        assert_eq!(memory.word(MII_PHY_DATA), STATUS);
        memory.store(DL_STATUS, &[1 << 4, 0]);
        run(&mut mii, &mut memory, 0, 1, COMMAND_READ);
        assert_eq!(memory.word(MII_PHY_DATA), STATUS_LINKED);
        memory.store(MII_PHY_DATA, &[0x00, 0x20]);
        run(&mut mii, &mut memory, 0, 0, COMMAND_WRITE | WRITE_ENABLE);
        memory.store(MII_PHY_DATA, &[0; 2]);
        run(&mut mii, &mut memory, 0, 0, COMMAND_READ);
        assert_eq!(memory.word(MII_PHY_DATA), 0x2000);
    }

    #[test]
    fn absent_phys_and_wrong_commands_are_errors() {
        let (mut mii, mut memory) = (MiiInterface::new(0b1011), Memory::up_to(0x1_0000));
        for phy in [1, 4, 31] {
            assert_eq!(run(&mut mii, &mut memory, phy, 2, COMMAND_READ).1, ABILITIES | READ_ERROR);
            assert_eq!(memory.word(MII_PHY_DATA), 0xFFFF);
        }
        assert_eq!(run(&mut mii, &mut memory, 0, 0, COMMAND_WRITE).0, ABILITIES | COMMAND_ERROR);
        assert!(!mii.is_busy() && !MiiInterface::new(0b1010).exists());
    }
}
