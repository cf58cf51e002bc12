//! Changes of the doctor, and their undoing.

use machine::check::Finding;
use machine::journal::{self, Journal, Restoration, Restored};
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::output;

/// One change that was tried.
#[derive(Debug, Serialize)]
pub(super) struct Mended {
    /// The check it is for.
    pub(super) name: &'static str,
    /// Change that was to be made.
    pub(super) change: String,
    /// Reason that it was not; `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
}

/// Makes every change that the findings propose, through a journal that outlives this process. A
/// refused change does not stop the others. A card that gets other interrupts is checked again
/// before its interrupts are changed, and again after the changes are undone.
pub(super) fn mend(
    findings: Vec<Finding>,
    look_again: impl FnOnce() -> Result<Vec<Finding>, Failure>,
) -> Result<Vec<Mended>, Failure> {
    if findings.iter().all(|finding| finding.changes.is_empty()) {
        return Ok(Vec::new());
    }
    let mut journal = Journal::persistent("onbeat doctor --fix").map_err(|error| {
        Failure::new(format!(
            "--fix: nothing was changed, because the change could not be recorded for --restore \
             ({error}); it needs root"
        ))
    })?;
    let is_first = |finding: &&Finding| finding.name == FIRST;
    let mut mended = make(findings.iter().filter(is_first), &mut journal);
    let findings = if mended.is_empty() { findings } else { look_again()? };
    mended.extend(make(findings.iter().filter(|finding| !is_first(finding)), &mut journal));
    if journal.is_empty() {
        // Nothing to put back: no empty journal stays.
        let _ = journal.undo();
    }
    Ok(mended)
}

/// The check with a change that gives a card other interrupts.
const FIRST: &str = "nic-queues";

fn make<'a>(findings: impl Iterator<Item = &'a Finding>, journal: &mut Journal) -> Vec<Mended> {
    let changes = findings.flat_map(|finding| finding.changes.iter().map(|change| (finding.name, change)));
    let made = changes.map(|(name, change)| {
        let refused = change.make(journal).err().map(|error| error.to_string());
        Mended { name, change: change.to_string(), refused }
    });
    made.collect()
}

/// Undoes what [`mend`] did, and what runs that crashed left behind.
pub(super) fn restore(json: bool) -> Result<(), Failure> {
    let Restoration { restored, refused } =
        journal::restore().map_err(|error| Failure::new(format!("--restore: {error}")))?;
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let failures = restored.iter().flat_map(|it| &it.failures).map(ToString::to_string);
    let failures: Vec<String> = failures.chain(refused.iter().cloned()).collect();
    if json {
        let list: Vec<_> = restored.iter().map(object).collect();
        let list = json!({ "restored": list, "refused": refused });
        output::print(serde_json::to_string_pretty(&list)? + "\n")?;
    } else if restored.is_empty() && refused.is_empty() {
        output::print("Nothing to put back.\n")?;
    } else {
        output::print(restored.iter().map(|it| format!("{it}\n")).collect::<String>())?;
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(failures.join("; "))),
    }
}

fn object(restored: &Restored) -> serde_json::Value {
    let Restored { what, pid, persistent, changes, failures } = restored;
    let failures: Vec<_> =
        failures.iter().map(|it| json!({ "what": it.what, "why": it.why, "kept": it.kept })).collect();
    json!({ "what": what, "pid": pid, "persistent": persistent, "changes": changes, "failures": failures })
}
