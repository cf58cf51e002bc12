//! Objects of the SubDevices on a bus: read, written, listed.

use ethercat::main_device::{Event, MailboxError, MailboxRequest, MailboxService};
use ethercat_linux::bring_up::{BRING_UP_TIMEOUT, BringUpError};
use ipc::bus::LONGEST_OBJECT;

use super::dictionary::DictionaryItem;
use super::entry::{Entry, Unanswered, entry_service};
use super::listing::{Ended, Listing};
use super::{OwnBus, ToolBus};
use crate::failure::Failure;
use crate::object_address::ObjectAddress;

impl ToolBus {
    /// The bytes of an object (SDO upload).
    pub(crate) fn upload(&mut self, position: u16, object: ObjectAddress) -> Result<Vec<u8>, Failure> {
        let ObjectAddress { index, sub_index } = object;
        let service = MailboxService::Upload { index, sub_index, complete_access: false };
        self.ask(position, service, Vec::with_capacity(LONGEST_OBJECT))
            .map_err(|error| self.refused(position, &format!("reading object {object}"), error))
    }

    /// Writes an object (SDO download).
    pub(crate) fn download(
        &mut self,
        position: u16,
        object: ObjectAddress,
        value: &[u8],
        force: bool,
    ) -> Result<(), Failure> {
        let doing = format!("writing object {object}");
        if value.len() > LONGEST_OBJECT {
            let why = format!("{} bytes, expected at most {LONGEST_OBJECT}", value.len());
            return Err(self.failed(position, &doing, &why));
        }
        let ObjectAddress { index, sub_index } = object;
        let service = MailboxService::Download { index, sub_index, complete_access: false };
        if let Self::Running(bus) = self {
            bus.force(force);
        }
        self.ask(position, service, value.to_vec())
            .map(drop)
            .map_err(|error| self.refused(position, &doing, error))
    }

    /// All objects and their entries, appended to `items` as they come (SDO information). An answer
    /// that is refused, cut short or not given is listed too, and makes this fail at the end.
    pub(crate) fn list_objects(
        &mut self,
        position: u16,
        items: &mut Vec<DictionaryItem>,
    ) -> Result<(), Failure> {
        let ask = |service| self.ask(position, service, Vec::with_capacity(LONGEST_OBJECT));
        match Listing::new(ask, items).run() {
            Ok(0) => Ok(()),
            Ok(unread) => {
                let what = "could not be read; their lines say why, the others are whole";
                Err(self.failed(position, "listing the objects", &format!("{unread} descriptions {what}")))
            }
            Err(Ended { doing, why }) => Err(self.refused(position, &doing, why)),
        }
    }

    /// An entry as the SubDevice describes it (SDO information); `None` if it says nothing.
    pub(crate) fn entry(&mut self, position: u16, object: ObjectAddress) -> Result<Option<Entry>, Failure> {
        let answer = self.ask(position, entry_service(object), Vec::with_capacity(LONGEST_OBJECT));
        match answer.and_then(|bytes| Ok(Entry::parse(&bytes)?)) {
            Ok(entry) => Ok(Some(entry)),
            Err(Unanswered::Mailbox(_)) => Ok(None),
            Err(why) => Err(self.refused(position, &format!("reading object {object}"), why)),
        }
    }

    /// One mailbox request, to its outcome.
    pub(super) fn ask(
        &mut self,
        position: u16,
        service: MailboxService,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, Unanswered> {
        match self {
            Self::Own(bus) => bus.ask(position, service, data),
            Self::Running(bus) => bus.ask(position, service, data),
        }
    }

    pub(super) fn refused(&self, position: u16, doing: &str, why: Unanswered) -> Failure {
        if let Self::Own(bus) = self {
            let found = bus.main_device.sub_devices().get(usize::from(position));
            if let Some(problem) = found.and_then(|it| it.sii_problem.as_ref()) {
                return self.failed(position, doing, &problem.to_string());
            }
        }
        let what = match why {
            Unanswered::Mailbox(error @ MailboxError::Aborted(_)) => {
                format!("{error}; `onbeat sdo list` shows its objects and when each can be written")
            }
            Unanswered::Mailbox(error @ MailboxError::NoCoe) => {
                format!("{error}; only SubDevices with CoE have objects")
            }
            Unanswered::Mailbox(error) => error.to_string(),
            Unanswered::Bus(BringUpError::Stopped) => "interrupted before it had answered".to_owned(),
            Unanswered::Bus(BringUpError::TimedOut { timeout, .. }) => {
                format!("no answer within {timeout:?}; restart it")
            }
            Unanswered::Bus(error) => error.to_string(),
            Unanswered::Running(text) => text,
        };
        self.failed(position, doing, &what)
    }

    fn failed(&self, position: u16, doing: &str, what: &str) -> Failure {
        let names = self.names();
        let name = names.get(usize::from(position)).copied().unwrap_or_default();
        Failure::new(format!("SubDevice {position} \"{name}\", {doing}: {what}"))
    }
}

impl OwnBus {
    /// One mailbox request, from the queue to its outcome.
    fn ask(
        &mut self,
        position: u16,
        service: MailboxService,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, Unanswered> {
        self.main_device
            .submit(MailboxRequest { position, service, data })
            .map_err(|outcome| outcome.result.err().unwrap_or(MailboxError::NotReady))?;
        let outcome = self.pump().until(BRING_UP_TIMEOUT, |_, event| match event {
            Some(Event::Mailbox(outcome)) => Some(Ok(outcome)),
            Some(Event::Failed(error)) => Some(Err(error)),
            _ => None,
        });
        let outcome = outcome.map_err(Unanswered::Bus)?;
        let outcome = outcome.map_err(|error| Unanswered::Bus(error.into()))?;
        outcome.result?;
        Ok(outcome.request.data)
    }
}
