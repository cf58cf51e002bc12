//! A picture as PNG, with letters of eight by eight pixels: no font of the system is needed.

use super::gantt::{Align, Picture, Shape};

/// The file.
pub(super) fn of(picture: &Picture) -> Result<Vec<u8>, png::EncodingError> {
    let mut page = Page::new(picture.width as usize, picture.height as usize);
    for shape in &picture.shapes {
        match shape {
            Shape::Rectangle { x, y, width, height, colour, .. } => {
                page.fill((*x, *y), (x + width, y + height), *colour)
            }
            Shape::Line { from, to, colour } => {
                page.fill(*from, (to.0.max(from.0 + 1.0), to.1.max(from.1 + 1.0)), *colour)
            }
            Shape::Text { at, align, text } => page.write(*at, *align, text),
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&page.pixels)?;
    Ok(bytes)
}

struct Page {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Page {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![255; width * height * 3] }
    }

    fn fill(&mut self, from: (f64, f64), to: (f64, f64), colour: [u8; 3]) {
        let pixels = |from: f64, to: f64, most: usize| {
            let first = from.round().max(0.0) as usize;
            first.min(most)..(to.round() as usize).max(first + 1).min(most)
        };
        for y in pixels(from.1, to.1, self.height) {
            for x in pixels(from.0, to.0, self.width) {
                self.dot(x, y, colour);
            }
        }
    }

    fn write(&mut self, at: (f64, f64), align: Align, text: &str) {
        let long = LETTER * text.chars().count() as f64;
        let left = at.0
            - match align {
                Align::Left => 0.0,
                Align::Middle => long / 2.0,
                Align::Right => long,
            };
        for (number, letter) in text.chars().enumerate() {
            let known =
                [&font8x8::BASIC_FONTS as &dyn Letters, &font8x8::GREEK_FONTS, &font8x8::LATIN_FONTS];
            let shape = known.iter().find_map(|font| font.letter(letter)).unwrap_or(UNKNOWN);
            let x = left + LETTER * number as f64;
            for (row, bits) in shape.into_iter().enumerate() {
                for column in (0..8).filter(|column| bits >> column & 1 == 1) {
                    let (x, y) = (x + f64::from(column), at.1 - LETTER + row as f64);
                    if x >= 0.0 && y >= 0.0 {
                        self.dot(x as usize, y as usize, [40, 40, 40]);
                    }
                }
            }
        }
    }

    fn dot(&mut self, x: usize, y: usize, colour: [u8; 3]) {
        if x < self.width && y < self.height {
            let start = 3 * (y * self.width + x);
            self.pixels[start..start + 3].copy_from_slice(&colour);
        }
    }
}

/// A font, whichever letters it has.
trait Letters {
    fn letter(&self, letter: char) -> Option<[u8; 8]>;
}

impl<F: font8x8::UnicodeFonts> Letters for F {
    fn letter(&self, letter: char) -> Option<[u8; 8]> {
        self.get(letter)
    }
}

const LETTER: f64 = 8.0;

/// A frame, for letters the fonts do not have.
const UNKNOWN: [u8; 8] = [0x7e, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7e, 0];
