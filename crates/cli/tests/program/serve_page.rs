//! The page of `onbeat serve` in a browser, with a simulated robot.

use std::path::PathBuf;

use crate::browser::Page;
use crate::common::{Running, await_cycles, onbeat, shared};
use crate::serve::Served;

/// Screenshots of the page are kept for a person to look at.
fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A robot that moves its axes, with a unique name.
fn robot(name: &str, arguments: &[&str]) -> Running {
    let mut command = onbeat();
    command.args(["run", "--json", "--profile", "none", "--ipc", name]).args(arguments);
    let running = Running::start(command);
    await_cycles(running.id(), 50);
    running
}

// feature(program): the page of `serve` in a browser: axes, bus, live curves, trigger, cursors and CSV; the end of the cycle and the next one
#[test]
fn the_page_shows_axes_curves_and_follows_to_the_next_cycle() {
    let Some(mut page) = Page::open("serve-browser") else { return };
    let _shared = shared();
    let served = Served::start(&["--ipc", "serve-page"]);
    page.screen(1280, 800, false);
    page.goto(&format!("http://{}/", served.address));
    page.until("$('standing').textContent === 'waiting for a cycle'");
    let mut run = robot("serve-page", &["--period", "2ms"]);
    page.until("$('standing').textContent === 'Op'");
    page.until("document.querySelectorAll('#axes tbody tr').length === 6");
    page.until("$('axes').textContent.includes('Operation enabled')");
    // Every row has come; a curve that moves is drawn in its colour.
    page.value("scope.choose(['axis-1 position', 'axis-2 position', 'axis-1 following error', 'cycle wake-up latency'])");
    page.until("scope.store.length > 500 && scope.drawn.store.channels.length === 4");
    page.until("Math.max(...scope.store.columns[0].slice(0, scope.store.length)) - Math.min(...scope.store.columns[0].slice(0, scope.store.length)) > 0.01");
    let drawn = "(() => { const it = $('plot'), all = it.getContext('2d').getImageData(0, 0, it.width, it.height).data; \
                 const seen = new Set(); for (let at = 0; at < all.length; at += 4) seen.add(all[at] << 16 | all[at + 1] << 8 | all[at + 2]); return seen.size })()";
    page.until(&format!("{drawn} > 20"));
    page.screenshot(&picture("serve-1280-roll.png"));

    // A trigger in the middle of the axis's range: the picture freezes, with that value at its
    // instant.
    let middle = "(() => { const all = scope.store.columns[0].slice(0, scope.store.length); return (Math.max(...all) + Math.min(...all)) / 2 })()";
    page.value(&format!(
        "$('mode').value = 'single'; $('mode').onchange(); $('window').value = '0.5'; $('window').onchange(); \
         $('source').value = 'axis-1 position'; $('source').onchange(); $('level').value = {middle}; $('level').onchange()"
    ));
    page.until("$('status').textContent === 'triggered, stopped'");
    let crossing = "(() => { const { store, at } = scope.capture, row = store.first(at); \
                    return [store.columns[0][row - 1], scope.trigger.level, store.columns[0][row], at - store.time[0], store.newest - at] })()";
    let crossing = page.value(crossing);
    let of = |place: usize| crossing[place].as_f64().expect("a number");
    assert!(of(0) < of(1) && of(2) >= of(1), "it rises through the level at the trigger: {crossing}");
    assert!(
        (of(3) - 0.125).abs() < 0.01 && (of(4) - 0.375).abs() < 0.01,
        "a quarter before it: {crossing}"
    );
    page.value("$('cursors').click()");
    page.until("$('deltas').textContent.includes('Δt')");
    page.screenshot(&picture("serve-1280-trigger.png"));
    let csv = page.value("scope.csv()");
    let csv: Vec<&str> = csv.as_str().expect("text").lines().collect();
    assert_eq!(
        csv[0],
        r#"time [s],cycle,"axis-1 position [rad]","axis-2 position [rad]","axis-1 following error [rad]","cycle wake-up latency [us]""#
    );
    assert!(
        csv.len() > 100 && csv[1..].iter().all(|line| line.split(',').count() == 6),
        "{} rows",
        csv.len()
    );

    // The bus, in the dark.
    page.screen(1280, 800, true);
    page.value("$('tab-bus').click()");
    page.until("document.querySelectorAll('#bus tbody tr').length >= 7");
    page.until("$('bus').textContent.includes('link')");
    page.value("$('tabs').scrollIntoView()");
    page.screenshot(&picture("serve-1280-bus-dark.png"));
    page.value("$('tab-timing').click()");
    page.until("$('timing').textContent.includes('99.9 %')");
    page.value("$('tabs').scrollIntoView()");
    page.screenshot(&picture("serve-1280-timing-dark.png"));

    // A phone.
    page.screen(390, 844, false);
    let before = page.value("scope.store.newest").as_f64().expect("a time");
    page.value("$('tab-axes').click(); $('mode').value = 'roll'; $('mode').onchange(); $('cursors').click(); scrollTo(0, 0)");
    page.until("scope.drawn.store === scope.store && $('status').textContent === 'rolling'");
    page.until(&format!("scope.store.newest - scope.store.time[scope.store.first({before} + 1e-6)] > 0.6"));
    page.screenshot(&picture("serve-390.png"));
    page.value("$('axes').scrollIntoView()");
    page.screenshot(&picture("serve-390-axes.png"));
    assert_eq!(page.value("document.documentElement.scrollWidth <= 390"), true, "nothing sticks out");

    run.kill();
    page.until("$('standing').textContent === 'ended'");
    page.until("$('notice').textContent.includes('serve-page')");
    let before = page.value("link.attached").as_u64().expect("a number");
    let _next = robot("serve-page", &["--period", "2ms"]);
    page.until(&format!("link.attached > {before} && $('standing').textContent === 'Op'"));
    page.until("scope.chosen.includes('axis-2 position') && scope.store.newest > 0");
    assert!(page.complaints.is_empty(), "{:?}", page.complaints);
}

// feature(program): late cycles stand with their causes on the scope's axis in the page of `serve`, where the run explains them; 64 channels of the humanoid are drawn
#[test]
fn late_cycles_are_marked_next_to_64_curves() {
    let Some(mut page) = Page::open("serve-humanoid") else { return };
    let _shared = shared();
    let file = "examples/humanoid-59.toml";
    // Every cycle is late by a nanosecond.
    let _run = robot("serve-humanoid", &[file, "--period", "4ms", "--explain", "--late-above", "1ns"]);
    let served = Served::start(&["--ipc", "serve-humanoid"]);
    page.screen(1280, 800, false);
    page.goto(&format!("http://{}/#channels=*%20position", served.address));
    page.until("$('standing').textContent === 'Op'");
    page.until("scope.chosen.length === 64 && scope.chosen.every((it) => it.endsWith(' position'))");
    page.until("scope.store.length > 200");
    page.value("$('tab-timing').click()");
    page.until(
        "scope.marks.some((it) => it.late && /^cycle [\\d ]+ (started|ended) .* late: ./.test(it.text))",
    );
    page.until("$('timing').textContent.includes('cycles were late by more than 0.0 us')");
    // Each mark is at its own cycle on the time axis of the curves.
    let off = "(() => { const { store, marks } = scope; const all = marks.filter((it) => it.late).flatMap((it) => { \
               const cycle = +/^cycle ([\\d ]+)/.exec(it.text)[1].replaceAll(' ', ''), row = store.cycle.subarray(0, store.length).indexOf(cycle); \
               return row < 0 ? [] : [Math.abs(store.time[row] - it.time)] }); return all.length ? Math.max(...all) : null })()";
    page.until(&format!("{off} !== null"));
    assert!(page.value(off).as_f64().expect("a time") < 1e-6);
    page.screenshot(&picture("serve-1280-humanoid.png"));
    page.screen(390, 844, true);
    page.until("scope.drawn.right < 400");
    page.screenshot(&picture("serve-390-humanoid-dark.png"));
    assert_eq!(page.value("document.documentElement.scrollWidth <= 390"), true, "nothing sticks out");
    assert!(page.complaints.is_empty(), "{:?}", page.complaints);
}
