//! Describing a SubDevice in code and getting its SII.

use alloc::vec;
use alloc::vec::Vec;

use super::category::Category;
use super::record::{CoeDetails, DistributedClock, FmmuUse, General, SiiPdo, SiiPdoEntry, SiiSyncManager};
use super::{Header, Identity, Image, Mailbox, MailboxProtocols};
use crate::pdo::{Pdo, PdoEntry};

/// Builds an [`Image`]: strings are collected, the checksum and the size word computed.
///
/// Without any further call the image has a general category and names, and nothing else.
#[derive(Clone, Debug)]
pub struct Builder {
    header: Header,
    configuration: [u16; 4],
    alias: u16,
    strings: Vec<Vec<u8>>,
    general: General,
    fmmus: Vec<FmmuUse>,
    sync_managers: Vec<SiiSyncManager>,
    inputs: Vec<SiiPdo>,
    outputs: Vec<SiiPdo>,
    clocks: Vec<DistributedClock>,
}

impl Builder {
    /// A SubDevice with this identity; `name` is its name and order number.
    #[must_use]
    pub fn new(identity: Identity, name: &str) -> Self {
        let mut header = Header::new();
        header.set_identity(identity);
        let mut builder = Self {
            header,
            configuration: [0; 4],
            alias: 0,
            strings: Vec::new(),
            general: General::default(),
            fmmus: Vec::new(),
            sync_managers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            clocks: Vec::new(),
        };
        builder.general.name = builder.string(name);
        builder.general.order = builder.general.name;
        builder.general.physical_ports = TWO_MII_PORTS;
        builder
    }

    /// The order number, if it differs from the name.
    #[must_use]
    pub fn order(mut self, order: &str) -> Self {
        self.general.order = self.string(order);
        self
    }

    /// The group's name.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.general.group = self.string(group);
        self
    }

    /// The station alias.
    #[must_use]
    pub fn alias(mut self, alias: u16) -> Self {
        self.alias = alias;
        self
    }

    /// Words the ESC loads into PDI control (0x0140), PDI configuration (0x0150), the SYNC impulse
    /// length (in 10 ns) and the extended PDI configuration (0x0152).
    #[must_use]
    pub fn pdi(
        mut self,
        control: u16,
        configuration: u16,
        sync_impulse_length: u16,
        extended: u16,
    ) -> Self {
        self.configuration = [control, configuration, sync_impulse_length, extended];
        self
    }

    /// Mailboxes and the protocols spoken through them.
    #[must_use]
    pub fn mailbox(mut self, mailbox: Mailbox, protocols: MailboxProtocols) -> Self {
        self.header.set_mailbox(mailbox, protocols);
        self.general.foe_details = u8::from(protocols.contains(MailboxProtocols::FOE));
        self.general.eoe_details = u8::from(protocols.contains(MailboxProtocols::EOE));
        self
    }

    /// Mailboxes of Bootstrap.
    #[must_use]
    pub fn bootstrap_mailbox(mut self, mailbox: Mailbox) -> Self {
        self.header.set_bootstrap_mailbox(mailbox);
        self
    }

    /// Abilities of the CoE server.
    #[must_use]
    pub fn coe_details(mut self, details: CoeDetails) -> Self {
        self.general.coe_details = details;
        self
    }

    /// General flags, such as [`General::FLAG_NO_LRW`].
    #[must_use]
    pub fn flags(mut self, flags: u8) -> Self {
        self.general.flags = flags;
        self
    }

    /// Milliamperes drawn from the E-bus; negative: supplied to it.
    #[must_use]
    pub fn current_on_ebus(mut self, milliamperes: i16) -> Self {
        self.general.current_on_ebus = milliamperes;
        self
    }

    /// Kind of each port, four bits a port from port 0: 1 MII, 3 E-bus. Two MII ports by default.
    #[must_use]
    pub fn physical_ports(mut self, ports: u16) -> Self {
        self.general.physical_ports = ports;
        self
    }

    /// The next FMMU.
    #[must_use]
    pub fn fmmu(mut self, usage: FmmuUse) -> Self {
        self.fmmus.push(usage);
        self
    }

    /// The next SyncManager.
    #[must_use]
    pub fn sync_manager(mut self, sync_manager: SiiSyncManager) -> Self {
        self.sync_managers.push(sync_manager);
        self
    }

    /// The next TxPDO.
    #[must_use]
    pub fn input(mut self, pdo: &Pdo) -> Self {
        let pdo = self.pdo(pdo);
        self.inputs.push(pdo);
        self
    }

    /// The next RxPDO.
    #[must_use]
    pub fn output(mut self, pdo: &Pdo) -> Self {
        let pdo = self.pdo(pdo);
        self.outputs.push(pdo);
        self
    }

    /// Marks a PDO that was added before as a sample.
    #[must_use]
    pub fn sample(mut self, index: u16) -> Self {
        let pdos = self.inputs.iter_mut().chain(&mut self.outputs);
        pdos.filter(|pdo| pdo.index == index).for_each(|pdo| pdo.flags |= SiiPdo::FLAG_SAMPLE);
        self
    }

    /// The next operation mode of the distributed clock; its string index is set here.
    #[must_use]
    pub fn distributed_clock(mut self, name: &str, mut mode: DistributedClock) -> Self {
        mode.name = self.string(name);
        self.clocks.push(mode);
        self
    }

    /// The image: checksum right, categories in ascending order, empty ones left out, and a size
    /// word that is at least 2 KiB.
    #[must_use]
    pub fn build(self) -> Image {
        let mut header = self.header;
        header.set_configuration(self.configuration, self.alias);
        let mut categories = vec![Category::Strings(self.strings), Category::General(self.general)];
        let mut push = |is_empty: bool, category| {
            if !is_empty {
                categories.push(category);
            }
        };
        let mut fmmus = self.fmmus;
        if fmmus.len() % 2 != 0 {
            fmmus.push(FmmuUse::Unused(0xFF));
        }
        push(fmmus.is_empty(), Category::Fmmus(fmmus));
        push(self.sync_managers.is_empty(), Category::SyncManagers(self.sync_managers));
        push(self.inputs.is_empty(), Category::TxPdos(self.inputs));
        push(self.outputs.is_empty(), Category::RxPdos(self.outputs));
        push(self.clocks.is_empty(), Category::DistributedClocks(self.clocks));
        header.set_size(SMALLEST);
        let mut image = Image { header, categories };
        let length = image.emit().len();
        image.header.set_size(length);
        image
    }

    /// The index of `text`, counted from 1; 0 for an empty one, and for any behind the 255th.
    fn string(&mut self, text: &str) -> u8 {
        let bytes = &text.as_bytes()[..text.len().min(255)];
        if bytes.is_empty() {
            return 0;
        }
        let position = self.strings.iter().position(|known| known == bytes);
        let position = position.unwrap_or_else(|| {
            self.strings.push(bytes.to_vec());
            self.strings.len() - 1
        });
        if position < 255 {
            return position as u8 + 1;
        }
        self.strings.truncate(255);
        0
    }

    fn pdo(&mut self, pdo: &Pdo) -> SiiPdo {
        let mut entry = |entry: &PdoEntry| SiiPdoEntry {
            index: entry.index,
            sub_index: entry.sub_index,
            name: self.string(&entry.name),
            // The low byte: the data types of ETG.1000.6, Table 64 have no more.
            data_type: entry.data_type as u8,
            bit_length: entry.bit_length,
            flags: 0,
        };
        SiiPdo {
            index: pdo.index,
            sync_manager: pdo.sync_manager.unwrap_or(0xFF),
            synchronization: 0,
            entries: pdo.entries.iter().map(&mut entry).collect(),
            name: self.string(&pdo.name),
            flags: if pdo.fixed { SiiPdo::FLAG_FIXED } else { 0 },
        }
    }
}

const TWO_MII_PORTS: u16 = 0x0011;

/// Bytes of the smallest EEPROM: 16 Kibit.
const SMALLEST: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::SyncManager;
    use crate::sii::SyncManagerUse;

    #[test]
    fn built_image_parses_back() {
        let identity = Identity { vendor_id: 0x6A, product_code: 0x0041_4B44, revision: 2, serial: 9 };
        let mailbox =
            Mailbox { receive_offset: 0x1800, receive_size: 512, send_offset: 0x1C00, send_size: 256 };
        let inputs = Pdo {
            index: 0x1A00,
            sync_manager: Some(3),
            fixed: true,
            name: "Inputs".into(),
            entries: vec![
                PdoEntry { name: "Statusword".into(), ..PdoEntry::from_mapping_value(0x6041_0010) },
                PdoEntry::from_mapping_value(0x0000_0008),
            ],
        };
        let spare = Pdo { index: 0x1A01, sync_manager: None, fixed: false, ..inputs.clone() };
        let sync_manager = SiiSyncManager {
            physical_address: 0x1400,
            length: 3,
            control: SyncManager::CONTROL_INPUTS,
            status: 0,
            enable: 1,
            usage: SyncManagerUse::Inputs,
        };
        let clock = DistributedClock { assign_activate: 0x0300, ..DistributedClock::default() };
        let image = Builder::new(identity, "Drive")
            .order("D-1")
            .group("Drives")
            .alias(0x1234)
            .pdi(0x0005, 0, 0, 0)
            .mailbox(mailbox, MailboxProtocols::COE.with(MailboxProtocols::FOE))
            .coe_details(CoeDetails::SDO.with(CoeDetails::COMPLETE_ACCESS))
            .fmmu(FmmuUse::Inputs)
            .sync_manager(sync_manager)
            .input(&inputs)
            .input(&spare)
            .distributed_clock("DcSync", clock)
            .build();
        let parsed = Image::parse(&image.emit()).unwrap();
        assert_eq!(parsed, image);
        assert_eq!(parsed.header.identity(), identity);
        assert_eq!(parsed.header.alias(), 0x1234);
        assert_eq!(parsed.header.mailbox(), Some(mailbox));
        assert_eq!(parsed.header.bootstrap_mailbox(), None);
        assert_eq!(parsed.header.size(), 2048);
        assert_eq!(
            (parsed.name(), parsed.order(), parsed.group()),
            ("Drive".into(), "D-1".into(), "Drives".into())
        );
        assert_eq!(parsed.general().unwrap().foe_details, 1);
        assert_eq!(parsed.fmmus(), [FmmuUse::Inputs, FmmuUse::Unused(0xFF)]);
        assert_eq!(parsed.sync_managers(), [sync_manager]);
        assert_eq!(parsed.inputs(), [inputs.clone(), spare]);
        assert_eq!(parsed.default_mapping().inputs, [inputs]);
        assert_eq!(parsed.distributed_clocks()[0].assign_activate, 0x0300);
        assert_eq!(parsed.string(parsed.distributed_clocks()[0].name), "DcSync");
    }

    #[test]
    fn large_descriptions_grow_the_eeprom() {
        let entries = vec![PdoEntry::from_mapping_value(0x7000_0108); 200];
        let pdo = Pdo { index: 0x1600, sync_manager: Some(2), fixed: false, name: String::new(), entries };
        let image = Builder::new(Identity::default(), "big").output(&pdo).output(&pdo).build();
        let bytes = image.emit();
        assert!(bytes.len() > 3200 && bytes.len() == image.header.size());
        assert_eq!(Image::parse(&bytes).unwrap().outputs().len(), 2);
    }
}
