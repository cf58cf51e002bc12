//! Small limits of the process (`ulimit`): a run continues with less and reports it, or is refused
//! in a sentence; nothing panics.

use std::process::{Command, Stdio};

use crate::common::{Ran, Running, await_cycles, onbeat, shared};

/// A run under these limits.
fn run_under(limits: &str, arguments: &[&str]) -> Ran {
    let _shared = shared();
    under(limits, &[&["run", "--cycles", "200", "--json"], arguments].concat())
}

/// The program under these limits.
fn under(limits: &str, arguments: &[&str]) -> Ran {
    let program = onbeat();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limits} && exec \"$@\""), "sh"]).arg(program.get_program());
    command.current_dir(program.get_current_dir().expect("a folder")).stdin(Stdio::null());
    command.args(arguments);
    let ran = Running::start(command).finish();
    assert!(ran.code.is_some(), "{limits}: ended by a signal: {}", ran.stderr);
    for word in ["panicked", "overflowed", "allocation of"] {
        assert!(!ran.stderr.contains(word), "{limits}: {}", ran.stderr);
    }
    ran
}

/// It ran, perhaps held up by a busy machine.
fn ran_to_its_end(ran: &Ran) {
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    assert_eq!(end["cycles"], 200, "{end}");
}

fn refused(ran: &Ran, words: &str) {
    assert!(ran.code == Some(1) && ran.stdout.is_empty(), "{:?} {}", ran.code, ran.stdout);
    assert!(ran.stderr.starts_with("onbeat: ") && ran.stderr.contains(words), "{}", ran.stderr);
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn few_descriptors_cost_the_ipc_and_too_few_are_a_sentence() {
    let ipc = ["--ipc", "few-descriptors"];
    refused(&run_under("-n 4", &ipc), "Too many open files");
    for limit in ["-n 6", "-n 8"] {
        // An IPC requested by name is required: without it there is no run.
        refused(&run_under(limit, &ipc), "Too many open files");
        let ran = run_under(limit, &[]);
        ran_to_its_end(&ran);
        let told = ran.stderr.contains("no other program can attach: ");
        assert!(told && ran.stderr.contains("Too many open files"), "{limit}: {}", ran.stderr);
    }
    // Wherever else they run out.
    for limit in 5..24 {
        let ran = run_under(&format!("-n {limit}"), &ipc);
        assert!(matches!(ran.code, Some(0 | 1 | 3)), "{limit}: {:?} {}", ran.code, ran.stderr);
        assert!(
            ran.code != Some(1) || ran.stderr.contains("Too many open files"),
            "{limit}: {}",
            ran.stderr
        );
    }
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn a_client_with_too_few_descriptors_names_the_limit() {
    let _shared = shared();
    let name = format!("limited-{}", std::process::id());
    let mut run = onbeat();
    run.args(["run", "--for", "60s", "--profile", "none", "--ipc", &name]);
    let running = Running::start(run);
    await_cycles(running.id(), 20);
    let asked: [&[&str]; 2] = [&["top", &name, "--once"], &["io", "list", "--cycle", &name]];
    for limit in 4..9 {
        for arguments in asked {
            let ran = under(&format!("-n {limit}"), arguments);
            let named = ran.stderr.contains("Too many open files");
            assert!(ran.code == Some(0) || named, "{limit}: {arguments:?}: {}", ran.stderr);
        }
    }
    let ran = under("-n 7", asked[0]);
    let (code, said) = (ran.code, ran.stderr);
    let what = "this process may open 7, raise that with `ulimit -n`";
    assert!(code == Some(1) && said.contains(what), "{said}");
    drop(running);
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn a_small_stack_or_address_space_is_refused_with_a_remedy() {
    refused(
        &run_under("-s 64", &[]),
        "64 KiB of stack, expected 1024 KiB or more: raise it with `ulimit -s 1024`",
    );
    refused(&run_under("-v 60000", &[]), "60000 KiB of address space, expected 262144 KiB or more: ");
    ran_to_its_end(&run_under("-s 1024; ulimit -v 262144", &["--no-ipc"]));
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn unlockable_memory_is_reported() {
    let program = onbeat();
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set=-ipc_lock",
        "--inh-caps=-ipc_lock",
        "sh",
        "-c",
        "ulimit -l 0; exec \"$@\"",
        "sh",
    ]);
    command.arg(program.get_program()).current_dir(program.get_current_dir().expect("a folder"));
    command.args(["run", "--cycles", "200", "--json", "--no-ipc"]).stdin(Stdio::null());
    let _shared = shared();
    let ran = Running::start(command).finish();
    ran_to_its_end(&ran);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    let refusals = end["profile"]["refusals"].to_string();
    assert!(refusals.contains("the memory lock was refused"), "{refusals}");
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn files_that_may_not_have_a_byte_cost_the_ipc_and_not_the_run() {
    // The IPC is in shared memory, which is a file.
    ran_to_its_end(&run_under("-f 0", &[]));
    refused(&run_under("-f 0", &["--ipc", "no-files"]), "File too large");
}

// feature(program): small limits of the process, pipes and FIFOs without a reader, a table of 80 columns
#[test]
fn a_limit_of_processor_time_is_refused_with_what_to_do() {
    let words = "3600 s of processor time, and the system would end it then, its axes at speed: lift the limit with \
                 `ulimit -t unlimited`";
    for limit in ["-t 3600", "-S -t 3600"] {
        refused(&run_under(limit, &["--no-ipc"]), words);
    }
}
