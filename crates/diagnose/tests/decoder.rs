//! Our decoder compared with the kernel's: raw pages, and the text the same kernel wrote for them.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};

use onbeat_diagnose::trace::{Decoder, Task, TraceEvent, What};
use proptest::prelude::*;

/// Recording of a kernel: `formats` (`header_page`, then the formats of the events), `pages`, and
/// `trace`, the kernel's text.
struct Recorded {
    decoder: Decoder,
    pages: Vec<u8>,
    words: String,
}

impl Recorded {
    fn read(folder: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let formats = text("formats");
        let (header_page, formats) = formats.split_once("name: ").unwrap();
        let formats: Vec<String> =
            formats.split("name: ").map(|format| format!("name: {format}")).collect();
        let decoder = Decoder::new(header_page, formats.iter().map(String::as_str)).unwrap();
        Self { decoder, pages: fs::read(folder.join("pages")).unwrap(), words: text("trace") }
    }

    fn all() -> Vec<Self> {
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        fs::read_dir(fixtures).unwrap().map(|folder| Self::read(&folder.unwrap().path())).collect()
    }

    fn events(&self) -> Vec<TraceEvent> {
        let pages = self.pages.chunks(self.decoder.page_size());
        pages
            .filter_map(|page| self.decoder.page(page))
            .flat_map(|page| self.decoder.events(1, page))
            .collect()
    }
}

// feature(explain): the trace decoded as the kernel reads it (6.1 PREEMPT_RT, 6.18)
#[test]
fn we_read_what_the_kernel_reads() {
    let all = Recorded::all();
    assert!(!all.is_empty());
    for recorded in all {
        let events = recorded.events();
        let words: Vec<&str> = recorded.words.lines().collect();
        assert!(events.len() > 300);
        assert_eq!(events.len(), words.len());
        for (event, words) in events.iter().zip(words) {
            let (head, told) = words.split_once(": ").unwrap();
            let (who, seconds) = head.rsplit_once(' ').unwrap();
            let (seconds, micros) = seconds.split_once('.').unwrap();
            let micros = seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap();
            assert!((event.time_ns + 500) / 1_000 == micros, "{event:?}: {words}");
            let current = who.split('[').next().unwrap().trim().rsplit_once('-').unwrap().1;
            assert_eq!(event.current.to_string(), current, "{words}");
            if let What::Switch { preempted, .. } = event.what {
                assert_eq!(told.contains("prev_state=R"), preempted, "{words}");
            }
            for expected in said(&event.what) {
                assert!(told.contains(&expected), "{expected} in {words}");
            }
        }
    }
}

/// Words that the kernel's text of an event must contain.
fn said(what: &What) -> Vec<String> {
    let task = |which: &str, task: &Task| {
        let Task { thread, name, priority } = task;
        format!("{which}_comm={name} {which}_pid={thread} {which}_prio={priority}")
    };
    match what {
        What::Switch { previous, next, .. } => {
            vec!["sched_switch".into(), task("prev", previous), task("next", next)]
        }
        What::Waking { thread } => vec!["sched_waking".into(), format!(" pid={thread} ")],
        What::Charged { thread, ran_ns } => {
            vec!["sched_stat_runtime".into(), format!("pid={thread} runtime={ran_ns} [ns]")]
        }
        What::IrqEntry { number, name } => {
            vec!["irq_handler_entry".into(), format!("irq={number} name={name}")]
        }
        What::IrqExit => vec!["irq_handler_exit".into()],
        What::VectorEntry { name } => vec![format!("{name}_entry")],
        What::VectorExit => vec!["_exit: vector=".into()],
        What::SoftirqEntry { name } => vec!["softirq_entry".into(), format!("action={name}]")],
        What::SoftirqExit => vec!["softirq_exit".into()],
        What::TimerEntry { function } => {
            assert!(*function > 0);
            vec!["hrtimer_expire_entry".into()]
        }
        What::TimerExit => vec!["hrtimer_expire_exit".into()],
        What::IdleEntry { state } => vec!["cpu_idle".into(), format!("state={state} ")],
        What::IdleExit => vec!["cpu_idle".into(), format!("state={} ", u32::MAX)],
    }
}

proptest! {
    // feature(explain): the trace decoded as the kernel reads it (6.1 PREEMPT_RT, 6.18)
    #[test]
    fn pages_of_garbage_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..5_000)) {
        for recorded in Recorded::all() {
            if let Some(page) = recorded.decoder.page(&bytes) {
                prop_assert!(recorded.decoder.events(0, page).count() <= bytes.len() / 4);
            }
        }
    }

    #[test]
    fn pages_with_damage_are_read_to_their_end(
        damage in prop::collection::vec((0_usize..4096, any::<u8>()), 1..40), cut in 0_usize..4096,
    ) {
        for recorded in Recorded::all() {
            let mut page = recorded.pages[..4096].to_vec();
            for &(place, byte) in &damage {
                page[place] = byte;
            }
            page.truncate(4096 - cut / 8);
            if let Some(page) = recorded.decoder.page(&page) {
                prop_assert!(recorded.decoder.events(0, page).count() <= 1024);
            }
        }
    }

    #[test]
    fn formats_of_garbage_are_refused_in_words(text in "\\PC{0,300}", header in "\\PC{0,100}") {
        prop_assert!(Decoder::new(&header, [text.as_str()]).is_err());
    }
}
