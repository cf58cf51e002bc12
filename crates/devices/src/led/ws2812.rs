//! Strips without a clock line: a bit is a pulse, long for a 1. Source: Worldsemi, *WS2812B*.

use super::Colour;

/// Speed of the wire, bit/s. Three wire bits make one: 0.42 us high and 0.83 us low for a 0, the
/// reverse for a 1.
pub const SPEED: u32 = 2_400_000;

/// Appends a frame: green, red, blue, highest bit first, each bit as 100 or 110; then 300 us low,
/// after which the strip updates its outputs. These LEDs have no brightness setting: the colours
/// are scaled.
pub fn encode(colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
    wire.clear();
    let scale = |value: u8| (u16::from(value) * u16::from(brightness.min(31)) / 31) as u8;
    for &[red, green, blue] in colours {
        for value in [green, red, blue].map(scale) {
            let bits = (0..8)
                .rev()
                .fold(0_u32, |bits, place| bits << 3 | if value >> place & 1 == 1 { 0b110 } else { 0b100 });
            wire.extend(&bits.to_be_bytes()[1..]);
        }
    }
    wire.extend(std::iter::repeat_n(0, SPEED as usize / 8 * 300 / 1_000_000));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_a_pulse_of_its_length() {
        let mut wire = Vec::new();
        encode(&[[0x00, 0xff, 0x80]], 31, &mut wire);
        let bits: String = wire.iter().map(|byte| format!("{byte:08b}")).collect();
        assert_eq!(bits[..24], "110".repeat(8), "green first");
        assert_eq!(bits[24..48], "100".repeat(8), "then red");
        assert_eq!(bits[48..72], format!("110{}", "100".repeat(7)), "then blue");
        assert!(bits[72..].chars().all(|bit| bit == '0') && wire.len() - 9 >= 84);
        encode(&[[255, 255, 255]], 0, &mut wire);
        assert_eq!(wire[..3], [0b1001_0010, 0b0100_1001, 0b0010_0100]);
    }
}
