//! The events of a cycle: events of the bus, and changes from cycle to cycle.

use ethercat::main_device::{BringUpPhase, Event, MainDevice, SubDevice};
use ethercat::time::Instant;

use super::Cycle;
use crate::axis::Named;
use crate::observer::{CycleEvent, Happening};
use ethercat_linux::link::Link;
use rt::clock::Clock;

impl<L: Link, C: Clock> Cycle<L, C> {
    /// Passes an event of the bus to the parts it concerns.
    pub(super) fn pass_on(&mut self, cycle: u64, event: Event) {
        match event {
            Event::Failed(error) => {
                self.failure = Some(error.clone());
                self.tell(cycle, Happening::Bus(Event::Failed(error)));
            }
            Event::Mailbox(outcome) => match self.fault_codes.take(outcome) {
                Ok(None) => {}
                Ok(Some(named)) => {
                    self.axes.note_error_code(named);
                    let Named { axis, code, .. } = named;
                    let position = self.axes.sub_device(axis);
                    self.tell(cycle, Happening::DriveFault { axis, position, code });
                }
                Err(outcome) => {
                    let others = match &mut self.bus {
                        Some(bus) => bus.take(outcome),
                        None => Some(outcome),
                    };
                    if let Some(outcome) = others {
                        self.tell(cycle, Happening::Bus(Event::Mailbox(outcome)));
                    }
                }
            },
            Event::Emergency { position, error_code, .. } => {
                self.axes.note_emergency(usize::from(position), error_code);
                self.tell(cycle, Happening::Bus(event));
            }
            // It cannot be lost later, and is not enabled without a request when it joins.
            Event::Absent { position } => {
                self.axes.lose_power(usize::from(position));
                self.tell(cycle, Happening::Bus(event));
            }
            Event::StateChanged { position, .. } => {
                self.axes.lose_drive(usize::from(position));
                self.tell(cycle, Happening::Bus(event));
            }
            Event::Reconfiguring { position } => {
                self.axes.forget_place(usize::from(position));
                self.tell(cycle, Happening::Bus(event));
            }
            event => self.tell(cycle, Happening::Bus(event)),
        }
    }

    /// Error codes of drives in fault.
    pub(super) fn look_at_faults(&mut self, cycle: u64) {
        self.fault_codes.ask(&self.axes, &mut self.main_device);
        for axis in 0..self.axes.reports().len() {
            if let Some(code) = self.fault_codes.shown(axis, &self.axes) {
                let position = self.axes.sub_device(axis);
                self.tell(cycle, Happening::DriveFault { axis, position, code });
            }
        }
    }

    /// Positions that a person gives an axis.
    pub(super) fn take_positions(&mut self) {
        let asked = self.ipc.as_mut().and_then(|ipc| ipc.references.poll());
        let Some((number, given, by)) = asked else { return };
        let outcome = self.axes.give_position(given);
        if let Some(ipc) = &mut self.ipc {
            ipc.references.answer(number, outcome);
        }
        self.tell(self.record.cycle, Happening::PositionGiven { given, outcome, by });
    }

    /// States of the SubDevices, and their changes.
    pub(super) fn watch_sub_devices(&mut self, cycle: u64) {
        let (at, now) = (self.now(), self.bus_now());
        let publisher = &mut self.publisher;
        let main_device = &self.main_device;
        let mut tell = |what, place: usize| {
            let cable = main_device.sub_devices().get(place).and_then(SubDevice::cable);
            publisher.event(CycleEvent { cycle, at, cable, what });
        };
        self.watch.look_at_sub_devices(now, main_device, &mut self.status.sub_devices, &mut tell);
    }

    /// Reports changes of the link.
    pub(super) fn watch_link(&mut self, cycle: u64) {
        let at = self.now();
        let publisher = &mut self.publisher;
        let mut tell = |what| publisher.event(CycleEvent { cycle, at, cable: None, what });
        self.watch.look_at_link(&mut tell);
        let (ring, status) = (self.link.ring(), &mut self.status.ring);
        self.watch.look_at_ring(cycle, ring, &self.main_device, status, &mut tell);
    }

    /// States of the axes, and their changes.
    pub(super) fn watch_axes(&mut self, cycle: u64) {
        if self.status.phase != BringUpPhase::Op {
            // During the bring-up axes cannot be enabled yet, so nothing is reported.
            return;
        }
        let at = self.now();
        let publisher = &mut self.publisher;
        let mut tell = |what| publisher.event(CycleEvent { cycle, at, cable: None, what });
        self.watch.look_at_axes(self.axes.reports(), &mut tell);
    }

    pub(super) fn tell(&mut self, cycle: u64, what: Happening) {
        let at = self.now();
        self.publisher.event(happened(cycle, at, what, &self.main_device));
    }
}

/// An event with the cable that it is about.
fn happened(cycle: u64, at: Instant, what: Happening, main_device: &MainDevice) -> CycleEvent {
    let position = match what {
        Happening::Bus(
            Event::StateChanged { position, .. }
            | Event::SyncMissed { position, .. }
            | Event::Stranger { expected: Some(position), .. }
            | Event::Unreachable { position }
            | Event::Joined { position }
            | Event::Reconfiguring { position }
            | Event::Recovered { position, .. }
            | Event::NotRecovered { position, .. },
        ) => Some(usize::from(position)),
        _ => None,
    };
    let sub_device = position.and_then(|position| main_device.sub_devices().get(position));
    CycleEvent { cycle, at, cable: sub_device.and_then(SubDevice::cable), what }
}
