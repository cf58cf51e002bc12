//! Registers of WITHROBOT's myAHRS+ as far as they are used, and their values in SI units.
//!
//! Source: the maker's example for I2C, `arduino/myAHRS_plus_i2c.ino` of
//! github.com/withrobot/myAHRS_plus (addresses, order, scales), and the maker's `myAHRS.cpp` of
//! 2013 (status, temperature). Not used: magnetometer, interrupt line, settings. The unit needs no
//! setting up.
//!
//! Its axes are x ahead, y right, z down, and its angles refer to north, east, down. Here all is
//! turned into x ahead, y left, z up, and the orientation into one from east, north, up (REP 103):
//! y and z change their signs, and yaw counts from east.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, PI};

use super::{GRAVITY, Motion, turned};

/// I2C address; firmware of the maker for 0x21 to 0x2f exists.
pub const ADDRESS: u16 = 0x20;

/// Registers. Numbers of 16 bits follow, the low byte first.
pub mod register {
    /// The first of four: WHO_AM_I, major and minor revision, status.
    pub const IDENTITY: u8 = 0x01;
    /// Three accelerations and three angular velocities, uncorrected.
    pub const RAW: u8 = 0x10;
    /// The same, corrected.
    pub const COMPENSATED: u8 = 0x22;
    /// Temperature; roll, pitch and yaw; the quaternion x, y, z, w.
    pub const ATTITUDE: u8 = 0x34;
}

/// Value of WHO_AM_I.
pub const IDENTITY: u8 = 0xb1;

/// Value of the status of a unit that measures.
pub const READY: u8 = 0x80;

/// Number of bytes of accelerations and angular velocities.
pub const MOTION: usize = 12;

/// Number of bytes from [`register::ATTITUDE`] on.
pub const ATTITUDE: usize = 16;

/// Numbers from [`register::ATTITUDE`] on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attitude {
    /// Temperature.
    pub temperature: i16,
    /// Roll, pitch, yaw.
    pub euler: [i16; 3],
    /// Quaternion x, y, z, w.
    pub quaternion: [i16; 4],
}

impl Attitude {
    /// Decodes the registers.
    #[must_use]
    pub fn parse(registers: &[u8; ATTITUDE]) -> Self {
        let number = |place| number(registers, place);
        Self { temperature: number(0), euler: [1, 2, 3].map(number), quaternion: [4, 5, 6, 7].map(number) }
    }

    /// Orientation from the quaternion; `None` if it is no rotation: its length is not 1.
    #[must_use]
    pub fn from_quaternion(&self) -> Option<[f64; 4]> {
        let quaternion = self.quaternion.map(|it| f64::from(it) / FULL);
        let length = quaternion.iter().map(|it| it * it).sum::<f64>().sqrt();
        let is_rotation = (length - 1.0).abs() < LENGTH_ERROR;
        is_rotation.then(|| east_north_up(quaternion.map(|it| it / length)))
    }

    /// Orientation from roll, pitch and yaw; `None` if the pitch is beyond a right angle, which
    /// none is.
    #[must_use]
    pub fn from_euler(&self) -> Option<[f64; 4]> {
        let [roll, pitch, yaw] = self.euler.map(|it| f64::from(it) * PI / FULL);
        // Yaw first, then pitch and roll about the axes that have turned with it.
        let yawed = turned([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, yaw]);
        let pitched = turned(yawed, [0.0, pitch, 0.0]);
        (pitch.abs() <= FRAC_PI_2).then(|| east_north_up(turned(pitched, [roll, 0.0, 0.0])))
    }
}

/// Accelerations and angular velocities in SI units.
#[must_use]
pub fn motion(registers: &[u8; MOTION], temperature: i16) -> Motion {
    let three =
        |first: usize, scale: f64| [0, 1, 2].map(|axis| f64::from(number(registers, first + axis)) * scale);
    Motion {
        acceleration: left_up(three(0, 16.0 * GRAVITY / FULL)),
        angular_velocity: left_up(three(3, 2_000_f64.to_radians() / FULL)),
        temperature: f64::from(temperature) * 200.0 / FULL + 273.15,
    }
}

/// Count at the end of each scale: 16 g, 2000 degrees/s, 180 degrees, 1, 200 degrees Celsius.
const FULL: f64 = 32_767.0;

/// Most deviation of a quaternion's length from 1: its bytes may be of two samples.
const LENGTH_ERROR: f64 = 0.02;

/// Standard deviations that the authors of the ROS driver `myahrs_driver` measured with a
/// stationary unit: m/s^2, rad/s, rad. Iron nearby turns the heading by more.
pub const ACCELERATION_VARIANCE: f64 = 0.026_831 * 0.026_831;
/// The same, of an angular velocity.
pub const ANGULAR_VELOCITY_VARIANCE: f64 = 0.002_428 * 0.002_428;
/// The same, of an angle of the orientation.
pub const ORIENTATION_VARIANCE: f64 = 0.002_143 * 0.002_143;

fn number(registers: &[u8], place: usize) -> i16 {
    i16::from_le_bytes([registers[2 * place], registers[2 * place + 1]])
}

/// From x ahead, y right, z down to x ahead, y left, z up.
fn left_up([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x, -y, -z]
}

/// From north, east, down to east, north, up: half a turn about x on both sides, then a quarter of
/// a turn about z.
fn east_north_up([x, y, z, w]: [f64; 4]) -> [f64; 4] {
    let (y, z) = (-y, -z);
    [x - y, x + y, z + w, w - z].map(|it| it * FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(numbers: &[i16]) -> [u8; N] {
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        bytes.try_into().unwrap()
    }

    fn near(found: [f64; 4], expected: [f64; 4]) -> bool {
        let same = |sign: f64| (0..4).all(|at| (found[at] - sign * expected[at]).abs() < 1e-3);
        same(1.0) || same(-1.0)
    }

    /// Count of an angle, degrees.
    fn angle(degrees: f64) -> i16 {
        (degrees / 180.0 * FULL).round() as i16
    }

    fn euler(roll: f64, pitch: f64, yaw: f64) -> Attitude {
        Attitude { euler: [roll, pitch, yaw].map(angle), ..Attitude::default() }
    }

    #[test]
    fn level_unit_reads_gravity_upwards_and_left_turns_positive() {
        // The maker's line of a stationary unit: 0.42 and -0.31 degrees, accelerations -0.0049,
        // -0.0038, -1.0103 g.
        let counts = |g: f64| (g / 16.0 * FULL).round() as i16;
        let registers = bytes(&[counts(-0.0049), counts(-0.0038), counts(-1.0103), 0, 0, -16_384]);
        let motion = motion(&registers, angle(41.5 / 200.0 * 180.0));
        let [x, y, z] = motion.acceleration;
        assert!(
            (z - 1.0103 * GRAVITY).abs() < 0.01 && (x + 0.048).abs() < 0.01 && (y - 0.037).abs() < 0.01
        );
        assert!((motion.angular_velocity[2] - 1000_f64.to_radians()).abs() < 0.01, "{motion:?}");
        assert!((motion.temperature - 273.15 - 41.5).abs() < 0.01, "{motion:?}");
    }

    #[test]
    fn orientations_follow_rep_103() {
        let half = |degrees: f64| (degrees.to_radians() / 2.0).sin_cos();
        // Ahead is east: no rotation. Ahead is north: a quarter of a turn to the left.
        let ((sin, cos), root) = (half(30.0), FRAC_1_SQRT_2);
        for (found, expected) in [
            (euler(0.0, 0.0, 90.0), [0.0, 0.0, 0.0, 1.0]),
            (euler(0.0, 0.0, 0.0), [0.0, 0.0, root, root]),
            (euler(0.0, 0.0, -180.0), [0.0, 0.0, -root, root]),
            // The right side down, and the nose up: a positive roll, a negative pitch about an axis
            // to the left.
            (euler(30.0, 0.0, 90.0), [sin, 0.0, 0.0, cos]),
            (euler(0.0, 30.0, 90.0), [0.0, -sin, 0.0, cos]),
        ] {
            assert!(near(found.from_euler().unwrap(), expected), "{found:?}: {:?}", found.from_euler());
        }
        assert_eq!(euler(0.0, 91.0, 0.0).from_euler(), None);
    }

    #[test]
    fn quaternion_matches_angles_and_invalid_one_is_ignored() {
        // 20, -40, 120 degrees, multiplied out by the formula of the textbooks (yaw, then pitch,
        // then roll).
        let [(sr, cr), (sp, cp), (sy, cy)] =
            [20.0_f64, -40.0, 120.0].map(|it| (it.to_radians() / 2.0).sin_cos());
        let quaternion = [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ];
        let numbers = quaternion.map(|it| (it * FULL).round() as i16);
        let mut all = vec![0, angle(20.0), angle(-40.0), angle(120.0)];
        all.extend(numbers);
        let attitude = Attitude::parse(&bytes(&all));
        assert_eq!(attitude.quaternion, numbers);
        assert!(near(attitude.from_quaternion().unwrap(), attitude.from_euler().unwrap()), "{attitude:?}");
        for wrong in [[0; 4], [-1; 4], [16_384, 0, 0, 16_384]] {
            assert_eq!(Attitude { quaternion: wrong, ..attitude }.from_quaternion(), None, "{wrong:?}");
        }
    }
}
