//! Requests of clients, in words.

use ipc::bus::Happening as Reported;
use ipc::bus::Severity::{Ok as Good, Warning};
use ipc::force::Client;
use ipc::message::control::Action;
use ipc::reference::{Given, Outcome, Purpose};
use types::number::Rounded;

use super::Described;
use crate::bus::names::PartNames;
use crate::controller::{ClientRequest, InterlockCause};

/// A person gave the position of an axis.
pub(super) fn position_given(given: Given, outcome: Outcome, by: Client, names: &PartNames) -> Described {
    let Given { axis, position, purpose } = given;
    let accepted = purpose == Purpose::Accept;
    let Client { user, process } = by;
    let what = Reported::PositionGiven {
        axis,
        accepted,
        before: outcome.ok(),
        position,
        user,
        process,
        refused: outcome.err().map(|why| why.to_string()),
    };
    let (name, by, position) = (names.axis(axis), client(by), Rounded(position));
    let outcome = outcome.map(Rounded);
    match outcome {
        Ok(before) if accepted => {
            let does = format!("position {position} rad accepted for axis \"{name}\" by {by}");
            (what, Warning, format!("{does}: its drive reports {before} rad"))
        }
        Ok(before) => {
            let does = format!("position of axis \"{name}\" set to {position} rad by {by}");
            (what, Warning, format!("{does}: it was {before} rad"))
        }
        Err(why) => {
            let verb = if accepted { "accepted" } else { "set" };
            let does = format!("position {position} rad of axis \"{name}\" not {verb} for {by}");
            (what, Warning, format!("{does}: {why}"))
        }
    }
}

/// A request was accepted or refused.
pub(super) fn requested(request: ClientRequest, names: &PartNames) -> Described {
    let ClientRequest { what, by, refused, interlock } = request;
    let request = match what {
        Action::Enable => "enabling of the drives".to_owned(),
        Action::ResetFaults => "reset of faults".to_owned(),
        Action::Home(axis) => format!("homing of axis \"{}\"", names.axis(axis as usize)),
        other => format!("{other:?}"),
    };
    let of = by.map_or_else(|| "the program itself".to_owned(), client);
    let (user, process) = (by.map(|by| by.user), by.map(|by| by.process));
    let refused = refused.map(|why| match interlock {
        Some(InterlockCause { interlock, level, .. }) => {
            format!("{} {level}", names.interlock(interlock))
        }
        None => why.to_string(),
    });
    let (severity, sentence) = match &refused {
        None => (Good, format!("{request} requested by {of}")),
        Some(why) => (Warning, format!("{request} refused for {of}: {why}")),
    };
    (Reported::Requested { request, user, process, refused }, severity, sentence)
}

/// A client in words.
pub(super) fn client(Client { user, process }: Client) -> String {
    format!("process {process} of user {user}")
}
