//! Machine with invalid files: no check may panic, block, or read without end.

use std::fs;
use std::process::Command;

use crate::machine::check;
use crate::tree::Tree;

/// One file at a time has other content: none, garbage, too much, or is no file at all.
// feature(doctor): files below /proc and /sys that lie
#[test]
fn files_that_lie_are_no_panic() {
    let mut tree = Tree::tuned("lies");
    let files = tree.files();
    assert!(files.len() > 90, "{}", files.len());
    let huge = "0-65535,9999999999 ".repeat(4000);
    let lies: [&[u8]; 12] = [
        b"",
        b"\n",
        b"\0\xff\xfe\x80rubbish\x1b[31m",
        b"-1",
        b"-9223372036854775808",
        b"99999999999999999999999999",
        b"9223372036854775807",
        b"(",
        b"] [ ) (",
        b"0-",
        b"1 2\n3:\n: : :\n",
        huge.as_bytes(),
    ];
    for file in &files {
        let before = fs::read(tree.root().path(file)).ok();
        let link = fs::read_link(tree.root().path(file)).ok();
        for lie in lies {
            tree.file(file, lie);
            let findings = check::all(&tree.subject());
            assert!(findings.len() > 40, "{file}");
            for finding in findings {
                let texts = [&finding.found, &finding.wanted, &finding.fix];
                let fit = texts.iter().all(|text| text.len() < 4000 && !text.contains(char::is_control));
                assert!(fit, "{file}: {finding:?}");
            }
        }
        tree.remove(file);
        let _ = check::all(&tree.subject());
        fs::create_dir_all(tree.root().path(file)).unwrap();
        let _ = check::all(&tree.subject());
        match (link, before) {
            (Some(link), _) => tree.link(file, link.to_str().unwrap()),
            (None, Some(before)) => tree.file(file, before),
            (None, None) => unreachable!("{file} was a file or a link"),
        }
    }
    assert!(check::all(&tree.subject()).iter().all(|it| it.severity == check::Severity::Ok));
}

/// All files at once, in many ways.
#[test]
fn a_machine_of_rubbish_is_no_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..40 {
        let mut tree = Tree::tuned(&format!("rubbish-{round}"));
        for file in tree.files() {
            if file.contains("/device/") && tree.root().link_name(&file).is_some() {
                continue;
            }
            let length = random.usize(..64);
            let mut rubbish: Vec<u8> = fs::read(tree.root().path(&file)).unwrap_or_default();
            for _ in 0..random.usize(1..4) {
                match random.u8(..4) {
                    0 => rubbish = (0..length).map(|_| random.u8(..)).collect(),
                    1 => rubbish.truncate(random.usize(..=rubbish.len())),
                    2 => rubbish.iter_mut().for_each(|byte| {
                        if random.u8(..8) == 0 {
                            *byte = random.choice(b"0123456789abcdef-,: ()[]\n").copied().unwrap_or(b' ');
                        }
                    }),
                    _ => rubbish.extend_from_within(..),
                }
            }
            tree.file(&file, rubbish);
        }
        let _ = check::all(&tree.subject());
    }
}

/// A pipe without a writer would block an ordinary read forever; a file without end must be cut.
// feature(doctor): files below /proc and /sys that lie
#[test]
fn pipes_and_endless_files_end() {
    let mut tree = Tree::tuned("endless");
    let pipe = tree.clear("/proc/cmdline");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        testkit::skip!("no mkfifo here");
        return;
    }
    tree.link("/proc/interrupts", "/dev/zero");
    tree.link("/proc/sys/kernel/printk", "/dev/zero");
    tree.link("/boot/config-6.12.48-rt-amd64", "/dev/zero");
    // A configuration of zeros, compressed: it unpacks to a thousand times its size.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, &vec![0; 32 << 20]).unwrap();
    tree.file("/proc/config.gz", packed.finish().unwrap());
    assert!(check::all(&tree.subject()).len() > 40);
}

/// Nothing is known of the machine: nothing is critical, either.
#[test]
fn an_empty_machine_is_no_panic() {
    let root = crate::machine::root::Root::at("/nowhere");
    let subject = check::Subject::new(root, None).with_interface("eth0", Default::default());
    let findings = check::all(&subject);
    assert!(findings.len() > 40);
}
