/// What moves the axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Controller {
    /// Every axis is enabled and stays where it is.
    Hold,
    /// Every axis swings about the position it started from.
    Sinusoid(Vec<Sinusoid>),
}

/// How one axis swings: `amplitude * sin(2 pi frequency t + phase)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sinusoid {
    /// Half of the whole stroke, in rad.
    pub amplitude: f64,
    /// Swings per second, in Hz.
    pub frequency: f64,
    /// Where in the swing it starts, in rad.
    pub phase: f64,
}
