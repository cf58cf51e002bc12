//! SII images of real devices: their content, and that a round trip loses nothing.
//!
//! The images are outside the workspace, in `../shared/real/sii`; without them the tests print that
//! and pass.

use std::path::Path;

use onbeat_ethercat::register::{SyncManager, SyncManagerDirection, SyncManagerMode};
use onbeat_ethercat::sii::{
    Builder, Category, CoeDetails, FmmuUse, Identity, Image, Mailbox, MailboxProtocols, Reader, SiiError,
    SyncManagerUse,
};

/// The image of `device` as bytes, or `None` with the reason printed.
fn image(device: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/real/sii")
        .join(format!("{device}.bin"));
    std::fs::read(&path).map_err(|error| println!("skipped: {}: {error}", path.display())).ok()
}

const DEVICES: [&str; 5] = ["akd", "ek1100", "el2004", "el2828", "el2889"];

#[test]
fn the_words_that_the_esc_loads_are_found_by_name() {
    let header = Builder::new(Identity::default(), "").pdi(0x0105, 0x2203, 1_000, 0).build().header;
    assert_eq!((header.pdi_control(), header.pdi_configuration()), (0x0105, 0x2203));
    assert_eq!(header.sync_impulse_length(), 1_000);
}

#[test]
fn real_images_re_emit_byte_for_byte() {
    for device in DEVICES {
        let Some(bytes) = image(device) else { continue };
        let parsed = Image::parse(&bytes).unwrap_or_else(|error| panic!("{device}: {error}"));
        assert!(parsed.emit() == bytes, "{device}");
        assert_eq!(parsed.header.size(), bytes.len(), "{device}");
    }
}

// feature(protocol): SII images: identity, strings, SyncManagers, FMMUs, PDOs; whole, or word by word over the bus
#[test]
fn real_images_read_over_the_bus_as_they_parse_whole() {
    for device in DEVICES {
        let Some(bytes) = image(device) else { continue };
        let mut whole = Image::parse(&bytes).unwrap();
        whole.categories.retain(|category| Category::is_known(category.kind()));
        for chunk in [4, 8] {
            let mut reader = Reader::new();
            while let Some(word) = reader.next_word() {
                let start = word as usize * 2;
                reader.supply(&bytes[start..start + chunk]).unwrap();
            }
            assert_eq!(reader.finish().as_ref(), Ok(&whole), "{device}, {chunk} bytes a read");
        }
    }
}

#[test]
fn beckhoff_terminals_have_their_identity() {
    let devices = [
        ("ek1100", 0x044C_2C52, 0x0012_0000, "EK1100 EtherCAT-Koppler (2A E-Bus)", "SystemBk", -2000),
        ("el2004", 0x07D4_3052, 0x0010_0000, "EL2004 4K. Dig. Ausgang 24V, 0.5A", "DigOut", 100),
        ("el2828", 0x0B0C_3052, 0x0011_0000, "EL2828 8K. Dig. Ausgang 24V, 2A", "DigOut", 110),
        ("el2889", 0x0B49_3052, 0x0011_0000, "EL2889 16K. Dig. Ausgang 24V, 0.5A, negativ", "DigOut", 140),
    ];
    for (device, product_code, revision, name, group, current) in devices {
        let Some(bytes) = image(device) else { continue };
        let parsed = Image::parse(&bytes).unwrap();
        let identity = parsed.header.identity();
        assert_eq!(
            (identity.vendor_id, identity.product_code, identity.revision),
            (2, product_code, revision)
        );
        assert_eq!(
            (parsed.name(), parsed.group(), parsed.order()),
            (name.into(), group.into(), device.to_uppercase())
        );
        assert_eq!(parsed.general().unwrap().current_on_ebus, current, "{device}");
        assert_eq!(parsed.header.mailbox(), None, "{device}");
    }
}

#[test]
fn digital_outputs_map_one_bit_a_channel() {
    for (device, channels, sync_managers) in [("el2004", 4, 1), ("el2828", 8, 1), ("el2889", 16, 2)] {
        let Some(bytes) = image(device) else { continue };
        let parsed = Image::parse(&bytes).unwrap();
        let mapping = parsed.default_mapping();
        assert_eq!((mapping.output_bits(), mapping.input_bits()), (channels, 0), "{device}");
        for (number, pdo) in mapping.outputs.iter().enumerate() {
            assert_eq!((pdo.index, pdo.fixed), (0x1600 + number as u16, true), "{device}");
            assert_eq!(pdo.name, format!("Channel {}", number + 1), "{device}");
            let entry = &pdo.entries[0];
            assert_eq!((entry.index, entry.sub_index), (0x7000 + 0x10 * number as u16, 1), "{device}");
            assert_eq!((entry.bit_length, entry.name.as_str()), (1, "Output"), "{device}");
            // The EL2889's two bytes have a SyncManager each.
            assert_eq!(pdo.sync_manager, Some((number / 8) as u8), "{device}");
        }
        assert_eq!(parsed.fmmus()[0], FmmuUse::Outputs, "{device}");
        assert_eq!(parsed.sync_managers().len(), sync_managers, "{device}");
        for (number, it) in parsed.sync_managers().iter().enumerate() {
            assert_eq!((it.physical_address, it.usage), (0x0F00 + number as u16, SyncManagerUse::Outputs));
            let Some(direction) =
                SyncManager::parse(&[0, 0, 0, 0, it.control, 0, 0, 0]).unwrap().direction()
            else {
                panic!("{device}: control {:#04x}", it.control)
            };
            assert_eq!(direction, SyncManagerDirection::Write, "{device}");
        }
    }
}

#[test]
fn akd_servo_has_its_identity_and_mapping() {
    let Some(bytes) = image("akd") else { return };
    let parsed = Image::parse(&bytes).unwrap();
    let expected =
        Identity { vendor_id: 0x6A, product_code: 0x0041_4B44, revision: 2, serial: 0x9983_0093 };
    assert_eq!(parsed.header.identity(), expected);
    assert_eq!(
        (parsed.name(), parsed.order(), parsed.group()),
        ("AKD EtherCAT Drive (CoE)".into(), "AKD".into(), "Drive".into())
    );
    let mailbox =
        Mailbox { receive_offset: 0x1800, receive_size: 1024, send_offset: 0x1C00, send_size: 1024 };
    assert_eq!(
        (parsed.header.mailbox(), parsed.header.bootstrap_mailbox()),
        (Some(mailbox), Some(mailbox))
    );
    let protocols = MailboxProtocols::EOE.with(MailboxProtocols::COE).with(MailboxProtocols::FOE);
    assert_eq!(parsed.header.mailbox_protocols(), protocols);
    let details = parsed.general().unwrap().coe_details;
    assert!(details.contains(CoeDetails::SDO.with(CoeDetails::PDO_ASSIGNMENT)));
    assert!(!details.contains(CoeDetails::COMPLETE_ACCESS));

    let usages: Vec<_> = parsed.sync_managers().iter().map(|it| it.usage).collect();
    use SyncManagerUse::{Inputs, MailboxIn, MailboxOut, Outputs};
    assert_eq!(usages, [MailboxOut, MailboxIn, Outputs, Inputs]);
    let modes = parsed.sync_managers().iter().map(|it| {
        let registers = [0, 0, 0, 0, it.control, 0, 0, 0];
        SyncManager::parse(&registers).unwrap().mode()
    });
    use SyncManagerMode::{Buffered, Mailbox as MailboxMode};
    assert_eq!(modes.flatten().collect::<Vec<_>>(), [MailboxMode, MailboxMode, Buffered, Buffered]);
    let fmmus = [FmmuUse::Outputs, FmmuUse::Inputs, FmmuUse::MailboxStatus, FmmuUse::Unused(0xFF)];
    assert_eq!(parsed.fmmus(), fmmus);

    let mapping = parsed.default_mapping();
    let (output, input) = (&mapping.outputs, &mapping.inputs);
    assert_eq!((output.len(), output[0].index, input.len(), input[0].index), (1, 0x1701, 1, 0x1B01));
    assert_eq!((mapping.output_bits(), mapping.input_bits()), (48, 48));
    assert_eq!(mapping.output(0x6040, 0).unwrap().bit_offset, 32);
    assert_eq!(mapping.input(0x6063, 0).unwrap().bit_length, 32);
    assert_eq!(input[0].entries[1].name, "Statusword");
    let modes: Vec<_> = parsed
        .distributed_clocks()
        .iter()
        .map(|mode| (parsed.string(mode.name), mode.assign_activate, mode.sync0_cycle_factor))
        .collect();
    assert_eq!(modes, [("DcSync".into(), 0x0300, 1), ("DcOff".into(), 0, 1)]);
}

// feature(protocol): damaged SII images are errors
#[test]
fn a_real_image_cut_short_or_with_a_flipped_bit_is_an_error() {
    for device in DEVICES {
        let Some(bytes) = image(device) else { continue };
        let end = bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0xFF).count();
        for length in 0..end {
            assert!(Image::parse(&bytes[..length]).is_err(), "{device} cut at {length}");
        }
        for bit in 0..14 * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = Image::parse(&flipped).unwrap_err();
            assert!(matches!(error, SiiError::Checksum { .. }), "{device} bit {bit}: {error}");
        }
    }
}
