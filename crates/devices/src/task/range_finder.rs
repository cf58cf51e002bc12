//! Real-time task of the laser range finder.

use ipc::sensor::{Head, MOST_POINTS, ScanHead};

use crate::pair::{Datagram, Moment, Poke, Put, Take, Work};

/// Scan as received from the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Start of the scan, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
    /// Duration of a turn, us.
    pub turn_us: u32,
    /// Steps of a turn.
    pub steps_per_turn: u32,
    /// First step of the scan.
    pub first: u16,
    /// Step that points ahead.
    pub front: u16,
    /// Shortest and longest range, mm.
    pub reach: [u32; 2],
    /// Number of ranges in use.
    pub count: usize,
    /// Ranges, mm; values below the shortest are error codes, 0 is no echo.
    pub ranges: Box<[u32; MOST_POINTS]>,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            stamp_ns: 0,
            turn_us: 0,
            steps_per_turn: 0,
            first: 0,
            front: 0,
            reach: [0; 2],
            count: 0,
            ranges: Box::new([0; MOST_POINTS]),
        }
    }
}

const BEFORE: usize = 8 + 4 + 4 + 2 + 2 + 8 + 4;

impl Datagram for Sample {
    const LARGEST: usize = BEFORE + 4 * MOST_POINTS;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        let put = Put::new(bytes).u64(self.stamp_ns).u32(self.turn_us).u32(self.steps_per_turn);
        let put = put.u16(self.first).u16(self.front).u32(self.reach[0]).u32(self.reach[1]);
        let count = self.count.min(MOST_POINTS);
        let put = put.u32(count as u32);
        self.ranges[..count].iter().fold(put, |put, &range| put.u32(range)).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let mut read = || {
            self.stamp_ns = take.u64()?;
            (self.turn_us, self.steps_per_turn) = (take.u32()?, take.u32()?);
            (self.first, self.front) = (take.u16()?, take.u16()?);
            self.reach = [take.u32()?, take.u32()?];
            self.count = usize::try_from(take.u32()?).ok().filter(|&count| count <= MOST_POINTS)?;
            for range in &mut self.ranges[..self.count] {
                *range = take.u32()?;
            }
            (self.steps_per_turn > 0).then_some(())
        };
        read().and_then(|()| take.end()).is_some()
    }
}

/// Converts scans into metres and finds the nearest obstacle ahead.
#[derive(Clone, Debug)]
pub struct RangeFinderWork {
    /// Half of the sector ahead in which obstacles are detected, rad.
    pub watched: f64,
    head: ScanHead,
    ranges: Box<[f32; MOST_POINTS]>,
    count: usize,
}

impl RangeFinderWork {
    /// Creates the work; `watched` is half of the sector ahead in which obstacles are detected,
    /// rad.
    #[must_use]
    pub fn new(watched: f64) -> Self {
        let head = ScanHead { obstacle_distance: f64::INFINITY, ..ScanHead::default() };
        Self { watched, head, ranges: Box::new([f32::NAN; MOST_POINTS]), count: 0 }
    }
}

/// Range in metres as in REP 117. Codes below the shortest range are errors of the device (SCIP: 0
/// no echo, others by model); a range of 0 is infinity.
fn metres(millimetres: u32, [shortest, longest]: [u32; 2]) -> f32 {
    match millimetres {
        0 => f32::INFINITY,
        it if it > longest => f32::INFINITY,
        it if it < shortest => f32::NAN,
        it => it as f32 * 1e-3,
    }
}

impl Work for RangeFinderWork {
    type Sample = Sample;
    type Request = Poke;
    const PUBLISHED: usize = ScanHead::LARGEST;

    fn take(&mut self, sample: &Sample) -> u64 {
        let step = std::f64::consts::TAU / f64::from(sample.steps_per_turn.max(1));
        let turn = f64::from(sample.turn_us) * 1e-6;
        let angle_min = (f64::from(sample.first) - f64::from(sample.front)) * step;
        self.count = sample.count;
        let mut nearest = (f64::INFINITY, 0.0);
        for (place, (to, &from)) in self.ranges.iter_mut().zip(&sample.ranges[..sample.count]).enumerate() {
            *to = metres(from, sample.reach);
            let angle = angle_min + place as f64 * step;
            // NaN compares false.
            if angle.abs() <= self.watched && f64::from(*to) < nearest.0 {
                nearest = (f64::from(*to), angle);
            }
        }
        self.head = ScanHead {
            head: Head::default(),
            angle_min,
            angle_increment: step,
            time_increment: turn / f64::from(sample.steps_per_turn.max(1)),
            scan_time: turn,
            range_min: f64::from(sample.reach[0]) * 1e-3,
            range_max: f64::from(sample.reach[1]) * 1e-3,
            obstacle_distance: nearest.0,
            obstacle_angle: nearest.1,
        };
        sample.stamp_ns
    }

    fn step(&mut self, _moment: &Moment, _request: &mut Poke) -> bool {
        // The device sends by itself.
        false
    }

    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize> {
        // An empty scan is not published.
        (self.count > 0)
            .then(|| ScanHead { head, ..self.head }.encode(&self.ranges[..self.count], bytes))?
    }
}
