//! The drive behind its ESC: changes of state, process data and CoE.

use core::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::{State, StateMachine};
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;

use super::super::COMMUNICATION_LOSS;
use super::super::record::Taken;
use super::super::set_point::wrapped;
use super::{Activity, ServoDrive, Sync0};
use crate::application::{Application, ProcessDataLengths, Replies, StateChange, Sync0Event};

impl Application for ServoDrive {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.coe.lengths()
    }

    /// Restores origin and home, which are stored; the motor has coasted meanwhile, and the encoder knows
    /// the position.
    fn power_on(&mut self) {
        self.coe.power_on();
        self.machine = StateMachine::new();
        self.cascade.reset();
        self.activity = Activity::Off;
        self.settling = self.transition_time;
        self.fault = None;
        self.read_settings();
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.coe.enter(change);
        self.operational = change.to == AlState::Op;
        self.sync0 = change.sync0.filter(|sync0| sync0.cycle_nanoseconds > 0).map(|sync0| Sync0 {
            cycle: Duration::from_nanos(u64::from(sync0.cycle_nanoseconds)),
            running: false,
        });
        if change.from == AlState::Op {
            if matches!(self.machine.state(), State::OperationEnabled | State::QuickStopActive) {
                self.fault.get_or_insert(COMMUNICATION_LOSS);
            }
            // Commands of Op do not outlive it.
            for entry in
                [self.entries.controlword, self.entries.target_velocity, self.entries.target_torque]
            {
                self.coe.dictionary_mut().set(entry, 0);
            }
        }
        self.read_settings();
        Ok(())
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.run_until(now);
        self.shaft.set(self.plant.position());
        if self.sync0.is_none_or(|sync0| !sync0.running) {
            self.exchange(now, outputs, inputs);
        } else {
            // SDOs still take effect; process data waits for SYNC0.
            self.read_settings();
        }
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(sync0) = &mut self.sync0 {
            sync0.running = true;
        }
        self.run_until(event.now);
        self.exchange(event.now, outputs, inputs);
    }

    fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        Some(self)
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.show();
        self.coe.serve(request, replies)
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        self.coe.poll(replies);
    }
}

impl ServoDrive {
    /// Takes the present commands, and updates the inputs.
    fn exchange(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            self.coe.take_outputs(outputs);
        }
        self.read_settings();
        self.sample_target();
        self.show();
        self.coe.put_inputs(inputs);
        if let Some(record) = &self.record {
            record.add(self.taken(now));
        }
    }

    fn taken(&self, now: Instant) -> Taken {
        let (dictionary, entries) = (self.coe.dictionary(), &self.entries);
        Taken {
            now,
            operational: self.operational,
            controlword: self.settings.controlword,
            mode: self.mode,
            target_position: dictionary.get(entries.target_position) as i32,
            target_velocity: dictionary.get(entries.target_velocity) as i32,
            target_torque: dictionary.get(entries.target_torque) as i16,
            state: self.machine.state(),
            position: wrapped(self.counts()),
            velocity: self.plant.velocity() * self.scale.counts_per_radian,
        }
    }
}
