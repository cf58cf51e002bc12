//! Checks of SubDevices that the bus may be without.

use ethercat::main_device::{ExpectedIdentity, Presence};

use super::Checked;
use crate::error::Problem;
use crate::field::Place;
use crate::model::SubDevice;

/// Checks one SubDevice against the earlier ones.
pub(super) fn sub_device(it: &SubDevice, before: &[SubDevice], entry: Place<'_>) -> Checked<()> {
    if it.group.as_deref().is_some_and(str::is_empty) {
        let remedy = "name the group, or leave the key out";
        return Err(Problem::new(entry.key("group"), "group = \"\"", "a name", remedy));
    }
    let presence = it.presence;
    let same = |other: &&SubDevice| it.group.is_some() && other.group == it.group;
    let first = it.group.as_ref().and_then(|_| before.iter().find(same));
    if let (Some(first), Some(group)) = (first, &it.group) {
        let SubDevice { name, presence: expected, .. } = first;
        if *expected != presence {
            let found = format!("presence = \"{presence}\" in the group \"{group}\"");
            let expected = format!("\"{expected}\", as of \"{name}\", the first of that group");
            let remedy = "give all of a group one presence, or take this one out of it";
            return Err(Problem::new(entry.key("presence"), found, expected, remedy));
        }
        if presence == Presence::HotConnect && before.last().is_none_or(|last| !same(&last)) {
            let found = format!("hot-connect group \"{group}\" with another SubDevice in it");
            let expected = "all of a group in a row, as they are plugged";
            return Err(Problem::new(entry.key("group"), found, expected, "move this entry up"));
        }
        let parent = it.parent.as_ref().and_then(|parent| before.get(parent.position));
        if let Some(parent) = parent.filter(|parent| presence == Presence::HotConnect && !same(parent)) {
            let found = format!("hot-connect group \"{group}\" with a cable to \"{}\"", parent.name);
            let expected = format!("one cable to the others, that of \"{}\"", first.name);
            let remedy = "attach it to a SubDevice of its group, or give it a separate group";
            return Err(Problem::new(entry.key("group"), found, expected, remedy));
        }
    }
    let stands_behind = presence == Presence::HotConnect && first.is_some();
    if presence == Presence::Required || stands_behind || it.alias.is_some() || it.identity.is_some() {
        return Ok(());
    }
    let found = format!("presence = \"{presence}\" without an alias or an identity");
    let expected = "an alias or an identity, which identifies it among the others";
    Err(Problem::new(entry.key("presence"), found, expected, "add an alias or an identity"))
}

/// Checks that the SubDevice `with` the brake of an axis, or a part of it, is there whenever the
/// axis's drive is.
pub(super) fn of_brake(
    axis: &str,
    with: &str,
    it: &SubDevice,
    drive: &SubDevice,
    place: Place<'_>,
) -> Checked<()> {
    let goes_along = it.name == drive.name || it.group.is_some() && it.group == drive.group;
    if it.presence == Presence::Required || goes_along {
        return Ok(());
    }
    let found = format!("axis \"{axis}\"{with} on \"{}\", which is {}", it.name, it.presence);
    let expected = format!("a SubDevice that is there whenever \"{}\" is", drive.name);
    Err(Problem::new(place, found, expected, "make it required, or put both into one group"))
}

/// Checks that no other has the identity of a hot-connect SubDevice without an alias.
pub(super) fn told_apart(it: &SubDevice, before: &[SubDevice], entry: Place<'_>) -> Checked<()> {
    let Some(identity) = it.identity else { return Ok(()) };
    for (position, other) in before.iter().enumerate() {
        let is_alike = other.identity.is_some_and(|other| are_alike(other, identity));
        if is_alike && (needs_identity(it, before) || needs_identity(other, &before[..position])) {
            let found = format!("the identity of \"{}\", where hot_connect has no alias", other.name);
            let remedy = "give each of the two a different alias";
            return Err(Problem::new(entry, found, "an alias where two are alike", remedy));
        }
    }
    Ok(())
}

/// True of a hot-connect SubDevice that its identity alone distinguishes from others.
fn needs_identity(it: &SubDevice, before: &[SubDevice]) -> bool {
    let is_behind = it.group.is_some() && before.last().is_some_and(|before| before.group == it.group);
    it.presence == Presence::HotConnect && it.alias.is_none() && !is_behind
}

/// The same product, in a revision that both allow.
fn are_alike(one: ExpectedIdentity, other: ExpectedIdentity) -> bool {
    let revisions = one.revision.zip(other.revision);
    (one.vendor_id, one.product_code) == (other.vendor_id, other.product_code)
        && revisions.is_none_or(|(one, other)| one == other)
}
