//! The doctor's findings, for people.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use machine::check::{Finding, Severity};
use textwrap::Options;

use super::Diagnosis;
use super::mend::Mended;
use super::probe::{Probed, time};
use super::verdict::Verdict;
use crate::words::{USUAL_COLUMNS, columns};

/// All findings, area by area, and what they come to.
pub(super) fn text(diagnosis: &Diagnosis, all: bool) -> String {
    let page = Page::of_terminal();
    let mut text = page.wrapped(&diagnosis.conditions, "", "  ");
    let bus = diagnosis.interface.as_ref().map_or(String::new(), |name| format!(", bus on {name}"));
    let _ = writeln!(text, "Cycle on CPU {}, priority {}{bus}", diagnosis.cpu, diagnosis.priority);
    for mended in diagnosis.mended.iter().flatten() {
        text += &page.mended(mended);
    }
    let mut area = None;
    for finding in &diagnosis.checks {
        if area.replace(finding.area) != Some(finding.area) {
            let _ = writeln!(text, "\n{}", page.bold(&finding.area.to_string()));
        }
        text += &page.finding(finding, all || finding.severity > Severity::Ok);
    }
    text + "\n" + &page.wrapped(&sum(diagnosis), "", "")
}

/// Measurements of the probe, and the verdict.
pub(super) fn verdict(probed: &Probed, verdict: &Verdict) -> String {
    let page = Page::of_terminal();
    let mut text = format!("\n{}\n", page.bold("Verdict"));
    for line in verdict::lines(probed) {
        text += &page.wrapped(&line, "  ", "    ");
    }
    let colour = if verdict.holds { GREEN } else { RED };
    let sentence = format!("A cycle of {}: {}.", time(probed.period_ns), verdict.words);
    text += &page.coloured(colour, &page.wrapped(&sentence, "  ", "    "));
    text += &page.wrapped(&verdict.confidence, "  ", "    ");
    match &verdict.advice {
        Some(advice) => text + &page.wrapped(advice, "  ", "    "),
        None => text,
    }
}

use super::verdict;

fn sum(diagnosis: &Diagnosis) -> String {
    let count = |severity| diagnosis.checks.iter().filter(|finding| finding.severity == severity).count();
    let mut sum = format!(
        "{} checks: {} critical, {} warnings, {} notes, {} ok.",
        diagnosis.checks.len(),
        count(Severity::Critical),
        count(Severity::Warning),
        count(Severity::Note),
        count(Severity::Ok)
    );
    let fixable = diagnosis.checks.iter().filter(|finding| finding.fixable).count();
    match (fixable, &diagnosis.mended) {
        (_, Some(_)) => sum += " Put back what was changed: onbeat doctor --restore.",
        (0, None) => {}
        (_, None) => {
            let _ = write!(
                sum,
                " {fixable} of them (marked *) can be fixed now and undone later: onbeat doctor --fix."
            );
        }
    }
    sum
}

/// Layout of the text.
struct Page {
    columns: usize,
    colours: bool,
}

impl Page {
    fn of_terminal() -> Self {
        let colours =
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        Self { columns: columns(&io::stdout()).unwrap_or(USUAL_COLUMNS).clamp(60, 110), colours }
    }

    fn finding(&self, finding: &Finding, in_full: bool) -> String {
        let mark = if finding.fixable { "*" } else { " " };
        let severity = match finding.severity {
            Severity::Ok => self.coloured(GREEN, "ok      "),
            Severity::Note => "note    ".to_owned(),
            Severity::Warning => self.coloured(YELLOW, "WARNING "),
            Severity::Critical => self.coloured(RED, "CRITICAL"),
        };
        let place = " ".repeat(NAMES + 13);
        let head = format!("{:<NAMES$}{}", finding.name, finding.found);
        // The colours are not letters: the head is wrapped as if the severity were spaces, which it
        // then replaces.
        let lines = self.wrapped(&head, &" ".repeat(13), &place);
        let mut text = format!("  {severity} {mark} {}", lines.trim_start());
        if in_full {
            text += &self.wrapped(&finding.wanted, "             wanted  ", INDENT);
            text += &self.wrapped(finding.why, "             why     ", INDENT);
            if !finding.fix.is_empty() {
                text += &self.wrapped(&finding.fix, "             fix     ", INDENT);
            }
        }
        text
    }

    fn mended(&self, mended: &Mended) -> String {
        let line = match &mended.refused {
            None => format!("changed: {} ({})", mended.change, mended.name),
            Some(why) => format!("not changed: {} ({}): {why}", mended.change, mended.name),
        };
        self.wrapped(&line, "", "  ")
    }

    fn wrapped(&self, text: &str, first: &str, others: &str) -> String {
        let options = Options::new(self.columns)
            .initial_indent(first)
            .subsequent_indent(others)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::fill(text, options) + "\n"
    }

    fn bold(&self, text: &str) -> String {
        self.coloured("1", text)
    }

    fn coloured(&self, colour: &str, text: &str) -> String {
        match self.colours {
            true => format!("\x1b[{colour}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Columns of a check's name.
const NAMES: usize = 24;
const INDENT: &str = "                     ";
const RED: &str = "1;31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
