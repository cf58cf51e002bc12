//! Rules of the repository as figures: each is measured, and compared with the figure allowed or
//! with the line of `crates/xtask/house.txt` that allows more until it is fixed.
//!
//! | module | rules |
//! |---|---|
//! | [`ratchet`] | comparison of figures with the ratchet file |
//! | [`tracked`] | vendored code, fuzz seeds, number of files, size of the documents |
//! | [`prose`] | length of lines and sentences in Markdown |
//! | [`comments`] | length of lines, and listed words, in comments |
//! | [`words`] | the list of words, in headings and names of tests |
//! | [`crates`] | the Rust code of each crate as tokens, without its tests |
//! | [`edges`] | dependencies that nothing uses; re-exported crates |
//! | [`circles`] | files of a crate that use each other |
//! | [`sizes`] | lines of functions and of files |
//! | [`type_names`] | names that types of many crates share |

mod circles;
mod comments;
mod crates;
mod edges;
mod prose;
mod ratchet;
mod scope;
mod sizes;
mod tracked;
mod type_names;
mod words;

use std::path::Path;

use crate::report::{Outcome, Report};
use crates::Crate;
use ratchet::{Figures, Ratchet, Rule};
use tracked::Tracked;

/// Compares every figure of the repository with the allowed one.
pub(crate) fn all(root: &Path, report: &mut Report) {
    let read = || Ok((Ratchet::read(root)?, Tracked::read(root)?, crates::read(root)?));
    let (ratchet, tracked, crates) = match read() {
        Ok(all) => all,
        Err(why) => return report.step("rules of the repository", || Outcome::Failed(why)),
    };
    let Some(tracked) = tracked else {
        let why = "needs a git checkout: the files it tracks are counted".to_owned();
        return report.step("rules of the repository", || Outcome::Skipped(why));
    };
    for (rule, measure) in OF_FILES {
        report.step(rule.name, || ratchet.compare(rule, &measure(&tracked)));
    }
    for (rule, measure) in OF_CODE {
        report.step(rule.name, || ratchet.compare(rule, &measure(&crates)));
    }
    report.step("dead edges", || {
        edges::dead(root, &crates)
            .map_or_else(Outcome::Failed, |found| ratchet.compare(&edges::DEAD, &found))
    });
    report.step("lines of house.txt", || ratchet.unknown(&rules()));
}

/// A rule, and the measurement of its figures.
type Check<T> = (Rule, fn(&T) -> Figures);

const OF_FILES: &[Check<Tracked>] = &[
    (tracked::VENDORED, tracked::vendored),
    (tracked::SEEDS, tracked::seeds),
    (tracked::FILES, tracked::files),
    (tracked::MARKDOWN, tracked::markdown),
    (tracked::PAGES[0], |it| tracked::page(it, "README.md")),
    (tracked::PAGES[1], |it| tracked::page(it, "ARCHITECTURE.md")),
    (tracked::PAGES[2], |it| tracked::page(it, "FEATURES.md")),
    (prose::LINES, prose::lines),
    (prose::MEAN, prose::mean),
    (prose::SENTENCES, prose::sentences),
    (words::HEADINGS, words::headings),
    (comments::LINES, comments::lines),
    (comments::WORDS, comments::words),
    (words::TEST_NAMES, words::test_names),
    (words::TEST_LENGTHS, words::test_lengths),
];

const OF_CODE: &[Check<[Crate]>] = &[
    (edges::REEXPORTS, edges::reexports),
    (circles::CIRCLES, circles::circles),
    (sizes::FUNCTIONS, sizes::functions),
    (sizes::FILES, sizes::files),
    (type_names::SHARED, type_names::shared),
];

/// Keys of all rules.
fn rules() -> Vec<&'static str> {
    let of_files = OF_FILES.iter().map(|(rule, _)| rule.key);
    of_files.chain(OF_CODE.iter().map(|(rule, _)| rule.key)).chain([edges::DEAD.key]).collect()
}
