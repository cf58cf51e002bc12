//! A bus examined for faults, in a table, sentences and JSON.

use std::fmt::Write as _;

use control::bus::sub_device;
use ethercat::main_device::{self, Examined, Upstream, judge};
use ethercat::register::DlStatus;
use ipc::bus::{
    BusStatus, CableEnd, ErrorCounters, PortErrorCounters, PortLink, RingStatus, SubDeviceStatus,
};
use onbeat::sub_devices::Described;
use serde_json::{Value, json};

use super::bus_status::{counter, working_counters};

/// A bus at one instant, and what is wrong.
pub(crate) struct Diagnosis<'a> {
    found: &'a [Described],
    pub(crate) status: BusStatus,
    /// Process data flows.
    is_running: bool,
    pub(crate) findings: Vec<Finding>,
}

/// A fault for people and programs.
pub(crate) struct Finding {
    fault: &'static str,
    ends: Vec<CableEnd>,
    /// Errors counted; 0 where it is about no count.
    count: u32,
    sentence: String,
}

impl<'a> Diagnosis<'a> {
    /// Evaluates the bus. Of error counters only the increase since `before` counts.
    pub(crate) fn new(
        found: &'a [Described],
        status: BusStatus,
        before: Option<&BusStatus>,
        is_running: bool,
    ) -> Self {
        let mut findings = states(found, &status, is_running);
        findings.extend(judged(found, &status, before));
        findings.extend(ring_break(found, &status));
        if let Some(since) = status.working_counter_history.short_since {
            let counters = working_counters(&status);
            let sentence = format!("working counters are short since cycle {since}: {counters}");
            findings.push(Finding { fault: "working_counter", ends: Vec::new(), count: 0, sentence });
        }
        Self { found, status, is_running, findings }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = self.cycle() + &self.clocks() + &self.reference() + &self.table();
        match &self.findings[..] {
            [] => text += "nothing is wrong\n",
            findings => findings.iter().for_each(|it| _ = writeln!(text, "! {}", it.sentence)),
        }
        text
    }

    /// Frames and working counters, and their history.
    fn cycle(&self) -> String {
        let BusStatus { cycle, phase, frames_sent, frames_lost, working_counter_history: history, .. } =
            &self.status;
        if !self.is_running {
            return format!("{phase}: {frames_sent} frames sent, {frames_lost} lost\n");
        }
        let ring = match self.status.ring {
            Some(RingStatus { open: None, since }) => format!("the ring is closed since cycle {since}\n"),
            _ => String::new(),
        };
        let mut text = format!(
            "cycle {cycle}, {phase}: {frames_sent} frames sent, {frames_lost} lost\nworking counters {}; short in {} cycle{}\n",
            working_counters(&self.status),
            history.short_cycles,
            if history.short_cycles == 1 { "" } else { "s" },
        );
        text += &ring;
        for it in &history.changes {
            let _ = match it.short {
                0 => writeln!(text, "  cycle {}: all complete", it.cycle),
                short => writeln!(
                    text,
                    "  cycle {}: {short} short, the first is datagram {}: {}",
                    it.cycle,
                    it.datagram,
                    counter(it.received, it.expected),
                ),
            };
        }
        text
    }

    /// Smallest and largest difference of a clock from the reference clock.
    fn spread(&self) -> Option<(i32, i32)> {
        let all = self.status.sub_devices.iter().filter_map(|it| it.clock_difference_ns);
        Some((all.clone().min()?, all.max()?))
    }

    fn clocks(&self) -> String {
        let reference = self.status.reference_clock.map(usize::from).and_then(|position| {
            let it = self.found.get(position)?;
            Some(sub_device(position, &it.object.name))
        });
        match (self.spread(), reference) {
            (Some((least, most)), Some(reference)) => format!(
                "clocks differ by {least} ns to {most} ns from {reference}, spread {} ns\n",
                i64::from(most) - i64::from(least)
            ),
            (None, Some(reference)) => format!("clocks follow {reference}\n"),
            (_, None) => String::new(),
        }
    }

    /// The cycle against the reference clock.
    fn reference(&self) -> String {
        let Some(it) = &self.status.clock else { return String::new() };
        let micros = |ns: i64| ns as f64 / 1e3;
        let lock = match it.lock.as_str() {
            "off" => String::new(),
            lock => format!(
                "lock to the reference clock: {lock}, phase error {:+.1} us, drift {:+.2} ppm, lost {} time{}\n",
                micros(it.phase_error_ns),
                it.drift_ppb as f64 / 1e3,
                it.losses,
                if it.losses == 1 { "" } else { "s" },
            ),
        };
        format!(
            "{lock}reference clock {:+.1} us from this host's; frames pass it {:.1} us behind SYNC0 without a shift\n",
            micros(it.difference_ns),
            it.frame_phase_ns as f64 / 1e3,
        )
    }

    /// A line for each port that has a link, or should, or has counted.
    fn table(&self) -> String {
        let names = self.found.iter().map(|it| it.object.name.chars().count()).max().unwrap_or(0).max(4);
        let states = self.status.sub_devices.iter().map(|it| it.state.len()).max().unwrap_or(0).max(5);
        let has_sync0 = self.status.sub_devices.iter().any(|it| it.sync0.is_some());
        let sync0 = |cell: &str| if has_sync0 { format!("  {cell:>8}") } else { String::new() };
        let mut text = format!(
            "     {:names$}  {:states$}  clock ns  delay ns{}  proc  PDI  port  link  frames  invalid       RX  forwarded  lost\n",
            "name",
            "state",
            sync0("SYNC0 us"),
        );
        for (position, (it, now)) in self.found.iter().zip(&self.status.sub_devices).enumerate() {
            let number = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
            let head = format!(
                "{position:>4} {:names$}  {:states$}  {:>8}  {:>8}{}  {:>4}  {:>3}",
                it.object.name,
                now.state,
                number(now.clock_difference_ns.map(i64::from)),
                number(now.delay_ns.or(it.object.delay_ns).map(i64::from)),
                sync0(
                    &now.sync0
                        .map_or("-".to_owned(), |it| format!("{:.1}", it.frame_phase_ns as f64 / 1e3))
                ),
                number(now.errors.map(|errors| errors.processing_unit_errors.into())),
                number(now.errors.map(|errors| errors.pdi_errors.into())),
            );
            let here = |port: u8| Upstream { position: it.object.position, port };
            let hangs_on = |port: u8| self.places().any(|(upstream, _)| upstream == Some(here(port)));
            let (_, entry) = place(it, now);
            let ports =
                (0..4).filter(|&port| port == entry || hangs_on(port) || is_worth_it(now, port.into()));
            for (line, port) in ports.enumerate() {
                let head = if line == 0 { head.clone() } else { " ".repeat(head.chars().count()) };
                let _ = writeln!(text, "{head}  {port:>4}  {}", port_cells(now, port.into()));
            }
        }
        text
    }

    fn places(&self) -> impl Iterator<Item = (Option<Upstream>, u8)> {
        self.found.iter().zip(&self.status.sub_devices).map(|(it, now)| place(it, now))
    }

    pub(crate) fn json(&self) -> Value {
        let sub_devices = self.found.iter().zip(&self.status.sub_devices).map(|(it, now)| {
            let (upstream, entry_port) = place(it, now);
            let upstream = upstream.map(|it| json!({ "position": it.position, "port": it.port }));
            json!({
                "position": it.object.position, "name": it.object.name, "entry_port": entry_port,
                "upstream": upstream, "delay_ns": now.delay_ns.or(it.object.delay_ns),
                "receive_times_ns": now.receive_times_ns.or(it.object.receive_times_ns), "now": now,
            })
        });
        let findings = self.findings.iter().map(
            |it| json!({ "fault": it.fault, "sentence": it.sentence, "ends": it.ends, "count": it.count }),
        );
        json!({
            "cycle": self.is_running.then_some(self.status.cycle),
            "phase": self.status.phase,
            "frames_sent": self.status.frames_sent,
            "frames_lost": self.status.frames_lost,
            "working_counters": self.status.working_counters,
            "working_counter_history": self.status.working_counter_history,
            "reference_clock": self.status.reference_clock,
            "clock": self.status.clock,
            "ring": self.status.ring,
            "clock_spread_ns": self.spread().map(|(least, most)| i64::from(most) - i64::from(least)),
            "sub_devices": sub_devices.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}

/// The cable at which a ring is open.
fn ring_break(found: &[Described], status: &BusStatus) -> Option<Finding> {
    let RingStatus { open, since } = status.ring?;
    let between = open?;
    let name = |position: usize| {
        let name = found.get(position).map_or("?", |it| it.object.name.as_str());
        sub_device(position, name)
    };
    let words = between.map(|end| end.words(name)).join(" and ");
    let sentence = format!(
        "the ring is open between {words} since cycle {since}: check this cable; frames now travel \
         from both ends"
    );
    Some(Finding { fault: "ring_open", ends: between.to_vec(), count: 0, sentence })
}

/// True if a port has a link, or has counted something.
fn is_worth_it(now: &SubDeviceStatus, port: usize) -> bool {
    let linked = now.links.is_some_and(|links| links[port].link);
    let errors = now.errors.map(|errors| errors.ports[port]).unwrap_or_default();
    linked || errors != PortErrorCounters::default()
}

fn port_cells(now: &SubDeviceStatus, port: usize) -> String {
    let (link, frames) = match now.links.map(|links| links[port]) {
        None => ("?", "?"),
        Some(PortLink { link: false, .. }) => ("no", "-"),
        Some(PortLink { loop_closed: true, .. }) => ("yes", "closed"),
        Some(PortLink { communication: false, .. }) => ("yes", "no"),
        Some(_) => ("yes", "pass"),
    };
    let count = |count: Option<u8>| count.map_or("-".to_owned(), |count| count.to_string());
    let errors = now.errors.map(|errors| errors.ports[port]);
    format!(
        "{link:<4}  {frames:<6}  {:>7}  {:>7}  {:>9}  {:>4}",
        count(errors.map(|it| it.invalid_frames)),
        count(errors.map(|it| it.rx_errors)),
        count(errors.map(|it| it.forwarded_rx_errors)),
        count(errors.map(|it| it.lost_links)),
    )
}

/// States with errors, SubDevices without process data, and remarks of the bring-up.
fn states(found: &[Described], status: &BusStatus, is_running: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (position, (it, now)) in found.iter().zip(&status.sub_devices).enumerate() {
        let device = sub_device(position, &it.object.name);
        let mut find = |fault, sentence| {
            let ends = vec![CableEnd { position: Some(it.object.position), port: None }];
            findings.push(Finding { fault, ends, count: 0, sentence });
        };
        if now.al_status_code != 0 {
            let (code, words) = (now.al_status_code, &now.al_status_text);
            find("al_status", format!("{device} is in {}, AL status code {code:#06x}: {words}", now.state));
        }
        if is_running && !now.exchanges && !now.is_absent() && !now.waits {
            find(
                "no_process_data",
                format!("{device} exchanges no process data for {} cycles", now.missed),
            );
        }
        it.object.remarks.iter().for_each(|remark| find("remark", remark.clone()));
    }
    findings
}

/// Faults on cables and in SubDevices.
fn judged(found: &[Described], status: &BusStatus, before: Option<&BusStatus>) -> Vec<Finding> {
    let all = found.iter().zip(&status.sub_devices).enumerate().map(|(position, (it, now))| {
        examined(it, now, before.and_then(|before| before.sub_devices.get(position)?.errors))
    });
    let finding = |it: main_device::Finding| Finding {
        fault: it.fault.name(),
        ends: it.ends,
        count: it.count,
        sentence: it.sentence,
    };
    judge(&all.collect::<Vec<_>>()).into_iter().map(finding).collect()
}

fn examined<'a>(it: &'a Described, now: &SubDeviceStatus, before: Option<ErrorCounters>) -> Examined<'a> {
    let (upstream, entry_port) = place(it, now);
    Examined {
        name: &it.object.name,
        entry_port,
        upstream,
        is_absent: now.is_absent(),
        links: now.links.map(dl_status),
        counters: now.errors,
        before,
    }
}

/// The upstream port of a SubDevice and the port by which frames enter: the present topology, or
/// else the one found at the start.
fn place(it: &Described, now: &SubDeviceStatus) -> (Option<Upstream>, u8) {
    if let Some([above, own]) = now.cable {
        let upstream = above.position.zip(above.port).map(|(position, port)| Upstream { position, port });
        return (upstream, own.port.unwrap_or(it.object.entry_port));
    }
    let upstream = it.object.upstream.as_ref();
    (upstream.map(|it| Upstream { position: it.position, port: it.port }), it.object.entry_port)
}

fn dl_status(links: [PortLink; 4]) -> DlStatus {
    DlStatus {
        link: links.map(|it| it.link),
        loop_closed: links.map(|it| it.loop_closed),
        communication: links.map(|it| it.communication),
        ..DlStatus::default()
    }
}
