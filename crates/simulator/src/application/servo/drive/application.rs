//! The drive behind its ESC: changes of state, process data and CoE.

use core::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;

use super::ServoDrive;
use crate::application::{
    Application, ProcessDataLengths, Replies, StateChange, Sync0Event, Synchronisation,
    SynchronisationState,
};

impl Application for ServoDrive {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.coe.lengths()
    }

    fn power_on(&mut self) {
        self.coe.power_on();
        self.history_seen = 0;
        for axis in &mut self.axes {
            axis.power_on(self.coe.dictionary_mut());
        }
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.coe.enter(change);
        let sync0 = change.sync0.filter(|sync0| sync0.cycle_nanoseconds > 0);
        let cycle = sync0.map(|sync0| Duration::from_nanos(u64::from(sync0.cycle_nanoseconds)));
        self.sync0 = cycle.map(|_| false);
        for axis in &mut self.axes {
            axis.enter(change.to == AlState::Op, cycle, self.coe.dictionary_mut());
        }
        Ok(())
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.run_until(now);
        if self.sync0 == Some(true) {
            // SDOs still take effect; process data waits for SYNC0.
            self.read_settings();
        } else {
            self.exchange(now, outputs, inputs);
        }
    }

    fn rests(&self) -> bool {
        let dictionary = self.coe.dictionary();
        self.axes.iter().all(|axis| axis.rests_unseen(dictionary)) && !self.coe.has_messages()
    }

    fn waits_for_sync0(&self) -> bool {
        let dictionary = self.coe.dictionary();
        self.sync0 == Some(true)
            && self.axes.iter().all(|axis| axis.waits(dictionary))
            && !self.coe.has_messages()
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.sync0 = self.sync0.map(|_| true);
        self.run_until(event.now);
        self.exchange(event.now, outputs, inputs);
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        Some(self.coe.synchronisation())
    }

    fn show_synchronisation(&mut self, shown: Option<&SynchronisationState>) {
        self.coe.show_synchronisation(shown);
    }

    fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        Some(self)
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        for axis in &mut self.axes {
            axis.show(self.coe.dictionary_mut());
        }
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
        for axis in &mut self.axes {
            axis.exchange(self.coe.dictionary_mut());
        }
        self.clear_forgotten_errors();
        self.coe.put_inputs(inputs);
        for axis in &self.axes {
            axis.note(now, self.coe.dictionary());
        }
    }
}
