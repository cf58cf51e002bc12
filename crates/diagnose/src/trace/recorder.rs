//! Flight recorder: the kernel keeps the newest events in its rings; they are read only on request,
//! and decoded by the kernel's own description of them.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use machine::cpus::Cpus;

use super::event::{RECORDED, Reader, TraceEvent};
use super::format::{EventFormat, Field};
use super::page::{Page, PageLayout};
use super::tracefs::{Instance, Unavailable};

/// Records the events of some CPUs during its lifetime.
///
/// The cycle pays only for the events on its own CPU: the rings belong to the kernel and are
/// overwritten when full, and they are read on another thread.
#[derive(Debug)]
pub struct Recorder {
    // Dropped before the instance, which cannot be removed while its pipes are open.
    pipes: Vec<Pipe>,
    decoder: Decoder,
    pages: VecDeque<KeptPage>,
    most_pages: usize,
    missing: Vec<String>,
    instance: Instance,
}

#[derive(Debug)]
struct Pipe {
    cpu: usize,
    file: File,
}

#[derive(Debug)]
struct KeptPage {
    cpu: usize,
    start_ns: u64,
    missed: bool,
    bytes: Box<[u8]>,
}

/// Largest ring of a CPU, KiB: a quarter of a second of the densest load seen (`hackbench`),
/// minutes of a quiet one.
const RING_OF_ONE: usize = 8 << 10;

/// Rings of all CPUs together, KiB; as many read pages are kept.
const RING_OF_ALL: usize = 32 << 10;

/// Smallest ring of a CPU, KiB.
const RING_AT_LEAST: usize = 512;

impl Recorder {
    /// Starts recording on these CPUs.
    ///
    /// # Errors
    /// The feature that the kernel lacks or refuses.
    pub fn start(cpus: &[usize]) -> Result<Self, Unavailable> {
        let instance = Instance::create()?;
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("tracing_cpumask", &cpus.iter().copied().collect::<Cpus>().mask())?;
        // Rings of CPUs that are not recorded are kept small.
        instance.set("buffer_size_kb", "8")?;
        let ring = (RING_OF_ALL / cpus.len().max(1)).clamp(RING_AT_LEAST, RING_OF_ONE);
        for cpu in cpus {
            instance.set(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &ring.to_string())?;
        }
        let (decoder, missing) = enable(&instance)?;
        let pipes = cpus.iter().map(|&cpu| Pipe::open(&instance, cpu)).collect::<Result<Vec<_>, _>>()?;
        instance.set("tracing_on", "1")?;
        let most_pages = ring * 1024 / decoder.page_size() * cpus.len().max(1);
        Ok(Self { pipes, decoder, pages: VecDeque::new(), most_pages, missing, instance })
    }

    /// Optional events that this kernel lacks, for example `irq_vectors:local_timer_entry`.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Name of its trace instance.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.instance.name()
    }

    /// CPUs recorded.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        self.pipes.iter().map(|pipe| pipe.cpu)
    }

    /// Reads all events from the kernel. The oldest ones are discarded beyond the limit.
    ///
    /// # Errors
    /// Reading fails.
    pub fn drain(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; self.decoder.page_size()];
        for pipe in &mut self.pipes {
            // At most the ring's size: a CPU may write as fast as it is read.
            for _ in 0..self.most_pages {
                let length = match pipe.file.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                if let Some(page) = self.decoder.page(&buffer[..length]) {
                    let (start_ns, missed) = (page.start_ns(), page.missed());
                    // Of a page that is mostly empty only the used part is kept.
                    let bytes = buffer[..page.end().min(length)].into();
                    self.pages.push_back(KeptPage { cpu: pipe.cpu, start_ns, missed, bytes });
                }
                if self.pages.len() > self.most_pages {
                    self.pages.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Events of this interval of all CPUs, in order of time.
    #[must_use]
    pub fn events(&self, from_ns: u64, to_ns: u64) -> Vec<TraceEvent> {
        let mut events = Vec::new();
        for cpu in self.cpus() {
            let mut pages = self.pages.iter().filter(|page| page.cpu == cpu).peekable();
            while let Some(page) = pages.next() {
                let ends_before = pages.peek().is_some_and(|next| next.start_ns < from_ns);
                if ends_before || page.start_ns > to_ns {
                    continue;
                }
                let Some(head) = self.decoder.page(&page.bytes) else { continue };
                let within = |event: &TraceEvent| (from_ns..=to_ns).contains(&event.time_ns);
                events.extend(self.decoder.events(cpu, head).filter(within));
            }
        }
        // A stable sort keeps the order of each CPU's events.
        events.sort_by_key(|event| event.time_ns);
        events
    }

    /// Start of the recording without gaps on any CPU, up to `to_ns`; `None` without events.
    #[must_use]
    pub fn complete_since(&self, to_ns: u64) -> Option<u64> {
        let mut since: Option<u64> = None;
        for cpu in self.cpus() {
            let mut of_cpu = None;
            for page in self.pages.iter().filter(|page| page.cpu == cpu && page.start_ns <= to_ns) {
                if page.missed || of_cpu.is_none() {
                    of_cpu = Some(page.start_ns);
                }
            }
            since = since.max(of_cpu);
        }
        since
    }
}

impl Pipe {
    fn open(instance: &Instance, cpu: usize) -> Result<Self, Unavailable> {
        let name = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(instance.path(&name))
            .map_err(|error| Unavailable::Setting { what: name, error })?;
        Ok(Self { cpu, file })
    }
}

/// Enables the events that exist; returns the names of missing events.
fn enable(instance: &Instance) -> Result<(Decoder, Vec<String>), Unavailable> {
    let mut formats = Vec::new();
    let mut missing = Vec::new();
    for &(group, event, needed, ..) in RECORDED {
        let folder = format!("events/{group}/{event}");
        if !instance.has(&folder) {
            if needed {
                return Err(Unavailable::Event(format!("{group}:{event}")));
            }
            missing.push(format!("{group}:{event}"));
            continue;
        }
        let read = |file: String| {
            instance.tracefs().read(&file).map_err(|error| Unavailable::Setting { what: file, error })
        };
        formats.push(read(format!("{folder}/format"))?);
        instance.set(&format!("{folder}/enable"), "1")?;
    }
    let header = instance
        .tracefs()
        .read("events/header_page")
        .map_err(|error| Unavailable::Setting { what: "events/header_page".to_owned(), error })?;
    let decoder = Decoder::new(&header, formats.iter().map(String::as_str)).map_err(Unavailable::Format)?;
    Ok((decoder, missing))
}

/// Decoder of pages of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: PageLayout,
    id: Field,
    current: Field,
    /// By `common_type`.
    events: HashMap<u16, Reader>,
}

impl Decoder {
    /// Creates a decoder for the events with these `format` files, and the page layout in
    /// `header_page`.
    ///
    /// # Errors
    /// The missing field or event, in words.
    pub fn new<'a>(header_page: &str, formats: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let layout = PageLayout::parse(header_page).ok_or_else(|| {
            format!("expected commit and data fields in events/header_page, found {header_page:?}")
        })?;
        let mut common = None;
        let mut events = HashMap::new();
        for text in formats {
            let first_line = text.lines().next().unwrap_or_default();
            let format = EventFormat::parse(text).ok_or_else(|| {
                format!("expected an event's format with name and ID, found {first_line:?}")
            })?;
            events.insert(format.id, Reader::new(&format)?);
            let fields = format.field("common_type").zip(format.field("common_pid"));
            common =
                Some(fields.ok_or_else(|| format!("{} has no common_type and common_pid", format.name))?);
        }
        let (id, current) = common.ok_or("no event at all")?;
        Ok(Self { layout, id, current, events })
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
            let what = self.events.get(&id)?.read(record)?;
            Some(TraceEvent { time_ns, cpu, current: self.current.number(record)? as i32, what })
        })
    }
}
