//! Dispatch of one datagram to the addressed SubDevices, with its working counter (ETG.1000.4,
//! 5.4).

use ethercat::register::PHYSICAL_READ_WRITE_OFFSET;
use ethercat::time::Instant;
use ethercat::wire::{Command, DatagramHeader};

use super::Segment;
use super::stations::Hop;
use super::topology::Route;
use crate::esc::{Combine, Passage};

impl Segment {
    pub(super) fn process_datagram(
        &mut self,
        now: Instant,
        header: &mut DatagramHeader,
        data: &mut [u8],
        working_counter: &mut u16,
    ) {
        let hops = self.route.hops.len();
        let register = header.ado();
        let counted = match header.command {
            Command::Nop | Command::Unknown(_) => return,
            Command::Aprd | Command::Apwr | Command::Aprw => {
                let place = usize::from(header.adp().wrapping_neg());
                let counted = if place < hops {
                    self.physical(now, place, header.command, register, data)
                } else {
                    0
                };
                header.address = advanced(header, hops);
                counted
            }
            Command::Fprd | Command::Fpwr | Command::Fprw => {
                let Route { hops, addresses, .. } = &mut self.route;
                let mut counted = 0_u16;
                for entry in addresses.of_station(header.adp(), hops, &self.devices) {
                    let place = self.route.addresses.place(entry);
                    counted =
                        counted.wrapping_add(self.physical(now, place, header.command, register, data));
                }
                counted
            }
            Command::Brd | Command::Bwr | Command::Brw => {
                let counted = (0..hops).fold(0, |counted: u16, place| {
                    counted.wrapping_add(self.physical(now, place, header.command, register, data))
                });
                header.address = advanced(header, hops);
                counted
            }
            Command::Armw | Command::Frmw => {
                let counted = self.read_multiple_write(now, header, data);
                if header.command == Command::Armw {
                    header.address = advanced(header, hops);
                }
                counted
            }
            Command::Lrd | Command::Lwr | Command::Lrw => self.logical(now, header, data),
        };
        *working_counter = working_counter.wrapping_add(counted);
    }

    /// Executes a physical command at `place` on the path; the SubDevice there is addressed.
    fn physical(
        &mut self,
        now: Instant,
        place: usize,
        command: Command,
        register: u16,
        data: &mut [u8],
    ) -> u16 {
        let hop = &self.route.hops[place];
        let (passage, device) = (passage(now, hop), hop.device);
        let mut is_turned_to = self.devices[device].meet(now, command, register, data.len());
        let written_at = match command {
            Command::Aprw | Command::Fprw => {
                register.wrapping_add(self.devices[device].esc().memory().word(PHYSICAL_READ_WRITE_OFFSET))
            }
            _ => register,
        };
        if written_at != register {
            is_turned_to |= self.devices[device].meet(now, command, written_at, data.len());
        }
        let esc = self.devices[device].esc_mut();
        let combine =
            if matches!(command, Command::Brd | Command::Brw) { Combine::Or } else { Combine::Replace };
        let counted = match (command.reads(), command.writes()) {
            (true, false) => READ * u16::from(esc.read(&passage, register, data, combine)),
            (false, true) => READ * u16::from(esc.write(&passage, register, data)),
            _ if esc.features().refuses_physical_read_write() => 0,
            _ => {
                // Writes the data of the datagram, and returns the previous contents.
                let written = &mut self.scratch[..data.len()];
                written.copy_from_slice(data);
                let read = esc.read(&passage, register, data, combine);
                READ * u16::from(read) + WRITE * u16::from(esc.write(&passage, written_at, written))
            }
        };
        if is_turned_to {
            self.turned_to(device);
        }
        counted
    }

    /// One SubDevice provides the data, all others take it.
    fn read_multiple_write(&mut self, now: Instant, header: &DatagramHeader, data: &mut [u8]) -> u16 {
        let register = header.ado();
        let mut counted = 0_u16;
        let Route { hops, addresses, .. } = &mut self.route;
        let of_station = addresses.of_station(header.adp(), hops, &self.devices);
        for place in 0..self.route.hops.len() {
            let hop = &self.route.hops[place];
            let (passage, device) = (passage(now, hop), hop.device);
            let gives = match header.command {
                Command::Armw => header.adp().wrapping_add(place as u16) == 0,
                _ => of_station.clone().any(|entry| self.route.addresses.place(entry) == place),
            };
            let command = if gives { Command::Fprd } else { Command::Fpwr };
            let is_turned_to = self.devices[device].meet(now, command, register, data.len());
            let esc = self.devices[device].esc_mut();
            let done = if gives {
                esc.read(&passage, register, data, Combine::Replace)
            } else {
                esc.write(&passage, register, data)
            };
            counted = counted.wrapping_add(u16::from(done));
            if is_turned_to {
                self.turned_to(device);
            }
        }
        counted
    }

    fn logical(&mut self, now: Instant, header: &DatagramHeader, data: &mut [u8]) -> u16 {
        let (reads, writes) = (header.command.reads(), header.command.writes());
        let (read_weight, write_weight) = if reads && writes { (READ, WRITE) } else { (READ, READ) };
        let mut counted = 0_u16;
        let Route { hops, addresses, .. } = &mut self.route;
        for number in 0..addresses.find_logical(header.address, data.len(), hops, &self.devices) {
            let place = self.route.addresses.found(number);
            let hop = &self.route.hops[place];
            let (passage, device) = (passage(now, hop), hop.device);
            if reads && writes && self.devices[device].esc().features().refuses_lrw() {
                continue;
            }
            self.devices[device].wake(now);
            let esc = self.devices[device].esc_mut();
            if writes {
                let written = esc.logical_write(&passage, header.address, data);
                counted = counted.wrapping_add(write_weight * u16::from(written));
            }
            if reads {
                let read = esc.logical_read(&passage, header.address, data);
                counted = counted.wrapping_add(read_weight * u16::from(read));
            }
            self.turned_to(device);
        }
        counted
    }
}

/// Increment of the working counter for a read; also for the write of a command that only writes.
const READ: u16 = 1;
/// Increment for the write of a read-write command (ETG.1000.4, 5.4, Table 14).
const WRITE: u16 = 2;

/// Address after `hops` SubDevices, each of which has added one to the position.
fn advanced(header: &DatagramHeader, hops: usize) -> u32 {
    u32::from(header.adp().wrapping_add(hops as u16)) | u32::from(header.ado()) << 16
}

pub(super) fn passage(now: Instant, hop: &Hop) -> Passage {
    let arrival = Instant::from_nanos(now.as_nanos().saturating_add(hop.arrival));
    Passage { now: arrival, begun: now, ports: hop.ports }
}
