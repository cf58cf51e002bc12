//! A picture on a screen of any size: the header, then axes and details as far as they find room.

mod axes;
mod details;
mod header;
mod signals;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Widget};

use super::picture::{Page, Picture, View};
use crate::words::USUAL_COLUMNS;

/// Contents of the picture.
#[derive(Clone, Copy)]
pub(super) struct Screen<'a> {
    pub(super) picture: &'a Picture,
    pub(super) view: View,
    /// True if the last line says what keys do.
    pub(super) keys: bool,
}

impl Widget for Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let keys = u16::from(self.keys);
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(header::height(self.picture)),
            Constraint::Min(0),
            Constraint::Length(keys),
        ])
        .areas(area);
        header::render(self.picture, self.view.paused, head, buffer);
        let (axes, details) = (axes::rows(self.picture) + 2, details::rows(self.picture) + 1);
        let signals = self.signal_lines();
        if usize::from(body.height) >= axes + signals + details {
            let lengths = [axes, signals].map(|rows| Constraint::Length(length(rows)));
            let [upper, middle, lower] =
                Layout::vertical([lengths[0], lengths[1], Constraint::Min(0)]).areas(body);
            let scrolled = |page| if self.view.page == page { self.view.scroll } else { 0 };
            axes::render(self.picture, scrolled(Page::Axes), upper, buffer);
            if signals > 0 {
                signals::render(self.picture, scrolled(Page::Signals), middle, buffer);
            }
            details::render(self.picture, scrolled(Page::Details), lower, buffer);
        } else {
            match self.view.page {
                Page::Axes => axes::render(self.picture, self.view.scroll, body, buffer),
                Page::Signals => signals::render(self.picture, self.view.scroll, body, buffer),
                Page::Details => details::render(self.picture, self.view.scroll, body, buffer),
            }
        }
        Paragraph::new(KEYS).style(faint()).render(foot, buffer);
    }
}

impl Screen<'_> {
    /// Lines that show everything.
    pub(super) fn height(&self) -> u16 {
        let body = axes::rows(self.picture) + 2 + self.signal_lines() + details::rows(self.picture) + 1;
        header::height(self.picture).saturating_add(length(body)).saturating_add(u16::from(self.keys))
    }

    /// Lines of the signals with their title; none where there are no signals.
    fn signal_lines(&self) -> usize {
        match signals::rows(self.picture) {
            0 => 0,
            rows => rows + 1,
        }
    }

    /// Rows of the page that scrolls.
    pub(super) fn rows(&self) -> usize {
        match self.view.page {
            Page::Axes => axes::rows(self.picture),
            Page::Signals => signals::rows(self.picture),
            Page::Details => details::rows(self.picture),
        }
    }

    /// Everything as lines of text, `width` columns wide at most.
    pub(super) fn text(self, width: u16) -> String {
        let area = Rect::new(0, 0, width, self.height());
        let mut buffer = Buffer::empty(area);
        self.render(area, &mut buffer);
        lines(&buffer)
    }

    /// Everything as lines of text, each as long as what it says; rules are as long as the longest.
    pub(super) fn whole(self) -> String {
        let mut width = 500;
        let mut text = self.text(width);
        // A line that is cut at a space is shorter than the picture.
        while longest(&text) > usize::from(width / 2) && width < LONGEST {
            width *= 2;
            text = self.text(width);
        }
        let rule = longest(&text).max(USUAL_COLUMNS);
        let cut = |line: &str| line.chars().take(rule).chain(['\n']).collect::<String>();
        text.lines().map(cut).collect()
    }
}

/// A buffer's letters, without spaces at the ends of lines.
fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let line = |row: &[ratatui::buffer::Cell]| {
        let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned() + "\n"
    };
    buffer.content.chunks(width).map(line).collect()
}

/// Letters of the longest line, without the rule behind a title.
fn longest(text: &str) -> usize {
    text.lines().map(|line| line.trim_end_matches('─').chars().count()).max().unwrap_or(0)
}

/// A part with its title above it; gives the place below the title.
fn titled(title: String, area: Rect, buffer: &mut Buffer) -> Rect {
    let block = Block::new().borders(Borders::TOP).title(Line::from(title)).border_style(faint());
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

/// Which rows of many are seen, in words; nothing where all are.
fn range(first: usize, room: usize, all: usize) -> String {
    if room >= all {
        return String::new();
    }
    format!(" {}-{} of {all}", first + 1, (first + room).min(all))
}

/// The first row to show, so that the last page is a full one.
fn first(scroll: usize, room: usize, all: usize) -> usize {
    scroll.min(all.saturating_sub(room))
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn length(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Letters of a line beyond which it is cut in any case.
const LONGEST: u16 = 8_000;

const KEYS: &str = " q quit   arrows, page keys scroll   tab signals, tasks, channels   p pause";

#[cfg(test)]
mod tests;
