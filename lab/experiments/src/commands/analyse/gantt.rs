//! Gantt chart of the tasks, as plain shapes and as SVG.

use std::fmt::Write as _;

use schedulability::TaskSet;
use schedulability::timeline::Timeline;

/// Shapes on a white page, in pixels.
pub(super) struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) shapes: Vec<Shape>,
}

/// Colours are red, green, blue.
pub(super) enum Shape {
    Rectangle {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        colour: [u8; 3],
        what: String,
    },
    /// Upright or level.
    Line {
        from: (f64, f64),
        to: (f64, f64),
        colour: [u8; 3],
    },
    /// `at` is the left, the middle or the right end of its base line.
    Text {
        at: (f64, f64),
        align: Align,
        text: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

/// Draws a row for each task: releases and deadlines as strokes, execution as bars.
pub(super) fn picture(set: &TaskSet, timeline: &Timeline, cpu: usize) -> Picture {
    let rows = &timeline.rows[..timeline.rows.len().min(MOST_ROWS)];
    let longest =
        rows.iter().map(|row| label(&set.tasks[row.place].name).chars().count()).max().unwrap_or(0);
    let left = 24.0 + 8.0 * longest as f64;
    let bottom = TOP + ROW * rows.len() as f64;
    let end = timeline.end_ns.max(1);
    let x = |ns: u64| left + (WIDTH - left - RIGHT) * (ns.min(end) as f64 / end as f64);
    let critical = &set.tasks[timeline.critical].name;
    let mut shapes = vec![Shape::Text {
        at: (16.0, 24.0),
        align: Align::Left,
        text: format!("Critical instant of {} on cpu {cpu}", label(critical)),
    }];
    let (step, divisor, unit) = ticks(end);
    for tick in 0..=end / step {
        let at = x(tick * step);
        shapes.push(Shape::Line { from: (at, TOP - 8.0), to: (at, bottom), colour: GRID });
        let text = format!("{}", (tick * step) as f64 / divisor);
        shapes.push(Shape::Text { at: (at, bottom + 18.0), align: Align::Middle, text });
    }
    let axis = format!("time from the critical instant, {unit}");
    shapes.push(Shape::Text {
        at: ((left + WIDTH - RIGHT) / 2.0, bottom + 38.0),
        align: Align::Middle,
        text: axis,
    });
    for (number, row) in rows.iter().enumerate() {
        let base = TOP + ROW * (number as f64 + 1.0) - 8.0;
        let name = label(&set.tasks[row.place].name);
        shapes.push(Shape::Text { at: (left - 10.0, base - 6.0), align: Align::Right, text: name.clone() });
        shapes.push(Shape::Line { from: (left, base), to: (WIDTH - RIGHT, base), colour: INK });
        if row.place == timeline.critical && timeline.held_ns > 0 {
            let what = format!("{name}: held up by lower priorities for {} ns", timeline.held_ns);
            let (from, to) = (x(0), x(timeline.held_ns));
            shapes.push(bar(from, to, base, HELD, what));
        }
        for &(from, to) in row.slices.iter().filter(|&&(from, _)| from < end) {
            let what = format!("{name}: {from} ns to {to} ns");
            shapes.push(bar(x(from), x(to), base, BARS[number % BARS.len()], what));
        }
        for job in row.jobs.iter().filter(|job| job.release_ns <= end) {
            let release = x(job.release_ns);
            shapes.push(Shape::Line {
                from: (release, base - BAR - 6.0),
                to: (release, base),
                colour: INK,
            });
            let late = job.end_ns.is_none_or(|ended| ended > job.deadline_ns) && job.deadline_ns <= end;
            if late {
                let deadline = x(job.deadline_ns);
                let what = format!("{name}: deadline at {} ns missed", job.deadline_ns);
                shapes.push(Shape::Rectangle {
                    x: deadline - 1.5,
                    y: base - BAR - 8.0,
                    width: 3.0,
                    height: BAR + 8.0,
                    colour: LATE,
                    what,
                });
            }
        }
    }
    let legend =
        "stroke: release; red stroke: a deadline that is missed; grey: held up by lower priorities";
    shapes.push(Shape::Text { at: (16.0, bottom + 62.0), align: Align::Left, text: legend.into() });
    Picture { width: WIDTH as u32, height: (bottom + 80.0) as u32, shapes }
}

fn bar(from: f64, to: f64, base: f64, colour: [u8; 3], what: String) -> Shape {
    Shape::Rectangle { x: from, y: base - BAR, width: (to - from).max(0.5), height: BAR, colour, what }
}

/// Distance of the marks of the axis, ns; and the unit they are written in.
fn ticks(end: u64) -> (u64, f64, &'static str) {
    let rough = (end / 10).max(1);
    let power = 10_u64.pow(rough.ilog10());
    let step =
        [1, 2, 5, 10].into_iter().map(|factor| factor * power).find(|&step| step >= rough).unwrap_or(power);
    match end {
        0..10_000 => (step, 1.0, "ns"),
        10_000..10_000_000 => (step, 1e3, "us"),
        10_000_000..10_000_000_000 => (step, 1e6, "ms"),
        _ => (step, 1e9, "s"),
    }
}

fn label(name: &str) -> String {
    if name.chars().count() <= 24 { name.to_owned() } else { name.chars().take(23).chain(['.']).collect() }
}

const WIDTH: f64 = 1200.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
const ROW: f64 = 44.0;
const BAR: f64 = 22.0;
const MOST_ROWS: usize = 60;

const INK: [u8; 3] = [40, 40, 40];
const GRID: [u8; 3] = [225, 225, 225];
const HELD: [u8; 3] = [170, 170, 170];
const LATE: [u8; 3] = [200, 20, 20];
/// Colours that also colour-blind people distinguish (Okabe and Ito 2008).
const BARS: [[u8; 3]; 6] =
    [[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0]];

/// The document; pointing at a bar shows its times.
pub(super) fn of(picture: &Picture) -> String {
    let Picture { width, height, shapes } = picture;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for shape in shapes {
        let _ = match shape {
            Shape::Rectangle { x, y, width, height, colour, what } => writeln!(
                text,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{}\"><title>{}</title></rect>",
                hex(*colour),
                escaped(what)
            ),
            Shape::Line { from, to, colour } => writeln!(
                text,
                "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" stroke=\"{}\"/>",
                from.0,
                from.1,
                to.0,
                to.1,
                hex(*colour)
            ),
            Shape::Text { at, align, text: words } => {
                let anchor = match align {
                    Align::Left => "start",
                    Align::Middle => "middle",
                    Align::Right => "end",
                };
                let words = escaped(words);
                writeln!(
                    text,
                    "<text x=\"{:.2}\" y=\"{:.2}\" text-anchor=\"{anchor}\">{words}</text>",
                    at.0, at.1
                )
            }
        };
    }
    text.push_str("</svg>\n");
    text
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
