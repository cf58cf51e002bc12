//! One SubDevice of a bus: its identity, its objects, its process data.

use std::any::type_name;
use std::time::Duration;

use ethercat::main_device::{
    Event, Input, MailboxError, MailboxOutcome, MailboxRequest, Output, SubDevice,
};
use ethercat::pdo::{FieldError, ProcessValue};
use ethercat::sdo::{SdoValue, SdoValueError};

use super::{Bus, Error, SdoError};

/// One SubDevice of a [`Bus`]; only its methods access the SubDevice.
#[derive(Debug)]
pub struct SubDeviceOnBus<'a> {
    pub(super) bus: &'a mut Bus,
    pub(super) position: usize,
}

impl SubDeviceOnBus<'_> {
    /// Reads an object's entry.
    ///
    /// # Errors
    /// A bus that is not up, a SubDevice that is absent, aborts the transfer or does not answer, a
    /// value that is no `T`.
    pub fn sdo_read<T: SdoValue>(&mut self, index: u16, sub_index: u8) -> Result<T, Error> {
        let request = MailboxRequest::upload::<T>(self.address()?, index, sub_index);
        let outcome = self.transfer(request)?;
        let value = match outcome.result {
            // The value is longer than the type.
            Err(MailboxError::BufferTooSmall { needed, capacity }) => {
                Err(SdoValueError { found: needed, expected: capacity, wanted: type_name::<T>() }.into())
            }
            result => {
                result.map_err(SdoError::from).and_then(|()| Ok(T::from_bytes(&outcome.request.data)?))
            }
        };
        value.map_err(|error| self.sdo_error(index, sub_index, error))
    }

    /// Writes an object's entry.
    ///
    /// # Errors
    /// As [`SubDeviceOnBus::sdo_read`].
    pub fn sdo_write<T: SdoValue>(&mut self, index: u16, sub_index: u8, value: T) -> Result<(), Error> {
        let request = MailboxRequest::download(self.address()?, index, sub_index, &value);
        let outcome = self.transfer(request)?;
        outcome.result.map_err(|error| self.sdo_error(index, sub_index, error.into()))
    }

    /// Resolves an input, to be read in each cycle.
    ///
    /// # Errors
    /// A bus that is not up, a SubDevice that is not there, an object that is no such input.
    pub fn input<T: ProcessValue>(&self, index: u16, sub_index: u8) -> Result<Input<T>, Error> {
        self.information()?.input(index, sub_index).map_err(|error| self.process_data_error(error))
    }

    /// Resolves an output, to be set in each cycle.
    ///
    /// # Errors
    /// As [`SubDeviceOnBus::input`].
    pub fn output<T: ProcessValue>(&self, index: u16, sub_index: u8) -> Result<Output<T>, Error> {
        self.information()?.output(index, sub_index).map_err(|error| self.process_data_error(error))
    }

    /// Identity, name, state, mapping: all that is known of it.
    ///
    /// # Errors
    /// A bus that is not up, a SubDevice that is not there.
    pub fn information(&self) -> Result<&SubDevice, Error> {
        let sub_devices = self.bus.main_device.as_ref().ok_or(Error::NotUp)?.sub_devices();
        let missing = Error::NoSubDevice { position: self.position, count: sub_devices.len() };
        sub_devices.get(self.position).ok_or(missing)
    }

    fn address(&self) -> Result<u16, Error> {
        self.information().map(|it| it.position)
    }

    fn name(&self) -> String {
        self.information().map_or_else(|_| String::new(), |it| it.name.clone())
    }

    fn transfer(&mut self, request: MailboxRequest) -> Result<MailboxOutcome, Error> {
        let address = request.position;
        let main_device = self.bus.main_device.as_mut().ok_or(Error::NotUp)?;
        if let Err(refused) = main_device.submit(request) {
            return Ok(refused);
        }
        self.bus.pump(|pump| {
            pump.until(TIMEOUT, |_, event| match event {
                Some(Event::Mailbox(outcome)) if outcome.request.position == address => Some(Ok(outcome)),
                Some(Event::Failed(error)) => Some(Err(Error::Bus(error))),
                _ => None,
            })
        })?
    }

    fn sdo_error(&self, index: u16, sub_index: u8, error: SdoError) -> Error {
        Error::Sdo { position: self.position, name: self.name(), index, sub_index, error }
    }

    fn process_data_error(&self, error: FieldError) -> Error {
        Error::ProcessData { position: self.position, name: self.name(), error }
    }
}

/// Backstop: the MainDevice ends each transfer in its own, shorter time.
const TIMEOUT: Duration = Duration::from_secs(600);
