//! Colours of a pattern over time.

use ipc::sensor::{LedRequest, Pattern};

use super::Colour;

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
