//! Device of which only the PDOs are known: outputs are stored, inputs return the values set by
//! code.

use ethercat::pdo::PdoMapping;
use ethercat::sdo_abort::AbortCode;
use ethercat::sii::{Image, MailboxProtocols};
use ethercat::time::Instant;

use super::coe_application::CoeApplication;
use super::description::{DescriptionError, add_mapping};
use super::sii::pdos;
use crate::coe::{CoeDevice, DeviceDescription, ObjectDictionary, common};

/// A device with the mapping of an SII image or a robot file.
///
/// Its dictionary has the common objects and one entry for each mapped object, typed by its length.
/// PDOs that are not fixed can be remapped from these.
#[derive(Clone, Debug)]
pub struct GenericDevice {
    coe: CoeDevice,
    serves_coe: bool,
}

impl GenericDevice {
    /// A device with `mapping`. Where `serves_coe` is false, the mailbox answers CoE as not
    /// supported.
    ///
    /// # Errors
    /// [`DescriptionError::MappedLength`] if an object is mapped twice with different lengths, or a
    /// common object with another than its own; [`DescriptionError::PdoIndex`].
    pub fn new(
        device: &DeviceDescription,
        mapping: &PdoMapping,
        serves_coe: bool,
    ) -> Result<Self, DescriptionError> {
        let mut dictionary = common::dictionary(device);
        add_mapping(&mut dictionary, mapping, MAPPING_CAPACITY)?;
        Ok(Self { coe: CoeDevice::new(dictionary), serves_coe })
    }

    /// A device with the PDOs of `image`, with CoE if the image declares it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_sii(image: &Image) -> Result<Self, DescriptionError> {
        let serves_coe = image.header.mailbox_protocols().contains(MailboxProtocols::COE);
        Self::new(&DeviceDescription::from_sii(image), &pdos(image), serves_coe)
    }

    /// Object dictionary, with the outputs received last.
    #[must_use]
    pub fn dictionary(&self) -> &ObjectDictionary {
        self.coe.dictionary()
    }

    /// Sets an object from inside the device, such as an input.
    ///
    /// # Errors
    /// 0x06020000 and 0x06090011 if there is no such object.
    pub fn set(&mut self, index: u16, sub_index: u8, value: i64) -> Result<(), AbortCode> {
        let id = self.coe.dictionary().find(index, sub_index)?;
        self.coe.dictionary_mut().set(id, value);
        Ok(())
    }
}

/// Capacity of a PDO, in objects.
const MAPPING_CAPACITY: u8 = 32;

impl CoeApplication for GenericDevice {
    fn device(&self) -> &CoeDevice {
        &self.coe
    }

    fn device_mut(&mut self) -> &mut CoeDevice {
        &mut self.coe
    }

    fn work(&mut self, _now: Instant, _operational: bool) {}

    fn rests(&self) -> bool {
        true
    }

    fn serves_coe(&self) -> bool {
        self.serves_coe
    }
}

#[cfg(test)]
mod tests {
    use ethercat::pdo::{Pdo, PdoEntry};
    use ethercat::sii::Identity;

    use super::*;
    use crate::application::{Application, ProcessDataLengths};

    fn device() -> DeviceDescription {
        DeviceDescription::new(Identity::default(), "device")
    }

    fn pdo(index: u16, sync_manager: u8, values: &[u32]) -> Pdo {
        Pdo {
            index,
            sync_manager: Some(sync_manager),
            fixed: true,
            name: "PDO".to_owned(),
            entries: values.iter().map(|&value| PdoEntry::from_mapping_value(value)).collect(),
        }
    }

    #[test]
    fn outputs_are_stored_and_inputs_shown_bit_by_bit() {
        let mapping = PdoMapping {
            outputs: vec![pdo(0x1600, 2, &[0x7000_0101]), pdo(0x1601, 2, &[0x7010_0101, 0x7010_110A])],
            inputs: vec![pdo(0x1A00, 3, &[0x6000_0104, 0x0000_0004, 0x6000_1108])],
        };
        let mut it = GenericDevice::new(&device(), &mapping, true).expect("a mapping that fits");
        assert_eq!(it.process_data_lengths(), ProcessDataLengths { outputs: 2, inputs: 2 });
        assert_eq!(it.set(0x6000, 0x01, 0xF), Ok(()));
        assert_eq!(it.set(0x6000, 0x11, 0xA5), Ok(()));
        assert_eq!(it.set(0x6000, 0x12, 0), Err(AbortCode::NO_SUB_INDEX));
        let mut inputs = [0; 2];
        it.step(Instant::EPOCH, Some(&[0b1101, 0]), &mut inputs);
        assert_eq!(inputs, [0x0F, 0xA5]);
        let value = |index, sub| it.dictionary().value(index, sub);
        assert_eq!((value(0x7000, 1), value(0x7010, 1), value(0x7010, 0x11)), (Some(1), Some(0), Some(3)));
        assert_eq!(value(0x7010, 0), Some(0x11));
    }

    #[test]
    fn an_object_has_one_length() {
        let mapping =
            PdoMapping { outputs: vec![pdo(0x1600, 2, &[0x7000_0101, 0x7000_0102])], inputs: vec![] };
        let error = GenericDevice::new(&device(), &mapping, true).expect_err("two lengths");
        let text = "PDO 0x1600 maps object 0x7000:01 with 2 bits, it has 1";
        assert_eq!(error.to_string(), text);
    }
}
