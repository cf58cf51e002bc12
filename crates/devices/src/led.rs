//! LED strips on an SPI bus: from colours to the bits on the wire, without I/O or clock.

use ipc::sensor::{LedRequest, Pattern};
use types::LedChip;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// Most LEDs of a strip.
pub const MOST_LEDS: usize = 512;

/// Appends the bytes that show these colours, with this brightness out of 31.
pub fn encode(chip: LedChip, colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
    match chip {
        LedChip::Apa102 => apa102_frame(colours, brightness, wire),
        LedChip::Ws2812 => ws2812_frame(colours, brightness, wire),
    }
}

/// Speed of the wire, bit/s.
#[must_use]
pub fn speed(chip: LedChip) -> u32 {
    match chip {
        LedChip::Apa102 => 4_000_000,
        LedChip::Ws2812 => WS2812_SPEED,
    }
}

/// Appends a frame: 32 zero bits; for each LED three ones and 5 bits of brightness, then blue,
/// green, red; at the end zeros to clock the last LEDs, which lag half a bit each, and 32 more for
/// an SK9822, which updates its outputs only then.
pub fn apa102_frame(colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
    wire.clear();
    wire.extend([0; 4]);
    for &[red, green, blue] in colours {
        wire.extend([0xe0 | brightness.min(31), blue, green, red]);
    }
    wire.extend(std::iter::repeat_n(0, 4 + colours.len().div_ceil(16)));
}

/// Speed of the wire, bit/s. Three wire bits make one: 0.42 us high and 0.83 us low for a 0, the
/// reverse for a 1.
pub const WS2812_SPEED: u32 = 2_400_000;

/// Appends a frame: green, red, blue, highest bit first, each bit as 100 or 110; then 300 us low,
/// after which the strip updates its outputs. These LEDs have no brightness setting: the colours
/// are scaled.
pub fn ws2812_frame(colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
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
    wire.extend(std::iter::repeat_n(0, WS2812_SPEED as usize / 8 * 300 / 1_000_000));
}

/// Paints the colours at an instant, in ns since the pattern began. Allocates nothing.
pub fn paint(request: &LedRequest, elapsed_ns: u64, leds: &mut [Colour]) {
    let round_ns = u64::from(request.round_ms.max(1)) * 1_000_000;
    let phase = (elapsed_ns % round_ns) as f64 / round_ns as f64;
    let count = leds.len().max(1) as f64;
    for (place, led) in leds.iter_mut().enumerate() {
        let share = match request.pattern {
            Pattern::Dark => 0.0,
            Pattern::Steady => 1.0,
            Pattern::Blink => f64::from(u8::from(phase < 0.5)),
            Pattern::Breathe => (1.0 - (std::f64::consts::TAU * phase).cos()) / 2.0,
            Pattern::Chase => {
                // Distance behind the head, as a share of the strip.
                let behind = (phase - place as f64 / count).rem_euclid(1.0);
                (1.0 - behind / TAIL).max(0.0)
            }
        };
        *led = request.colour.map(|value| (f64::from(value) * share).round() as u8);
    }
}

/// Length of the tail of a running light, as a share of the strip.
const TAIL: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_match_the_data_sheet() {
        let mut wire = vec![9; 3];
        apa102_frame(&[[1, 2, 3], [255, 0, 128]], 31, &mut wire);
        assert_eq!(wire[..12], [0, 0, 0, 0, 0xff, 3, 2, 1, 0xff, 128, 0, 255]);
        assert_eq!(wire[12..], [0; 5]);
        apa102_frame(&[[0; 3]; 300], 255, &mut wire);
        // 300 LEDs shift the end by 150 bits.
        assert!(wire.len() >= 4 + 1200 + 4 + 19 && wire[4] == 0xff);
    }

    #[test]
    fn a_bit_is_a_pulse_of_its_length() {
        let mut wire = Vec::new();
        ws2812_frame(&[[0x00, 0xff, 0x80]], 31, &mut wire);
        let bits: String = wire.iter().map(|byte| format!("{byte:08b}")).collect();
        assert_eq!(bits[..24], "110".repeat(8), "green first");
        assert_eq!(bits[24..48], "100".repeat(8), "then red");
        assert_eq!(bits[48..72], format!("110{}", "100".repeat(7)), "then blue");
        assert!(bits[72..].chars().all(|bit| bit == '0') && wire.len() - 9 >= 84);
        ws2812_frame(&[[255, 255, 255]], 0, &mut wire);
        assert_eq!(wire[..3], [0b1001_0010, 0b0100_1001, 0b0010_0100]);
    }

    fn at(pattern: Pattern, milliseconds: u64) -> Vec<u8> {
        let request = LedRequest { pattern, colour: [200, 0, 0], round_ms: 1_000 };
        let mut leds = [[9; 3]; 8];
        paint(&request, milliseconds * 1_000_000, &mut leds);
        assert!(leds.iter().all(|led| led[1] == 0 && led[2] == 0));
        leds.iter().map(|led| led[0]).collect()
    }

    #[test]
    fn patterns_do_what_they_are_called() {
        assert_eq!(at(Pattern::Dark, 0), [0; 8]);
        assert_eq!(at(Pattern::Steady, 123), [200; 8]);
        assert_eq!((at(Pattern::Blink, 499), at(Pattern::Blink, 500)), (vec![200; 8], vec![0; 8]));
        assert_eq!((at(Pattern::Breathe, 1_000), at(Pattern::Breathe, 500)), (vec![0; 8], vec![200; 8]));
        let head = |milliseconds| at(Pattern::Chase, milliseconds).iter().position(|&it| it == 200);
        assert_eq!([head(0), head(125), head(875)], [Some(0), Some(1), Some(7)]);
        assert_eq!(at(Pattern::Chase, 500).iter().filter(|&&it| it > 0).count(), 2);
    }

    #[test]
    fn no_round_and_no_leds_are_no_trouble() {
        paint(&LedRequest { round_ms: 0, ..LedRequest::default() }, u64::MAX, &mut [[0; 3]; 2]);
        paint(&LedRequest::default(), 7, &mut []);
    }
}
