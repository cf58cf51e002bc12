use proptest::prelude::*;

use super::*;

/// One PDO per slice; entries as mapping objects hold them.
fn mapping(outputs: &[&[u32]], inputs: &[&[u32]]) -> PdoMapping {
    let pdos = |all: &[&[u32]]| {
        let pdo = |entries: &&[u32]| Pdo {
            index: 0x1600,
            sync_manager: Some(2),
            fixed: false,
            name: String::new(),
            entries: entries.iter().map(|&value| PdoEntry::from_mapping_value(value)).collect(),
        };
        all.iter().map(pdo).collect()
    };
    PdoMapping { outputs: pdos(outputs), inputs: pdos(inputs) }
}

/// Written values are read back, the neighbouring bits stay.
fn there_and_back<T: ProcessValue + PartialEq + core::fmt::Debug>(
    before: usize,
    bits: u8,
    value: T,
    noise: u64,
) {
    let padding: Vec<u32> = (0..before).map(|_| 1).collect();
    let mapping = mapping(&[&padding, &[0x7000_0100 | u32::from(bits)], &[0x7010_0140]], &[]);
    let field = mapping.field::<T>(Direction::Output, 0x7000, 1).unwrap();
    let behind = mapping.field::<u64>(Direction::Output, 0x7010, 1).unwrap();
    let mut image = [0xA5; 24];
    behind.set(&mut image, noise);
    let in_front = image[0];
    field.set(&mut image, value);
    assert_eq!(field.get(&image), value);
    assert_eq!(behind.get(&image), noise);
    let kept = ((1_u16 << before.min(8)) - 1) as u8;
    assert_eq!(image[0] & kept, in_front & kept);
}

fn cut(value: u64, bits: u8) -> u64 {
    value & u64::MAX >> (64 - bits)
}

fn cut_signed(value: i64, bits: u8) -> i64 {
    value << (64 - bits) >> (64 - bits)
}

proptest! {
    // feature(protocol): process data by type: `bool`, integers of 1 to 64 bits, floats, byte strings, arrays, at any offset; neighbouring bits do not change
    #[test]
    fn every_width_at_every_offset_is_read_as_it_was_written(
        before in 0_usize..16, bits in 1_u8..=64, value: u64, noise: u64
    ) {
        let signed = cut_signed(value as i64, bits);
        let value = cut(value, bits);
        match bits {
            1..=8 => {
                there_and_back(before, bits, value as u8, noise);
                there_and_back(before, bits, signed as i8, noise);
            }
            9..=16 => {
                there_and_back(before, bits, value as u16, noise);
                there_and_back(before, bits, signed as i16, noise);
            }
            17..=32 => {
                there_and_back(before, bits, value as u32, noise);
                there_and_back(before, bits, signed as i32, noise);
            }
            _ => {
                there_and_back(before, bits, value, noise);
                there_and_back(before, bits, signed, noise);
            }
        }
    }

    // feature(protocol): process data by type: `bool`, integers of 1 to 64 bits, floats, byte strings, arrays, at any offset; neighbouring bits do not change
    #[test]
    fn bits_floats_and_arrays_are_read_as_they_were_written(
        before in 0_usize..16, bit: bool, single in -1e30_f32..1e30, double in -1e300_f64..1e300, bytes: [u8; 8],
        word: u16, noise: u64
    ) {
        there_and_back(before, 1, bit, noise);
        there_and_back(before, 32, single, noise);
        there_and_back(before, 64, double, noise);
        there_and_back(before, 64, bytes, noise);
        there_and_back(before, 16, core::array::from_fn::<bool, 16, _>(|it| word >> it & 1 != 0), noise);
    }

    #[test]
    fn an_integer_that_does_not_fit_becomes_the_nearest_that_does(bits in 1_u8..=64, value: u64) {
        let mapping = mapping(&[&[0x7000_0100 | u32::from(bits)]], &[]);
        let mut image = [0; 8];
        let highest = cut(u64::MAX, bits);
        if let Ok(field) = mapping.field::<u64>(Direction::Output, 0x7000, 1) {
            field.set(&mut image, value);
            prop_assert_eq!(field.get(&image), value.min(highest));
        }
        if let Ok(field) = mapping.field::<i8>(Direction::Output, 0x7000, 1) {
            field.set(&mut image, value as i8);
            let highest = (highest >> 1) as i8;
            prop_assert_eq!(field.get(&image), (value as i8).clamp(-highest - 1, highest));
        }
    }

    /// For any mapping and any request a field lies within the mapped bits, and an error is a
    /// sentence.
    // feature(protocol): process data by type: `bool`, integers of 1 to 64 bits, floats, byte strings, arrays, at any offset; neighbouring bits do not change
    #[test]
    fn a_field_lies_within_what_is_mapped(
        entries in prop::collection::vec((0_u32..4, 0_u32..3, any::<u8>()), 0..12), index in 0_u16..4, sub_index in 0_u8..3
    ) {
        let entries: Vec<u32> = entries.iter().map(|&(i, s, b)| i << 16 | s << 8 | u32::from(b)).collect();
        let mapping = mapping(&[], &[&entries]);
        let end = mapping.input_bits();
        macro_rules! within {
            ($($wanted:ty)*) => {$(match mapping.field::<$wanted>(Direction::Input, index, sub_index) {
                Ok(field) => {
                    let place = field.place();
                    let elements = <$wanted as ProcessValue>::ELEMENTS;
                    prop_assert!(place.bit_offset + place.bit_length * elements <= end);
                }
                Err(error) => prop_assert!(error.to_string().len() > 20),
            })*};
        }
        within!(bool u8 i16 u32 i64 f32 f64 [bool; 3] [u8; 5] [i16; 4] [f32; 2]);
    }
}

// feature(protocol): process data by type: `bool`, integers of 1 to 64 bits, floats, byte strings, arrays, at any offset; neighbouring bits do not change
#[test]
fn arrays_take_entries_side_by_side() {
    // Four samples, padding, one more; eight bytes in entries of three and five.
    let samples = &[0x6000_0110, 0x6000_0210, 0x6000_0310, 0x6000_0410, 0x0000_0010, 0x6000_0510];
    let mapping = mapping(&[], &[samples, &[0x6010_0118, 0x6010_0228]]);
    let image: Vec<u8> = (0..20).collect();
    let four = mapping.field::<[u16; 4]>(Direction::Input, 0x6000, 1).unwrap();
    assert_eq!(four.get(&image), [0x0100, 0x0302, 0x0504, 0x0706]);
    let two = mapping.field::<[i16; 2]>(Direction::Input, 0x6000, 3).unwrap();
    assert_eq!(two.get(&image), [0x0504, 0x0706]);
    let eight = mapping.field::<[u8; 8]>(Direction::Input, 0x6010, 1).unwrap();
    assert_eq!(eight.get(&image), [12, 13, 14, 15, 16, 17, 18, 19]);
    let length = |elements, wanted| FieldError::Length { index: 0x6000, sub_index: 1, elements, wanted };
    assert_eq!(mapping.field::<[u16; 5]>(Direction::Input, 0x6000, 1), Err(length(4, "[u16; 5]")));
    let nine = mapping.field::<[u8; 9]>(Direction::Input, 0x6010, 1).unwrap_err();
    assert!(matches!(nine, FieldError::Length { elements: 8, .. }), "{nine:?}");
    let four = mapping.field::<[u8; 4]>(Direction::Input, 0x6010, 1).unwrap_err();
    assert!(matches!(four, FieldError::Length { elements: 8, .. }), "an entry is not cut: {four:?}");
}

// feature(protocol): a wrong object, direction or width is refused, with the near ones
#[test]
fn field_errors_name_nearby_objects() {
    let mapping = mapping(&[&[0x7000_0101]], &[&[0x6041_0010, 0x6064_0020, 0x0000_0008]]);
    let error =
        |direction, index, sub_index| mapping.field::<u16>(direction, index, sub_index).unwrap_err();
    assert_eq!(
        error(Direction::Input, 0x6040, 0).to_string(),
        "no input 0x6040:00 is mapped; near it: 0x6041:00 (16 bits), 0x6064:00 (32 bits)"
    );
    assert_eq!(error(Direction::Output, 0x6041, 0).to_string(), "0x6041:00 is an input, not an output");
    assert_eq!(
        error(Direction::Input, 0x6064, 0).to_string(),
        "0x6064:00 has 32 bits, which u16 does not take; read and write it as u32, i32 or f32"
    );
    assert_eq!(
        error(Direction::Output, 0x7000, 1).to_string(),
        "0x7000:01 has 1 bit, which u16 does not take; read and write it as bool or u8"
    );
    let none = PdoMapping::default().field::<bool>(Direction::Input, 0x6000, 1).unwrap_err();
    assert_eq!(none.to_string(), "no input 0x6000:01 is mapped; it has no inputs");
}

#[test]
fn padding_is_nobodys() {
    let mapping = mapping(&[], &[&[0x0000_0008, 0x6000_0108]]);
    assert!(mapping.field::<u8>(Direction::Input, 0, 0).is_err());
}

#[test]
fn an_image_that_ends_early_reads_as_zero_and_is_not_written() {
    let mapping = mapping(&[&[0x7000_0110, 0x7000_0220]], &[]);
    let field = mapping.field::<u32>(Direction::Output, 0x7000, 2).unwrap();
    let mut image = [0xFF; 5];
    field.set(&mut image, 0);
    assert_eq!((field.get(&image), image), (0, [0xFF; 5]));
}

#[test]
fn suggested_types_take_the_width() {
    macro_rules! widths {
        ($($name:ty)*) => { [$((stringify!($name), <$name as ProcessElement>::WIDTHS)),*] };
    }
    let widths = widths! { bool u8 i8 u16 i16 u32 i32 f32 u64 i64 f64 };
    for bits in 1..=64 {
        let mut told: Vec<&str> = fitting(bits).split(", ").flat_map(|it| it.split(" or ")).collect();
        let takes = widths.iter().filter(|(_, widths)| widths.contains(&bits));
        // A bit has no sign.
        let mut expected: Vec<&str> =
            takes.map(|(name, _)| *name).filter(|&name| (bits, name) != (1, "i8")).collect();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{bits} bits");
    }
    assert_eq!(fitting(65), "an array");
}
