//! Forced signals: held at a value, over all other writers, until a time has expired.
//!
//! The server checks a client's request and passes it on; the cycle counts the time, so that a
//! force ends even if its client, or the server, is gone.

use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};
use types::{Signal, Value, ValueType};

/// A signal to be forced, or released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Force {
    /// Holds the signal at a value.
    Hold {
        /// Its index in the description.
        signal: usize,
        /// Value of its kind, within its range.
        value: Value,
        /// Time it lasts, from the cycle that takes it.
        time: Duration,
    },
    /// Releases the signal with this index.
    Release(usize),
    /// Releases all signals.
    ReleaseAll,
}

/// Client that a request comes from, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Number of the user.
    pub user: u32,
    /// Number of the process.
    pub process: u32,
}

/// The cycle's end.
#[derive(Debug)]
pub struct Reader(Consumer<(Force, Client)>);

impl Reader {
    /// Takes the next request, if there is one, and its client. Never waits, makes no system call
    /// and allocates nothing.
    pub fn poll(&mut self) -> Option<(Force, Client)> {
        self.0.pop().ok()
    }
}

/// The server's end.
#[derive(Debug)]
pub(crate) struct Forces {
    ring: Producer<(Force, Client)>,
    /// In the order of the description; none where the robot file refuses forces.
    signals: Option<Vec<Signal>>,
}

/// Reason for a refused force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The robot file permits no forces.
    NotPermitted(String),
    /// It cannot be.
    Impossible(String),
    /// The cycle has not taken the previous request.
    NotReady(String),
}

/// Makes both ends.
pub(crate) fn pair(signals: Option<Vec<Signal>>) -> (Forces, Reader) {
    let (ring, heard) = RingBuffer::new(WAITING);
    (Forces { ring, signals }, Reader(heard))
}

impl Forces {
    /// Passes it on to the cycle.
    pub(crate) fn ask(&mut self, force: Force, by: Client) -> Result<(), Refused> {
        let Some(signals) = &self.signals else {
            let text = "this cycle does not permit forced signals: `[ipc] force` in the robot file decides";
            return Err(Refused::NotPermitted(text.to_owned()));
        };
        let known = |signal: usize| {
            let unknown = || format!("there is no signal {signal}; there are {}", signals.len());
            signals.get(signal).ok_or_else(|| Refused::Impossible(unknown()))
        };
        match force {
            Force::Hold { signal, value, time } => {
                check(known(signal)?, value, time).map_err(Refused::Impossible)?
            }
            Force::Release(signal) => known(signal).map(drop)?,
            Force::ReleaseAll => {}
        }
        let full = |_| Refused::NotReady("the cycle has not taken the forces before".to_owned());
        self.ring.push((force, by)).map_err(full)
    }
}

fn check(signal: &Signal, value: Value, time: Duration) -> Result<(), String> {
    let name = &signal.name;
    if let Some(writer) = signal.read_only_for() {
        return Err(format!("output \"{name}\" is written by {writer}, which no client can override"));
    }
    if time.is_zero() || time > LONGEST {
        return Err(format!(
            "{time:?} for the signal \"{name}\", expected up to {} h",
            LONGEST.as_secs() / 3600
        ));
    }
    match signal.raw(value) {
        Some((_, false)) => Ok(()),
        Some((_, true)) => {
            let (lowest, highest) = signal.bounds();
            Err(format!("{value} for the signal \"{name}\", expected {lowest} to {highest}"))
        }
        None => {
            let expected = match signal.value_type {
                ValueType::Bool => "true or false",
                _ => "a finite number",
            };
            Err(format!("{value} for the signal \"{name}\", expected {expected}"))
        }
    }
}

/// Longest time of one force; a client that needs more repeats the request.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Forces that wait for the cycle.
const WAITING: usize = 64;

#[cfg(test)]
mod tests {
    use types::signal::{Flow, OutputBehaviour};

    use super::*;

    const BY: Client = Client { user: 1000, process: 7 };

    fn signals() -> Vec<Signal> {
        let signal = |name: &str, value_type, flow| Signal {
            name: name.to_owned(),
            sub_device: 0,
            bit_offset: 0,
            value_type,
            unit: String::new(),
            scaling: None,
            range: None,
            flow,
        };
        let word = ValueType::Signed(16);
        vec![
            signal("door", ValueType::Bool, Flow::Input),
            Signal {
                range: Some((0.0, 10.0)),
                ..signal("valve", word, Flow::Output(OutputBehaviour::default()))
            },
            signal("target", word, Flow::Taken("axis \"x\"".to_owned())),
            signal("number", ValueType::Unsigned(16), Flow::Cycle),
        ]
    }

    #[test]
    fn what_can_be_is_passed_on_in_order() {
        let (mut forces, mut cycle) = pair(Some(signals()));
        let hold = |signal, value| Force::Hold { signal, value, time: Duration::from_secs(1) };
        let asked =
            [hold(0, Value::Bool(true)), hold(1, Value::Real(9.6)), Force::Release(1), Force::ReleaseAll];
        for force in asked {
            assert_eq!(forces.ask(force, BY), Ok(()));
        }
        for force in asked {
            assert_eq!(cycle.poll(), Some((force, BY)));
        }
        assert_eq!(cycle.poll(), None);
        // A cycle that does not listen is not drowned.
        let mut room = 0;
        while forces.ask(Force::ReleaseAll, BY).is_ok() {
            room += 1;
        }
        assert_eq!(room, WAITING);
        assert!(matches!(forces.ask(Force::Release(0), BY), Err(Refused::NotReady(_))));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let (mut forces, mut cycle) = pair(Some(signals()));
        let second = Duration::from_secs(1);
        for (signal, value, time, why) in [
            (4, Value::Bool(true), second, "there is no signal 4; there are 4"),
            (usize::MAX, Value::Bool(true), second, "there is no signal"),
            (0, Value::Unsigned(1), second, "1 for the signal \"door\", expected true or false"),
            (1, Value::Bool(true), second, "true for the signal \"valve\", expected a finite number"),
            (1, Value::Real(f64::NAN), second, "NaN for the signal \"valve\", expected a finite number"),
            (1, Value::Signed(11), second, "11 for the signal \"valve\", expected 0 to 10"),
            (2, Value::Signed(1), second, "output \"target\" is written by axis \"x\""),
            (
                3,
                Value::Unsigned(1),
                second,
                "output \"number\" is written by the cycle, which no client can override",
            ),
            (0, Value::Bool(true), Duration::ZERO, "0ns for the signal \"door\", expected up to 24 h"),
            (0, Value::Bool(true), Duration::MAX, "expected up to 24 h"),
        ] {
            match forces.ask(Force::Hold { signal, value, time }, BY) {
                Err(Refused::Impossible(found)) => assert!(found.contains(why), "{found}"),
                other => panic!("{signal} {value}: {other:?}"),
            }
        }
        assert!(matches!(forces.ask(Force::Release(4), BY), Err(Refused::Impossible(_))));
        let (mut closed, _cycle) = pair(None);
        assert!(matches!(closed.ask(Force::ReleaseAll, BY), Err(Refused::NotPermitted(_))));
        assert_eq!(cycle.poll(), None);
    }
}
