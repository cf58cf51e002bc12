//! The bus of a running cycle, asked through its shared-memory interface.

use ethercat::main_device::{MailboxError, MailboxService};
use ethercat::sdo_abort::AbortCode;
use ethercat_linux::link::Owner;
use ipc::bus::{BusClient, BusError, BusStatus, Bytes, LatchInput, Outcome, Service};
use ipc::client::Client;
use onbeat::sub_devices::Described;

use super::entry::Unanswered;
use crate::arguments::Wire;
use crate::failure::Failure;
use crate::target::{cycle_of, say_whom};

/// A connection to the bus of a running cycle.
pub(crate) struct RunningBus {
    client: BusClient,
    described: Vec<Described>,
    /// Downloads are to be made also where the cycle relies on the object.
    force: bool,
}

impl RunningBus {
    /// The bus of the cycle attached to; said in a line.
    pub(crate) fn of(attached: &Client) -> Result<Self, Failure> {
        let mut client = attached.bus()?;
        let Outcome::SubDevices(found) = client.call(Service::Describe)? else {
            return Err(Failure::new("the running cycle does not describe its bus"));
        };
        let described = serde_json::from_value(found)?;
        say_whom(attached);
        Ok(Self { client, described, force: false })
    }

    /// The bus of the cycle that owns this interface, if it is a cycle of Onbeat that admits this
    /// user, and the requested work does not need the interface itself.
    pub(super) fn holding(wire: &Wire, owner: &Owner) -> Option<Self> {
        if wire.take_over || wire.capture.is_some() || wire.faults.any() {
            return None;
        }
        Self::of(&cycle_of(owner)?).ok()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.described.iter().map(|it| it.object.name.as_str()).collect()
    }

    pub(super) fn force(&mut self, force: bool) {
        self.force = force;
    }

    /// State of the bus now; with `errors` also the error counters, and receive times latched for
    /// it.
    pub(crate) fn status(&mut self, errors: bool) -> Result<BusStatus, Failure> {
        match self.client.call(Service::Status { errors, receive_times: errors })? {
            Outcome::Status(status) => Ok(*status),
            _ => Err(Failure::new("the running cycle does not report the state of its bus")),
        }
    }

    /// Latch inputs of a SubDevice.
    pub(super) fn latches(&mut self, position: u16) -> Result<[LatchInput; 2], Failure> {
        match self.client.call(Service::Latches { position })? {
            Outcome::Latches(inputs) => Ok(inputs),
            _ => Err(Failure::new("the running cycle does not report latch times")),
        }
    }

    /// Has the error counters of all SubDevices cleared.
    pub(super) fn clear_errors(&mut self) -> Result<(), Failure> {
        self.client.call(Service::ClearErrors)?;
        Ok(())
    }

    pub(super) fn described(&mut self) -> Result<Vec<Described>, Failure> {
        Ok(std::mem::take(&mut self.described))
    }

    /// One mailbox request.
    pub(super) fn ask(
        &mut self,
        position: u16,
        service: MailboxService,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, Unanswered> {
        let service = match service {
            MailboxService::Upload { index, sub_index, complete_access } => {
                Service::Upload { position, index, sub_index, complete_access }
            }
            MailboxService::Download { index, sub_index, complete_access } => Service::Download {
                position,
                index,
                sub_index,
                complete_access,
                data: Bytes(data),
                force: self.force,
            },
            MailboxService::ObjectList(list) => Service::ObjectList { position, list: list.0 },
            MailboxService::DescribeObject { index } => Service::DescribeObject { position, index },
            MailboxService::DescribeEntry { index, sub_index, value_info } => {
                Service::DescribeEntry { position, index, sub_index, value_info: value_info.0 }
            }
        };
        match self.client.call(service) {
            Ok(Outcome::Data(Bytes(data))) => Ok(data),
            Ok(_) => Ok(Vec::new()),
            Err(BusError::Refused { abort_code: Some(code), .. }) => {
                Err(MailboxError::Aborted(AbortCode(code)).into())
            }
            Err(error) => Err(Unanswered::Running(error.to_string())),
        }
    }
}
