use motion::{Hertz, Radians, Seconds, SinusoidError, SmoothSinusoid};

/// What moves the axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Controller {
    /// Every axis is enabled and stays where it is.
    Hold,
    /// Every axis swings about the position it started from.
    Sinusoid(Vec<Sinusoid>),
}

/// How one axis swings about its start: `amplitude * sin(2 pi frequency t - phase)`, from rest and growing
/// over the first swing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sinusoid {
    /// The swing about the position 0.
    trajectory: SmoothSinusoid,
    /// How much later than the others it begins.
    delay: Seconds,
}

impl Sinusoid {
    /// A swing of `amplitude` rad, `frequency` Hz (0: none), that begins `phase` rad behind the others.
    ///
    /// # Errors
    /// A number that is not finite, or below 0.
    pub fn new(amplitude: f64, frequency: f64, phase: f64) -> Result<Self, SinusoidError> {
        let moves = frequency > 0.0;
        let ramp = if moves { 1.0 / frequency } else { 1.0 };
        let trajectory =
            SmoothSinusoid::new(Radians(0.0), Radians(amplitude), Hertz(frequency), Seconds(ramp))?;
        let delay = if moves { phase / (std::f64::consts::TAU * frequency) } else { 0.0 };
        Ok(Self { trajectory, delay: Seconds(delay) })
    }

    /// The swing about the position 0, from its begin.
    #[must_use]
    pub fn trajectory(&self) -> SmoothSinusoid {
        self.trajectory
    }

    /// How much later than the others it begins.
    #[must_use]
    pub fn delay(&self) -> Seconds {
        self.delay
    }
}
