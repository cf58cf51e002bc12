//! Events that are recorded: their meaning, the reading of their records whatever the kernel's
//! formats, and the names in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::Serialize;

use super::format::{EventFormat, Field};

/// Event of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// CPU of the event.
    pub cpu: usize,
    /// Thread that was current there; 0 is the idle task.
    pub current: i32,
    /// Kind of the event and its fields.
    pub what: What,
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `sched_switch`: another thread starts running.
    Switch {
        /// Thread that ran.
        previous: Task,
        /// True if it is still runnable: it was preempted and does not sleep.
        preempted: bool,
        /// Thread that runs now.
        next: Task,
    },
    /// `sched_waking`: a thread is being woken; the event belongs to the CPU that wakes it.
    Waking {
        /// Thread that is woken.
        thread: i32,
    },
    /// `sched_stat_runtime`: run time of a thread since its last charge, ns, without time stolen
    /// from the CPU.
    Charged {
        /// Thread that is charged.
        thread: i32,
        /// Run time, ns.
        ran_ns: u64,
    },
    /// `irq_handler_entry`.
    IrqEntry {
        /// Number of the interrupt.
        number: u32,
        /// Name of the handler, as in `/proc/interrupts`.
        name: Name,
    },
    /// `irq_handler_exit`.
    IrqExit,
    /// Entry of `irq_vectors`: interrupt of the CPU itself, by name, for example `local_timer`,
    /// `reschedule`.
    VectorEntry {
        /// Name without `_entry`.
        name: &'static str,
    },
    /// Exit of `irq_vectors`.
    VectorExit,
    /// `softirq_entry`.
    SoftirqEntry {
        /// Name as in `/proc/softirqs`.
        name: &'static str,
    },
    /// `softirq_exit`.
    SoftirqExit,
    /// `hrtimer_expire_entry`.
    TimerEntry {
        /// Address of its function.
        function: u64,
    },
    /// `hrtimer_expire_exit`.
    TimerExit,
    /// `cpu_idle`: the CPU goes to sleep.
    IdleEntry {
        /// Number of the idle state.
        state: u32,
    },
    /// `cpu_idle`: the CPU wakes up.
    IdleExit,
}

/// Event that is recorded: its group and name, true if attribution is impossible without it, the
/// fields that are read, and the meaning of a record with these.
type Recorded =
    (&'static str, &'static str, bool, &'static [&'static str], fn(&Record<'_>) -> Option<What>);

/// Events that are recorded.
pub(super) const RECORDED: &[Recorded] = &[
    (
        "sched",
        "sched_switch",
        true,
        &["prev_pid", "prev_comm", "prev_prio", "next_pid", "next_comm", "next_prio", "prev_state"],
        |it| {
            let (previous, next) = (it.task(0)?, it.task(3)?);
            // The low byte is the sleep state; 0x100 and above mark preemption (TASK_REPORT_MAX).
            Some(What::Switch { previous, preempted: it.number(6)? & 0xFF == 0, next })
        },
    ),
    ("sched", "sched_waking", true, &["pid"], |it| Some(What::Waking { thread: it.number(0)? as i32 })),
    ("sched", "sched_stat_runtime", false, &["pid", "runtime"], |it| {
        Some(What::Charged { thread: it.number(0)? as i32, ran_ns: it.number(1)? as u64 })
    }),
    ("irq", "irq_handler_entry", true, &["irq", "name"], |it| {
        Some(What::IrqEntry { number: it.number(0)? as u32, name: it.name(1)? })
    }),
    ("irq", "irq_handler_exit", true, &[], |_| Some(What::IrqExit)),
    ("irq", "softirq_entry", true, &["vec"], |it| {
        let vector = usize::try_from(it.number(0)?).ok()?;
        Some(What::SoftirqEntry { name: SOFTIRQS.get(vector).copied().unwrap_or("?") })
    }),
    ("irq", "softirq_exit", true, &[], |_| Some(What::SoftirqExit)),
    ("timer", "hrtimer_expire_entry", false, &["function"], |it| {
        Some(What::TimerEntry { function: it.number(0)? as u64 })
    }),
    ("timer", "hrtimer_expire_exit", false, &[], |_| Some(What::TimerExit)),
    ("power", "cpu_idle", false, &["state"], |it| match it.number(0)? as u32 {
        // PWR_EVENT_EXIT
        u32::MAX => Some(What::IdleExit),
        state => Some(What::IdleEntry { state }),
    }),
    vector("local_timer_entry", entry),
    vector("local_timer_exit", exit),
    vector("reschedule_entry", entry),
    vector("reschedule_exit", exit),
    vector("call_function_entry", entry),
    vector("call_function_exit", exit),
    vector("call_function_single_entry", entry),
    vector("call_function_single_exit", exit),
    vector("irq_work_entry", entry),
    vector("irq_work_exit", exit),
];

/// Event of an interrupt of the CPU itself.
const fn vector(name: &'static str, read: fn(&Record<'_>) -> Option<What>) -> Recorded {
    ("irq_vectors", name, false, &[], read)
}

fn entry(it: &Record<'_>) -> Option<What> {
    Some(What::VectorEntry { name: it.event.trim_end_matches("_entry") })
}

fn exit(_: &Record<'_>) -> Option<What> {
    Some(What::VectorExit)
}

/// Softirqs by number, by their names in `/proc/softirqs`.
const SOFTIRQS: &[&str] =
    &["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Reading of one event by the places of its fields in a kernel's records.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    event: &'static str,
    fields: Vec<Field>,
    read: fn(&Record<'_>) -> Option<What>,
}

impl Reader {
    /// Finds the fields of an event in its format.
    ///
    /// # Errors
    /// Returns an error sentence for an event that is not recorded, or that lacks a field.
    pub(super) fn new(format: &EventFormat) -> Result<Self, String> {
        let name = &format.name;
        let &(_, event, _, fields, read) = RECORDED
            .iter()
            .find(|(_, event, ..)| event == name)
            .ok_or_else(|| format!("{name} is none of the events that are recorded"))?;
        let field = |field: &&str| {
            format.field(field).ok_or_else(|| format!("the format of {name} lacks the field {field}"))
        };
        Ok(Self { event, fields: fields.iter().map(field).collect::<Result<_, _>>()?, read })
    }

    /// Meaning of a record; `None` if it is too short.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<What> {
        (self.read)(&Record { event: self.event, fields: &self.fields, bytes })
    }
}

/// Record of an event, with the places of its fields.
pub(super) struct Record<'a> {
    event: &'static str,
    fields: &'a [Field],
    bytes: &'a [u8],
}

impl Record<'_> {
    fn number(&self, place: usize) -> Option<i64> {
        self.fields.get(place)?.number(self.bytes)
    }

    fn name(&self, place: usize) -> Option<Name> {
        self.fields.get(place)?.text(self.bytes).map(Name::new)
    }

    /// Thread whose id, name and priority start at field `place`.
    fn task(&self, place: usize) -> Option<Task> {
        let (thread, priority) = (self.number(place)? as i32, self.number(place + 2)? as i32);
        Some(Task { thread, name: self.name(place + 1)?, priority })
    }
}

/// Thread, as in the scheduler's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Thread id; 0 is the idle task of its CPU.
    pub thread: i32,
    /// Name of the thread.
    pub name: Name,
    /// Kernel priority: below 100 real-time, 99 - priority; 120 ordinary.
    pub priority: i32,
}

/// Name of up to 23 bytes, stored in place: threads have at most 15, interrupt names are cut.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Name([u8; 24]);

impl Name {
    /// Creates a name of these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut name = [0; 24];
        let length = bytes.len().min(name.len() - 1);
        name[..length].copy_from_slice(&bytes[..length]);
        Self(name)
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self::new(name.as_bytes())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        f.pad(&String::from_utf8_lossy(&self.0[..end]))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Names of kernel functions, each looked up once.
#[derive(Clone, Debug, Default)]
pub struct Symbols(BTreeMap<u64, String>);

impl Symbols {
    /// Looks up the functions at these addresses in `/proc/kallsyms`, unless all were before.
    pub fn look_up(&mut self, addresses: impl IntoIterator<Item = u64>) {
        let unknown: BTreeSet<u64> = addresses.into_iter().filter(|it| !self.0.contains_key(it)).collect();
        if unknown.is_empty() {
            return;
        }
        if let Ok(file) = File::open("/proc/kallsyms") {
            self.0.extend(names_in(BufReader::new(file), &unknown));
        }
        unknown.into_iter().for_each(|address| {
            self.0.entry(address).or_insert_with(|| at(address));
        });
    }

    /// Name of the function at this address; the address, if the kernel hides the name.
    #[must_use]
    pub fn name(&self, address: u64) -> String {
        self.0.get(&address).cloned().unwrap_or_else(|| at(address))
    }
}

fn at(address: u64) -> String {
    format!("at 0x{address:x}")
}

fn names_in(symbols: impl BufRead, addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    for line in symbols.lines().map_while(Result::ok) {
        if names.len() == addresses.len() {
            break;
        }
        let mut words = line.split_ascii_whitespace();
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if let (Some(address), Some(name)) = (address, words.nth(1)) {
            if address != 0 && addresses.contains(&address) {
                names.entry(address).or_insert_with(|| name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_bytes_are_shown() {
        assert_eq!(Name::from("kworker/1:2").to_string(), "kworker/1:2");
        assert_eq!(Name::new(&[b'x'; 40]).to_string(), "x".repeat(23));
        assert_eq!(Name::new(&[0xFF, b'a']).to_string(), "\u{FFFD}a");
    }

    #[test]
    fn functions_are_found_by_address() {
        let symbols = "ffffffff81000000 T _stext\nffffffff81100010 t hrtimer_wakeup\nbad\n";
        let names = names_in(symbols.as_bytes(), &[0xffff_ffff_8110_0010, 5].into());
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            [(0xffff_ffff_8110_0010, "hrtimer_wakeup".to_owned())]
        );
    }

    #[test]
    fn a_function_without_a_name_is_its_address() {
        let mut symbols = Symbols::default();
        symbols.look_up([5]);
        assert_eq!((symbols.name(5), symbols.name(255)), ("at 0x5".to_owned(), "at 0xff".to_owned()));
        assert_eq!(Symbols([(5, "tick".to_owned())].into()).name(5), "tick");
    }

    #[test]
    fn a_kernel_that_hides_addresses_names_nothing() {
        assert!(names_in("0000000000000000 T _stext\n".as_bytes(), &[0].into()).is_empty());
    }
}
