use super::*;

/// Takes a reply as the MainDevice does.
fn accept(exchange: &mut Exchange, bytes: &[u8]) -> Result<(usize, Purpose), Reception> {
    match exchange.accept_usual(bytes) {
        Some(usual) => Ok((usual.index, Purpose::ProcessData)),
        None => exchange.accept(bytes),
    }
}

/// Sends one frame and returns it as a SubDevice at position 0 would send it back.
fn sent_frame(exchange: &mut Exchange) -> Vec<u8> {
    let mut outgoing = exchange.open(Purpose::ProcessData).unwrap();
    outgoing.push(Command::Brd, Address::Broadcast { register: 0x130 }, 2, Owner::BusStatus).unwrap();
    outgoing.push(Command::Lrw, Address::Logical(0x1_0000), 8, Owner::Chunk(0, ChunkPart::Both)).unwrap();
    let slot = outgoing.send(Instant::EPOCH).unwrap();
    let mut buffer = exchange.frame(slot).to_vec();
    buffer[6] |= 0x02;
    buffer[32 + 2] += 1; // the broadcast's position counts up
    buffer
}

#[test]
fn a_reply_is_accepted_once() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    let frame = sent_frame(&mut exchange);
    assert_eq!(exchange.in_flight(Purpose::ProcessData), 1);
    assert_eq!(accept(&mut exchange, &frame), Ok((0, Purpose::ProcessData)));
    assert_eq!(accept(&mut exchange, &frame), Err(Reception::Duplicate));
    assert_eq!(exchange.in_flight(Purpose::ProcessData), 0);
    assert_eq!((exchange.counters.accepted, exchange.counters.duplicate), (1, 1));
}

// feature(main-device): a duplicate is distinguished from a late reply after its slot is used again
#[test]
fn duplicate_is_detected_after_its_slot_was_reused() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    let lost = sent_frame(&mut exchange);
    assert!(exchange.expire(Purpose::ProcessData, Instant::EPOCH, Duration::ZERO).is_some());
    let answered = sent_frame(&mut exchange);
    assert!(accept(&mut exchange, &answered).is_ok());
    for _ in 0..60 {
        let newest = sent_frame(&mut exchange);
        assert_eq!(accept(&mut exchange, &answered), Err(Reception::Duplicate));
        assert_eq!(accept(&mut exchange, &lost), Err(Reception::Late));
        assert_eq!(accept(&mut exchange, &newest), Ok((0, Purpose::ProcessData)), "it has the same slot");
    }
}

/// Bytes of a frame of these datagrams. Writers leave half of their data unchanged.
fn built(exchange: &mut Exchange, datagrams: &[(Command, Address, usize, Owner)]) -> Vec<u8> {
    let mut outgoing = exchange.open(Purpose::ProcessData).unwrap();
    for &(command, address, length, owner) in datagrams {
        let data = outgoing.push(command, address, length, owner).unwrap();
        if let Owner::Chunk(chunk, _) = owner {
            data[..(length / 2) >> chunk].fill(0xA5);
        }
    }
    let slot = outgoing.send(Instant::EPOCH).unwrap();
    exchange.frame(slot).to_vec()
}

/// A frame is sent again once its cycle has ended, and not if a bring-up frame has taken its slot.
#[test]
fn only_ended_process_data_is_sent_again() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    let first = sent_frame(&mut exchange);
    let again = |exchange: &mut Exchange| exchange.send_again(0, Instant::EPOCH, |_| Some(()));
    assert_eq!(again(&mut exchange), None, "on its way");
    assert!(accept(&mut exchange, &first).is_ok());
    assert_eq!(again(&mut exchange), Some(()));
    let sent = exchange.frame(0);
    let [from, to] = [GENERATION_AT, GENERATION_AT + 4];
    assert_eq!(read_u32(sent, from), read_u32(&first, from).map(|number| number + 1));
    assert_eq!((sent.len(), &sent[to..32]), (first.len(), &first[to..32]));
    assert!(exchange.expire(Purpose::ProcessData, Instant::EPOCH, Duration::ZERO).is_some());
    assert!(again(&mut exchange).is_some(), "lost");
    assert!(exchange.expire(Purpose::ProcessData, Instant::EPOCH, Duration::ZERO).is_some());
    for _ in 0..SLOTS {
        let mut outgoing = exchange.open(Purpose::Service).unwrap();
        outgoing.push(Command::Brd, Address::Broadcast { register: 0 }, 2, Owner::Bus).unwrap();
        outgoing.send(Instant::EPOCH).unwrap();
    }
    while exchange.expire(Purpose::Service, Instant::EPOCH, Duration::ZERO).is_some() {}
    assert_eq!(again(&mut exchange), None, "another's");
}

/// Each end of a datagram is compared at its expected offset, in the expected bits.
#[test]
fn unusual_tail_of_a_reply_is_detected() {
    let ends = |change: fn(&mut [u8])| {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        let mut reply = sent_frame(&mut exchange);
        // Two SubDevices in Op; of the process data the working counter alone.
        exchange.datagrams_mut(0)[0].usual = Tail { bits: 0x0002_0008, mask: u32::MAX };
        exchange.datagrams_mut(0)[1].usual = Tail { bits: 0x0006_0000, mask: 0xFFFF_0000 };
        let length = reply.len();
        reply[42..46].copy_from_slice(&[8, 0, 2, 0]);
        reply[length - 10..].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 6, 0]);
        change(&mut reply);
        exchange.accept_usual(&reply).map(|it| it.ends_as_usual)
    };
    assert_eq!(ends(|_| {}), Some(true));
    assert_eq!(ends(|reply| *reply.iter_mut().rev().nth(2).unwrap() = 99), Some(true), "data");
    assert_eq!(ends(|reply| *reply.last_mut().unwrap() = 1), Some(false), "working counter");
    assert_eq!(ends(|reply| reply[44] = 1), Some(false), "one is missing");
    assert_eq!(ends(|reply| reply[42] = 4), Some(false), "another state");
    assert_eq!(ends(|reply| reply[32] = 0), None, "another command");
}

// feature(main-device): prebuilt frames equal newly built ones
#[test]
fn frame_does_not_depend_on_its_slot() {
    let lrw = |length, chunk| {
        let owner = Owner::Chunk(chunk, ChunkPart::Both);
        (Command::Lrw, Address::Logical(0x1_0000 + u32::from(chunk)), length, owner)
    };
    let status = (Command::Brd, Address::Broadcast { register: 0x130 }, 2, Owner::BusStatus);
    let mail = |station| {
        let address = Address::Station { station, register: 0x80D };
        (Command::Fprd, address, 1, Owner::MailboxStatus)
    };
    let frames = [
        vec![status, mail(1), lrw(8, 0)],
        vec![status, mail(2), lrw(8, 0)],
        vec![status, lrw(8, 0)],
        vec![status, mail(1), lrw(80, 0), lrw(8, 1)],
        vec![status, mail(1), lrw(80, 1)],
        vec![status],
        vec![lrw(8, 1), status, mail(1)],
        vec![lrw(8, 0), status],
    ];
    let mut kept = Exchange::new(MacAddress::MAIN_DEVICE);
    let each_behind_each = frames.iter().flat_map(|first| frames.iter().flat_map(move |it| [first, it]));
    for (number, datagrams) in each_behind_each.enumerate() {
        let mut fresh = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(number as u32);
        let mut frame = built(&mut kept, datagrams);
        assert_eq!(frame, built(&mut fresh, datagrams), "frame {number}");
        frame[SOURCE_OFFSET] |= PROCESSED_BIT;
        assert_eq!(accept(&mut kept, &frame), Ok((0, Purpose::ProcessData)), "frame {number}");
    }
}

// feature(main-device): a reply that is too late stays lost, however often its index comes round
#[test]
fn a_lost_frame_stays_lost_however_late_its_reply() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    let frame = sent_frame(&mut exchange);
    assert!(exchange.expire(Purpose::ProcessData, Instant::EPOCH, Duration::ZERO).is_some());
    assert_eq!(accept(&mut exchange, &frame), Err(Reception::Late));
    // The same slot again, many frames later: same index, same datagrams, another generation.
    for _ in 0..SLOTS {
        sent_frame(&mut exchange);
    }
    assert_eq!(accept(&mut exchange, &frame), Err(Reception::Late));
    assert_eq!(exchange.in_flight(Purpose::ProcessData), SLOTS);
    assert!(exchange.open(Purpose::ProcessData).is_none(), "all slots are out");
}

// feature(main-device): replies of another MainDevice are a separate kind, never accepted, reported once
#[test]
fn the_reply_to_another_main_device_is_never_taken_for_ours() {
    let mut ours = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(0xFFFF_FFF0);
    let mut other = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(0x1234_5678);
    for sent in 1..=3 * SLOTS as u64 {
        let (own, foreign) = (sent_frame(&mut ours), sent_frame(&mut other));
        assert_eq!(accept(&mut ours, &foreign), Err(Reception::OtherMainDevice));
        assert!(accept(&mut ours, &own).is_ok() && accept(&mut other, &foreign).is_ok(), "frame {sent}");
        assert_eq!(accept(&mut ours, &own), Err(Reception::Duplicate));
        assert_eq!(ours.counters.other_main_device, sent);
    }
}

// feature(main-device): own frames that are played again are late
#[test]
fn replayed_own_frames_are_late() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(0xFFFF_FF00);
    let first = sent_frame(&mut exchange);
    assert!(accept(&mut exchange, &first).is_ok());
    for _ in 0..1000 {
        let frame = sent_frame(&mut exchange);
        accept(&mut exchange, &frame).unwrap();
        let played_again = accept(&mut exchange, &first).unwrap_err();
        assert!(matches!(played_again, Reception::Late | Reception::Duplicate), "{played_again:?}");
    }
    assert_eq!(exchange.counters.other_main_device, 0);
}

#[test]
fn frame_without_generation_is_of_another_main_device() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    sent_frame(&mut exchange);
    let mut frame = vec![0; 60];
    let mut builder = FrameBuilder::new(&mut frame, MacAddress([0x02, 1, 2, 3, 4, 5]));
    let brd = DatagramHeader::new(Command::Brd, 0, Address::Broadcast { register: 0x130 }, 2);
    builder.push(brd).unwrap();
    let length = builder.finish();
    assert_eq!(accept(&mut exchange, &frame[..length]), Err(Reception::OtherMainDevice));
    frame[SOURCE_OFFSET] = 0;
    assert_eq!(accept(&mut exchange, &frame[..length]), Err(Reception::Foreign), "not processed");
}

/// Two ways to one answer: for any changed bit of a reply, the usual way takes it exactly if the
/// full check does.
#[test]
fn usual_check_agrees_with_the_full_check() {
    let (unspoiled, mut taken) = (sent_frame(&mut Exchange::new(MacAddress::MAIN_DEVICE)), 0);
    for (byte, bit) in (0..unspoiled.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        for takes_circulating in [false, true] {
            let [mut usual, mut close] = [(); 2].map(|()| Exchange::new(MacAddress::MAIN_DEVICE));
            let frames = [&mut usual, &mut close].map(|exchange| {
                exchange.takes_circulating = takes_circulating;
                let mut frame = sent_frame(exchange);
                frame[byte] ^= 1 << bit;
                frame
            });
            let found = usual.accept_usual(&frames[0]).is_some();
            let is_ours = close.accept(&frames[1]).is_ok();
            // All of the EtherCAT header is compared, also the reserved bit.
            let leaves_it = is_ours && !found && (14..16).contains(&byte);
            assert!(found == is_ours || leaves_it, "byte {byte}, bit {bit}: {found}, {is_ours}");
            taken += usize::from(found);
        }
    }
    // Ethernet addresses, the position, data and working counters: most of a frame is not compared.
    assert!((2 * 8 * 12..2 * 8 * 48).contains(&taken), "{taken}");
}

// feature(main-device): replies matched on index, command, address, length and generation
#[test]
fn each_thing_that_must_match_is_compared() {
    let original = sent_frame(&mut Exchange::new(MacAddress::MAIN_DEVICE));
    let brd = 32;
    let lrw = brd + 14;
    let changed = [
        (6, 0x02, Reception::Foreign),          // never passed an ESC
        (brd, 0x01, Reception::Mismatched),     // command
        (brd + 1, 0x01, Reception::Mismatched), // index
        (brd + 4, 0x01, Reception::Mismatched), // register
        (lrw + 2, 0x01, Reception::Mismatched), // logical address
        (lrw + 7, 0x40, Reception::Mismatched), // circulating
        (26, 0x01, Reception::OtherMainDevice), // generation
        (17, 0x01, Reception::Mismatched),      // index of the slot
    ];
    for (byte, flip, expected) in changed {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        exchange.takes_circulating = false;
        let mut frame = sent_frame(&mut exchange);
        assert_eq!(frame, original);
        frame[byte] ^= flip;
        assert_eq!(accept(&mut exchange, &frame), Err(expected), "byte {byte}");
    }
}

/// A segment that leaves the source address alone, and a plug that sends everything back.
#[test]
fn unmarked_replies_are_optional_reflections_never_count() {
    let lrw_counter = 32 + 14 + 18;
    for asked_for in [false, true] {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        exchange.takes_unchanged_source = asked_for;
        let mut frame = sent_frame(&mut exchange);
        frame[6] &= !0x02;
        frame[32 + 2] = 0;
        assert_eq!(accept(&mut exchange, &frame), Err(Reception::Foreign), "nobody has touched it");
        assert_eq!((exchange.reflected, exchange.unchanged_source), (1, 0));
        let mut stranger = frame.clone();
        stranger[11] ^= 1;
        assert_eq!(accept(&mut exchange, &stranger), Err(Reception::Foreign), "of another source");
        // A counted position is enough, and so is a working counter.
        let mut passed = frame.clone();
        passed[32 + 2] = 1;
        frame[lrw_counter] = 3;
        let found = [passed, frame].map(|frame| accept(&mut exchange, &frame));
        let expected = match asked_for {
            true => [Ok((0, Purpose::ProcessData)), Err(Reception::Duplicate)],
            false => [Err(Reception::Foreign); 2],
        };
        assert_eq!(found, expected);
        assert_eq!(exchange.reflected, 1);
        assert!(exchange.unchanged_source > 0);
    }
}

/// Bytes of a service frame that starts with the proof of passage, and holds one read of `length`
/// bytes.
fn proved(exchange: &mut Exchange, length: usize) -> Vec<u8> {
    let mut outgoing = exchange.open(Purpose::Service).unwrap();
    outgoing.limit = 60;
    outgoing.prove_passage();
    let address = Address::Station { station: 0x1001, register: 0x1000 };
    outgoing.push(Command::Fprd, address, length, Owner::Worker(0)).unwrap();
    let slot = outgoing.send(Instant::EPOCH).unwrap();
    exchange.frame(slot).to_vec()
}

#[test]
fn an_unmarked_reply_of_no_sub_device_counts_when_proved() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    exchange.takes_unchanged_source = true;
    let mut frame = proved(&mut exchange, 2);
    assert_eq!(accept(&mut exchange, &frame), Err(Reception::Foreign), "a reflection");
    frame[32 + 2] += 1;
    assert_eq!(accept(&mut exchange, &frame), Ok((SLOTS - 1, Purpose::Service)));
}

#[test]
fn a_datagram_that_fills_a_frame_takes_the_place_of_the_proof() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    let datagrams = |frame: &[u8]| frame::Frame::parse(frame).unwrap().datagrams().count();
    assert_eq!(datagrams(&proved(&mut exchange, 1457)), 3);
    assert_eq!(datagrams(&proved(&mut exchange, 1458)), 2);
    let mut alone = exchange.open(Purpose::Service).unwrap();
    alone.prove_passage();
    assert_eq!(alone.send(Instant::EPOCH), None, "it is not sent alone");
}

#[test]
fn a_truncated_reply_is_refused_at_every_length() {
    let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
    let frame = sent_frame(&mut exchange);
    let unpadded = 32 + 14 + 20;
    for length in 0..unpadded {
        assert!(accept(&mut exchange, &frame[..length]).is_err(), "cut at {length}");
    }
    assert!(accept(&mut exchange, &frame[..unpadded]).is_ok());
}
