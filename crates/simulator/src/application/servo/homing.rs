//! Homing (IEC 61800-7-201, homing mode, homing methods): the drive turns the shaft by itself until
//! it finds its home.
//!
//! | method | home |
//! |---|---|
//! | 1, 2 | index pulse after the edge at which the negative, positive limit switch releases |
//! | 3, 4 | index pulse outside, inside the edge of a home switch at the positive end |
//! | 5, 6 | index pulse outside, inside the edge of a home switch at the negative end |
//! | 7, 8 | index pulse next to the left edge of a home switch between the ends |
//! | 9, 10 | the same, next to its right edge; 7 to 10 search in the positive direction first |
//! | 11, 12 | the same, next to its right edge |
//! | 13, 14 | the same, next to its left edge; 11 to 14 search in the negative direction first |
//! | 17 to 30 | the edge itself of method 1 to 14 |
//! | 33, 34 | the next index pulse in the negative, in the positive direction |
//! | 35, 37 | the present position of the shaft |
//!
//! The index pulse comes once each revolution, where the shaft's angle is 0. An edge counts when it
//! is passed at the speed towards zero. A search that meets a limit switch turns round where the
//! method says so, and fails otherwise; a switch that is missing is searched for until the start
//! bit is cleared.

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::cia402::Statusword;

/// Homing methods (0x6098) of this drive: all of the standard.
pub(super) const METHODS: [i8; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    33, 34, 35, 37,
];

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

/// Switches of an axis, by the angles of the shaft at which they operate, in rad.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Switches {
    /// The negative limit switch is pressed up to the first, the positive one from the second on.
    pub(super) limits: Option<(f64, f64)>,
    /// The home switch is pressed from the first to the second.
    pub(super) home: Option<(f64, f64)>,
}

impl Switches {
    /// True if the limit switch in this direction is pressed by a shaft at `position`.
    pub(super) fn limit(&self, direction: f64, position: f64) -> bool {
        self.limits.is_some_and(
            |(lowest, highest)| {
                if direction < 0.0 { position <= lowest } else { position >= highest }
            },
        )
    }

    /// True if the home switch is pressed.
    pub(super) fn home(&self, position: f64) -> bool {
        self.home.is_some_and(|(first, last)| (first..=last).contains(&position))
    }
}

/// Search for an edge of a switch, by method 1 to 14 or 17 to 30.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Search {
    switch: Switch,
    /// Direction of the search for the switch.
    first: f64,
    /// Side of the switch, as the direction in which its edge is left.
    side: f64,
    /// The edge counts when the switch is entered, not when it is left.
    enters: bool,
    /// The home is the next index pulse, not the edge.
    index: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Switch {
    /// The limit switch in this direction.
    Limit(f64),
    /// The home switch at an end of the axis.
    HomeAtEnd,
    /// The home switch between the ends: a search that meets a limit switch turns round.
    HomeBetween,
}

impl Search {
    fn by_method(method: i8) -> Option<Self> {
        let (number, index) = if method > 16 { (method - 16, false) } else { (method, true) };
        let (switch, first, side, enters) = match number {
            1 => (Switch::Limit(-1.0), -1.0, 1.0, false),
            2 => (Switch::Limit(1.0), 1.0, -1.0, false),
            3 => (Switch::HomeAtEnd, 1.0, -1.0, false),
            4 => (Switch::HomeAtEnd, 1.0, -1.0, true),
            5 => (Switch::HomeAtEnd, -1.0, 1.0, false),
            6 => (Switch::HomeAtEnd, -1.0, 1.0, true),
            7 => (Switch::HomeBetween, 1.0, -1.0, false),
            8 => (Switch::HomeBetween, 1.0, -1.0, true),
            9 => (Switch::HomeBetween, 1.0, 1.0, true),
            10 => (Switch::HomeBetween, 1.0, 1.0, false),
            11 => (Switch::HomeBetween, -1.0, 1.0, false),
            12 => (Switch::HomeBetween, -1.0, 1.0, true),
            13 => (Switch::HomeBetween, -1.0, -1.0, true),
            14 => (Switch::HomeBetween, -1.0, -1.0, false),
            _ => return None,
        };
        Some(Self { switch, first, side, enters, index })
    }

    fn pressed(&self, switches: &Switches, position: f64) -> bool {
        match self.switch {
            Switch::Limit(direction) => switches.limit(direction, position),
            Switch::HomeAtEnd | Switch::HomeBetween => switches.home(position),
        }
    }

    /// True if a shaft that moves in `direction` may press the limit switch there.
    fn may_press(&self, direction: f64) -> bool {
        self.switch == Switch::Limit(direction)
    }

    /// End of the search: the edge is at `position`.
    fn edge(self, position: f64) -> Next {
        let direction = if self.enters { -self.side } else { self.side };
        if self.index { Next::Stage(HomingStage::ToIndex(direction)) } else { Next::Home(position) }
    }
}

/// State of homing mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Homing {
    stage: HomingStage,
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
enum HomingStage {
    /// Waits for the start bit.
    Waiting,
    /// Moves in this direction, to the switch; `turned`: it has met a limit switch.
    ToSwitch { search: Search, direction: f64, turned: bool },
    /// Leaves the switch at the side of the search.
    OffSwitch(Search),
    /// Returns onto it.
    OntoSwitch(Search),
    /// Moves in this direction, to the next index pulse.
    ToIndex(f64),
    /// Done, until the start bit is cleared.
    Over,
}

/// Next stage, or the home.
enum Next {
    Stage(HomingStage),
    Home(f64),
    Failed,
}

impl HomingStage {
    fn by_method(method: i8) -> Self {
        match method {
            33 => Self::ToIndex(-1.0),
            34 => Self::ToIndex(1.0),
            _ => Search::by_method(method).map_or(Self::Over, |search| Self::ToSwitch {
                search,
                direction: search.first,
                turned: false,
            }),
        }
    }

    /// Direction and, if it is that towards zero, `true`.
    fn motion(self) -> Option<(f64, bool)> {
        match self {
            Self::Waiting | Self::Over => None,
            Self::ToSwitch { direction, .. } => Some((direction, false)),
            Self::OffSwitch(search) => Some((search.side, true)),
            Self::OntoSwitch(search) => Some((-search.side, true)),
            Self::ToIndex(direction) => Some((direction, true)),
        }
    }

    /// Step of a moving stage; the shaft turned from `before` to `position`.
    fn step(self, switches: &Switches, before: f64, position: f64) -> Next {
        let Some((direction, _)) = self.motion() else { return Next::Stage(self) };
        let turns = (position - before) * direction > 0.0;
        let limit = switches.limit(direction, position);
        // The end of the way of a stage that its switch, or index pulse, has not ended.
        let go_on = |search: Option<Search>| {
            let meant = search.is_some_and(|search| search.may_press(direction));
            if limit && !meant { Next::Failed } else { Next::Stage(self) }
        };
        match self {
            Self::Waiting | Self::Over => Next::Stage(self),
            Self::ToSwitch { search, .. } if search.pressed(switches, position) => {
                Next::Stage(Self::OffSwitch(search))
            }
            Self::ToSwitch { search, turned: false, .. }
                if limit && search.switch == Switch::HomeBetween =>
            {
                Next::Stage(Self::ToSwitch { search, direction: -direction, turned: true })
            }
            Self::ToSwitch { search, .. } => go_on(Some(search)),
            Self::OffSwitch(search) => {
                let left = search.pressed(switches, before) && !search.pressed(switches, position);
                match left && turns {
                    true if search.enters => Next::Stage(Self::OntoSwitch(search)),
                    true => search.edge(position),
                    false => go_on(Some(search)),
                }
            }
            Self::OntoSwitch(search) if turns && search.pressed(switches, position) => {
                search.edge(position)
            }
            Self::OntoSwitch(search) => go_on(Some(search)),
            Self::ToIndex(direction) => {
                index_pulse(before, position, direction).map_or(go_on(None), Next::Home)
            }
        }
    }
}

impl Homing {
    /// Homing of a shaft at this angle and speed, in rad and rad/s. `attained`: it has been homed
    /// before.
    pub(super) fn at(position: f64, velocity: f64, attained: bool) -> Self {
        Self {
            stage: HomingStage::Waiting,
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
        let searching = self.stage.motion().is_some();
        let bit = |bit, set| if set { bit } else { 0 };
        bit(Statusword::TARGET_REACHED, !searching && self.velocity == 0.0 && rests)
            | bit(Statusword::HOMING_ATTAINED, self.attained && !searching)
            | bit(Statusword::HOMING_ERROR, self.failed)
    }

    /// Runs one control period of `time`, with the shaft at `position`; returns the angle of the
    /// home, once it is found.
    pub(super) fn step(
        &mut self,
        start: bool,
        settings: &HomingSettings,
        position: f64,
        switches: &Switches,
        time: Duration,
    ) -> Option<f64> {
        let mut home = None;
        self.stage = match self.stage {
            HomingStage::Waiting if start => {
                (self.attained, self.failed) = (false, false);
                let stage = HomingStage::by_method(settings.method);
                // Methods 35 and 37 are over before they begin.
                home = (stage == HomingStage::Over).then_some(position);
                stage
            }
            _ if !start => HomingStage::Waiting,
            stage => match stage.step(switches, self.before, position) {
                Next::Stage(stage) => stage,
                Next::Home(found) => {
                    home = Some(found);
                    HomingStage::Over
                }
                Next::Failed => {
                    self.failed = true;
                    HomingStage::Over
                }
            },
        };
        self.attained |= home.is_some();
        self.before = position;
        let wanted = self.stage.motion().map_or(0.0, |(direction, slowly)| {
            direction * if slowly { settings.zero_speed } else { settings.switch_speed }
        });
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
pub(super) fn index_pulse(before: f64, now: f64, direction: f64) -> Option<f64> {
    let (from, to) = ((before / TAU).floor(), (now / TAU).floor());
    if direction > 0.0 { (to > from).then_some(to * TAU) } else { (to < from).then_some(from * TAU) }
}
