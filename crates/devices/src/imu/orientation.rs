//! Orientation from angular velocities and accelerations.

use super::{GRAVITY, Motion, mpu6050};

/// Estimator of the orientation.
///
/// Angular velocities are integrated. While the acceleration is close to gravity it gives the
/// vertical and corrects the estimate, and the gyroscope's bias with it (a complementary filter
/// after Mahony, Hamel and Pflimlin 2008, "Nonlinear complementary filters on the special
/// orthogonal group"). Yaw is not corrected. If the unit does not turn in the first second, the
/// mean of its angular velocities is taken as their bias.
#[derive(Clone, Debug)]
pub struct Orientation {
    /// Rotation from the unit's frame to the level one: x, y, z, w.
    rotation: [f64; 4],
    bias: [f64; 3],
    /// Number of measurements in the first second; their sum follows.
    still: u32,
    sum: [f64; 3],
    /// Time integrated, s.
    elapsed: f64,
    begun: bool,
}

impl Default for Orientation {
    fn default() -> Self {
        Self {
            rotation: [0.0, 0.0, 0.0, 1.0],
            bias: [0.0; 3],
            still: 0,
            sum: [0.0; 3],
            elapsed: 0.0,
            begun: false,
        }
    }
}

/// Gain from the tilt error to the rotation, 1/s: a time constant of two seconds.
const TILT_GAIN: f64 = 0.5;

/// Gain from the tilt error to the bias, 1/s^2.
const BIAS_GAIN: f64 = 0.02;

/// Relative deviation from gravity up to which an acceleration still gives the vertical.
const ABOUT_GRAVITY: f64 = 0.1;

/// Highest angular velocity at standstill, rad/s: the largest bias the part may have (PS-MPU-6000A
/// 6.1: 20 degrees/s).
const STILL: f64 = 0.35;

/// Residual bias after its estimate, rad/s.
const BIAS_LEFT: f64 = 5e-4;

/// Noise density of an angular velocity, rad/s per root hertz (6.1).
const NOISE: f64 = 8.7e-5;

impl Orientation {
    /// Updates the estimate with a measurement `seconds` after the last one. A longer pause than
    /// one second counts as one second; measurements that are not finite are ignored.
    pub fn update(&mut self, motion: &Motion, seconds: f64) {
        let all = motion.angular_velocity.iter().chain(&motion.acceleration).chain([&seconds]);
        if !all.copied().all(f64::is_finite) {
            return;
        }
        let seconds = seconds.clamp(0.0, 1.0);
        let size = length(motion.acceleration);
        let says_up = (size - GRAVITY).abs() < ABOUT_GRAVITY * GRAVITY;
        if !self.begun {
            if says_up {
                self.rotation = level(motion.acceleration);
                self.begun = true;
            }
            return;
        }
        self.settle(motion.angular_velocity);
        let mut turning = [0, 1, 2].map(|axis| motion.angular_velocity[axis] - self.bias[axis]);
        if says_up {
            let measured = motion.acceleration.map(|it| it / size);
            let error = cross(measured, self.up());
            for axis in 0..3 {
                turning[axis] += TILT_GAIN * error[axis];
                self.bias[axis] -= BIAS_GAIN * error[axis] * seconds;
            }
        }
        self.rotation = turned(self.rotation, turning.map(|it| it * seconds));
        self.elapsed += seconds;
    }

    /// Averages the angular velocities of the first second, unless the unit turns.
    fn settle(&mut self, angular_velocity: [f64; 3]) {
        if self.elapsed >= 1.0 || self.still == u32::MAX {
            return;
        }
        if length(angular_velocity) > STILL {
            self.still = u32::MAX;
            return;
        }
        self.still += 1;
        for (sum, value) in self.sum.iter_mut().zip(angular_velocity) {
            *sum += value;
        }
        self.bias = self.sum.map(|sum| sum / f64::from(self.still));
    }

    /// Rotation from the unit's frame to the level one, a unit quaternion x, y, z, w.
    #[must_use]
    pub fn rotation(&self) -> [f64; 4] {
        self.rotation
    }

    /// Estimated bias of the gyroscope, rad/s.
    #[must_use]
    pub fn bias(&self) -> [f64; 3] {
        self.bias
    }

    /// Variance of roll and pitch, rad^2: the acceleration's variance, smoothed over the filter's
    /// time constant.
    #[must_use]
    pub fn tilt_variance(&self) -> f64 {
        if !self.begun {
            return std::f64::consts::PI.powi(2);
        }
        mpu6050::ACCELERATION_VARIANCE / GRAVITY.powi(2)
    }

    /// Variance of yaw, rad^2: the accumulated noise, and the residual bias.
    #[must_use]
    pub fn yaw_variance(&self) -> f64 {
        let variance = NOISE.powi(2) * self.elapsed + (BIAS_LEFT * self.elapsed).powi(2);
        variance.min(std::f64::consts::PI.powi(2))
    }

    /// Roll, pitch and yaw, rad: about x, then y, then z of the level frame.
    #[must_use]
    pub fn roll_pitch_yaw(&self) -> [f64; 3] {
        let [x, y, z, w] = self.rotation;
        [
            (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y)),
            (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin(),
            (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z)),
        ]
    }

    /// Estimated vertical in the unit's frame.
    fn up(&self) -> [f64; 3] {
        let [x, y, z, w] = self.rotation;
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)]
    }
}

/// Rotation of a stationary unit with this acceleration, with yaw 0.
fn level([x, y, z]: [f64; 3]) -> [f64; 4] {
    let roll = y.atan2(z);
    let pitch = (-x).atan2(y.hypot(z));
    let ((sin_roll, cos_roll), (sin_pitch, cos_pitch)) = ((roll / 2.0).sin_cos(), (pitch / 2.0).sin_cos());
    [sin_roll * cos_pitch, cos_roll * sin_pitch, -sin_roll * sin_pitch, cos_roll * cos_pitch]
}

/// Rotation followed by a turn, rad about x, y, z of the unit; exact for a constant axis.
pub(super) fn turned(rotation: [f64; 4], turn: [f64; 3]) -> [f64; 4] {
    let angle = length(turn);
    // sin(a/2)/a near 0 is 1/2 - a^2/48.
    let scale = if angle < 1e-6 { 0.5 } else { (angle / 2.0).sin() / angle };
    let ([ax, ay, az], aw) = (turn.map(|it| it * scale), (angle / 2.0).cos());
    let [x, y, z, w] = rotation;
    let product = [
        w * ax + x * aw + y * az - z * ay,
        w * ay - x * az + y * aw + z * ax,
        w * az + x * ay - y * ax + z * aw,
        w * aw - x * ax - y * ay - z * az,
    ];
    let size = product.iter().map(|it| it * it).sum::<f64>().sqrt();
    product.map(|it| it / size)
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn length(vector: [f64; 3]) -> f64 {
    vector.iter().map(|it| it * it).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = 0.01;

    /// Acceleration measured at standstill with this roll and pitch.
    fn feels(roll: f64, pitch: f64) -> [f64; 3] {
        [-pitch.sin(), roll.sin() * pitch.cos(), roll.cos() * pitch.cos()].map(|it| it * GRAVITY)
    }

    fn rest(orientation: &mut Orientation, seconds: f64, bias: [f64; 3], acceleration: [f64; 3]) {
        for _ in 0..(seconds / STEP) as u32 {
            let motion = Motion { angular_velocity: bias, acceleration, temperature: 300.0 };
            orientation.update(&motion, STEP);
        }
    }

    fn near(found: [f64; 3], expected: [f64; 3], within: f64) -> bool {
        (0..3).all(|axis| (found[axis] - expected[axis]).abs() < within)
    }

    #[test]
    fn stationary_unit_has_tilt_at_once_and_bias_after_a_second() {
        let mut orientation = Orientation::default();
        let (roll, pitch) = (0.3, -0.5);
        rest(&mut orientation, 0.02, [0.0; 3], feels(roll, pitch));
        assert!(near(orientation.roll_pitch_yaw(), [roll, pitch, 0.0], 1e-9));
        let bias = [0.02, -0.03, 0.01];
        rest(&mut orientation, 60.0, bias, feels(roll, pitch));
        assert!(near(orientation.bias(), bias, 1e-3), "{:?}", orientation.bias());
        let found = orientation.roll_pitch_yaw();
        assert!(near(found, [roll, pitch, 0.0], 0.01), "{found:?}");
    }

    #[test]
    fn turns_add_up_exactly() {
        let mut orientation = Orientation::default();
        rest(&mut orientation, 1.5, [0.0; 3], feels(0.0, 0.0));
        for _ in 0..100 {
            let motion = Motion {
                angular_velocity: [0.0, 0.0, 1.0],
                acceleration: feels(0.0, 0.0),
                temperature: 0.0,
            };
            orientation.update(&motion, STEP);
        }
        assert!(near(orientation.roll_pitch_yaw(), [0.0, 0.0, 1.0], 1e-9));
        // Roll while accelerating: gravity cannot be separated, only the gyroscope counts.
        for _ in 0..50 {
            let motion = Motion {
                angular_velocity: [0.4, 0.0, 0.0],
                acceleration: [9.0, 9.0, 9.0],
                temperature: 0.0,
            };
            orientation.update(&motion, STEP);
        }
        assert!(near(orientation.roll_pitch_yaw(), [0.2, 0.0, 1.0], 1e-9));
    }

    #[test]
    fn a_wrong_tilt_is_pulled_right_by_gravity() {
        let mut orientation = Orientation::default();
        rest(&mut orientation, 0.02, [0.0; 3], feels(0.4, 0.2));
        rest(&mut orientation, 60.0, [0.0; 3], feels(0.0, 0.0));
        let found = orientation.roll_pitch_yaw();
        assert!(found[0].abs() < 0.02 && found[1].abs() < 0.02, "{found:?}");
    }

    #[test]
    fn numbers_that_are_none_change_nothing_and_doubt_grows() {
        let mut orientation = Orientation::default();
        assert!(orientation.tilt_variance() > 9.0);
        rest(&mut orientation, 2.0, [0.0; 3], feels(0.1, 0.1));
        let before = orientation.clone();
        for wrong in [f64::NAN, f64::INFINITY] {
            orientation.update(&Motion { angular_velocity: [wrong, 0.0, 0.0], ..Motion::default() }, STEP);
            orientation.update(&Motion::default(), wrong);
        }
        assert_eq!(orientation.rotation(), before.rotation());
        let doubt = orientation.yaw_variance();
        rest(&mut orientation, 10.0, [0.0; 3], feels(0.1, 0.1));
        assert!(orientation.yaw_variance() > doubt && orientation.tilt_variance() < 0.01);
    }
}
