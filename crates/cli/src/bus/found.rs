//! The SubDevices on a bus as a robot file needs them: SIIs, process data, and the objects with
//! scales.

use std::collections::HashMap;

use ethercat::main_device::{MailboxError, MailboxService, SubDevice};
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::sii::Identity;
use ethercat::wire::coe::AccessRights;
use onbeat::sub_devices::{Described, PdoObject};
use robot::draft::Found;

use super::entry::{Entry, Unanswered, entry_service};
use super::{OwnBus, ToolBus};
use crate::failure::Failure;
use crate::object_address::ObjectAddress;

/// Requested entries of object dictionaries. SubDevices with the same identity share them.
type Entries = HashMap<([u32; 3], ObjectAddress), Option<Entry>>;

impl ToolBus {
    /// The SubDevices, with the answers to all questions that a draft has.
    pub(crate) fn found(&mut self) -> Result<Vec<Found>, Failure> {
        let mut all: Vec<Found> = match self {
            Self::Own(bus) => bus.main_device.sub_devices().iter().map(found).collect(),
            Self::Running(bus) => bus.described()?.iter().map(told).collect(),
        };
        let mut entries = Entries::new();
        for (position, it) in all.iter_mut().enumerate() {
            // There are at most 65535, as positions have 16 bits.
            let position = position as u16;
            self.answer_questions(position, it)?;
            if it.coe {
                self.describe_entries(position, it, &mut entries)?;
            }
        }
        Ok(all)
    }

    /// Asks until there are no questions. A SubDevice that does not answer is not asked again.
    fn answer_questions(&mut self, position: u16, found: &mut Found) -> Result<(), Failure> {
        let mut silent: Option<String> = None;
        loop {
            let questions = found.questions();
            if questions.is_empty() {
                let problem = silent.map(|why| format!("its objects are not read: {why}"));
                found.problem = found.problem.take().or(problem);
                return Ok(());
            }
            for (index, sub_index) in questions {
                let service = MailboxService::Upload { index, sub_index, complete_access: false };
                let answer = match &silent {
                    Some(why) => Err(String::clone(why)),
                    None => match self.ask(position, service, Vec::with_capacity(LONGEST_NUMBER)) {
                        Ok(bytes) => Ok(bytes),
                        Err(Unanswered::Mailbox(error @ MailboxError::Aborted(_))) => {
                            Err(error.to_string())
                        }
                        Err(Unanswered::Mailbox(error)) => Err(silent.insert(error.to_string()).clone()),
                        Err(Unanswered::Running(why)) => Err(silent.insert(why).clone()),
                        Err(why @ Unanswered::Bus(_)) => {
                            let object = ObjectAddress { index, sub_index };
                            return Err(self.refused(position, &format!("reading object {object}"), why));
                        }
                    },
                };
                found.objects.insert((index, sub_index), answer);
            }
        }
    }

    /// Asks for names and types of what is in its process data, as far as the SII does not have
    /// them, and whether the objects that a start-up would write can be.
    fn describe_entries(
        &mut self,
        position: u16,
        found: &mut Found,
        entries: &mut Entries,
    ) -> Result<(), Failure> {
        let Found { identity, mapping, objects, read_only, .. } = found;
        let kind = identity.map(|it| [it.vendor_id, it.product_code, it.revision]);
        let mut ask = |address: ObjectAddress| -> Result<Option<Entry>, Failure> {
            if let Some(known) = kind.and_then(|kind| entries.get(&(kind, address))) {
                return Ok(known.clone());
            }
            let answer = self.ask(position, entry_service(address), Vec::with_capacity(LONGEST_ENTRY));
            let entry = match answer {
                Ok(bytes) => Entry::parse(&bytes).ok(),
                Err(Unanswered::Mailbox(_) | Unanswered::Running(_)) => None,
                Err(why) => {
                    return Err(self.refused(position, &format!("reading object {address}"), why));
                }
            };
            if let Some(kind) = kind {
                entries.insert((kind, address), entry.clone());
            }
            Ok(entry)
        };
        let pdos = mapping.outputs.iter_mut().chain(&mut mapping.inputs);
        for it in pdos.flat_map(|pdo| &mut pdo.entries) {
            if it.index == 0 || (it.data_type != 0 && !it.name.trim().is_empty()) {
                continue;
            }
            let address = ObjectAddress { index: it.index, sub_index: it.sub_index };
            // The first that has no answer has no dictionary.
            let Some(entry) = ask(address)? else { break };
            if it.data_type == 0 {
                it.data_type = entry.data_type;
            }
            if it.name.trim().is_empty() {
                it.name = entry.name;
            }
        }
        let read = objects.iter().filter(|(_, answer)| answer.is_ok()).map(|(place, _)| *place);
        for (index, sub_index) in read.filter(|it| robot::draft::may_be_written(*it)) {
            let entry = ask(ObjectAddress { index, sub_index })?;
            if entry.is_some_and(|it| !it.access.contains(AccessRights::WRITE_PRE_OP)) {
                read_only.insert((index, sub_index));
            }
        }
        Ok(())
    }
}

impl OwnBus {
    /// Sentences on what is wrong with the SubDevices.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.main_device.sub_devices().iter().flat_map(SubDevice::remarks).collect()
    }
}

/// Room for the answers: numbers.
const LONGEST_NUMBER: usize = 64;

/// Room for the description of an entry.
const LONGEST_ENTRY: usize = 512;

fn found(it: &SubDevice) -> Found {
    let described = it.sii.as_ref().map(Found::of_image).unwrap_or_default();
    let problem = it.sii_problem.as_ref().or(it.mapping_error.as_ref());
    Found {
        identity: it.sii.is_some().then_some(it.identity),
        alias: it.information.alias,
        upstream: it.upstream.map(|upstream| (upstream.position, upstream.port)),
        mapping: it.mapping.clone(),
        coe: it.mailbox.is_some_and(|mailbox| mailbox.coe),
        clock_modes: if it.has_clock() { described.clock_modes } else { Vec::new() },
        problem: problem.map(ToString::to_string),
        ..described
    }
}

/// A SubDevice as a running cycle describes it.
fn told(Described { object: it, details, .. }: &Described) -> Found {
    let identity = Identity {
        vendor_id: it.vendor_id,
        product_code: it.product_code,
        revision: it.revision,
        serial: it.serial,
    };
    let pdos = |told: &[PdoObject]| told.iter().map(pdo).collect();
    Found {
        identity: Some(identity),
        name: it.name.clone(),
        alias: it.alias,
        upstream: it.upstream.as_ref().map(|upstream| (upstream.position, upstream.port)),
        mapping: PdoMapping { outputs: pdos(&it.outputs), inputs: pdos(&it.inputs) },
        coe: details.iter().any(|line| line.starts_with("mailbox ") && line.ends_with(", CoE")),
        has_untold_clock: it.delay_ns.is_some(),
        ..Found::default()
    }
}

fn pdo(told: &PdoObject) -> Pdo {
    let entries = told.entries.iter().map(|it| PdoEntry {
        index: it.index,
        sub_index: it.sub_index,
        bit_length: it.bits,
        data_type: 0,
        name: it.name.clone(),
    });
    let entries = entries.collect();
    Pdo { index: told.index, sync_manager: None, fixed: false, name: told.name.clone(), entries }
}
