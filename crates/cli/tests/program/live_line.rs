//! The live line of `onbeat run` in a terminal that changes its size.

use crate::common::{file, run, shared};
use crate::tmux::Tmux;

/// A fault script takes the power of a drive: an error among notices.
// feature(program): `run -q` writes errors and the result only
#[test]
fn a_quiet_run_writes_errors_and_the_result_only() {
    let quiet = run(&["run", "-q", "--no-ipc", "--cycles", "200"]);
    assert!(quiet.stdout.contains(" velocity "), "{}", quiet.stdout);
    assert!(quiet.code != Some(0) || quiet.stderr.is_empty(), "{}", quiet.stderr);
    let script = file("quiet.faults", "100ms drive fault drive-3 0x7500\n");
    let script = script.to_str().expect("UTF-8");
    let mut said = [vec!["run"], vec!["run", "-q"]].map(|command| {
        run(&[&command[..], &["--no-ipc", "--cycles", "1000", "--faults", script]].concat()).stderr
    });
    let [loud, quiet] = &mut said;
    assert!(loud.contains("fault at ") && loud.contains("0x7500"), "{loud}");
    assert!(!quiet.contains("fault at ") && quiet.contains("0x7500"), "{quiet}");
}

/// It is one line at any width, and nothing is left of it where it was wider.
// feature(program): the live line of `run` follows its terminal at 40, 80 and 200 columns
#[test]
fn the_live_line_follows_its_terminal_and_leaves_nothing_over() {
    let _shared = shared();
    let onbeat = env!("CARGO_BIN_EXE_onbeat");
    let script =
        format!("trap : INT; stty -echoctl; {onbeat} run --no-ipc --for 300s >/dev/null; echo over; cat");
    let Some(tmux) = Tmux::start("live-line", (200, 24), &script) else { return };
    for (columns, last) in
        [(200, "us"), (40, "…"), (200, "us"), (80, "…"), (40, "…"), (80, "…"), (200, "us"), (39, "…")]
    {
        tmux.resize(columns, 24);
        let before = cycles(&tmux.screen()).unwrap_or_default();
        let screen = tmux.until(&format!("drawn at {columns} columns"), |screen| {
            let drawn = cycles(screen).is_some_and(|cycles| cycles > before + 200);
            // A terminal has its new size before the program in it knows.
            let letters = |line: &String| line.chars().count();
            let fits = |line: &String| match last {
                "…" => letters(line) == usize::from(columns) - 1,
                _ => letters(line) < usize::from(columns),
            };
            // A machine that was late is remarked upon behind the rest.
            let is_whole = |line: &String| line.ends_with(last) || last == "us" && line.ends_with("late");
            drawn && screen.last().is_some_and(|line| is_whole(line) && fits(line))
        });
        assert_eq!(told(&screen), 1, "{columns} columns:\n{}", screen.join("\n"));
    }
    tmux.press("C-c");
    // The last line stays, and later output is below it.
    let screen = tmux.until("over", |screen| screen.last().is_some_and(|line| line == "over"));
    let last = screen.iter().rposition(|line| line.starts_with("stopping, bus in phase"));
    let last = last.unwrap_or_else(|| panic!("{screen:#?}"));
    assert!(screen[last].chars().count() < 39, "{screen:#?}");
    assert_eq!(screen[last + 1..].concat(), "over", "{screen:#?}");
    assert_eq!(told(&screen), 0, "{screen:#?}");
}

/// Cycles in the last line, if it has a number of them.
fn cycles(screen: &[String]) -> Option<u64> {
    screen.last()?.split_once(" cycles, ")?.0.parse().ok()
}

/// Lines, or rests of lines, that tell how the run goes.
fn told(screen: &[String]) -> usize {
    let parts = [" cycles, ", "WKC errors", "Operation enabled", "jitter <="];
    screen.iter().filter(|line| parts.iter().any(|part| line.contains(part))).count()
}
