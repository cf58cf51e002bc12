use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// Scan of a laser range finder without its ranges. After the head: eight 64-bit floating-point
/// numbers in the order below, the number of ranges (32 bits), 4 bytes of 0, then the ranges as
/// 32-bit floating-point numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScanHead {
    /// Head; its time stamp is that of the first range.
    pub head: Head,
    /// Angle of the first range, rad from the front, counter-clockwise seen from above.
    pub angle_min: f64,
    /// Angle between two ranges, rad.
    pub angle_increment: f64,
    /// Time between two ranges, s.
    pub time_increment: f64,
    /// Time between two scans, s.
    pub scan_time: f64,
    /// Shortest range of the device, m.
    pub range_min: f64,
    /// Longest range of the device, m.
    pub range_max: f64,
    /// Distance of the nearest obstacle in the watched sector, m; infinite if there is none.
    pub obstacle_distance: f64,
    /// Angle of that obstacle, rad from the front; 0 if there is none.
    pub obstacle_angle: f64,
}

/// Whole scan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// All fields except the ranges.
    pub head: ScanHead,
    /// Ranges, m, as in ROS's REP 117: +infinity for nothing within range, -infinity for something
    /// too near, NaN for an error of the device.
    pub ranges: Vec<f32>,
}

/// Most ranges in a scan.
pub const MOST_POINTS: usize = 2048;

impl ScanHead {
    /// Bytes of a message with this many ranges.
    #[must_use]
    pub const fn size(points: usize) -> usize {
        BEFORE + 4 * points
    }

    /// Bytes of the longest message.
    pub const LARGEST: usize = Self::size(MOST_POINTS);
    const KIND: u8 = 2;

    /// Encodes a whole scan at the front of `bytes`; returns its length, or `None` if there is less
    /// space, or if there are more than [`MOST_POINTS`] ranges.
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
    /// Decodes a message.
    ///
    /// # Errors
    /// The first field that is not valid.
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
