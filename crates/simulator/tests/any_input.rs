//! Any input: nothing panics, nothing hangs, no frame changes its length or its place in time. The
//! fuzz target `simulator` searches for such input by coverage; this test draws it at random, the
//! same on every run.

use crate::bus;

use bus::{echo, sii};
use ethercat::link::Segment as _;
use ethercat::time::Instant;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_simulator::segment::Attachment;
use onbeat_simulator::{EscDescription, Segment, SubDevice};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

fn segment() -> Segment {
    let mut description =
        EscDescription { ram_kib: 60, fmmus: 16, sync_managers: 16, ..EscDescription::default() };
    description.features.bits = 1 << 2; // a 32-bit clock
    let devices =
        vec![echo(4), SubDevice::new(description, sii(0x0100, 3), bus::Echo::new(2)), echo(0), echo(7)];
    let attachments = [Attachment::new(0, 1), Attachment::new(0, 3), Attachment::new(1, 2)];
    Segment::with_topology(devices, &attachments).unwrap()
}

/// Adds a datagram that is more likely than a random one to reach a register.
fn push(random: &mut Random, builder: &mut FrameBuilder<'_>) {
    let command = Command::from_number(random.below(16) as u8);
    let around =
        [0x0000_u16, 0x0040, 0x0100, 0x0120, 0x0200, 0x0400, 0x0500, 0x0600, 0x0800, 0x0900, 0x0910];
    let more = [0x0980, 0x0990, 0x0F00, 0x1000, 0x2FF0, 0xFFF0];
    let bases = [around.as_slice(), more.as_slice()].concat();
    let register = random.one_of(&bases).wrapping_add(random.below(0x90) as u16);
    let position = random.one_of(&[0, 0xFFFF, 0xFFFE, 0xFFFD, 7]);
    let address = if command.is_logical() {
        Address::Logical(random.one_of(&[0, 3, 0x1000, u32::MAX - 3]))
    } else {
        Address::AutoIncrement { position, register }
    };
    let length = random.one_of(&[0, 1, 2, 4, 8, 16, 200, 1200]);
    let mut header = DatagramHeader::new(command, 0, address, length);
    header.reserved = random.below(8) as u8;
    if let Some(place) = builder.push(header) {
        let small = random.below(2) == 0;
        for byte in builder.data_mut(&place) {
            *byte = random.next() as u8 & if small { 0x0F } else { 0xFF };
        }
    }
}

// feature(simulator): any bytes in, no panic
#[test]
fn random_frames_and_time_steps_never_panic_or_hang() {
    for seed in 1..=40 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut segment = segment();
        let mut now = Instant::from_nanos(random.one_of(&[0, 1_700_000_000_000_000_000, u64::MAX]));
        for _ in 0..250 {
            let mut buffer = [0; 1514];
            let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
            for _ in 0..=random.below(6) {
                push(&mut random, &mut builder);
            }
            let length = builder.finish();
            if random.below(8) == 0 {
                let at = random.below(length as u64) as usize;
                buffer[at] ^= random.next() as u8;
            }
            let before = [&buffer[..6], &buffer[12..16]].concat();
            segment.process_frame(now, &mut buffer[..length]);
            assert_eq!([&buffer[..6], &buffer[12..16]].concat(), before, "headers stay");
            let step = random.one_of(&[0, 1, 1_000, 250_000, 3_000_000, 40_000_000]);
            now = Instant::from_nanos(now.as_nanos().saturating_add(random.below(step + 1)));
            segment.advance(now);
            let (position, port) = (random.below(5) as usize, random.below(5) as usize);
            match random.below(40) {
                0 => _ = segment.disconnect(position, port),
                1..=4 => _ = segment.connect(position, port),
                5 => _ = segment.power_cycle(position),
                _ => {}
            }
        }
        segment.advance(Instant::from_nanos(u64::MAX));
    }
}

#[test]
fn frames_cut_anywhere_do_not_panic() {
    let mut segment = segment();
    let mut buffer = [0; 1514];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::Broadcast { register: 0x0600 };
    builder.push(DatagramHeader::new(Command::Brw, 0, address, 300)).unwrap();
    builder.push(DatagramHeader::new(Command::Lrw, 0, Address::Logical(0), 300)).unwrap();
    let length = builder.finish();
    for cut in 0..length {
        let mut frame = buffer[..cut].to_vec();
        let returns = segment.process_frame(Instant::EPOCH, &mut frame);
        assert_eq!((returns, frame.len()), (cut >= 14, cut), "whatever still is an Ethernet frame");
    }
}
