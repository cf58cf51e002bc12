//! Events from records of the ring buffer.

use std::collections::HashMap;

use super::event::{Name, Task, TraceEvent, What};
use super::format::{EventFormat, Field};
use super::page::{Page, PageLayout};

/// Recorded events: group, name, and true if attribution is impossible without it.
pub const EVENTS: &[(&str, &str, bool)] = &[
    ("sched", "sched_switch", true),
    ("sched", "sched_waking", true),
    ("sched", "sched_stat_runtime", false),
    ("irq", "irq_handler_entry", true),
    ("irq", "irq_handler_exit", true),
    ("irq", "softirq_entry", true),
    ("irq", "softirq_exit", true),
    ("timer", "hrtimer_expire_entry", false),
    ("timer", "hrtimer_expire_exit", false),
    ("power", "cpu_idle", false),
    ("irq_vectors", "local_timer_entry", false),
    ("irq_vectors", "local_timer_exit", false),
    ("irq_vectors", "reschedule_entry", false),
    ("irq_vectors", "reschedule_exit", false),
    ("irq_vectors", "call_function_entry", false),
    ("irq_vectors", "call_function_exit", false),
    ("irq_vectors", "call_function_single_entry", false),
    ("irq_vectors", "call_function_single_exit", false),
    ("irq_vectors", "irq_work_entry", false),
    ("irq_vectors", "irq_work_exit", false),
];

/// Decoder of pages of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: PageLayout,
    id: Field,
    current: Field,
    shapes: HashMap<u16, Shape>,
}

/// Locations of the fields of one event.
#[derive(Clone, Debug)]
enum Shape {
    Switch { previous: TaskFields, state: Field, next: TaskFields },
    Waking { thread: Field },
    Charged { thread: Field, ran: Field },
    IrqEntry { number: Field, name: Field },
    IrqExit,
    VectorEntry(&'static str),
    VectorExit,
    SoftirqEntry { vector: Field },
    SoftirqExit,
    TimerEntry { function: Field },
    TimerExit,
    Idle { state: Field },
}

#[derive(Clone, Debug)]
struct TaskFields {
    thread: Field,
    name: Field,
    priority: Field,
}

impl Decoder {
    /// Creates a decoder for the events with these `format` files, and the page layout in `header_page`.
    ///
    /// # Errors
    /// The missing field or event, in words.
    pub fn new<'a>(header_page: &str, formats: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let layout = PageLayout::parse(header_page).ok_or_else(|| {
            format!("expected commit and data fields in events/header_page, found {header_page:?}")
        })?;
        let mut common = None;
        let mut shapes = HashMap::new();
        for text in formats {
            let format = EventFormat::parse(text).ok_or_else(|| {
                format!("expected an event's format with name and ID, found {:?}", first_line(text))
            })?;
            let shape = Shape::of(&format).ok_or_else(|| {
                format!("the format of {} lacks a field that is expected there", format.name)
            })?;
            let fields = format.field("common_type").zip(format.field("common_pid"));
            common =
                Some(fields.ok_or_else(|| format!("{} has no common_type and common_pid", format.name))?);
            shapes.insert(format.id, shape);
        }
        let (id, current) = common.ok_or("no event at all")?;
        Ok(Self { layout, id, current, shapes })
    }

    /// Size of a page, bytes.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.layout.page_size()
    }

    /// Parses a page's header; `None` if the bytes are too short for one.
    #[must_use]
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Option<Page<'a>> {
        Page::new(&self.layout, bytes)
    }

    /// Events of a page recorded on `cpu`, the oldest first. Records of unknown kinds are skipped.
    pub fn events<'a>(&'a self, cpu: usize, page: Page<'a>) -> impl Iterator<Item = TraceEvent> + 'a {
        page.records().filter_map(move |(time_ns, record)| {
            let id = u16::try_from(self.id.number(record)?).ok()?;
            let what = self.shapes.get(&id)?.read(record)?;
            Some(TraceEvent { time_ns, cpu, current: number(self.current, record)?, what })
        })
    }
}

impl Shape {
    fn of(format: &EventFormat) -> Option<Self> {
        let field = |name| format.field(name);
        Some(match format.name.as_str() {
            "sched_switch" => Self::Switch {
                previous: TaskFields::of(format, "prev")?,
                state: field("prev_state")?,
                next: TaskFields::of(format, "next")?,
            },
            "sched_waking" => Self::Waking { thread: field("pid")? },
            "sched_stat_runtime" => Self::Charged { thread: field("pid")?, ran: field("runtime")? },
            "irq_handler_entry" => Self::IrqEntry { number: field("irq")?, name: field("name")? },
            "irq_handler_exit" => Self::IrqExit,
            "softirq_entry" => Self::SoftirqEntry { vector: field("vec")? },
            "softirq_exit" => Self::SoftirqExit,
            "hrtimer_expire_entry" => Self::TimerEntry { function: field("function")? },
            "hrtimer_expire_exit" => Self::TimerExit,
            "cpu_idle" => Self::Idle { state: field("state")? },
            name if name.ends_with("_exit") => Self::VectorExit,
            name => Self::VectorEntry(
                VECTORS.iter().find(|&&vector| name.strip_suffix("_entry") == Some(vector)).copied()?,
            ),
        })
    }

    fn read(&self, record: &[u8]) -> Option<What> {
        Some(match self {
            Self::Switch { previous, state, next } => What::Switch {
                previous: previous.read(record)?,
                // The low byte is the sleep state; 0x100 and above mark preemption (TASK_REPORT_MAX).
                preempted: state.number(record)? & 0xFF == 0,
                next: next.read(record)?,
            },
            Self::Waking { thread } => What::Waking { thread: number(*thread, record)? },
            Self::Charged { thread, ran } => {
                What::Charged { thread: number(*thread, record)?, ran_ns: ran.number(record)? as u64 }
            }
            Self::IrqEntry { number: irq, name } => {
                What::IrqEntry { number: number(*irq, record)? as u32, name: Name::new(name.text(record)?) }
            }
            Self::IrqExit => What::IrqExit,
            Self::VectorEntry(name) => What::VectorEntry { name },
            Self::VectorExit => What::VectorExit,
            Self::SoftirqEntry { vector } => {
                let vector = usize::try_from(vector.number(record)?).ok()?;
                What::SoftirqEntry { name: SOFTIRQS.get(vector).copied().unwrap_or("?") }
            }
            Self::SoftirqExit => What::SoftirqExit,
            Self::TimerEntry { function } => What::TimerEntry { function: function.number(record)? as u64 },
            Self::TimerExit => What::TimerExit,
            Self::Idle { state } => match state.number(record)? as u32 {
                // PWR_EVENT_EXIT
                u32::MAX => What::IdleExit,
                state => What::IdleEntry { state },
            },
        })
    }
}

impl TaskFields {
    fn of(format: &EventFormat, which: &str) -> Option<Self> {
        Some(Self {
            thread: format.field(&format!("{which}_pid"))?,
            name: format.field(&format!("{which}_comm"))?,
            priority: format.field(&format!("{which}_prio"))?,
        })
    }

    fn read(&self, record: &[u8]) -> Option<Task> {
        Some(Task {
            thread: number(self.thread, record)?,
            name: Name::new(self.name.text(record)?),
            priority: number(self.priority, record)?,
        })
    }
}

/// Interrupts of the CPU itself, by their names in `events/irq_vectors`.
const VECTORS: &[&str] =
    &["local_timer", "reschedule", "call_function", "call_function_single", "irq_work"];

/// Softirqs by number, by their names in `/proc/softirqs`.
const SOFTIRQS: &[&str] =
    &["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

fn number(field: Field, record: &[u8]) -> Option<i32> {
    field.number(record).map(|number| number as i32)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
