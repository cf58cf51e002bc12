//! A robot file drafted from what is on a bus: text from descriptions of SubDevices, with a comment
//! where something is assumed or unknown.
//!
//! ```
//! use std::time::Duration;
//!
//! use ethercat::sii::{Builder, Identity};
//! use onbeat_robot::draft::{Found, Setting, draft};
//!
//! let identity = Identity { vendor_id: 2, product_code: 0x044C_2C52, ..Identity::default() };
//! let image = Builder::new(identity, "EK1100").build();
//! let setting = Setting {
//!     name: "bench",
//!     file: "bench.toml",
//!     made_by: "an example",
//!     run: "--iface eth0",
//!     period: Duration::from_millis(1),
//! };
//! let text = draft(&[Found::of_image(&image)], &setting).unwrap();
//! assert!(text.contains("[device.ek1100]"));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `found` | a SubDevice as it was found, and the objects to ask it for |
//! | `names` | names of types and SubDevices |
//! | `device` | `[device.NAME]`, and `outage_time` for their axes |
//! | `process_data` | PDOs of a drive, and the mode they allow |
//! | `axis` | `[[axis]]` |
//! | `signals` | `[[signal]]` |
//! | `text` | rows, numbers and quotes |

mod axis;
mod device;
mod found;
mod names;
mod process_data;
mod signals;
mod text;

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use thiserror::Error;
use types::CyclicMode;
use types::duration;

pub use found::{Found, ObjectPlace, may_be_written};

use self::device::{Device, KEY};
use self::names::{Names, member};
use self::text::{one_line, quoted, row};
use crate::{FileError, RobotConfig};

/// Settings of a draft, in addition to the SubDevices found.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Name of the robot.
    pub name: &'a str,
    /// Name of the file, as in commands.
    pub file: &'a str,
    /// Command, or program, that makes it.
    pub made_by: &'a str,
    /// Arguments with which `onbeat run` finds the same bus.
    pub run: &'a str,
    /// Period of the cycle.
    pub period: Duration,
}

/// Reason that there is no draft.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum DraftError {
    /// There is nothing to describe.
    #[error("no SubDevice, expected one at least: check power and cable")]
    Empty,
    /// The SubDevices found make no robot file.
    #[error("what was found makes no robot file: {0}")]
    Refused(#[from] FileError),
}

/// The robot file of the SubDevices `found`, in the order of the cable.
///
/// # Errors
/// No SubDevice, or SubDevices that no robot file can have, as more than there may be.
pub fn draft(found: &[Found], setting: &Setting<'_>) -> Result<String, DraftError> {
    if found.is_empty() {
        return Err(DraftError::Empty);
    }
    let text = Draft::of(found, setting).text(setting);
    // Its contents come from outside. Whatever they are, the user must not get a file that is
    // refused.
    let robot = RobotConfig::parse(&text, "draft")?;
    robot.signals(|position| found.get(position).map(|it| &it.mapping))?;
    Ok(text)
}

/// Number of values in the draft `text` that are marked as unknown.
#[must_use]
pub fn unknown_values(text: &str) -> usize {
    text.matches("# unknown: ").count() + text.matches("; unknown: ").count()
}

/// SubDevices with their names.
struct Draft<'a> {
    found: &'a [Found],
    devices: Vec<Device>,
    /// Types, in the order in which they are met first.
    types: Vec<Type>,
    /// Type of each SubDevice, and its number within its type, from 1.
    members: Vec<(usize, usize)>,
}

/// A type of SubDevice.
struct Type {
    name: String,
    /// Names of its SubDevices.
    members: Vec<String>,
    /// True if these are its own with a number, so that several may be one entry.
    is_numbered: bool,
    table: String,
}

impl<'a> Draft<'a> {
    fn of(found: &'a [Found], setting: &Setting<'_>) -> Self {
        let devices: Vec<Device> = found.iter().map(|it| device::described(it, setting.period)).collect();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut all: Vec<Vec<&Found>> = Vec::new();
        let mut members = Vec::new();
        for (it, device) in found.iter().zip(&devices) {
            let place = *places.entry(device.table.clone()).or_insert(all.len());
            if place == all.len() {
                all.push(Vec::new());
            }
            all[place].push(it);
            members.push((place, all[place].len()));
        }
        let mut names = Names::default();
        let mut types = Vec::new();
        for (place, alike) in all.iter().enumerate() {
            let device = &devices[members.iter().position(|it| it.0 == place).unwrap_or_default()];
            let count = alike.len();
            let kind = if device.axes.is_empty() { "terminal" } else { "drive" };
            let common = names::of_type(alike);
            let own = if common.is_some() { None } else { names::of_each(alike) };
            let name = names.give(common.as_deref().unwrap_or(kind), if own.is_some() { 1 } else { count });
            let is_numbered = own.is_none();
            let numbered = || (1..=count).map(|number| member(&name, count, number)).collect();
            let members = own.map_or_else(numbered, |own| own.iter().map(|it| names.give(it, 1)).collect());
            let table = row(&format!("[device.{name}]"), &device.title) + &device.table.replace(KEY, &name);
            types.push(Type { name, members, is_numbered, table });
        }
        Self { found, devices, types, members }
    }

    fn text(&self, setting: &Setting<'_>) -> String {
        let mut text = self.header(setting);
        for it in &self.types {
            text += "\n";
            text += &it.table;
        }
        let clocks = self.devices.iter().any(|it| it.has_clock);
        if clocks {
            text += "\n[bus]\ndistributed_clocks = true\n";
        }
        self.sub_devices(&mut text);
        let modes = self.axes(&mut text);
        for (position, it) in self.found.iter().enumerate() {
            if self.devices[position].axes.is_empty() {
                text += &signals::rows(it, &self.name(position));
            }
        }
        text + &controller(&modes)
    }

    fn header(&self, setting: &Setting<'_>) -> String {
        let Setting { name, file, made_by, run, period } = setting;
        let (file, made_by, run) = (one_line(file), one_line(made_by), one_line(run));
        let mut next = vec![
            (format!("onbeat check {file}"), "all errors, doubtful values"),
            (format!("onbeat run {file} {run}"), "up to Op, drives enabled; nothing moves by itself"),
        ];
        let first = |mode| (0..self.found.len()).find(|it| self.axis_mode(*it) == Some(mode));
        let axis = |position: usize| self.axis_name(position, self.devices[position].axes[0]);
        if let Some(axis) = first(CyclicMode::Position).map(axis) {
            let command = format!("onbeat control move --by {axis} 5 --degrees");
            next.push((command, "in another terminal: the first motion, slow"));
            next.push((
                "onbeat control switch joint_velocity".to_owned(),
                "then it turns while a key is held:",
            ));
            next.push((
                format!("onbeat control jog {axis}"),
                "the arrow keys; slow, and stops at each limit",
            ));
        } else if let Some(axis) = first(CyclicMode::Velocity).map(axis) {
            next.push((
                format!("onbeat control jog {axis}"),
                "in another terminal: turns while a key is held",
            ));
        }
        let next: String =
            next.iter().map(|(command, comment)| row(&format!("#   {command}"), comment)).collect();
        let profile = "P priority, M memory lock; without the privilege it runs without, and says so";
        [
            format!("# Drafted by {made_by}.\n#\n"),
            "# `unknown:` marks what Onbeat could not find out, `assumed:` marks what it chose.\n"
                .to_owned(),
            "# docs/robot-file.md has every key. Next:\n#\n".to_owned(),
            next,
            format!("\nname = {}\n\n[cycle]\n", quoted(name)),
            format!("period = \"{}\"\n", duration::format(*period)),
            row("profile = \"PM\"", profile),
            self.outage(*period),
        ]
        .concat()
    }

    /// Rows on an outage of the axes.
    fn outage(&self, period: Duration) -> String {
        let of = |position: usize| {
            let axes = self.axis_mode(position).map_or(&[][..], |_| &self.devices[position].axes[..]);
            axes.iter().map(move |axis| (self.axis_name(position, *axis), &self.found[position], *axis))
        };
        device::outage_rows(&(0..self.found.len()).flat_map(of).collect::<Vec<_>>(), period)
    }

    fn name(&self, position: usize) -> String {
        let (place, number) = self.members[position];
        self.types[place].members[number - 1].clone()
    }

    /// `[[bus.sub_device]]`: neighbours of one type on one line share an entry.
    fn sub_devices(&self, text: &mut String) {
        let mut position = 0;
        while position < self.found.len() {
            let (place, number) = self.members[position];
            let count = self.alike_from(position);
            let kind = &self.types[place];
            let place = match count {
                1 => format!("position {position}"),
                _ => format!("positions {position} to {}", position + count - 1),
            };
            *text += &format!("\n{}", row("[[bus.sub_device]]", &place));
            match count {
                1 => *text += &format!("name = \"{}\"\n", self.name(position)),
                _ => *text += &format!("name = \"{}-{{}}\"\ncount = {count}\n", kind.name),
            }
            if count > 1 && number > 1 {
                *text += &format!("first = {number}\n");
            }
            *text += &format!("device = \"{}\"\n", kind.name);
            let found = &self.found[position];
            if found.alias > 0 {
                *text += &format!("alias = {}\n", found.alias);
            }
            // Port 1 of the one before is usual.
            if let Some((parent, port)) = found.upstream
                && let Some(on) = self.members.get(usize::from(parent)).map(|_| self.name(parent.into()))
            {
                if usize::from(parent) + 1 != position {
                    *text += &format!("parent = \"{on}\"\n");
                }
                if port != 1 {
                    *text += &format!("port = {port}\n");
                }
            }
            position += count;
        }
    }

    /// Number of SubDevices from `position` on that are one entry.
    fn alike_from(&self, position: usize) -> usize {
        let (kind, _) = self.members[position];
        let goes_on = |next: &usize| {
            let it = &self.found[*next];
            let before = u16::try_from(next - 1).unwrap_or(u16::MAX);
            let is_behind = it.upstream.is_none_or(|upstream| upstream == (before, 1));
            self.members[*next].0 == kind && is_behind && it.alias == 0
        };
        match self.found[position].alias {
            0 if self.types[kind].is_numbered => {
                1 + (position + 1..self.found.len()).take_while(goes_on).count()
            }
            _ => 1,
        }
    }

    fn axis_mode(&self, position: usize) -> Option<CyclicMode> {
        self.devices[position].mode.filter(|_| !self.devices[position].axes.is_empty())
    }

    /// Name of an axis: the name of its SubDevice, with its number if there are several axes.
    fn axis_name(&self, position: usize, axis: u8) -> String {
        match self.devices[position].axes.len() {
            1 => self.name(position),
            _ => format!("{}-axis-{}", self.name(position), axis + 1),
        }
    }

    /// `[[axis]]`: one entry for equal axes of a type with consecutive numbers. Returns their
    /// modes.
    fn axes(&self, text: &mut String) -> Vec<CyclicMode> {
        let mut modes = Vec::new();
        for (place, kind) in self.types.iter().enumerate() {
            let mut positions = Vec::new();
            for position in (0..self.found.len()).filter(|it| self.members[*it].0 == place) {
                let Some(mode) = self.axis_mode(position) else { continue };
                let axes = &self.devices[position].axes;
                modes.extend(axes.iter().map(|_| mode));
                let rows = |axis: &u8| axis::rows(&self.found[position], *axis, mode);
                positions.push((position, axes.iter().map(rows).collect::<Vec<_>>()));
            }
            let are_one =
                |one: &Vec<String>, other: &Vec<String>| kind.is_numbered && one == other && one.len() == 1;
            for alike in positions.chunk_by(|(_, one), (_, other)| are_one(one, other)) {
                let (first, rows) = &alike[0];
                match alike.len() {
                    1 => self.axes_of(*first, rows, text),
                    count => {
                        let number = self.members[*first].1;
                        let first = if number > 1 { format!("first = {number}\n") } else { String::new() };
                        let name = &kind.name;
                        *text += &format!("\n[[axis]]\nname = \"{name}-{{}}\"\ncount = {count}\n{first}");
                        *text += &format!("sub_device = \"{name}-{{}}\"\n{}", rows[0]);
                    }
                }
            }
        }
        modes
    }

    /// The axes of one SubDevice, an entry each.
    fn axes_of(&self, position: usize, rows: &[String], text: &mut String) {
        let axes = &self.devices[position].axes;
        for (axis, rows) in axes.iter().zip(rows) {
            let (name, sub_device) = (self.axis_name(position, *axis), self.name(position));
            let _ = write!(text, "\n[[axis]]\nname = \"{name}\"\nsub_device = \"{sub_device}\"\n");
            if axes.len() > 1 {
                *text += &format!("drive_axis = {}\n", axis + 1);
            }
            *text += rows;
        }
    }
}

/// Controllers that move axes only on command, the active one first; none without axes.
fn controller(modes: &[CyclicMode]) -> String {
    let (kind, comment) = if modes.contains(&CyclicMode::Position) {
        ("joint_trajectory", "nothing moves by itself: `onbeat control move`, ROS 2, Python")
    } else if modes.contains(&CyclicMode::Velocity) {
        ("joint_velocity", "nothing moves by itself: `onbeat control jog`, ROS 2, Python")
    } else if modes.is_empty() {
        return String::new();
    } else {
        ("hold", "nothing moves; docs/controllers.md has others")
    };
    let kind = row(&format!("kind = \"{kind}\""), comment);
    if !modes.contains(&CyclicMode::Position) {
        return format!("\n[controller]\n{kind}");
    }
    let jog = row(
        "kind = \"joint_velocity\"",
        "`onbeat control switch joint_velocity`, then `jog`: turns while a key is held",
    );
    format!("\n[[controller]]\n{kind}\n[[controller]]\n{jog}")
}

#[cfg(test)]
mod tests;
