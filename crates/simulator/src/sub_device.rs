//! SubDevice: an ESC, the state machine behind it, and an application.
//!
//! Simplifications: the device identification value (AL control bit 5) is not answered. Bootstrap
//! serves no protocol.

mod mailbox;
mod rest;
mod setup;
mod state_machine;
mod synchronisation;

use core::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::register;
use ethercat::time::Instant;

use crate::application::{
    Application, DigitalInputs, ProcessDataLengths, ServoDrive, StateChange, Sync0Configuration, Sync0Event,
};
use crate::esc::{Esc, EscDescription, SyncSignal};

use mailbox::MailboxServer;
use state_machine::Decision;
use synchronisation::Supervision;

/// Time between two steps of an application.
pub const STEP: Duration = Duration::from_micros(250);

/// Time for which a change to Op waits for outputs before it is refused.
pub const OUTPUTS_TIMEOUT: Duration = Duration::from_millis(200);

/// Steps after which a slave stack notices that a SyncManager was switched. An earlier request for
/// a state is served first.
const SETUP_CHECK: u8 = 2;

/// Longest time that is caught up in steps; earlier steps are skipped, after a standstill or a leap
/// of the clock.
const LONGEST_CATCH_UP: Duration = Duration::from_secs(1);

/// Place that keeps an EEPROM's contents while the simulation does not run.
pub trait SiiStore: Send {
    /// Takes the contents after a write by the fieldbus. It may not block.
    fn store(&mut self, image: &[u8]);
}

/// One simulated SubDevice.
pub struct SubDevice {
    esc: Esc,
    sii_store: Option<Box<dyn SiiStore>>,
    application: Box<dyn Application>,
    application_runs: bool,
    mailbox_runs: bool,
    refused: Option<(AlState, AlStatusCode)>,
    bootstrap: bool,
    state: AlState,
    mailbox: MailboxServer,
    lengths: ProcessDataLengths,
    outputs: Vec<u8>,
    inputs: Vec<u8>,
    /// Deadline of a change to Op that waits for outputs.
    awaits_outputs: Option<Instant>,
    /// True while output SyncManagers work: in Op, and in SafeOp until Op was left.
    takes_outputs: bool,
    /// Steps until SyncManagers that were switched are checked.
    setup_check: Option<u8>,
    /// Supervision of SYNC0, from SafeOp on, of an application that follows it.
    supervision: Option<Supervision>,
    /// First step that was not made.
    next_step: Instant,
    /// Steps would change nothing, or SYNC0 makes up for them: they are left out.
    rests: bool,
    /// SYNC0, or the next step, makes up for omitted steps.
    makes_up: bool,
    /// Its application was stepped, and nothing but mail has turned to that since.
    was_stepped: bool,
}

impl SubDevice {
    /// A SubDevice with an ESC of `description`, the EEPROM contents `sii`, and `application`.
    ///
    /// `sii` may be cut short or have a wrong checksum: like a real ESC, it then reports this in
    /// its SII status and does not load the configuration area.
    #[must_use]
    pub fn new(description: EscDescription, sii: Vec<u8>, application: Box<dyn Application>) -> Self {
        let esc = Esc::new(description, sii, Instant::EPOCH);
        Self {
            esc,
            sii_store: None,
            application,
            application_runs: true,
            mailbox_runs: true,
            refused: None,
            bootstrap: false,
            state: AlState::Init,
            mailbox: MailboxServer::default(),
            lengths: ProcessDataLengths::default(),
            outputs: Vec::new(),
            inputs: Vec::new(),
            awaits_outputs: None,
            takes_outputs: false,
            setup_check: None,
            supervision: None,
            next_step: Instant::EPOCH,
            rests: false,
            makes_up: false,
            was_stepped: false,
        }
    }

    /// A SubDevice with a default ESC and the EEPROM contents `sii`.
    #[must_use]
    pub fn from_sii(sii: &[u8], application: Box<dyn Application>) -> Self {
        Self::new(EscDescription::default(), sii.to_vec(), application)
    }

    /// Has `store` keep what the fieldbus writes to the EEPROM.
    #[must_use]
    pub fn with_sii_store(mut self, store: Box<dyn SiiStore>) -> Self {
        self.sii_store = Some(store);
        self
    }

    /// Makes it accept Bootstrap.
    #[must_use]
    pub fn with_bootstrap(mut self) -> Self {
        self.bootstrap = true;
        self
    }

    /// AL status register.
    #[must_use]
    pub fn al_status(&self) -> AlStatus {
        self.esc.al_status()
    }

    /// AL status code register.
    #[must_use]
    pub fn al_status_code(&self) -> AlStatusCode {
        AlStatusCode(self.esc.memory().word(register::AL_STATUS_CODE))
    }

    /// Local copy of the system time at `now`, in ns.
    #[must_use]
    pub fn system_time(&self, now: Instant) -> u64 {
        self.esc.system_time(now)
    }

    /// Copies memory and registers from `address` on into `target`, without effect on the ESC.
    /// Addresses wrap behind 0xFFFF.
    pub fn peek(&self, address: u16, target: &mut [u8]) {
        self.esc.memory().copy_to(address, target);
    }

    /// Contents of the EEPROM.
    #[must_use]
    pub fn sii(&self) -> &[u8] {
        self.esc.sii().image()
    }

    /// The digital inputs behind the ESC, if it is a terminal with digital inputs.
    pub fn digital_inputs_mut(&mut self) -> Option<&mut DigitalInputs> {
        self.was_stepped = false;
        self.application.digital_inputs_mut()
    }

    /// The servo drive behind the ESC, if there is one.
    pub fn servo_mut(&mut self) -> Option<&mut ServoDrive> {
        self.was_stepped = false;
        self.application.servo_mut()
    }

    /// Stops the application, like a crashed microcontroller, or resumes it. While stopped it
    /// serves no state request or mailbox message, and the PDI watchdog expires.
    pub fn set_application_runs(&mut self, runs: bool) {
        self.application_runs = runs;
    }

    /// True if its SII has a mailbox.
    #[must_use]
    pub fn has_mailbox(&self) -> bool {
        setup::has_mailbox(&self.esc)
    }

    /// True if its ESC has a distributed clock.
    #[must_use]
    pub fn has_clock(&self) -> bool {
        self.esc.features().distributed_clocks()
    }

    /// Stops the mailbox, like firmware that hangs in a request, or resumes it. While stopped a
    /// request stays in its SyncManager without an answer; states and process data continue.
    pub fn set_mailbox_runs(&mut self, runs: bool) {
        self.mailbox_runs = runs;
    }

    /// Refuses every change to a state with this AL status code; `None` refuses none. Init cannot
    /// be refused.
    pub fn refuse_state(&mut self, refused: Option<(AlState, AlStatusCode)>) {
        self.refused = refused.filter(|(state, _)| *state != AlState::Init);
    }

    /// Replaces the EEPROM: blank, cut short, with a wrong checksum. Reads show it at once; the ESC
    /// loads its own configuration from it at power-on or on a reload.
    pub fn set_sii(&mut self, image: Vec<u8>) {
        self.esc.set_sii(image);
    }

    /// Sets whether a port latches its receive time (0x0900 and up). If not, the register keeps the
    /// time that it holds: 0 after power-on.
    pub fn set_receive_time_latches(&mut self, port: usize, latches: bool) {
        self.esc.set_receive_time_latches(port, latches);
    }

    /// Makes the process data watchdog expire at the next step, with or without outputs.
    pub fn expire_watchdog(&mut self) {
        self.esc.expire_process_data_watchdog();
    }

    /// Sets the level of a latch input, and of the application's input at the same pin.
    pub(crate) fn set_latch(&mut self, now: Instant, input: usize, high: bool) {
        self.was_stepped = false;
        self.application.set_latch_input(input, high);
        self.esc.set_latch(now, input, high);
    }

    pub(crate) fn esc(&self) -> &Esc {
        &self.esc
    }

    pub(crate) fn esc_mut(&mut self) -> &mut Esc {
        &mut self.esc
    }

    /// Powers on at `now`.
    pub(crate) fn power_on(&mut self, now: Instant) {
        self.keep_sii(now);
        self.esc = self.esc.restarted(now);
        if self.state != AlState::Init {
            self.go(AlState::Init);
        }
        self.setup_check = None;
        self.application.power_on();
        (self.next_step, self.rests, self.was_stepped) = (now, false, false);
    }

    /// Executes all events due up to `now`, in the order of time.
    pub(crate) fn advance(&mut self, now: Instant) {
        if !self.wake_if_due(now) {
            return;
        }
        if now.since(self.next_step) > LONGEST_CATCH_UP {
            let steps = now.since(self.next_step).as_nanos() / STEP.as_nanos();
            self.next_step = self.next_step + Duration::from_nanos((steps * STEP.as_nanos()) as u64);
            let sync0_came = self.esc.sync_due().is_some_and(|(_, due)| due <= now);
            self.esc.skip_sync(now);
            self.supervision.iter_mut().for_each(|it| it.leap(now, sync0_came));
        }
        while self.wake_if_due(now) {
            match self.esc.sync_due() {
                Some((signal, due)) if due <= now && due < self.next_step => {
                    self.sync(signal, due);
                    self.settle();
                }
                _ if self.next_step <= now => {
                    self.step(self.next_step);
                    self.next_step = self.next_step + STEP;
                    self.settle();
                }
                _ => break,
            }
        }
    }

    fn keep_sii(&mut self, now: Instant) {
        if self.esc.take_sii_written(now) {
            self.sii_store.iter_mut().for_each(|store| store.store(self.esc.sii().image()));
        }
    }

    fn step(&mut self, now: Instant) {
        self.keep_sii(now);
        if self.esc.take_reset_request() {
            self.power_on(now);
        }
        self.esc.end_temporary_loops(now);
        let expired = self.esc.process_data_watchdog_expires(now);
        if !self.application_runs {
            self.esc.application_watchdog_expires(now);
            return;
        }
        self.esc.application_alive(now);
        if expired && self.state == AlState::Op && !self.esc.emulates_device() {
            self.fall(AlState::SafeOp, AlStatusCode::SYNC_MANAGER_WATCHDOG);
        }
        if self.state == AlState::Op && !self.sync0_runs(now) {
            self.fall(AlState::SafeOp, AlStatusCode::FATAL_SYNC);
        }
        self.serve_state(now);
        if self.mailbox_runs && matches!(self.state, AlState::PreOp | AlState::SafeOp | AlState::Op) {
            self.mailbox.serve(&mut self.esc, self.application.as_mut());
        }
        if self.steps_in_vain() {
            return;
        }
        self.step_application(now);
    }

    /// True if its application is plain logic, which follows each frame.
    pub(crate) fn is_logic(&self) -> bool {
        self.application.is_logic()
    }

    /// A frame has passed at `now`: logic follows the outputs that it has brought, and the levels
    /// outside.
    pub(crate) fn follow(&mut self, now: Instant) {
        if self.state == AlState::Op && self.application_runs {
            self.step_application(now);
        }
    }

    fn step_application(&mut self, now: Instant) {
        let outputs_valid = self.take_outputs();
        let outputs = outputs_valid.then_some(self.outputs.as_slice());
        self.application.step(now, outputs, &mut self.inputs);
        self.was_stepped = true;
        for (input, high) in self.application.latch_inputs().into_iter().flatten().enumerate() {
            self.esc.set_latch(now, input, high);
        }
        self.give_inputs();
    }

    fn sync(&mut self, signal: SyncSignal, due: Instant) {
        let Some(system_time) = self.esc.take_sync(signal) else { return };
        if !self.application_runs || !matches!(self.state, AlState::SafeOp | AlState::Op) {
            return;
        }
        if signal == SyncSignal::Sync0 {
            self.supervise(due);
        }
        let outputs_valid = self.take_outputs();
        let outputs = outputs_valid.then_some(self.outputs.as_slice());
        let event = Sync0Event { now: due, system_time };
        match signal {
            SyncSignal::Sync0 => self.application.sync0(event, outputs, &mut self.inputs),
            SyncSignal::Sync1 => self.application.sync1(event, outputs, &mut self.inputs),
        }
        self.give_inputs();
    }

    fn serve_state(&mut self, now: Instant) {
        let request = self.esc.take_state_request();
        if self.esc.emulates_device() {
            // The ESC has changed AL status by itself; the application can only follow.
            if self.esc.take_sync_managers_switched() || request.is_some() {
                let shown = self.esc.al_status().al_state().unwrap_or(AlState::Init);
                self.lengths = setup::lengths(&self.esc);
                if shown == self.state { self.arrive(shown) } else { self.go(shown) }
            }
            return;
        }
        if self.esc.take_sync_managers_switched() {
            self.setup_check = Some(SETUP_CHECK);
        }
        // A request comes first: a MainDevice that requests Init may clear SyncManagers before and
        // after.
        if let Some(control) = request {
            let shown = self.esc.al_status();
            self.awaits_outputs = None;
            match state_machine::decide(self.state, shown.error, control, self.bootstrap) {
                Decision::Ignore => {}
                Decision::Stay => self.show(AlStatusCode::NO_ERROR),
                Decision::Refuse(code) => self.show(code),
                Decision::Enter(to) => self.enter(to, now),
            }
        }
        self.setup_check = match self.setup_check {
            Some(0) => {
                self.check_setup_again();
                None
            }
            waits => waits.map(|steps| steps - 1),
        };
        // SyncManagers must be open for the outputs that are awaited.
        self.switch_sync_managers();
        if let Some(deadline) = self.awaits_outputs {
            self.await_outputs(now, deadline);
            self.switch_sync_managers();
        }
    }

    fn switch_sync_managers(&mut self) {
        let outputs = self.takes_outputs || self.awaits_outputs.is_some();
        setup::switch_sync_managers(&mut self.esc, self.state, outputs);
    }

    /// Checks the conditions of `to`, and enters it or shows the error.
    fn enter(&mut self, to: AlState, now: Instant) {
        if let Some((_, code)) = self.refused.filter(|(refused, _)| *refused == to) {
            return self.show(code);
        }
        let upwards = to > self.state || self.state == AlState::Init;
        if matches!(to, AlState::PreOp | AlState::Bootstrap) {
            if let Err(code) = setup::check_mailbox(&self.esc, to) {
                return self.fall(AlState::Init, code);
            }
        }
        if upwards && matches!(to, AlState::SafeOp | AlState::Op) {
            self.application.arrange(&setup::lengths_of_each(&self.esc));
            match setup::check_process_data(&self.esc, self.application.process_data_lengths()) {
                Ok(lengths) => self.lengths = lengths,
                Err(code) => return self.fall(AlState::PreOp, code),
            }
        }
        if to == AlState::SafeOp && upwards {
            let watched = self.lengths.outputs > 0;
            match synchronisation::supervision(&self.esc, self.application.synchronisation(), watched) {
                Ok(supervision) => {
                    self.supervision = supervision;
                    self.esc.take_output_events();
                }
                Err(code) => return self.fall(AlState::PreOp, code),
            }
        }
        if to == AlState::Op && (setup::watches_outputs(&self.esc) || self.supervision.is_some()) {
            // The application is called once outputs and SYNC0 flow; an error was acknowledged.
            self.supervision.iter_mut().for_each(Supervision::restart);
            self.show(AlStatusCode::NO_ERROR);
            self.awaits_outputs = Some(now + OUTPUTS_TIMEOUT);
            return;
        }
        self.ask_and_go(to);
    }

    fn ask_and_go(&mut self, to: AlState) {
        let upwards = to > self.state || self.state == AlState::Init;
        let change = self.change_to(to);
        match self.application.enter(&change) {
            Err(code) if upwards => self.show(code),
            _ => {
                self.arrive(to);
                self.show(AlStatusCode::NO_ERROR);
            }
        }
    }

    /// Completes a change to Op once outputs have arrived, or refuses it after the timeout.
    fn await_outputs(&mut self, now: Instant, deadline: Instant) {
        let runs = self.sync0_runs(now);
        let flow = !setup::watches_outputs(&self.esc)
            || setup::outputs_came(&self.esc) && self.esc.process_data_watchdog_ok();
        if runs && flow {
            self.awaits_outputs = None;
            self.ask_and_go(AlState::Op);
        } else if now >= deadline {
            self.awaits_outputs = None;
            self.show(if runs { AlStatusCode::SYNC_MANAGER_WATCHDOG } else { AlStatusCode::NO_SYNC });
        }
    }

    /// Falls to the highest state still allowed, after a SyncManager was switched while in use.
    fn check_setup_again(&mut self) {
        if matches!(self.state, AlState::PreOp | AlState::SafeOp | AlState::Op) {
            if let Err(code) = setup::check_mailbox(&self.esc, self.state) {
                return self.fall(AlState::Init, code);
            }
        }
        if matches!(self.state, AlState::SafeOp | AlState::Op) {
            if let Err(code) = setup::check_process_data(&self.esc, self.application.process_data_lengths())
            {
                self.fall(AlState::PreOp, code);
            }
        }
    }

    /// Falls to `to`, if that is below, without a request, and shows the reason.
    fn fall(&mut self, to: AlState, code: AlStatusCode) {
        if to != self.state {
            self.go(to);
        }
        self.awaits_outputs = None;
        self.show(code);
    }

    fn go(&mut self, to: AlState) {
        let change = self.change_to(to);
        // It cannot be refused.
        let _ = self.application.enter(&change);
        self.arrive(to);
    }

    fn arrive(&mut self, to: AlState) {
        if matches!(to, AlState::Init | AlState::Bootstrap) || self.state == AlState::Init {
            self.mailbox.reset();
        }
        if matches!(to, AlState::Init | AlState::PreOp | AlState::Bootstrap) {
            self.lengths = ProcessDataLengths::default();
            if self.supervision.take().is_some() {
                self.application.show_synchronisation(None);
            }
        }
        self.awaits_outputs = None;
        self.takes_outputs = match to {
            AlState::Op => true,
            // After Op they stay off until the next request for Op.
            AlState::SafeOp if self.state == AlState::Op => false,
            AlState::SafeOp => self.state != AlState::SafeOp || self.takes_outputs,
            _ => false,
        };
        self.outputs.resize(self.lengths.outputs, 0);
        self.inputs.resize(self.lengths.inputs, 0);
        self.state = to;
        if let Some(supervision) = &self.supervision {
            self.application.show_synchronisation(Some(supervision.state()));
        }
    }

    fn change_to(&mut self, to: AlState) -> StateChange {
        self.was_stepped = false;
        let sync0 =
            self.esc.sync0_cycle().map(|cycle_nanoseconds| Sync0Configuration { cycle_nanoseconds });
        let running = matches!(to, AlState::SafeOp | AlState::Op);
        let lengths = if running { self.lengths } else { ProcessDataLengths::default() };
        StateChange { from: self.state, to, lengths, sync0 }
    }

    fn show(&mut self, code: AlStatusCode) {
        let error = code != AlStatusCode::NO_ERROR;
        self.esc.set_al_status(AlStatus { error, ..AlStatus::in_state(self.state) }, code);
    }

    /// Takes the newest outputs; `false` if they must not be used.
    fn take_outputs(&mut self) -> bool {
        let safe = self.state != AlState::Op
            || self.esc.emulates_device()
                && setup::watches_outputs(&self.esc)
                && !self.esc.process_data_watchdog_ok();
        !safe && setup::take_outputs(&mut self.esc, &mut self.outputs)
    }

    fn give_inputs(&mut self) {
        if matches!(self.state, AlState::SafeOp | AlState::Op) {
            setup::give_inputs(&mut self.esc, &self.inputs);
        }
    }
}
