//! Layouts of process data.

use super::*;

fn share(position: u16, output: bool, bits: usize) -> Share {
    let direction = if output { FmmuDirection::Write } else { FmmuDirection::Read };
    Share {
        position,
        direction,
        physical_address: 0x1100,
        bits,
        refuses_lrw: false,
        maps_bits: true,
        is_loose: false,
        every: 1,
    }
}

#[test]
fn six_drives_of_twelve_bytes_are_one_datagram() {
    let shares: Vec<_> = (0..6).flat_map(|it| [share(it, true, 96), share(it, false, 96)]).collect();
    let layout = Layout::new(&shares, false);
    assert_eq!((layout.output_bytes, layout.input_bytes), (72, 72));
    let [chunk] = &layout.chunks[..] else { panic!("one chunk") };
    assert_eq!((chunk.writers, chunk.readers, chunk.read_write), (6, 6, true));
    assert_eq!((chunk.outputs.clone(), chunk.inputs.clone()), (0..72, 0..72));
    let third_inputs = layout.pieces.iter().find(|it| it.share == shares[5]).unwrap();
    assert_eq!(third_inputs.logical_address, LOGICAL_START + 72 + 24);
    assert_eq!(third_inputs.image, 24..36);
}

/// Contents of each chunk: first position and the one behind the last, writers, readers.
fn carried(chunks: &[Chunk]) -> Vec<(u16, u16, u16, u16)> {
    chunks.iter().map(|it| (it.positions.start, it.positions.end, it.writers, it.readers)).collect()
}

/// Logical addresses of each byte of the image, in order: outputs, inputs.
fn addresses(chunks: &[Chunk]) -> [Vec<u32>; 2] {
    let of = |base: u32, bytes: &Range<usize>| base..base + bytes.len() as u32;
    [
        chunks.iter().flat_map(|it| of(it.logical_address, &it.outputs)).collect(),
        chunks.iter().flat_map(|it| of(it.inputs_address, &it.inputs)).collect(),
    ]
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn the_spread_layout_has_the_same_bytes_at_the_same_addresses() {
    let mut shares: Vec<_> = (0..100).flat_map(|it| [share(it, true, 60), share(it, false, 100)]).collect();
    shares.insert(140, share(70, false, 3000 * 8));
    shares.retain(|it| it.position % 7 != 3);
    shares.retain(|it| it.position % 11 != 5 || it.is_output());
    let mut layout = Layout::new(&shares, false);
    let whole = addresses(&layout.chunks);
    assert_eq!((whole[0].len(), whole[1].len()), (layout.output_bytes, layout.input_bytes));
    for piece in &layout.pieces {
        let image = &whole[usize::from(!piece.share.is_output())][piece.image.clone()];
        let logical = piece.logical_address..piece.logical_address + piece.image.len() as u32;
        assert!(image.iter().copied().eq(logical));
    }
    for groups in [vec![], vec![Some(0); 100], (0..100).map(|it| (it % 3 > 0).then_some(it / 9)).collect()]
    {
        for period in [MILLISECOND, 100 * MILLISECOND] {
            layout.fit_spread(&groups, 32, period);
            assert_eq!(addresses(&layout.spread), whole);
        }
    }
}

#[test]
fn another_period_spreads_again_and_moves_nothing() {
    let mut shares: Vec<_> = (0..400).flat_map(|it| [share(it, true, 60), share(it, false, 100)]).collect();
    shares.insert(140, share(70, false, 3000 * 8));
    let of = |period| Layout::new(&shares, false).fitted(&[], period);
    let (short, long) = (of(MILLISECOND), of(100 * MILLISECOND));
    assert!(short.spread.len() < long.spread.len());
    assert_eq!(short.fitted(&[], 100 * MILLISECOND), long);
    assert_eq!(long.fitted(&[], MILLISECOND), short);
    assert_eq!((short.pieces, short.chunks), (long.pieces, long.chunks));
}

#[test]
fn spread_chunks_hold_one_sub_device_or_group() {
    let shares = [
        share(0, true, 8),
        share(0, false, 8),
        share(1, true, 8),
        // Position 2 has no process data.
        share(3, false, 8),
        share(4, true, 16),
        share(4, false, 16),
    ];
    let mut layout = Layout::new(&shares, false);
    layout.fit_spread(&[], 32, MILLISECOND);
    assert_eq!(carried(&layout.spread), [(0, 1, 1, 1), (1, 2, 1, 0), (3, 4, 0, 1), (4, 5, 1, 1)]);
    layout.fit_spread(&[Some(0), Some(1), None, Some(1), Some(0)], 32, MILLISECOND);
    assert_eq!(carried(&layout.spread), [(0, 1, 1, 1), (1, 4, 1, 1), (4, 5, 1, 1)]);
    assert_eq!(carried(&layout.chunks), [(0, 5, 3, 3)]);
}

#[test]
fn neighbours_are_joined_until_the_cycle_fits() {
    let shares: Vec<_> = (0..4000).flat_map(|it| [share(it, true, 8), share(it, false, 8)]).collect();
    let of = |frames, time| {
        let mut layout = Layout::new(&shares, false);
        layout.fit_spread(&[], frames, time);
        (layout.spread.len(), load(&layout.spread))
    };
    let (apart, (most, _)) = of(1000, 100 * MILLISECOND);
    assert_eq!(apart, 4000);
    assert_eq!(most, 4000 * 26 / 1400 + 1);
    // 75 frames apart, 6 at least: 32 are enough for some threes.
    let (threes, (frames, _)) = of(32, 100 * MILLISECOND);
    assert!(frames <= 32 && (1000..2000).contains(&threes), "{threes} in {frames}");
    let (few, (_, time)) = of(32, MILLISECOND);
    assert!(time <= MILLISECOND && (100..threes).contains(&few), "{few} in {time:?}");
    // No time at all: as few as without spreading.
    let (fewest, (frames, _)) = of(1, Duration::ZERO);
    assert!(fewest <= 8 && frames <= 8, "{fewest} in {frames}");
}

#[test]
fn a_few_bits_take_a_byte_and_map_only_their_bits() {
    let layout = Layout::new(&[share(0, true, 4), share(1, true, 12)], false);
    assert_eq!(layout.output_bytes, 3);
    assert_eq!(layout.pieces[0].fmmu().bit_length(), 4);
    assert_eq!(layout.pieces[1].fmmu().bit_length(), 12);
    assert_eq!(layout.pieces[1].logical_address, LOGICAL_START + 1);
}

#[test]
fn refused_lrw_splits_its_chunk_into_lwr_and_lrd() {
    let mut shares = [share(0, true, 8), share(0, false, 8)];
    shares[1].refuses_lrw = true;
    assert!(!Layout::new(&shares, false).chunks[0].read_write);
}

#[test]
fn slower_exchanges_have_separate_later_chunks() {
    let shares: Vec<_> = (0..6)
        .flat_map(|it| [share(it, true, 8), share(it, false, 16)])
        .map(|it| Share { every: [1, 4, 2][usize::from(it.position % 3)], ..it })
        .collect();
    let layout = Layout::new(&shares, false);
    let told: Vec<_> = layout.chunks.iter().map(|it| (it.every, it.writers, it.readers)).collect();
    assert_eq!(told, [(1, 2, 2), (2, 2, 2), (4, 2, 2)]);
    assert_eq!(layout.spread.len(), 6);
    let spread = addresses(&layout.spread);
    assert_eq!(addresses(&layout.chunks), spread);
    assert_eq!((spread[0].len(), spread[1].len()), (6, 12));
    assert_eq!(layout.fitted(&[], MILLISECOND).chunks, layout.chunks);
    assert!(layout.pieces.is_sorted_by_key(|it| it.share.position));
}

#[test]
fn sixty_large_subdevices_fill_frames_without_splitting_any() {
    let shares: Vec<_> = (0..60).flat_map(|it| [share(it, true, 800), share(it, false, 800)]).collect();
    let layout = Layout::new(&shares, false);
    assert_eq!(layout.chunks.len(), 10); // six of 200 bytes in 1376
    assert!(layout.chunks.iter().all(|chunk| (chunk.writers, chunk.readers) == (6, 6)));
    let logical: Vec<_> = layout.chunks.iter().map(|chunk| chunk.logical_address).collect();
    assert!(logical.windows(2).all(|pair| pair[1] - pair[0] == 1200));
}

#[test]
fn a_piece_larger_than_a_datagram_is_cut_and_counted_in_each() {
    let layout = Layout::new(&[share(0, true, 8), share(1, false, 3000 * 8), share(2, true, 8)], false);
    let lengths: Vec<_> = layout
        .chunks
        .iter()
        .map(|it| (it.outputs.len(), it.inputs.len(), it.writers, it.readers))
        .collect();
    assert_eq!(lengths, [(1, 0, 1, 0), (0, 1376, 0, 1), (0, 1376, 0, 1), (0, 248, 0, 1), (1, 0, 1, 0)]);
    assert_eq!(layout.pieces[1].fmmu().length, 3000);
}

/// Two, four and eight bits as in a coupler's terminals: whole bytes first, then the shared ones;
/// each FMMU maps different bits.
#[test]
fn a_few_bits_of_several_share_a_byte() {
    let shares = [
        share(0, true, 4),
        share(1, false, 8),
        share(2, false, 4),
        share(3, true, 96),
        share(3, false, 96),
        share(4, false, 2),
        share(5, true, 4),
        share(6, false, 3),
        share(7, true, 1),
    ];
    let layout = Layout::new(&shares, true).fitted(&[], MILLISECOND);
    assert_eq!(
        (layout.output_bytes, layout.input_bytes),
        (12 + 3, 13 + 3),
        "the image has a byte for each"
    );
    let [chunk] = &layout.chunks[..] else { panic!("one chunk") };
    assert_eq!((chunk.output_bytes(), chunk.input_bytes()), (12 + 2, 13 + 2));
    assert_eq!((chunk.writers, chunk.readers), (4, 5));
    let bits = |position: u16| {
        let piece = layout.pieces.iter().find(|it| it.share.position == position).unwrap();
        let fmmu = piece.fmmu();
        assert_eq!((fmmu.length, fmmu.bit_length() as usize), (1, piece.share.bits));
        (fmmu.logical_address - LOGICAL_START, fmmu.logical_start_bit, fmmu.logical_end_bit)
    };
    assert_eq!([bits(0), bits(5), bits(7)], [(12, 0, 3), (12, 4, 7), (13, 0, 0)]);
    assert_eq!(
        [bits(2), bits(4), bits(6)],
        [(27, 0, 3), (27, 4, 5), (28, 0, 2)],
        "none lies across two bytes"
    );
    // In separate datagrams, logical addresses do not distinguish them.
    assert_eq!(layout.spread.len(), 8);
    assert_eq!(layout.spread.iter().filter(|it| it.physical.is_some()).count(), 6);
    assert_eq!(layout.fitted(&[], MILLISECOND), layout);
    assert!(!layout.is_crowded());
}

/// Outputs come into their bits of a datagram, inputs out of theirs, and none into another's.
#[test]
fn bits_go_to_and_from_their_places() {
    let shares: Vec<_> = (0..4).flat_map(|it| [share(it, true, 3), share(it, false, 4)]).collect();
    let layout = Layout::new(&shares, true);
    let chunk = &layout.chunks[0];
    let mut data = [0xAA; 2];
    chunk.packed_outputs.pack(&[0xFF, 0x00, 0xFD, 0xF9], &mut data);
    assert_eq!(data, [0b0000_0111, 0b0000_1101], "three bits, two to a byte");
    let mut inputs = [0x55; 4];
    chunk.packed_inputs.unpack(&[0x2F, 0x71], &mut inputs);
    assert_eq!(inputs, [0x0F, 0x02, 0x01, 0x07]);
}

/// Not packed: SubDevices that may be absent, have more in the same direction, or whose FMMUs map
/// whole bytes only.
#[test]
fn optional_sub_devices_share_no_byte() {
    let mut shares = [0, 1, 2, 2, 3].map(|position| share(position, false, 4));
    (shares[1].is_loose, shares[4].maps_bits) = (true, false);
    let layout = Layout::new(&shares, true);
    assert_eq!(layout.chunks[0].input_bytes(), 5);
    assert!(layout.pieces.iter().all(|it| it.start_bit == 0));
}

/// Shares are not packed if their separate datagrams do not fit a cycle.
#[test]
fn layout_without_space_to_spread_is_crowded() {
    let shares: Vec<_> = (0..4000).map(|it| share(it, false, 4)).collect();
    assert!(Layout::new(&shares, true).fitted(&[], MILLISECOND).is_crowded());
    assert!(!Layout::new(&shares[..40], true).fitted(&[], MILLISECOND).is_crowded());
}
