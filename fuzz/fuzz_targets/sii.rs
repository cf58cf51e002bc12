//! Any bytes as an SII image: no panic, the whole parse and the word-wise reader agree, and a
//! parsed image re-emits to the same bytes. As in `onbeat new`, it becomes a robot file, with any
//! answers to the questions about its objects.
#![no_main]

use core::time::Duration;

use ethercat::sii::{Image, Reader, crc8};
use libfuzzer_sys::fuzz_target;
use robot::RobotConfig;
use robot::draft::{Found, Setting, draft};

fuzz_target!(|bytes: &[u8]| {
    let mut eeprom = bytes.to_vec();
    if let Some(checksum) = eeprom.get(..14).map(crc8) {
        // Else nearly every input would stop at the checksum.
        eeprom.get_mut(14).into_iter().for_each(|byte| *byte = checksum);
    }
    let whole = Image::parse(&eeprom);
    let mut reader = Reader::new();
    while let Some(word) = reader.next_word() {
        let at = word as usize * 2;
        let mut read = [0xFF; 4];
        let there = eeprom.get(at..).unwrap_or_default();
        let length = there.len().min(4);
        read[..length].copy_from_slice(&there[..length]);
        if reader.supply(&read).is_err() {
            return;
        }
    }
    let Ok(image) = whole else { return };
    for text in [image.name(), image.order(), image.group()] {
        assert!(text.len() <= 2 * 255);
    }
    let _ = (image.default_mapping(), image.inputs(), image.outputs(), image.distributed_clocks());
    assert_eq!(Image::parse(&image.emit()).as_ref(), Ok(&image));
    drafted(&image, bytes);
    let read = reader.finish().expect("what the whole parse takes, the reader takes");
    assert_eq!((read.name(), read.sync_managers()), (image.name(), image.sync_managers()));
});

/// A draft is a robot file, or there is an error.
fn drafted(image: &Image, bytes: &[u8]) {
    let mut found = Found::of_image(image);
    let mut answers = bytes.iter().rev();
    loop {
        let questions = found.questions();
        if questions.is_empty() {
            break;
        }
        for place in questions {
            let length = answers.next().map_or(0, |length| usize::from(length % 6));
            let answer: Vec<u8> = answers.by_ref().take(length).copied().collect();
            let answer = if answer.is_empty() { Err(String::new()) } else { Ok(answer) };
            found.objects.insert(place, answer);
        }
    }
    let period = Duration::from_millis(1);
    let setting = Setting { name: "it", file: "it.toml", made_by: "a test", run: "", period };
    let all = [found.clone(), found];
    if let Ok(text) = draft(&all, &setting) {
        let robot = RobotConfig::parse(&text, "it.toml").expect("a robot file");
        assert_eq!(robot.bus.sub_devices.len(), 2, "{text}");
    }
}
