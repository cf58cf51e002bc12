//! Real-time task of the LED strip.

use ipc::sensor::{Head, Led, LedRequest, Pattern};

use crate::led;
use crate::led::{Colour, MOST_LEDS};
use crate::pair::{Datagram, Moment, Put, Take, Work};

/// Colours of the strip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of colours in use.
    pub count: usize,
    /// Red, green, blue of each LED.
    pub leds: Box<[Colour; MOST_LEDS]>,
}

impl Default for Frame {
    fn default() -> Self {
        Self { count: 0, leds: Box::new([[0; 3]; MOST_LEDS]) }
    }
}

impl Datagram for Frame {
    const LARGEST: usize = 2 + 3 * MOST_LEDS;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        let count = self.count.min(MOST_LEDS);
        let put = Put::new(bytes).u16(count as u16);
        self.leds[..count].iter().fold(put, |put, led| put.bytes(led)).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let Some(count) = take.u16().map(usize::from).filter(|&count| count <= MOST_LEDS) else {
            return false;
        };
        self.count = count;
        let whole = take.0.len() == 3 * count;
        for (to, from) in self.leds.iter_mut().zip(take.0.chunks_exact(3)) {
            to.copy_from_slice(from);
        }
        whole
    }
}

/// Confirmation that the strip took a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Time of the confirmation, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
}

impl Datagram for Taken {
    const LARGEST: usize = 8;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        Put::new(bytes).u64(self.stamp_ns).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let Some((stamp_ns, ())) = take.u64().zip(take.end()) else { return false };
        self.stamp_ns = stamp_ns;
        true
    }
}

/// Paints a pattern, one frame a period.
#[derive(Clone, Debug)]
pub struct LedStripWork {
    leds: usize,
    shows: LedRequest,
    /// Start of the pattern, CLOCK_MONOTONIC ns.
    since_ns: u64,
    frames: u32,
}

impl LedStripWork {
    /// Creates the work for a strip of this many LEDs, at most [`MOST_LEDS`]; it breathes in blue
    /// until the first request.
    #[must_use]
    pub fn new(leds: usize) -> Self {
        let shows = LedRequest { pattern: Pattern::Breathe, colour: [0, 0, 64], round_ms: 2_000 };
        Self { leds: leds.min(MOST_LEDS), shows, since_ns: 0, frames: 0 }
    }
}

impl Work for LedStripWork {
    type Sample = Taken;
    type Request = Frame;
    const PUBLISHED: usize = Led::SIZE;

    fn take(&mut self, sample: &Taken) -> u64 {
        self.frames = self.frames.wrapping_add(1);
        sample.stamp_ns
    }

    fn receive(&mut self, bytes: &[u8], moment: &Moment) -> bool {
        let Ok(request) = LedRequest::decode(bytes) else { return false };
        (self.shows, self.since_ns) = (request, moment.release_ns);
        true
    }

    fn step(&mut self, moment: &Moment, request: &mut Frame) -> bool {
        request.count = self.leds;
        let elapsed_ns = moment.release_ns.saturating_sub(self.since_ns);
        led::paint(&self.shows, elapsed_ns, &mut request.leds[..self.leds]);
        true
    }

    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize> {
        let LedRequest { pattern, colour, .. } = self.shows;
        Led { head, pattern, colour, leds: self.leds as u16, frames: self.frames }.encode(bytes)
    }
}
