//! A picture on a screen of any size: the header, then axes and details as far as they find room.

mod axes;
mod bus;
mod curves;
mod details;
mod header;
mod signals;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Widget, Wrap};

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
        if self.keys && (area.width < LEAST.0 || area.height < LEAST.1) {
            let words =
                format!("{} x {}: too small, expected {} x {}", area.width, area.height, LEAST.0, LEAST.1);
            return Paragraph::new(words).wrap(Wrap { trim: true }).render(area, buffer);
        }
        let keys = u16::from(self.keys);
        let head = header::height(self.picture);
        let is_low = area.height < head + LEAST_BODY + keys;
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(if is_low { header::SHORT } else { head }),
            Constraint::Min(0),
            Constraint::Length(keys),
        ])
        .areas(area);
        header::render(self.picture, self.view.paused, head, buffer);
        let wide = Rect { width: body.width.saturating_add(self.view.across), ..body };
        if self.view.help {
            Paragraph::new(HELP).render(body, buffer);
        } else if wide == body {
            self.render_body(body, buffer);
        } else {
            // What is left of the screen is drawn, too.
            let mut all = Buffer::empty(wide);
            self.render_body(wide, &mut all);
            for place in body.positions() {
                let from = (place.x + self.view.across, place.y);
                if let (Some(to), Some(from)) = (buffer.cell_mut(place), all.cell(from)) {
                    *to = from.clone();
                }
            }
        }
        let keys = if area.width < USUAL_COLUMNS as u16 { FEW_KEYS } else { KEYS };
        Paragraph::new(keys).style(faint()).render(foot, buffer);
    }
}

impl Screen<'_> {
    /// Draws what is below the header.
    fn render_body(&self, body: Rect, buffer: &mut Buffer) {
        let (axes, details) = (axes::rows(self.picture) + 2, details::rows(self.picture) + 1);
        let (signals, sub_devices) = (self.signal_lines(), self.bus_lines());
        if usize::from(body.height) >= axes + signals + sub_devices + details {
            let [axes, signals, sub_devices] =
                [axes, signals, sub_devices].map(|rows| Constraint::Length(length(rows)));
            let [upper, middle, bus, lower] =
                Layout::vertical([axes, signals, sub_devices, Constraint::Min(0)]).areas(body);
            let scrolled = |page| if self.view.page == page { self.view.scroll } else { 0 };
            match self.view.page {
                Page::Curves => curves::render(self.picture, self.view.scroll, upper, buffer),
                _ => axes::render(self.picture, scrolled(Page::Axes), upper, buffer),
            }
            if self.signal_lines() > 0 {
                signals::render(self.picture, scrolled(Page::Signals), middle, buffer);
            }
            if self.bus_lines() > 0 {
                bus::render(self.picture, scrolled(Page::Bus), bus, buffer);
            }
            details::render(self.picture, scrolled(Page::Details), lower, buffer);
        } else {
            match self.view.page {
                Page::Axes => axes::render(self.picture, self.view.scroll, body, buffer),
                Page::Curves => curves::render(self.picture, self.view.scroll, body, buffer),
                Page::Signals => signals::render(self.picture, self.view.scroll, body, buffer),
                Page::Bus => bus::render(self.picture, self.view.scroll, body, buffer),
                Page::Details => details::render(self.picture, self.view.scroll, body, buffer),
            }
        }
    }

    /// Lines that show everything.
    pub(super) fn height(&self) -> u16 {
        let upper = axes::rows(self.picture) + 2 + self.signal_lines() + self.bus_lines();
        let body = upper + details::rows(self.picture) + 1;
        header::height(self.picture).saturating_add(length(body)).saturating_add(u16::from(self.keys))
    }

    /// Lines of the signals with their title; none where there are no signals.
    fn signal_lines(&self) -> usize {
        match signals::rows(self.picture) {
            0 => 0,
            rows => rows + 1,
        }
    }

    /// Lines of the bus with their title; 0 without a report on the bus.
    fn bus_lines(&self) -> usize {
        match bus::rows(self.picture) {
            0 => 0,
            rows => rows + 1,
        }
    }

    /// Rows of the page that scrolls.
    pub(super) fn rows(&self) -> usize {
        match self.view.page {
            Page::Axes | Page::Curves => axes::rows(self.picture),
            Page::Signals => signals::rows(self.picture),
            Page::Bus => bus::rows(self.picture),
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

/// The rows of many that are seen, in words; nothing where all are.
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

/// Seven letters at most, with as many decimals as there is room for.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let decimals = match value.abs() {
        0.0..100.0 => 3,
        100.0..1e3 => 2,
        1e3..1e5 => 0,
        _ => return format!("{value:.1e}"),
    };
    rounded(value, decimals)
}

/// With so many decimals; rounded to nothing, a small negative number keeps no sign.
fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
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

/// Columns and lines below which nothing is drawn.
const LEAST: (u16, u16) = (40, 6);

/// Lines that axes, signals or details have at least; the header gives way to them.
const LEAST_BODY: u16 = 6;

const KEYS: &str = " q quit   h help   arrows, page keys scroll   tab next page   p pause";

const FEW_KEYS: &str = " q quit  h help  tab next page  p pause";

const HELP: &str = "
 q, Esc, Ctrl-C   end
 up, down, page up, page down, home, end   scroll
 left, right      scroll sideways
 tab              axes; curves of axes; signals; bus; tasks, channels, warnings
 p, space         pause: the picture is frozen, the cycle continues
 h, ?             this help

 target, error    in the unit of the axis' mode: rad, rad/s, N m
 yellow, red      stopped by supervision, drive in fault; faint: no fresh data
 lost, rejected   no reply in time, for example after a host stall;
                  replies that came too late to be used
";

#[cfg(test)]
mod tests;
