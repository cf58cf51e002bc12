//! Homing (IEC 61800-7-201, homing mode): the drive turns the shaft by itself until it finds its home.
//!
//! | method | home |
//! |---|---|
//! | 17, 18 | the edge at which the negative, the positive limit switch releases the shaft |
//! | 33, 34 | the next index pulse in the negative, in the positive direction: one each revolution, where the shaft's angle is 0 |
//! | 35, 37 | the present position of the shaft |
//!
//! A missing limit switch is searched for until the start bit is cleared. The other methods of the standard
//! need a home switch, or an index pulse beside a switch, and are refused.

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::cia402::Statusword;

/// Homing methods (0x6098) of this drive.
pub(super) const METHODS: [i8; 6] = [17, 18, 33, 34, 35, 37];

/// Homing objects, in rad and seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HomingSettings {
    pub(super) method: i8,
    /// Speed towards a switch.
    pub(super) switch_speed: f64,
    /// Speed towards the home itself.
    pub(super) zero_speed: f64,
    pub(super) acceleration: f64,
}

/// State of homing mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Homing {
    stage: Stage,
    /// Demand, in rad and rad/s, and the acceleration towards it.
    position: f64,
    velocity: f64,
    acceleration: f64,
    /// Angle of the shaft in the previous period.
    before: f64,
    /// True if a home was found, now or earlier.
    attained: bool,
    failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Waits for the start bit.
    Waiting,
    /// Moves in this direction, to the limit switch there.
    ToSwitch(f64),
    /// Moves in this direction, off the limit switch behind.
    OffSwitch(f64),
    /// Moves in this direction, to the next index pulse.
    ToIndex(f64),
    /// Done, until the start bit is cleared.
    Over,
}

impl Homing {
    /// Homing of a shaft at this angle and speed, in rad and rad/s. `attained`: it has been homed before.
    pub(super) fn at(position: f64, velocity: f64, attained: bool) -> Self {
        Self {
            stage: Stage::Waiting,
            position,
            velocity,
            acceleration: 0.0,
            before: position,
            attained,
            failed: false,
        }
    }

    /// Demand: rad, rad/s, rad/s^2.
    pub(super) fn demand(&self) -> (f64, f64, f64) {
        (self.position, self.velocity, self.acceleration)
    }

    pub(super) fn is_attained(&self) -> bool {
        self.attained
    }

    /// Bits 10, 12 and 13 of the statusword.
    pub(super) fn bits(&self, rests: bool) -> u16 {
        let searching = matches!(self.stage, Stage::ToSwitch(_) | Stage::OffSwitch(_) | Stage::ToIndex(_));
        let bit = |bit, set| if set { bit } else { 0 };
        bit(Statusword::TARGET_REACHED, !searching && self.velocity == 0.0 && rests)
            | bit(Statusword::HOMING_ATTAINED, self.attained && !searching)
            | bit(Statusword::HOMING_ERROR, self.failed)
    }

    /// Runs one control period of `time`, with the shaft at `position`; returns the angle of the home, once
    /// it is found. `switches` are the angles of the limit switches.
    pub(super) fn step(
        &mut self,
        start: bool,
        settings: &HomingSettings,
        position: f64,
        switches: Option<(f64, f64)>,
        time: Duration,
    ) -> Option<f64> {
        let pressed = |direction: f64| {
            switches.is_some_and(
                |(lowest, highest)| {
                    if direction < 0.0 { position <= lowest } else { position >= highest }
                },
            )
        };
        let mut home = None;
        self.stage = match self.stage {
            Stage::Waiting if start => {
                (self.attained, self.failed) = (false, false);
                match settings.method {
                    17 => Stage::ToSwitch(-1.0),
                    18 => Stage::ToSwitch(1.0),
                    33 => Stage::ToIndex(-1.0),
                    34 => Stage::ToIndex(1.0),
                    _ => {
                        home = Some(position);
                        Stage::Over
                    }
                }
            }
            Stage::Over if start => Stage::Over,
            _ if !start => Stage::Waiting,
            Stage::ToSwitch(direction) if pressed(direction) => Stage::OffSwitch(-direction),
            Stage::OffSwitch(direction) if !pressed(-direction) => {
                home = Some(position);
                Stage::Over
            }
            Stage::ToIndex(direction) => {
                home = index_pulse(self.before, position, direction);
                // A limit switch in the path of a method without switches.
                self.failed = home.is_none() && pressed(direction);
                if home.is_some() || self.failed { Stage::Over } else { self.stage }
            }
            stage => stage,
        };
        self.attained |= home.is_some();
        self.before = position;
        let wanted = match self.stage {
            Stage::Waiting | Stage::Over => 0.0,
            Stage::ToSwitch(direction) => direction * settings.switch_speed,
            Stage::OffSwitch(direction) | Stage::ToIndex(direction) => direction * settings.zero_speed,
        };
        self.turn(wanted, settings.acceleration, time.as_secs_f64());
        home
    }

    fn turn(&mut self, wanted: f64, acceleration: f64, seconds: f64) {
        let change = (wanted - self.velocity).clamp(-acceleration * seconds, acceleration * seconds);
        self.acceleration = change / seconds;
        self.velocity += change;
        self.position += self.velocity * seconds;
    }
}

/// Angle of the index pulse that the shaft has passed in this direction from `before` to `now`.
fn index_pulse(before: f64, now: f64, direction: f64) -> Option<f64> {
    let (from, to) = ((before / TAU).floor(), (now / TAU).floor());
    if direction > 0.0 { (to > from).then_some(to * TAU) } else { (to < from).then_some(from * TAU) }
}
