//! Changes of `onbeat doctor --fix` on a card, and their undoing by `--restore`: by its own words,
//! and by the kernel's files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::guest::Results;

/// Checks the three readings of the card of `driver`: each check in `improved` was better in the
/// second one, and all are as before in the third.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(results: &Results, driver: &str, improved: &[&str]) -> Result<(), String> {
    let look = |when: &str| -> Result<(Value, &str), String> {
        let object = results.json(&format!("doctor-{when}-{driver}"))?;
        Ok((object, results.section(&format!("settings-{when}-{driver}"))?))
    };
    let [before, during, after] = [look("before")?, look("during")?, look("after")?];
    let said = || results.section("doctor-said").unwrap_or_default();
    let [first, meanwhile, last] = [&before, &during, &after].map(|(object, _)| checks(object));
    for name in improved {
        let changed = |it: &Value| it["name"] == *name && it.get("refused").is_none();
        let done = during.0["mended"].as_array().is_some_and(|all| all.iter().any(changed));
        let (was, is) = (first.get(name), meanwhile.get(name));
        let is_ok = |look: Option<&Look<'_>>| look.map(|(severity, _)| *severity == "ok");
        if !done || is_ok(was) != Some(false) || is_ok(is) != Some(true) {
            let all = &during.0["mended"];
            return Err(format!(
                "{driver}: expected {name} to be fixed, found {was:?}, then {is:?}: {all}"
            ));
        }
    }
    if let Some((name, was)) = first.iter().find(|(name, was)| !is_back(name, was, last.get(*name))) {
        let is = last.get(name);
        return Err(format!("{driver}: expected {name} put back to {was:?}, found {is:?}; {}", said()));
    }
    if before.1 != after.1 || before.1 == during.1 {
        return Err(format!(
            "{driver}: expected the kernel's files as before and others meanwhile, found before: {}; meanwhile: {}; after: {}; {}",
            before.1,
            during.1,
            after.1,
            said()
        ));
    }
    println!("the doctor fixed on {driver} and restored: {}", improved.join(", "));
    Ok(())
}

/// True if a check finds the state from before. Errors are counted meanwhile; and of the CPUs
/// allowed for an interrupt, which the settings show, the kernel selects one again.
fn is_back(name: &str, was: &Look<'_>, is: Option<&Look<'_>>) -> bool {
    match name {
        "nic-errors" => true,
        "nic-interrupt" => is.is_some_and(|is| is.0 == was.0),
        _ => is == Some(was),
    }
}

/// Severity and state found.
type Look<'a> = (&'a str, &'a str);

/// Each check of the interface, by name.
fn checks(object: &Value) -> BTreeMap<&str, Look<'_>> {
    let all = object["checks"].as_array().into_iter().flatten().filter(|it| it["area"] == "nic");
    all.filter_map(|it| Some((it["name"].as_str()?, (it["severity"].as_str()?, it["found"].as_str()?))))
        .collect()
}
