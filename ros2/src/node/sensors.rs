//! /imu and /scan, from the ports of that name.

use ipc::channel::Channel;
use ipc::description::Description;
use ipc::sensor::{self, Head, ScanHead};
use std::io::{ErrorKind, Read};

use super::{Endpoints, Moment, Timer};
use crate::clock::WallClock;
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::Header;
use crate::messages::geometry::{Quaternion, Vector3};
use crate::messages::sensor::{Imu, LaserScan};

/// Publisher of each, if the robot has the port.
pub(crate) struct Sensors {
    imu: Option<Sensor>,
    scan: Option<Sensor>,
    buffer: Vec<u8>,
}

struct Sensor {
    port: &'static str,
    writer: Writer,
    channel: Option<Channel>,
    retry: Timer,
    /// Stamp of the last measurement that was published.
    published_ns: u64,
}

impl Sensors {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let mut sensor = |port: &'static str, kind: &str| -> Result<Option<Sensor>, DdsError> {
            if !robot.ports.iter().any(|there| there.name == port) {
                return Ok(None);
            }
            let writer = endpoints.publish(port, kind, Quality::Reliable)?;
            Ok(Some(Sensor { port, writer, channel: None, retry: Timer::default(), published_ns: 0 }))
        };
        let imu = sensor("imu", "sensor_msgs/Imu")?;
        let scan = sensor("scan", "sensor_msgs/LaserScan")?;
        Ok(Self { imu, scan, buffer: vec![0; ScanHead::LARGEST.max(sensor::Imu::SIZE)] })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>, now_ns: u64) {
        let wall = WallClock::now();
        if let Some(imu) = &mut self.imu {
            let frame = moment.settings.imu_frame.clone();
            imu.poll(moment, now_ns, &mut self.buffer, |bytes, _| {
                let read = sensor::Imu::decode(bytes)?;
                Ok((read.head, imu_message(&read, header(wall, read.head.stamp_ns, &frame))))
            });
        }
        if let Some(scan) = &mut self.scan {
            let frame = moment.settings.scan_frame.clone();
            scan.poll(moment, now_ns, &mut self.buffer, |bytes, last_ns| {
                let mut read = sensor::Scan::decode(bytes)?;
                let head = read.head.head;
                read.head.scan_time = scan_time(read.head.scan_time, last_ns, head.stamp_ns);
                Ok((head, scan_message(read, header(wall, head.stamp_ns, &frame))))
            });
        }
    }

    /// Drops the ports, after the end of the cycle.
    pub(crate) fn lost(&mut self) {
        for sensor in [&mut self.imu, &mut self.scan].into_iter().flatten() {
            sensor.channel = None;
        }
    }

    /// Open ports, to wait for.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Channel> {
        [&self.imu, &self.scan].into_iter().flatten().filter_map(|sensor| sensor.channel.as_ref())
    }
}

impl Sensor {
    fn poll<M: serde::Serialize>(
        &mut self,
        moment: &mut Moment<'_>,
        now_ns: u64,
        buffer: &mut [u8],
        translate: impl Fn(&[u8], u64) -> Result<(Head, M), sensor::SensorError>,
    ) {
        let Some(robot) = moment.robot.as_deref_mut() else {
            return;
        };
        if self.channel.is_none() && self.retry.due(now_ns, RETRIES) {
            match robot.port(self.port) {
                Ok(channel) => self.channel = Some(channel),
                Err(why) => moment.voice.warn(self.port, format_args!("/{}: {why}", self.port)),
            }
        }
        while let Some(mut channel) = self.channel.as_ref() {
            match channel.read(buffer) {
                Ok(0) => self.channel = None,
                Ok(length) => match translate(&buffer[..length], self.published_ns) {
                    Ok((head, message)) => {
                        if is_new(head, &mut self.published_ns) {
                            self.writer.send(&message);
                        }
                    }
                    Err(why) => moment.voice.warn(self.port, format_args!("/{}: {why}", self.port)),
                },
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return;
                }
                Err(error) => {
                    moment.voice.warn(self.port, format_args!("/{}: {error}", self.port));
                    self.channel = None;
                }
            }
        }
    }
}

/// True if a message holds a measurement that was not published yet. The device's task sends its
/// last one in each period: the same one again until a newer one arrives, and after some periods
/// marked stale.
fn is_new(head: Head, published_ns: &mut u64) -> bool {
    let is_new = !head.stale && head.stamp_ns > *published_ns;
    if is_new {
        *published_ns = head.stamp_ns;
    }
    is_new
}

/// Retry rate, Hz, for a port that another process holds: every five seconds.
const RETRIES: f64 = 0.2;

fn header(wall: WallClock, stamp_ns: u64, frame: &str) -> Header {
    Header { stamp: wall.stamp(stamp_ns), frame_id: frame.to_owned() }
}

fn imu_message(read: &sensor::Imu, header: Header) -> Imu {
    let vector = |[x, y, z]: [f64; 3]| Vector3 { x, y, z };
    let [x, y, z, w] = read.orientation;
    Imu {
        header,
        orientation: Quaternion { x, y, z, w },
        orientation_covariance: diagonal([read.tilt_variance, read.tilt_variance, read.yaw_variance]),
        angular_velocity: vector(read.angular_velocity),
        angular_velocity_covariance: diagonal([read.angular_velocity_variance; 3]),
        linear_acceleration: vector(read.linear_acceleration),
        linear_acceleration_covariance: diagonal([read.linear_acceleration_variance; 3]),
    }
}

fn diagonal([x, y, z]: [f64; 3]) -> [f64; 9] {
    [x, 0.0, 0.0, 0.0, y, 0.0, 0.0, 0.0, z]
}

/// Time between two scans, s: what the device takes for one, or as long as the last is ago where it
/// pauses between them.
fn scan_time(device: f64, last_ns: u64, stamp_ns: u64) -> f64 {
    let since_last = stamp_ns.saturating_sub(last_ns) as f64 * 1e-9;
    if last_ns == 0 || since_last > LONGEST_PAUSE { device } else { device.max(since_last) }
}

/// Seconds after which a scan does not follow the last one, but an interruption.
const LONGEST_PAUSE: f64 = 2.0;

fn scan_message(read: sensor::Scan, header: Header) -> LaserScan {
    let ScanHead { angle_min, angle_increment, time_increment, scan_time, range_min, range_max, .. } =
        read.head;
    let steps = read.ranges.len().saturating_sub(1) as f64;
    LaserScan {
        header,
        angle_min: angle_min as f32,
        angle_max: (angle_min + steps * angle_increment) as f32,
        angle_increment: angle_increment as f32,
        time_increment: time_increment as f32,
        scan_time: scan_time as f32,
        range_min: range_min as f32,
        range_max: range_max as f32,
        ranges: read.ranges,
        intensities: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(ros2): /imu, /scan: each measurement once
    #[test]
    fn a_measurement_is_published_once_and_never_when_it_is_stale() {
        let head = |stamp_ns, stale| Head { stamp_ns, stale, ..Head::default() };
        let mut published = 0;
        let told =
            [(0, true), (5, false), (5, false), (5, true), (9, true), (9, false), (7, false), (11, false)];
        let new: Vec<u64> = told
            .into_iter()
            .filter(|&(stamp, stale)| is_new(head(stamp, stale), &mut published))
            .map(|(stamp, _)| stamp)
            .collect();
        assert_eq!(new, [5, 9, 11]);
    }

    #[test]
    fn the_time_of_a_scan_is_the_time_between_two() {
        assert_eq!(scan_time(0.1, 0, 5_000_000_000), 0.1, "the first");
        assert_eq!(scan_time(0.1, 4_800_000_000, 5_000_000_000), 0.2, "at 5 Hz");
        assert_eq!(scan_time(0.1, 4_990_000_000, 5_000_000_000), 0.1, "never shorter than one takes");
        assert_eq!(scan_time(0.1, 1_000_000_000, 5_000_000_000), 0.1, "after an interruption");
    }

    #[test]
    fn a_scan_ends_at_the_angle_of_its_last_range() {
        let head =
            ScanHead { angle_min: -1.0, angle_increment: 0.5, range_max: 4.0, ..ScanHead::default() };
        let scan = scan_message(sensor::Scan { head, ranges: vec![1.0; 5] }, Header::default());
        assert_eq!((scan.angle_min, scan.angle_max, scan.range_max), (-1.0, 1.0, 4.0));
    }

    #[test]
    fn an_imu_keeps_its_numbers_and_their_variances_apart() {
        let read = sensor::Imu {
            orientation: [0.1, 0.2, 0.3, 0.9],
            angular_velocity: [1.0, 2.0, 3.0],
            linear_acceleration: [4.0, 5.0, 9.8],
            tilt_variance: 0.01,
            yaw_variance: 0.5,
            ..sensor::Imu::default()
        };
        let imu = imu_message(&read, Header::default());
        assert_eq!((imu.orientation.w, imu.angular_velocity.y, imu.linear_acceleration.z), (0.9, 2.0, 9.8));
        assert_eq!(imu.orientation_covariance, [0.01, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.5]);
    }
}
