//! SII of a SubDevice, word by word through the EEPROM interface of its ESC (ETG.1000.4, 6.11), on
//! a bus in Init.

use std::thread;
use std::time::{Duration, Instant};

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::register::sii_interface as register;
use ethercat::sii::{Header, Image, SiiError};
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use ethercat_linux::link::Link;

use onbeat::compose::link::RobotLink;

use crate::failure::Failure;

/// The EEPROM behind an ESC.
pub(crate) struct Eeprom<'b> {
    link: &'b mut RobotLink,
    position: u16,
    index: u8,
}

impl<'b> Eeprom<'b> {
    /// That of the SubDevice at this place of the segment, which is taken from its own controller.
    pub(super) fn of(link: &'b mut RobotLink, position: u16) -> Result<Self, Failure> {
        let mut eeprom = Self { link, position, index: 0 };
        eeprom.exchange(Command::Apwr, register::CONFIGURATION, &[0])?;
        Ok(eeprom)
    }

    /// All of it: as long as its header says, and as its categories need.
    pub(crate) fn image(&mut self) -> Result<Vec<u8>, Failure> {
        let mut image = Vec::new();
        let mut size = Header::LENGTH;
        while image.len() < size {
            image.extend(self.read(image.len() / 2)?);
            if image.len() >= size && size < LARGEST {
                let said = Header::parse(&image).map_or(size, |header| header.size());
                let is_short = matches!(
                    Image::parse(&image),
                    Err(SiiError::NoEnd { .. } | SiiError::CategoryTruncated { .. })
                );
                size = if is_short { said.max(image.len() + Header::LENGTH) } else { said };
                size = size.min(LARGEST);
            }
        }
        image.truncate(size);
        Ok(image)
    }

    /// Four bytes at least, from this word on.
    fn read(&mut self, word: usize) -> Result<Vec<u8>, Failure> {
        for _ in 0..ATTEMPTS {
            let answer = self.command(register::COMMAND_READ, word)?;
            let status = u16::from_le_bytes([answer[0], answer[1]]);
            if status & register::STATUS_MISSING_ACKNOWLEDGE == 0 {
                let length = if status & register::STATUS_READS_8_BYTES != 0 { 8 } else { 4 };
                return Ok(answer[6..6 + length].to_vec());
            }
        }
        Err(self.failed(&format!("its EEPROM does not answer at word {word:#06x}")))
    }

    /// Writes one word.
    pub(crate) fn write(&mut self, word: usize, bytes: [u8; 2]) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            self.exchange(Command::Apwr, register::DATA, &bytes)?;
            let answer = self.command(register::COMMAND_WRITE | register::CONTROL_WRITE_ENABLE, word)?;
            let status = u16::from_le_bytes([answer[0], answer[1]]);
            let refused = register::STATUS_MISSING_ACKNOWLEDGE | register::STATUS_WRITE_ENABLE_ERROR;
            if status & refused == 0 {
                return Ok(());
            }
        }
        Err(self.failed(&format!("its EEPROM does not take word {word:#06x}: it may be write-protected")))
    }

    /// Gives a command, and waits until it is done: control, address and data.
    fn command(&mut self, command: u16, word: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = command.to_le_bytes().to_vec();
        bytes.extend(u32::try_from(word).unwrap_or(u32::MAX).to_le_bytes());
        self.exchange(Command::Apwr, register::CONTROL, &bytes)?;
        let begin = Instant::now();
        loop {
            let answer = self.exchange(Command::Aprd, register::CONTROL, &[0; 14])?;
            if u16::from_le_bytes([answer[0], answer[1]]) & register::STATUS_BUSY == 0 {
                return Ok(answer);
            }
            if begin.elapsed() > LONGEST_BUSY {
                return Err(self.failed(&format!("its EEPROM stays busy at word {word:#06x}")));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// One datagram to the SubDevice, and its answer.
    fn exchange(&mut self, command: Command, register: u16, data: &[u8]) -> Result<Vec<u8>, Failure> {
        for _ in 0..ATTEMPTS {
            self.index = self.index.wrapping_add(1);
            let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
            let mut frame = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
            let address = Address::at_position(self.position, register);
            let header = DatagramHeader::new(command, self.index, address, data.len() as u16);
            frame.push_data(header, data);
            let length = frame.finish();
            self.link.transmit(&buffer[..length])?;
            let end = Instant::now() + REPLY;
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                let Some(length) = self.link.receive(&mut buffer, left)? else { break };
                let Ok(frame) = Frame::parse(&buffer[..length]) else { continue };
                let is_ours = |it: &ethercat::wire::frame::Datagram<'_>| {
                    (it.header.command, it.header.index, it.header.ado()) == (command, self.index, register)
                };
                if let Some(datagram) = frame.datagrams().find(is_ours) {
                    if datagram.working_counter == 1 {
                        return Ok(datagram.data.to_vec());
                    }
                    break;
                }
            }
        }
        Err(self.failed(&format!("register {register:#06x} does not answer: check power and cable")))
    }

    fn failed(&self, why: &str) -> Failure {
        Failure::new(format!("SubDevice {}: {why}", self.position))
    }
}

/// Bytes of the largest: 64 Ki words.
const LARGEST: usize = 128 * 1024;

/// Attempts at one word, and at one datagram.
const ATTEMPTS: usize = 5;

/// Longest wait for a reply.
const REPLY: Duration = Duration::from_millis(100);

/// Longest time an EEPROM may take for a word.
const LONGEST_BUSY: Duration = Duration::from_secs(1);
