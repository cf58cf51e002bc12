use super::*;

/// Name, entry port, upstream place.
type Place = (&'static str, u8, Option<(u16, u8)>);

const LINE: [Place; 3] = [("a", 0, None), ("b", 0, Some((0, 1))), ("c", 0, Some((1, 1)))];

/// A coupler with a branch on port 3; the line continues at port 1.
const TREE: [Place; 4] =
    [("coupler", 0, None), ("in", 0, Some((0, 3))), ("out", 0, Some((1, 1))), ("drive", 0, Some((0, 1)))];

/// The second is entered at port 1 and left at port 0.
const SWAPPED: [Place; 3] = [("a", 0, None), ("b", 1, Some((0, 1))), ("c", 0, Some((1, 0)))];

/// All links are there.
fn healthy(places: &[Place]) -> Vec<Examined<'static>> {
    let mut links = vec![DlStatus::default(); places.len()];
    let mut open = |number: usize, port: u8| {
        let it = &mut links[number];
        (it.link[usize::from(port)], it.communication[usize::from(port)]) = (true, true);
    };
    for (number, &(_, entry, upstream)) in places.iter().enumerate() {
        open(number, entry);
        if let Some((parent, port)) = upstream {
            open(parent.into(), port);
        }
    }
    for it in &mut links {
        it.loop_closed = it.link.map(|link| !link);
    }
    let examined = |(&(name, entry_port, upstream), links): (&Place, DlStatus)| Examined {
        name,
        entry_port,
        upstream: upstream.map(|(position, port)| Upstream { position, port }),
        is_absent: false,
        links: Some(links),
        counters: Some(ErrorCounters::default()),
        before: None,
    };
    places.iter().zip(links).map(examined).collect()
}

/// A count that a test sets: at a SubDevice, of the port.
#[derive(Clone, Copy)]
enum Count {
    Invalid(usize, usize, u8),
    Symbols(usize, usize, u8),
    Forwarded(usize, usize, u8),
    Lost(usize, usize, u8),
    Unit(usize, u8),
    Pdi(usize, u8),
}
use Count::{Forwarded, Invalid, Lost, Pdi, Symbols, Unit};

fn counted(places: &[Place], counts: &[Count]) -> Vec<Examined<'static>> {
    let mut all = healthy(places);
    for &count in counts {
        let (Invalid(number, ..)
        | Symbols(number, ..)
        | Forwarded(number, ..)
        | Lost(number, ..)
        | Unit(number, _)
        | Pdi(number, _)) = count;
        let counters = all[number].counters.as_mut().unwrap();
        match count {
            Invalid(_, port, count) => counters.ports[port].invalid_frames = count,
            Symbols(_, port, count) => counters.ports[port].rx_errors = count,
            Forwarded(_, port, count) => counters.ports[port].forwarded_rx_errors = count,
            Lost(_, port, count) => counters.ports[port].lost_links = count,
            Unit(_, count) => counters.processing_unit_errors = count,
            Pdi(_, count) => counters.pdi_errors = count,
        }
    }
    all
}

fn sentences(all: &[Examined<'_>]) -> Vec<String> {
    judge(all).into_iter().map(|it| it.sentence).collect()
}

fn end(position: u16, port: u8) -> CableEnd {
    CableEnd { position: Some(position), port: Some(port) }
}

// feature(diagnosis): the place of damaged frames: the cable before the port that counts them first; forwarded errors excluded
#[test]
fn first_port_with_damaged_frames_names_the_cable() {
    let cables: [(&[Place], &[Count], [CableEnd; 2]); 8] = [
        // On the way out, and on the way back.
        (
            &LINE,
            &[
                Invalid(1, 0, 5),
                Unit(1, 5),
                Forwarded(2, 0, 5),
                Unit(2, 5),
                Forwarded(1, 1, 5),
                Forwarded(0, 1, 5),
            ],
            [end(0, 1), end(1, 0)],
        ),
        (&LINE, &[Invalid(1, 1, 5), Forwarded(0, 1, 5)], [end(1, 1), end(2, 0)]),
        // ESCs that have no forwarded error counters count marked frames as invalid.
        (
            &LINE,
            &[
                Invalid(1, 0, 5),
                Unit(1, 5),
                Invalid(2, 0, 5),
                Unit(2, 5),
                Invalid(1, 1, 5),
                Invalid(0, 1, 5),
            ],
            [end(0, 1), end(1, 0)],
        ),
        // The branch on port 3 comes before the line on port 1.
        (
            &TREE,
            &[
                Invalid(2, 0, 255),
                Forwarded(1, 1, 255),
                Forwarded(0, 3, 255),
                Forwarded(3, 0, 255),
                Forwarded(0, 1, 255),
            ],
            [end(1, 1), end(2, 0)],
        ),
        (
            &TREE,
            &[Invalid(2, 0, 5), Invalid(1, 1, 5), Invalid(0, 3, 5), Invalid(3, 0, 5), Invalid(0, 1, 5)],
            [end(1, 1), end(2, 0)],
        ),
        (&TREE, &[Invalid(0, 3, 7), Forwarded(3, 0, 7), Forwarded(0, 1, 7)], [end(0, 3), end(1, 0)]),
        // Frames enter at port 1, leave at port 0, and are processed on their way back.
        (
            &SWAPPED,
            &[Invalid(1, 1, 2), Forwarded(2, 0, 2), Forwarded(1, 0, 2), Unit(1, 2), Forwarded(0, 1, 2)],
            [end(0, 1), end(1, 1)],
        ),
        (&SWAPPED, &[Invalid(1, 0, 2), Unit(1, 2), Forwarded(0, 1, 2)], [end(1, 0), end(2, 0)]),
    ];
    for (number, (places, counts, ends)) in cables.into_iter().enumerate() {
        let found = judge(&counted(places, counts));
        assert!(
            matches!(&found[..], [Finding { fault: Fault::DamagedFrames, ends: found, .. }] if found[..] == ends),
            "case {number}: {found:?}"
        );
    }
}

// feature(diagnosis): findings in sentences that name both SubDevices and ports
#[test]
fn findings_are_sentences_that_name_both_ends() {
    let one = |places: &[Place], counts: &[Count], sentence: &str| {
        assert_eq!(sentences(&counted(places, counts)), [sentence]);
    };
    one(
        &LINE,
        &[Invalid(2, 0, 1), Symbols(2, 0, 3), Forwarded(1, 1, 1), Invalid(1, 1, 255), Forwarded(0, 1, 255)],
        "the fault is between SubDevice 1 \"b\" port 1 and SubDevice 2 \"c\" port 0: at least 255 invalid frames at \
         SubDevice 1 \"b\" port 1, 1 invalid frame and 3 RX errors at SubDevice 2 \"c\" port 0; check this cable and \
         its connectors",
    );
    one(
        &LINE,
        &[Symbols(0, 0, 2)],
        "the fault is between the MainDevice and SubDevice 0 \"a\" port 0: 2 RX errors at SubDevice 0 \"a\" port 0; \
         check this cable and its connectors",
    );
    one(
        &LINE,
        &[Lost(0, 1, 2), Lost(1, 0, 1)],
        "the link between SubDevice 0 \"a\" port 1 and SubDevice 1 \"b\" port 0 was lost 2 times: a loose or damaged cable, \
         or power that went away",
    );
    one(
        &LINE,
        &[Lost(2, 1, 1)],
        "at SubDevice 2 \"c\" port 1 a link was lost once; no SubDevice is known there",
    );
    one(
        &LINE,
        &[Unit(0, 4), Unit(1, 4), Unit(2, 3)],
        "SubDevice 0 \"a\" is the first with 4 wrong frames that its processing unit counts and no \
         port does: frames that are not EtherCAT frames, sent from the MainDevice's side",
    );
    one(&LINE, &[Pdi(1, 9)], "SubDevice 1 \"b\" counts 9 errors between its ESC and its application (PDI)");
    assert_eq!(sentences(&healthy(&TREE)), [""; 0]);
}

// feature(diagnosis): two cables at fault are two findings
#[test]
fn damage_behind_damage_is_found_too() {
    let both =
        [Invalid(1, 0, 5), Invalid(2, 0, 2), Forwarded(2, 0, 5), Forwarded(1, 1, 7), Forwarded(0, 1, 7)];
    let ends: Vec<_> = judge(&counted(&LINE, &both)).into_iter().map(|it| it.ends).collect();
    assert_eq!(ends, [[end(0, 1), end(1, 0)], [end(1, 1), end(2, 0)]]);
    // Without forwarded error counters: the errors beyond the marked frames count.
    let without = [Invalid(1, 0, 5), Invalid(2, 0, 7), Invalid(1, 1, 7), Invalid(0, 1, 7)];
    let found = judge(&counted(&LINE, &without));
    assert_eq!(found.iter().map(|it| it.count).collect::<Vec<_>>(), [5, 2], "{found:?}");
}

// feature(diagnosis): a SubDevice that was plugged elsewhere is evaluated at its present place
#[test]
fn upstream_later_in_the_list_is_diagnosed() {
    let places: [Place; 3] = [("a", 0, None), ("tool", 0, Some((2, 1))), ("b", 0, Some((0, 1)))];
    let found = judge(&counted(&places, &[Invalid(1, 0, 5), Forwarded(2, 1, 5), Forwarded(0, 1, 5)]));
    assert_eq!(
        found.iter().map(|it| &it.ends[..]).collect::<Vec<_>>(),
        [[end(2, 1), end(1, 0)]],
        "{found:?}"
    );
    let mut all = healthy(&places);
    let links = all[0].links.as_mut().unwrap();
    (links.link[1], links.communication[1], links.loop_closed[1]) = (false, false, true);
    for it in &mut all[1..] {
        it.links = None;
    }
    let told = sentences(&all);
    assert!(matches!(&told[..], [it] if it.ends_with("; 2 SubDevices do not answer")), "{told:?}");
}

// feature(diagnosis): missing links; the links behind them are counted, not listed
#[test]
fn unplugged_cable_is_one_finding() {
    let mut all = healthy(&LINE);
    let links = all[0].links.as_mut().unwrap();
    (links.link[1], links.communication[1], links.loop_closed[1]) = (false, false, true);
    for it in &mut all[1..] {
        (it.links, it.counters) = (None, None);
    }
    let sentence = "no link between SubDevice 0 \"a\" port 1 and SubDevice 1 \"b\" port 0: a cable that is out or broken, \
                    or a SubDevice without power; 2 SubDevices do not answer";
    assert_eq!(sentences(&all), [sentence]);
    let mut all = healthy(&LINE);
    all[1].links = None;
    let sentence = "SubDevice 1 \"b\" does not answer, but has a link: check its power, and the cable between \
                    SubDevice 0 \"a\" port 1 and SubDevice 1 \"b\" port 0";
    assert_eq!(sentences(&all), [sentence]);
    let mut all = healthy(&LINE);
    all[2].links.as_mut().unwrap().link[2] = true;
    assert_eq!(
        sentences(&all),
        ["SubDevice 2 \"c\" port 2 has a link, and no frames come back through it"]
    );
}

// feature(diagnosis): a silent SubDevice behind no known link is named with its cable and power
#[test]
fn silence_without_a_known_link_names_cable_and_power() {
    let silent = |from: usize| {
        let mut all = healthy(&LINE);
        all[from..].iter_mut().for_each(|it| (it.links, it.counters) = (None, None));
        judge(&all)
    };
    // Nothing says whether the cable of the MainDevice has a link.
    let found = silent(0);
    let sentence = "SubDevice 0 \"a\" does not answer: check its power, and the cable between the MainDevice and \
                    SubDevice 0 \"a\" port 0; 2 SubDevices behind it do not answer either";
    assert_eq!(found.iter().map(|it| it.sentence.as_str()).collect::<Vec<_>>(), [sentence]);
    let ends = [CableEnd { position: None, port: None }, end(0, 0)];
    assert_eq!((found[0].fault, &found[0].ends[..]), (Fault::NoAnswer, &ends[..]));
    // Its link is there: the SubDevice behind it is silent for the same reason.
    let found = silent(1);
    let sentence = "SubDevice 1 \"b\" does not answer, but has a link: check its power, and the cable between \
                    SubDevice 0 \"a\" port 1 and SubDevice 1 \"b\" port 0; 1 SubDevice behind it does not answer either";
    assert_eq!(found.iter().map(|it| it.sentence.as_str()).collect::<Vec<_>>(), [sentence]);
    assert_eq!((found[0].fault, &found[0].ends[..]), (Fault::NoAnswer, &[end(0, 1), end(1, 0)][..]));
}

// feature(diagnosis): only counts since the last reading; full counters are reported
#[test]
fn only_new_errors_are_evaluated() {
    let mut all = counted(&LINE, &[Invalid(1, 0, 9), Invalid(2, 0, 255), Forwarded(2, 0, 9)]);
    for it in &mut all {
        it.before = it.counters;
    }
    all[1].before.as_mut().unwrap().ports[0].invalid_frames = 8;
    let found = judge(&all);
    let kinds: Vec<_> = found.iter().map(|it| (it.fault, it.count)).collect();
    assert_eq!(kinds, [(Fault::DamagedFrames, 1), (Fault::FullCounters, 0)], "{found:?}");
    assert!(
        found[1].sentence.starts_with("SubDevice 2 \"c\" has error counters that have reached 255"),
        "{found:?}"
    );
}

#[test]
fn contradictory_places_are_still_diagnosed() {
    let odd: [Place; 2] = [("b", 0, None), ("c", 0, None)];
    let mut all = counted(&odd, &[Invalid(0, 0, 1)]);
    all[0].entry_port = 4;
    all[1].upstream = Some(Upstream { position: 1, port: 0 });
    assert_eq!(judge(&all).len(), 1);
    all[0].upstream = Some(Upstream { position: 1, port: 1 });
    all[1].upstream = Some(Upstream { position: 0, port: 1 });
    assert!(judge(&all).iter().any(|it| it.fault == Fault::DamagedFrames));
}
