//! Strips with a clock line. Source: Shiji Lighting, *APA102*; SK9822 differs in the instant of
//! display.

use super::Colour;

/// Appends a frame: 32 zero bits; for each LED three ones and 5 bits of brightness, then blue,
/// green, red; at the end zeros to clock the last LEDs, which lag half a bit each, and 32 more for
/// an SK9822, which updates its outputs only then.
pub fn encode(colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
    wire.clear();
    wire.extend([0; 4]);
    for &[red, green, blue] in colours {
        wire.extend([0xe0 | brightness.min(31), blue, green, red]);
    }
    wire.extend(std::iter::repeat_n(0, 4 + colours.len().div_ceil(16)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_match_the_data_sheet() {
        let mut wire = vec![9; 3];
        encode(&[[1, 2, 3], [255, 0, 128]], 31, &mut wire);
        assert_eq!(wire[..12], [0, 0, 0, 0, 0xff, 3, 2, 1, 0xff, 128, 0, 255]);
        assert_eq!(wire[12..], [0; 5]);
        encode(&[[0; 3]; 300], 255, &mut wire);
        // 300 LEDs shift the end by 150 bits.
        assert!(wire.len() >= 4 + 1200 + 4 + 19 && wire[4] == 0xff);
    }
}
