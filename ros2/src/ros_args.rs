//! Arguments of ROS 2, as `ros2 run` and launch files pass them to every node: between `--ros-args`
//! and `--`, or the end.
//!
//! | argument | meaning |
//! |---|---|
//! | `-r`, `--remap` `[NODE:]FROM:=TO` | another name: topic, service, action, node ([`Rule`]) |
//! | `-p`, `--param` `[NODE:]NAME:=VALUE` | value of a parameter ([`Assignment`]) |
//! | `--params-file FILE` | a file of them |
//! | `--log-level [LOGGER:=]LEVEL` | lowest level that is logged |
//! | `--enable-X`, `--disable-X` | log `X`: `rosout-logs`, `stdout-logs`, `external-lib-logs` |
//! | `-e`, `--enclave` | name of the security context: checked, not used: there is no security |
//!
//! Of two assignments of one parameter the later one counts, of two rules for one name the first.

pub(crate) mod parameters;
pub(crate) mod rule;

use std::ffi::OsString;
use std::fmt::Display;

use self::parameters::Assignment;
use self::rule::Rule;

/// Arguments of ROS 2 on a command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RosArguments {
    pub(crate) rules: Vec<Rule>,
    pub(crate) assignments: Vec<Assignment>,
    /// Levels of loggers, in the numbers of rcl_interfaces/Log; without a name, of all of them.
    pub(crate) levels: Vec<(Option<String>, u32)>,
    /// False if nothing is logged on /rosout.
    pub(crate) rosout: bool,
    /// False if nothing is logged on the console.
    pub(crate) console: bool,
}

impl Default for RosArguments {
    fn default() -> Self {
        Self { rules: Vec::new(), assignments: Vec::new(), levels: Vec::new(), rosout: true, console: true }
    }
}

const BEGIN: &str = "--ros-args";
const END: &str = "--";

impl RosArguments {
    /// Separates the arguments of ROS from the others, which keep their order.
    ///
    /// # Errors
    /// The argument that is none, by its number on the command line, with the reason.
    pub(crate) fn take(line: impl IntoIterator<Item = OsString>) -> Result<(Vec<OsString>, Self), String> {
        let (mut others, mut ros) = (Vec::new(), Self::default());
        let mut line = line.into_iter().enumerate();
        while let Some((_, argument)) = line.next() {
            if argument == BEGIN {
                ros.take_section(&mut line)?;
            } else {
                others.push(argument);
            }
        }
        Ok((others, ros))
    }

    fn take_section(&mut self, line: &mut impl Iterator<Item = (usize, OsString)>) -> Result<(), String> {
        while let Some((number, argument)) = line.next() {
            let flag = text(number, argument)?;
            match flag.as_str() {
                END => return Ok(()),
                BEGIN => {}
                _ if self.switch(&flag) => {}
                _ => {
                    let expects = expectation(&flag).ok_or_else(|| unknown(number, &flag))?;
                    let value = line.next().map(|(number, value)| text(number, value)).transpose()?;
                    let value = value.filter(|value| value != END);
                    let value =
                        value.ok_or_else(|| place(number, &flag, format_args!("expected {expects}")))?;
                    self.set(&flag, &value)
                        .map_err(|why| place(number, &format!("{flag} {value}"), why))?;
                }
            }
        }
        Ok(())
    }

    /// Takes a flag without a value; false for any other.
    fn switch(&mut self, flag: &str) -> bool {
        match flag {
            "--enable-rosout-logs" => self.rosout = true,
            "--disable-rosout-logs" => self.rosout = false,
            "--enable-stdout-logs" => self.console = true,
            "--disable-stdout-logs" => self.console = false,
            // There is no log in a file to switch on or off.
            "--enable-external-lib-logs" | "--disable-external-lib-logs" => {}
            _ => return false,
        }
        true
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "-r" | "--remap" => self.rules.push(value.parse()?),
            "-p" | "--param" => self.assignments.push(Assignment::parse(value)?),
            "--params-file" => self.assignments.extend(parameters::read(value)?),
            "--log-level" => self.levels.push(log_level(value)?),
            _ => {
                let good = value == "/" || (value.starts_with('/') && rule::is_name(value));
                good.then_some(()).ok_or("expected the name of an enclave, as /cell/robot")?;
            }
        }
        Ok(())
    }

    /// Level of a logger: of the longest match among its own and its parents' names, or the common
    /// one; `None` if none is given.
    pub(crate) fn level_of(&self, logger: &str) -> Option<u32> {
        let of = |name: &str| {
            let rest = logger.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')).then_some(name.len() + 1)
        };
        let found = self
            .levels
            .iter()
            .filter_map(|(name, level)| name.as_deref().map_or(Some(0), of).map(|length| (length, *level)));
        // Of equals the last one.
        found.max_by_key(|&(length, _)| length).map(|(_, level)| level)
    }
}

/// Value that a flag needs; `None` for an unknown one.
fn expectation(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "-r" | "--remap" => "FROM:=TO",
        "-p" | "--param" => "NAME:=VALUE",
        "--params-file" => "a file",
        "--log-level" => "LEVEL or LOGGER:=LEVEL",
        "-e" | "--enclave" => "the name of an enclave",
        _ => return None,
    })
}

fn log_level(text: &str) -> Result<(Option<String>, u32), String> {
    let (logger, level) = text.split_once(":=").map_or((None, text), |(name, level)| (Some(name), level));
    let number = match level.to_ascii_lowercase().as_str() {
        "debug" => 10,
        "info" => 20,
        "warn" => 30,
        "error" => 40,
        "fatal" => 50,
        _ => return Err(format!("level `{level}`: expected debug, info, warn, error or fatal")),
    };
    if logger == Some("") {
        return Err("expected the name of a logger before `:=`".into());
    }
    Ok((logger.map(str::to_owned), number))
}

fn text(number: usize, argument: OsString) -> Result<String, String> {
    argument.into_string().map_err(|raw| place(number, &raw.to_string_lossy(), "expected UTF-8"))
}

fn unknown(number: usize, flag: &str) -> String {
    let known = "expected -r, -p, --params-file, --log-level, -e, --enable- or --disable- with rosout-logs, stdout-logs or \
                 external-lib-logs, or -- as the end";
    match flag {
        "--log-config-file" | "--log-file-name" => place(number, flag, "there is no log in a file here"),
        _ => place(number, flag, format_args!("unknown after {BEGIN}; {known}")),
    }
}

fn place(number: usize, what: &str, why: impl Display) -> String {
    format!("argument {number}, `{what}`: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(line: &[&str]) -> Result<(Vec<OsString>, RosArguments), String> {
        RosArguments::take(line.iter().map(Into::into))
    }

    // feature(ros2): `--ros-args`, as `ros2 run` and launch files pass them
    #[test]
    fn ros_arguments_are_between_their_marks() {
        let (others, ros) = take(&[
            "onbeat-ros2",
            "--quiet",
            "--ros-args",
            "-r",
            "cmd_vel:=/left/cmd_vel",
            "--remap",
            "__ns:=/left",
            "--ros-args",
            "-p",
            "odom_rate:=20",
            "--log-level",
            "onbeat:=WARN",
            "--disable-rosout-logs",
            "--enable-external-lib-logs",
            "-e",
            "/cell/left",
            "--",
            "--domain",
            "7",
            "--ros-args",
            "--disable-stdout-logs",
        ])
        .unwrap();
        assert_eq!(others, ["onbeat-ros2", "--quiet", "--domain", "7"]);
        assert_eq!((ros.rules.len(), ros.assignments.len()), (2, 1));
        assert_eq!(ros.levels, [(Some("onbeat".into()), 30)]);
        assert_eq!((ros.rosout, ros.console), (false, false));
        let (others, ros) = take(&["onbeat-ros2", "-p", "odom_rate:=20", "--"]).unwrap();
        assert_eq!((others.len(), ros), (4, RosArguments::default()), "not those outside");
    }

    #[test]
    fn an_invalid_argument_is_reported_by_its_position() {
        for (line, words) in [
            (&["x", "--ros-args", "-q"][..], "argument 2, `-q`: unknown after --ros-args; expected -r, -p"),
            (&["x", "--ros-args", "cmd_vel:=odom"], "argument 2, `cmd_vel:=odom`: unknown"),
            (&["x", "--ros-args", "-r"], "argument 2, `-r`: expected FROM:=TO"),
            (&["x", "--ros-args", "-r", "--", "--quiet"], "argument 2, `-r`: expected FROM:=TO"),
            (
                &["x", "--ros-args", "-r", "a b:=c"],
                "argument 2, `-r a b:=c`: `a b`: expected the name of a topic",
            ),
            (&["x", "--ros-args", "-p", "rate"], "argument 2, `-p rate`: `rate`: expected NAME:=VALUE"),
            (&["x", "--ros-args", "--log-level", "loud"], "level `loud`: expected debug, info"),
            (
                &["x", "--ros-args", "--params-file", "/no/such.yaml"],
                "`--params-file /no/such.yaml`: cannot be read",
            ),
            (&["x", "--ros-args", "--log-file-name", "f"], "there is no log in a file here"),
            (&["x", "--ros-args", "-e", "cell"], "expected the name of an enclave"),
        ] {
            let why = take(line).unwrap_err();
            assert!(why.contains(words), "{line:?}: {why}");
        }
    }
}
