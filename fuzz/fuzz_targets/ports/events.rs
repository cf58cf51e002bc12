//! The input as a row of events.

use control::controller::{AxisTarget, ExternalCommand, Freshness};
use ipc::message::control::{self as requests, Action, Request};
use ipc::message::trajectory::{AxisTolerances, Begin, GoalTime, Order, Point, Tolerance, size};
use ipc::message::{MOST_AXES, Rows};
use motion::base::Twist;
use motion::{MetresPerSecond, NewtonMetres, Radians, RadiansPerSecond};

use crate::AXES;
use crate::axis::Trouble;

pub(crate) enum Event {
    /// So many cycles.
    Cycles(u32),
    /// A cycle after so many periods.
    Late(u64),
    /// A message at the port `control`.
    Control(Vec<u8>),
    /// A message at the port `trajectory`.
    Trajectory(Vec<u8>),
    /// Another command.
    Command(ExternalCommand),
    /// A drive gets a defect, or loses it.
    Trouble(usize, Trouble),
    /// The cycle is to end.
    Stopping,
}

/// The bytes that are still to be read.
pub(crate) struct Events<'a> {
    rest: &'a [u8],
    id: u64,
    axes: usize,
}

impl<'a> Events<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest, id: 1, axes: AXES }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        let what = self.byte()?;
        Some(match what {
            0x00..=0x6F => Event::Cycles(u32::from(what) + 1),
            0x70..=0x77 => Event::Late(u64::from(what & 7) + 2),
            0x78..=0x7B => Event::Control(self.raw()?),
            0x7C..=0x7F => Event::Trajectory(self.raw()?),
            0x80..=0x8F => self.request(what & 7)?,
            0x90..=0x9F => {
                self.id += u64::from(what & 1);
                let begin = self.begin()?;
                order(&Order::Begin(begin))
            }
            0xA0..=0xBF => {
                let point = self.point(what & 0x0F, what & 0x10 != 0)?;
                order(&Order::Point(point))
            }
            0xC0..=0xC7 => order(&Order::Commit { id: self.id }),
            0xC8..=0xCF => order(&Order::Cancel { id: self.id * u64::from(what & 1) }),
            0xD0..=0xDF => Event::Command(self.asked(what & 0x0F)?),
            0xE0..=0xEF => {
                let troubles =
                    [Trouble::None, Trouble::Fault, Trouble::Deaf, Trouble::Stuck, Trouble::NotFresh];
                Event::Trouble(
                    usize::from(what & 0x0F) % AXES,
                    troubles[usize::from(self.byte()?) % troubles.len()],
                )
            }
            _ => Event::Stopping,
        })
    }

    fn request(&mut self, what: u8) -> Option<Event> {
        let number = u32::from(self.byte()?) & 7;
        let what = match what {
            0 | 1 => Action::Enable,
            2 => Action::Disable,
            3 => Action::ResetFaults,
            4 => Action::SwitchController(number),
            5 => Action::Deactivate,
            6 => Action::Home(number),
            _ => Action::Stop,
        };
        let mut buffer = [0; requests::SIZE];
        let length = Request { id: number.into(), what }.encode(&mut buffer).expect("there is room");
        Some(Event::Control(buffer[..length].to_vec()))
    }

    fn begin(&mut self) -> Option<Begin> {
        let (axes, points) = (self.byte()?, self.byte()?);
        let start = self.byte()?;
        let named = (0..8).filter(|bit| axes & 1 << bit != 0);
        let tolerance =
            if start & 2 == 0 { Tolerance::Default } else { Tolerance::Within(self.number()?.abs()) };
        let rows: Vec<_> = named
            .map(|axis| AxisTolerances { axis, path_position: tolerance, ..AxisTolerances::default() })
            .collect();
        self.axes = rows.len();
        Some(Begin {
            id: self.id,
            points: points.into(),
            start_ns: (start & 1 != 0).then_some(1_000_000_000_000 + u64::from(start) * 1_000_000),
            goal_time: if start & 4 == 0 { GoalTime::Default } else { GoalTime::Unlimited },
            axes: Rows::from_slice(&rows).ok()?,
        })
    }

    fn point(&mut self, index: u8, with_velocities: bool) -> Option<Point> {
        let time_from_start_ns = u64::from(self.byte()?) * 20_000_000;
        let mut row = || (0..self.axes).map(|_| self.number()).collect::<Option<Vec<f64>>>();
        let positions = row()?;
        let velocities = if with_velocities { row()? } else { Vec::new() };
        Some(Point {
            id: self.id,
            index: index.into(),
            time_from_start_ns,
            positions: Rows::from_slice(&positions).ok()?,
            velocities: Rows::from_slice(&velocities).ok()?,
            accelerations: Rows::new(),
        })
    }

    /// A command with finite numbers: the cycle refuses all others before a controller gets them.
    fn asked(&mut self, what: u8) -> Option<ExternalCommand> {
        let mut asked = ExternalCommand { axes: vec![None; AXES], ..ExternalCommand::default() };
        asked.freshness = [Freshness::Fresh, Freshness::Stale, Freshness::Never][usize::from(what & 3) % 3];
        if what & 4 != 0 {
            let (x, yaw) = (self.number()?, self.number()?);
            asked.twist =
                Some(Twist { x: MetresPerSecond(x), y: MetresPerSecond(0.0), yaw: RadiansPerSecond(yaw) });
        }
        if what & 8 != 0 {
            for axis in 0..AXES {
                let number = self.number()?;
                asked.axes[axis] = Some(match what & 3 {
                    0 | 1 => AxisTarget::Position(Radians(number)),
                    2 => AxisTarget::Velocity(RadiansPerSecond(number)),
                    _ => AxisTarget::Effort(NewtonMetres(number)),
                });
            }
        }
        Some(asked)
    }

    /// Mostly one that means something; now and then any that is finite.
    fn number(&mut self) -> Option<f64> {
        let small = i8::from_le_bytes([self.byte()?]);
        if small != i8::MIN {
            return Some(f64::from(small) / 24.0);
        }
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(f64::from_le_bytes(*bytes)).filter(|number| number.is_finite())
    }

    fn raw(&mut self) -> Option<Vec<u8>> {
        let length = self.byte()?;
        let (bytes, rest) = self.rest.split_at(self.rest.len().min(length.into()));
        self.rest = rest;
        Some(bytes.to_vec())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
}

fn order(order: &Order) -> Event {
    let mut buffer = vec![0; size(MOST_AXES)];
    let length = order.encode(&mut buffer).expect("there is room");
    buffer.truncate(length);
    Event::Trajectory(buffer)
}
