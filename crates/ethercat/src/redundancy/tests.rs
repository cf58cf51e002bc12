use super::*;
use crate::link::MAXIMUM_FRAME_LENGTH;
use crate::register;
use crate::wire::{Address, Frame, FrameBuilder, MacAddress};

/// A frame with a number, and a datagram for each of these.
fn frame(datagrams: &[(Command, Address, &[u8])]) -> Vec<u8> {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    builder.push_data(DatagramHeader::new(Command::Nop, 7, Address::Logical(0), 4), &[9, 8, 7, 6]).unwrap();
    for &(command, address, data) in datagrams {
        builder.push_data(DatagramHeader::new(command, 7, address, data.len() as u16), data).unwrap();
    }
    let length = builder.finish();
    buffer[..length].to_vec()
}

/// Changes that SubDevices make to a datagram.
#[derive(Clone, Copy)]
struct Part<'a> {
    data: &'a [u8],
    working_counter: u16,
    passed: u16,
}

/// A reply to `sent` with this part in the datagram behind the number.
fn processed(sent: &[u8], part: Part<'_>) -> Vec<u8> {
    let mut reply = sent.to_vec();
    reply[SOURCE_OFFSET] |= PROCESSED_BIT;
    let place = Frame::parse(sent).unwrap().places().nth(1).unwrap();
    reply[place.data()].copy_from_slice(part.data);
    let counter = place.working_counter();
    reply[counter..counter + 2].copy_from_slice(&part.working_counter.to_le_bytes());
    let position = place.header.adp().wrapping_add(part.passed).to_le_bytes();
    reply[place.offset + 2..place.offset + 4].copy_from_slice(&position);
    reply
}

fn second_of(sent: &[u8]) -> Vec<u8> {
    let mut second = sent.to_vec();
    second_copy(&mut second, Some(2), None);
    second
}

/// Data, working counter and position of the spliced reply, either half first, and with one half
/// alone.
fn spliced(sent: &[u8], first: Part<'_>, second: Part<'_>) -> (Vec<u8>, u16, u16) {
    let copy = second_of(sent);
    let [first, second] = [processed(sent, first), processed(&copy, second)];
    let mut reply = first.clone();
    assert!(splice(&mut reply, &copy, &second));
    let mut other = sent.to_vec();
    assert!(splice(&mut other, &copy, &second) && splice(&mut other, sent, &first));
    assert_eq!(reply, other, "whichever comes first");
    let parsed = Frame::parse(&reply).unwrap();
    assert!(parsed.source().is_processed());
    assert_eq!(reply[SOURCE_OFFSET] & SECOND_BIT, 0, "to the MainDevice it is the frame that it sent");
    let datagram = parsed.datagrams().nth(1).unwrap();
    (datagram.data.to_vec(), datagram.working_counter, datagram.header.adp())
}

const LOGICAL: Address = Address::Logical(0x1_0000);

// feature(redundancy): replies of the two copies of a frame spliced datagram by datagram
#[test]
fn logical_reads_take_the_bits_that_each_part_put_in() {
    // Two SubDevices share the third byte, one of each part.
    let (first, second) = ([0x11, 0x22, 0x05, 0, 0], [0, 0, 0x50, 0x33, 0x44]);
    for command in [Command::Lrd, Command::Lrw] {
        let sent = frame(&[(command, LOGICAL, &[0; 5])]);
        let first = Part { data: &first, working_counter: 2, passed: 0 };
        let second = Part { data: &second, working_counter: 3, passed: 0 };
        assert_eq!(spliced(&sent, first, second), ([0x11, 0x22, 0x55, 0x33, 0x44].to_vec(), 5, 0));
    }
}

#[test]
fn spliced_outputs_stay_and_inputs_come_from_their_part() {
    let sent = frame(&[(Command::Lrw, LOGICAL, &[0xA0, 0xA1, 0xA2, 0xA3])]);
    // The first part reads over its own output, the second over another one.
    let first = Part { data: &[0xA0, 0x01, 0xA2, 0xA3], working_counter: 3, passed: 0 };
    let second = Part { data: &[0xA0, 0xA1, 0xA2, 0x00], working_counter: 3, passed: 0 };
    assert_eq!(spliced(&sent, first, second), ([0xA0, 0x01, 0xA2, 0x00].to_vec(), 6, 0));
    let sent = frame(&[(Command::Lwr, LOGICAL, &[1, 2, 3])]);
    let part = |working_counter| Part { data: &[1, 2, 3], working_counter, passed: 0 };
    assert_eq!(spliced(&sent, part(1), part(4)), ([1, 2, 3].to_vec(), 5, 0));
}

#[test]
fn broadcasts_are_combined_by_or_and_count_all_that_were_passed() {
    let register = register::AL_STATUS;
    let sent = frame(&[(Command::Brd, Address::Broadcast { register }, &[0, 0])]);
    let first = Part { data: &[0x08, 0], working_counter: 2, passed: 2 };
    let second = Part { data: &[0x18, 0x01], working_counter: 4, passed: 4 };
    assert_eq!(spliced(&sent, first, second), ([0x18, 0x01].to_vec(), 6, 6));
}

#[test]
fn a_station_address_is_in_one_part() {
    let address = Address::Station { station: 0x1003, register: register::AL_STATUS };
    let none = Part { data: &[0, 0], working_counter: 0, passed: 0 };
    let found = Part { data: &[8, 1], working_counter: 1, passed: 0 };
    let sent = frame(&[(Command::Fprd, address, &[0, 0])]);
    assert_eq!(spliced(&sent, none, found).0, [8, 1]);
    assert_eq!(spliced(&sent, found, none).0, [8, 1]);
}

#[test]
fn second_copy_counts_positions_from_the_break() {
    let address = Address::at_position(3, register::STATION_ADDRESS);
    let sent = frame(&[(Command::Aprd, address, &[0, 0])]);
    let mut copy = sent.clone();
    second_copy(&mut copy, Some(2), None);
    let header = Frame::parse(&copy).unwrap().datagrams().nth(1).unwrap().header;
    assert_eq!(header.adp(), 1_u16.wrapping_neg(), "the second one behind the break");
    let none = Part { data: &[0, 0], working_counter: 0, passed: 2 };
    let found = Part { data: &[4, 0x10], working_counter: 1, passed: 4 };
    let all = 3_u16.wrapping_neg().wrapping_add(6);
    assert_eq!(spliced(&sent, none, found), ([4, 0x10].to_vec(), 1, all));
    for command in [Command::Aprd, Command::Apwr, Command::Aprw, Command::Armw] {
        let mut copy = frame(&[(command, address, &[0, 0])]);
        second_copy(&mut copy, None, None);
        let header = Frame::parse(&copy).unwrap().datagrams().nth(1).unwrap().header;
        assert_eq!(header.command, Command::Nop, "{command:?}");
    }
}

#[test]
fn the_second_copy_carries_the_time_and_never_zeroes() {
    let address = Address::Station { station: 0x1001, register: dc::SYSTEM_TIME };
    let sent = frame(&[(Command::Frmw, address, &[0; 8])]);
    let mut copy = sent.clone();
    second_copy(&mut copy, Some(2), None);
    let command = |frame: &[u8]| Frame::parse(frame).unwrap().datagrams().nth(1).unwrap().header.command;
    assert_eq!(command(&copy), Command::Nop, "before the time is known nobody is told one");
    let mut copy = sent.clone();
    second_copy(&mut copy, Some(0), Some(7));
    let data = Frame::parse(&copy).unwrap().datagrams().nth(1).map(|it| it.data.to_vec());
    assert_eq!(command(&copy), Command::Frmw, "all are behind the break: the reference clock tells it");
    assert_eq!(data, Some(vec![0; 8]));
    let mut copy = sent.clone();
    let contents = second_copy(&mut copy, Some(2), Some(0x0102_0304_0506));
    let time = 0x0102_0304_0000_u64.to_le_bytes();
    let first = processed(&sent, Part { data: &time, working_counter: 2, passed: 0 });
    assert_eq!(contents.time(&sent, &first), Some(0x0102_0304_0000));
    // Four clocks of the second part take the time that the copy carries.
    let carried = 0x0102_0304_0506_u64.to_le_bytes();
    let second = processed(&copy, Part { data: &carried, working_counter: 4, passed: 0 });
    let mut reply = first;
    assert!(splice(&mut reply, &copy, &second));
    let datagram =
        Frame::parse(&reply).unwrap().datagrams().nth(1).map(|it| (it.data.to_vec(), it.working_counter));
    assert_eq!(datagram, Some((time.to_vec(), 6)));
    // The reference clock is behind the break.
    let mut reply = processed(&sent, Part { data: &[0; 8], working_counter: 0, passed: 0 });
    let second = processed(&copy, Part { data: &time, working_counter: 4, passed: 0 });
    assert!(splice(&mut reply, &copy, &second));
    assert_eq!(contents.time(&sent, &reply), Some(0x0102_0304_0000));
}

#[test]
fn one_half_alone_has_short_working_counters() {
    let sent = frame(&[(Command::Lrw, LOGICAL, &[0; 3])]);
    let copy = second_of(&sent);
    let second = processed(&copy, Part { data: &[0, 0, 7], working_counter: 3, passed: 0 });
    let mut reply = sent.clone();
    assert!(splice(&mut reply, &copy, &second));
    let datagram =
        Frame::parse(&reply).unwrap().datagrams().nth(1).map(|it| (it.data.to_vec(), it.working_counter));
    assert_eq!(datagram, Some(([0, 0, 7].to_vec(), 3)));
    assert_eq!(identity(&reply), identity(&sent));
}

#[test]
fn foreign_frame_is_not_spliced() {
    let sent = frame(&[(Command::Lrw, LOGICAL, &[0; 40])]);
    let copy = second_of(&sent);
    let reply = processed(&copy, Part { data: &[1; 40], working_counter: 3, passed: 0 });
    let header = Frame::parse(&sent).unwrap().places().nth(1).unwrap().offset;
    let splices = |reply: &[u8]| {
        let mut first = sent.clone();
        let done = splice(&mut first, &copy, reply);
        assert!(done || first == sent);
        done
    };
    assert!(splices(&reply));
    // Command, index, address, length, "more follows".
    for (byte, bit) in [(0, 1), (1, 1), (2, 1), (5, 1), (6, 1), (7, 0x80)] {
        let mut other = reply.clone();
        other[header + byte] ^= bit;
        assert!(!splices(&other), "byte {byte}");
    }
    // It went round at the break, which marks it.
    let mut marked = reply.clone();
    marked[header + 7] |= 0x40;
    assert!(splices(&marked) && !splices(&reply[..reply.len() - 1]) && !splices(&[]));
}

#[test]
fn a_frame_that_latches_receive_times_is_known() {
    let contents = |command, address, length: usize| {
        let mut frame = frame(&[(command, address, &[0; 8][..length])]);
        second_copy(&mut frame, None, None)
    };
    let at = |register| Address::Broadcast { register };
    assert!(contents(Command::Bwr, at(dc::RECEIVE_TIME), 4).latches);
    assert!(contents(Command::Bwr, at(dc::RECEIVE_TIME - 2), 4).latches);
    assert!(!contents(Command::Brd, at(dc::RECEIVE_TIME), 4).latches);
    assert!(!contents(Command::Bwr, at(dc::SYSTEM_TIME), 8).latches);
    assert!(!contents(Command::Lwr, Address::Logical(0x0900_0000), 4).latches);
}

#[test]
fn any_bytes_do_no_harm() {
    let sent = frame(&[(Command::Lrw, LOGICAL, &[0; 40])]);
    for cut in 0..sent.len() {
        let mut copy = sent[..cut].to_vec();
        let contents = second_copy(&mut copy, Some(1), Some(2));
        let mut reply = copy.clone();
        splice(&mut reply, &copy, &sent[..cut]);
        assert!(identity(&copy).is_none() || cut >= 60);
        let _ = (contents.passed(&copy, &reply), contents.time(&copy, &reply));
    }
}

proptest::proptest! {
    /// Frames of any source, and bytes that only look like one.
    #[test]
    fn any_bytes_are_spliced_or_refused(
        mut first in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        second in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        is_ethercat: bool,
    ) {
        let mut second = second;
        second.resize(first.len(), 0);
        for bytes in [&mut first, &mut second] {
            if let (true, Some(head)) = (is_ethercat, bytes.get_mut(12..16)) {
                head.copy_from_slice(&[0x88, 0xA4, 100, 0x10]);
            }
        }
        let mut copy = first.clone();
        let contents = second_copy(&mut copy, Some(3), Some(4));
        let mut reply = first.clone();
        let done = splice(&mut reply, &copy, &second);
        assert!(done || reply == first);
        let _ = (identity(&second), is_processed(&second), contents.passed(&first, &second), contents.time(&first, &second));
    }
}

/// A 32-bit reference clock distributes four bytes: the second copy carries as many, also of a time
/// that has wrapped since.
#[test]
fn the_second_copy_carries_four_bytes_of_a_clock_of_32_bits() {
    let address = Address::Station { station: 0x1001, register: dc::SYSTEM_TIME };
    let sent = frame(&[(Command::Frmw, address, &[0; 4])]);
    let mut copy = sent.clone();
    let contents = second_copy(&mut copy, Some(2), Some(0x1_0000_0506));
    let data =
        Frame::parse(&copy).unwrap().datagrams().nth(1).map(|it| (it.header.command, it.data.to_vec()));
    assert_eq!(data, Some((Command::Frmw, vec![0x06, 0x05, 0, 0])));
    let first = processed(&sent, Part { data: &[1, 2, 3, 4], working_counter: 2, passed: 0 });
    assert_eq!(contents.time(&sent, &first), Some(0x0403_0201));
    assert_eq!(contents.time(&sent, &sent), None);
}
