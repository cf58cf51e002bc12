//! A picture as SVG.

use std::fmt::Write as _;

use super::gantt::{Align, Picture, Shape};

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
