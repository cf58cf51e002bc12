//! `onbeat analyse`: the papers' numbers, what is not schedulable, pictures, bad files.

use record::recording::{Facts, Header};
use record::{CycleRecord, RecordingWriter, cycles};
use serde_json::Value;

use crate::common::{Ran, file, run};

fn tasks(ran: &Ran) -> Vec<Value> {
    ran.json()["tasks"].as_array().expect("tasks").clone()
}

#[test]
fn the_two_tasks_of_the_controllers_paper() {
    let ran = run(&["analyse", "examples/tasks/controllers.toml", "--json"]);
    let tasks = tasks(&ran);
    let numbers = |name: &str| tasks.iter().map(|task| task[name].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers("response_ns"), [500_000.0, 3_000_000.0]);
    assert_eq!(numbers("slack_mast_percent"), [39.453125, 65.625]);
    assert_eq!(numbers("slack_percent")[0], 40.0);
    assert!(tasks.iter().all(|task| task["schedulable"] == true));
    let system = &ran.json()["system"];
    assert_eq!(system["slack_mast_percent"], 24.609375);
    assert_eq!(system["slack_percent"], 25.0);
    assert_eq!((&system["utilisation"], &system["schedulable"]), (&Value::from(0.8), &Value::from(true)));
}

// feature(analyse): the steps of the iteration: `onbeat analyse --steps`
#[test]
fn the_steps_of_the_controllers_papers_appendix() {
    let ran = run(&["analyse", "examples/tasks/controllers.toml", "--steps"]);
    assert!(ran.stdout.contains("\ntau1: 500us\ntau2: 2.5ms, 3ms, 3ms\n"), "{}", ran.stdout);
    let ran = run(&["analyse", "examples/tasks/controllers.toml", "--steps", "--json"]);
    assert_eq!(tasks(&ran)[1]["steps_ns"], serde_json::json!([2_500_000, 3_000_000, 3_000_000]));
    let refused = run(&["analyse", "examples/tasks/controllers.toml", "--steps", "--policy", "edf"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("--steps: found policy \"edf\", expected policy \"fp\""),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_five_tasks_of_the_controllers_paper() {
    let ran = run(&["analyse", "examples/tasks/service-robot.toml", "--json"]);
    let responses: Vec<_> = tasks(&ran).iter().map(|task| task["response_ns"].as_u64().unwrap()).collect();
    assert_eq!(responses, [29_000, 461_000, 1_051_000, 1_511_000, 2_273_000]);
    assert_eq!(ran.json()["system"]["slack_mast_percent"], 914.0625);
    let text = run(&["analyse", "examples/tasks/service-robot.toml"]).stdout;
    assert!(text.contains("MAST's way: 914.06 %"), "{text}");
}

// feature(analyse): why a set does not hold, and the smallest change that helps
#[test]
fn what_is_not_schedulable_says_why_and_what_helps() {
    let ran = run(&["analyse", "examples/tasks/too-much.toml"]);
    assert_eq!(ran.code, Some(3));
    let expected = "not schedulable: tau3 misses by 600us because its response is made of 1.2ms of execution, 1.2ms of tau1 \
                    (4 x 300us), 1.2ms of tau2 (2 x 600us)\n\
                    the smallest change that helps is tau1 shorter by 100us (a wcet of 200us)\n";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    let json = run(&["analyse", "examples/tasks/too-much.toml", "--json"]);
    assert_eq!(json.code, Some(3));
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["system"]["schedulable"], false);
    assert_eq!(run(&["analyse", "examples/tasks/too-much.toml", "--policy", "edf"]).code, Some(0));
    let spread = run(&["analyse", "examples/tasks/too-much.toml", "--cpus", "2"]);
    assert_eq!(spread.code, Some(0), "tau1 and tau3 stay together with their lock: {}", spread.stdout);
}

// feature(analyse): absurd sets end
#[test]
fn endless_responses_are_null() {
    let text = "[[task]]\nname = \"a\"\npriority = 1\nperiod = \"1ms\"\nwcet = \"2ms\"\n";
    let path = file("endless.toml", text);
    let ran = run(&["analyse", path.to_str().unwrap(), "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["tasks"][0]["response_ns"], Value::Null);
    assert_eq!((ran.code, json["tasks"][0]["slack_percent"].as_f64()), (Some(3), Some(-50.0)));
}

// feature(analyse): Gantt chart of the critical instant
#[test]
fn the_critical_instant_is_drawn() {
    let path = std::env::temp_dir().join(format!("onbeat-gantt-{}.svg", std::process::id()));
    let draw = |path: &str| run(&["analyse", "examples/tasks/controllers.toml", "--gantt", path]);
    let ran = draw(path.to_str().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("<svg"), "{text}");
    // tau2 runs whenever tau1 does not: three pieces of half a millisecond.
    assert_eq!(text.matches("<title>tau2: ").count(), 3, "{text}");
    assert!(text.contains("<title>tau2: 2500000 ns to 3000000 ns</title>"), "{text}");
    let refused = draw("chart.png");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("expected a name that ends in .svg"), "{}", refused.stderr);
}

// feature(analyse): a recorded run as a task set
#[test]
fn a_recorded_run_is_a_task_with_a_margin() {
    let facts = [("period_ns".to_owned(), Value::from(1_000_000))].into_iter().collect();
    let columns = cycles::COLUMNS.map(str::to_owned).to_vec();
    let header = Header { what: cycles::WHAT.to_owned(), columns, facts };
    let mut writer = RecordingWriter::begin(Vec::new(), &header).unwrap();
    for (cycle, start, end) in [(0, 2_000, 102_000), (1, 1_011_000, 1_211_000)] {
        let record = CycleRecord::begin(cycle, 1_000 + 1_000_000 * cycle, start);
        writer.row(&cycles::row(&CycleRecord { end_ns: end, ..record })).unwrap();
    }
    let path = file("run.mcap", "");
    std::fs::write(&path, writer.finish(&Facts::new()).unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let task = |margin: &str| tasks(&run(&["analyse", path, "--json", "--margin", margin]))[0].clone();
    assert_eq!(task("20%")["wcet_ns"], 240_000);
    assert_eq!(task("0")["wcet_ns"], 200_000);
    assert_eq!(task("0")["response_ns"], 210_000, "jitter counts");
    let text = run(&["analyse", path]).stdout;
    assert!(
        text.contains("execution up to 200us, started up to 10us late; both taken 20 % longer"),
        "{text}"
    );
}

#[test]
fn bad_files_are_one_sentence() {
    let path = file("bad.toml", "[[task]]\nname = \"a\"\npriority = 1\nperiod = \"1ms\"\nwcte = \"2ms\"\n");
    let path = path.to_str().unwrap();
    let ran = run(&["analyse", path]);
    let expected = format!("onbeat: {path}:5:1: unknown key \"wcte\"");
    assert!(
        ran.sentence().starts_with(&expected) && ran.sentence().ends_with("did you mean \"wcet\"?"),
        "{}",
        ran.stderr
    );
    assert!(
        run(&["analyse", "no-such.toml"]).sentence().starts_with("onbeat: no-such.toml: cannot be read")
    );
    let old = file("old.mcap", "# onbeat recording 1\n# {}\n");
    let ran = run(&["analyse", old.to_str().unwrap()]);
    assert!(ran.sentence().contains("found a text recording of an earlier Onbeat"), "{}", ran.stderr);
}

// feature(analyse): the bus: wire time, shortest period, event to reaction, computed and measured
#[test]
fn the_bus_of_a_robot_file() {
    let bus = |arguments: &[&str]| {
        let ran = run(&[&["analyse", "examples/six-axis.toml", "--json"], arguments].concat());
        (ran.code, serde_json::from_str::<Value>(&ran.stdout).unwrap())
    };
    let (code, found) = bus(&[]);
    // Ethernet 14 + 4, EtherCAT 2, NOP 16, FRMW 20, BRD 14, two FPRD 16 + 13, one LRW of six drives
    // 12 + 6 x 24.
    assert_eq!((code, &found["bus"]["frame_bytes"]), (Some(0), &serde_json::json!([255])));
    assert_eq!(found["bus"]["wire_ns"], (255 + 20) * 80);
    assert_eq!(found["bus"]["round_trip_ns"], (255 + 8) * 80 + 6_000);
    assert_eq!(found["bus"]["shortest_period_ns"], (255 + 8) * 80 + 6_000 + 100_000);
    // With a SubDevice missing, an LWR and an LRD of 12 bytes each for every drive, and no LRW.
    let spread = 255 - (12 + 6 * 24) + 6 * 2 * (12 + 12);
    assert_eq!(found["bus"]["somebody_missing"]["frame_bytes"], serde_json::json!([spread]));
    assert_eq!(found["latency"][0]["total_ns"], serde_json::json!([1_000_000, 2_000_000]));
    assert_eq!(bus(&["--link", "1000"]).1["bus"]["wire_ns"], (255 + 20) * 8);
    assert_eq!(bus(&["--computing", "980us"]).0, Some(3));
    let text = run(&["analyse", "examples/six-axis.toml"]).stdout;
    assert!(text.contains("shortest period     127.04us with 100us of computing"), "{text}");
}
