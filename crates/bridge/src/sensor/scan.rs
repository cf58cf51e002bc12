use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// A scan of a laser range finder without its ranges. After the head: eight 64-bit floating-point numbers in the order
/// below, the number of ranges (32 bits), 4 bytes of 0, then the ranges as 32-bit floating-point numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScanHead {
    /// The head; its time stamp is that of the first range.
    pub head: Head,
    /// Angle of the first range, rad from the front, counter-clockwise seen from above.
    pub angle_min: f64,
    /// From one range to the next, rad.
    pub angle_increment: f64,
    /// From one range to the next, s.
    pub time_increment: f64,
    /// From one scan to the next, s.
    pub scan_time: f64,
    /// The device measures nothing nearer, m.
    pub range_min: f64,
    /// The device measures nothing farther, m.
    pub range_max: f64,
    /// To the nearest obstacle in the watched sector, m; infinite if there is none.
    pub obstacle_distance: f64,
    /// Where that is, rad from the front; 0 if there is none.
    pub obstacle_angle: f64,
}

/// A whole scan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// All but the ranges.
    pub head: ScanHead,
    /// m. As ROS's REP 117 has it: +infinity where nothing is within reach, -infinity where something is too near, NaN
    /// where the device reports an error.
    pub ranges: Vec<f32>,
}

/// Ranges in a scan at most.
pub const MOST_POINTS: usize = 2048;

impl ScanHead {
    /// Bytes of a message with so many ranges.
    #[must_use]
    pub const fn size(points: usize) -> usize {
        BEFORE + 4 * points
    }

    /// Bytes of the longest message.
    pub const LARGEST: usize = Self::size(MOST_POINTS);
    const KIND: u8 = 2;

    /// Writes a whole scan to the front of `bytes`; says how many bytes it took, or `None` if there are fewer than that,
    /// or more than [`MOST_POINTS`] ranges.
    pub fn encode(&self, ranges: &[f32], bytes: &mut [u8]) -> Option<usize> {
        if ranges.len() > MOST_POINTS {
            return None;
        }
        let mut writer = Writer::new(bytes, Self::size(ranges.len()))?;
        self.head.write(Self::KIND, &mut writer);
        writer.f64s(&[self.angle_min, self.angle_increment, self.time_increment, self.scan_time]);
        writer.f64s(&[self.range_min, self.range_max, self.obstacle_distance, self.obstacle_angle]);
        writer.u32(ranges.len() as u32);
        writer.u32(0);
        ranges.iter().for_each(|&range| writer.f32(range));
        Some(writer.finish())
    }
}

const BEFORE: usize = HEAD + 8 * 8 + 8;

impl Scan {
    /// Reads one.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (head, mut reader) = Head::read(bytes, ScanHead::KIND, BEFORE)?;
        let head = ScanHead {
            head,
            angle_min: reader.f64(),
            angle_increment: reader.f64(),
            time_increment: reader.f64(),
            scan_time: reader.f64(),
            range_min: reader.f64(),
            range_max: reader.f64(),
            obstacle_distance: reader.f64(),
            obstacle_angle: reader.f64(),
        };
        let points = reader.u32();
        reader.u32();
        if points as usize > MOST_POINTS {
            return Err(SensorError::Value { field: "the number of ranges", value: points });
        }
        let expected = ScanHead::size(points as usize);
        if bytes.len() != expected {
            return Err(SensorError::Length { expected, found: bytes.len() });
        }
        let ranges = (0..points).map(|_| reader.f32()).collect();
        Ok(Self { head, ranges })
    }
}
