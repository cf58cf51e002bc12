//! Links and joints of a URDF, as far as an arm needs them.

use std::str::FromStr;

use roxmltree::{Document, Node};

use super::ArmError;

/// Links and joints in the order of the file.
pub(super) struct Urdf<'a> {
    pub(super) links: Vec<&'a str>,
    pub(super) joints: Vec<Joint<'a>>,
}

/// A joint. Missing elements have the defaults of the format: no displacement, axis x, limits 0.
pub(super) struct Joint<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    /// True if it follows another joint.
    pub(super) mimics: bool,
    pub(super) parent: &'a str,
    pub(super) child: &'a str,
    pub(super) xyz: [f64; 3],
    pub(super) rpy: [f64; 3],
    pub(super) axis: [f64; 3],
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) velocity: f64,
    pub(super) effort: f64,
}

impl<'a> Urdf<'a> {
    pub(super) fn read(document: &'a Document<'_>) -> Result<Self, ArmError> {
        let root = document.root_element();
        if !root.has_tag_name("robot") {
            let found = root.tag_name().name();
            return Err(ArmError::NoUrdf(format!("its outermost element is <{found}>, expected <robot>")));
        }
        let all = |tag| root.children().filter(move |node| node.has_tag_name(tag));
        Ok(Self {
            links: all("link").map(|node| attribute(node, "name")).collect::<Result<_, _>>()?,
            joints: all("joint").map(joint).collect::<Result<_, _>>()?,
        })
    }
}

fn joint<'a>(node: Node<'a, '_>) -> Result<Joint<'a>, ArmError> {
    let name = attribute(node, "name")?;
    let part = |tag| node.children().find(|child| child.has_tag_name(tag));
    let link =
        |tag| part(tag).map_or_else(|| Err(lacks(node, &format!("<{tag}>"))), |it| attribute(it, "link"));
    let row = |tag, key, otherwise| part(tag).map_or(Ok(otherwise), |it| triple(it, key, otherwise));
    let limit = |key| part("limit").and_then(|it| it.attribute(key).map(|text| number(it, key, text)));
    Ok(Joint {
        name,
        kind: attribute(node, "type")?,
        mimics: part("mimic").is_some(),
        parent: link("parent")?,
        child: link("child")?,
        xyz: row("origin", "xyz", [0.0; 3])?,
        rpy: row("origin", "rpy", [0.0; 3])?,
        axis: row("axis", "xyz", [1.0, 0.0, 0.0])?,
        lower: limit("lower").unwrap_or(Ok(0.0))?,
        upper: limit("upper").unwrap_or(Ok(0.0))?,
        velocity: limit("velocity").unwrap_or(Ok(0.0))?,
        effort: limit("effort").unwrap_or(Ok(0.0))?,
    })
}

fn attribute<'a>(node: Node<'a, '_>, key: &str) -> Result<&'a str, ArmError> {
    node.attribute(key).ok_or_else(|| lacks(node, key))
}

/// Three numbers with space between.
fn triple(node: Node<'_, '_>, key: &str, otherwise: [f64; 3]) -> Result<[f64; 3], ArmError> {
    let Some(text) = node.attribute(key) else { return Ok(otherwise) };
    let numbers: Vec<f64> =
        text.split_whitespace().map(|word| number(node, key, word)).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| wrong(node, key, text, "three numbers"))
}

fn number(node: Node<'_, '_>, key: &str, text: &str) -> Result<f64, ArmError> {
    let number = f64::from_str(text.trim()).ok().filter(|it| it.is_finite());
    number.ok_or_else(|| wrong(node, key, text, "a finite number"))
}

fn lacks(node: Node<'_, '_>, part: &str) -> ArmError {
    ArmError::NoUrdf(format!("line {}, <{}> lacks {part}", line(node), node.tag_name().name()))
}

fn wrong(node: Node<'_, '_>, key: &str, found: &str, expected: &str) -> ArmError {
    let (line, tag) = (line(node), node.tag_name().name());
    ArmError::NoUrdf(format!("line {line}, <{tag}> has {key}=\"{found}\", expected {expected}"))
}

fn line(node: Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}
