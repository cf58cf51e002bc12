//! Faults on the cable, and the judgement over the counters of simulated SubDevices: it names the
//! place.

use crate::rig;

use std::time::Duration;

use ethercat::main_device::{BringUpPhase, CableEnd, Configuration, Examined, Fault, Finding, judge};
use onbeat_simulator::Segment;
use onbeat_simulator::segment::Attachment;
use proptest::prelude::*;

use rig::{Rig, drives};

/// A bus in PreOp on cables that a test disturbs.
fn up(segment: Segment) -> Option<Rig> {
    let mut rig = Rig::on(Configuration::default(), segment);
    rig.pump_to(BringUpPhase::PreOp);
    (rig.main_device.phase() == BringUpPhase::PreOp).then_some(rig)
}

fn wait(rig: &mut Rig) {
    let end = rig.now + Duration::from_secs(1);
    while rig.main_device.reads_error_counters() && rig.now < end {
        rig.pump(Duration::ZERO);
    }
    assert!(!rig.main_device.reads_error_counters());
}

fn found(rig: &mut Rig) -> Vec<Finding> {
    rig.main_device.read_error_counters();
    wait(rig);
    judge(&rig.main_device.sub_devices().iter().map(Examined::from).collect::<Vec<_>>())
}

/// The judgement over the same counts by ESCs without forwarded error counters: marked frames are
/// invalid ones to them.
fn found_without_forwarded(rig: &Rig) -> Vec<Finding> {
    let mut all: Vec<_> = rig.main_device.sub_devices().iter().map(Examined::from).collect();
    for port in all.iter_mut().flat_map(|it| it.counters.as_mut()).flat_map(|it| &mut it.ports) {
        port.invalid_frames = port.invalid_frames.saturating_add(port.forwarded_rx_errors);
        port.forwarded_rx_errors = 0;
    }
    judge(&all)
}

fn end(place: (usize, usize)) -> CableEnd {
    CableEnd { position: Some(place.0 as u16), port: Some(place.1 as u8) }
}

/// Attachments of a tree with SubDevices at the parents in `choices`, some entered at port 1.
fn tree(choices: &[(usize, usize, bool)]) -> Vec<Attachment> {
    let mut free: Vec<Vec<usize>> = vec![vec![1, 2, 3]];
    let mut attachments = Vec::new();
    for (number, &(parent, port, is_swapped)) in (1..).zip(choices) {
        let with_room: Vec<_> = (0..number).filter(|&it| !free[it].is_empty()).collect();
        let parent = with_room[parent % with_room.len()];
        // At a SubDevice entered at port 1, port 0 first: without it frames circulate.
        let place = if free[parent][0] == 0 { 0 } else { port % free[parent].len() };
        let port = free[parent].remove(place);
        attachments.push(Attachment::new(parent, port).entered_at(usize::from(is_swapped)));
        free.push(if is_swapped { vec![0, 2, 3] } else { vec![1, 2, 3] });
    }
    attachments
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    // feature(diagnosis): a random cable of a random tree is disturbed, in the simulator: the judgement names that cable and no other
    #[test]
    fn the_cable_that_was_disturbed_is_named(
        choices in proptest::collection::vec((any::<usize>(), any::<usize>(), proptest::bool::weighted(0.2)), 0..9),
        which in any::<prop::sample::Index>(),
        back in any::<bool>(),
        frames in 1..400_u32,
    ) {
        let attachments = tree(&choices);
        let count = attachments.len() + 1;
        let segment = Segment::with_topology(drives(count as u32), &attachments).expect("a tree");
        let rig = up(segment);
        // Frames that pass two ends without port 0 are destroyed.
        prop_assume!(rig.is_some());
        let mut rig = rig.expect("a bus");
        prop_assert_eq!(found(&mut rig), vec![]);
        let cables = rig.main_device.sub_devices().iter().map(|it| {
            let upstream = it.upstream.map(|up| (usize::from(up.position), usize::from(up.port)));
            (upstream, (usize::from(it.position), usize::from(it.entry_port)))
        });
        let cables: Vec<_> = cables.collect();
        let (upstream, own) = *which.get(&cables);
        let seen = match upstream { Some(up) if back => up, _ => own };
        let device = listed(&rig, seen.0);
        (0..frames).for_each(|_| rig.segment.disturb(device, seen.1));
        let findings = found(&mut rig);
        prop_assert_eq!(findings.len(), 1, "{:?} {:?}", attachments, findings);
        let expected = [upstream.map_or(CableEnd { position: None, port: None }, end), end(own)];
        prop_assert_eq!((findings[0].fault, &findings[0].ends[..]), (Fault::DamagedFrames, &expected[..]));
        prop_assert_eq!(findings[0].count, frames.min(255));
        prop_assert_eq!(found_without_forwarded(&rig), findings);
        // Cleared, nothing is left.
        rig.main_device.clear_error_counters();
        wait(&mut rig);
        prop_assert_eq!(found(&mut rig), vec![]);
    }
}

/// Place in the segment's list of the SubDevice at a position: by its station address.
fn listed(rig: &Rig, position: usize) -> usize {
    let station = rig.main_device.sub_devices()[position].station_address;
    let is_it = |it: &onbeat_simulator::SubDevice| {
        let mut bytes = [0; 2];
        it.peek(ethercat::register::STATION_ADDRESS, &mut bytes);
        u16::from_le_bytes(bytes) == station
    };
    rig.segment.sub_devices().iter().position(is_it).expect("addressed")
}

// feature(diagnosis): a link that is out, one that was lost, and a SubDevice that does not answer
#[test]
fn a_link_that_is_out_is_found_and_then_that_it_was_lost() {
    let mut rig = up(Segment::new(drives(4))).expect("a line");
    assert!(rig.segment.disconnect(1, 1));
    let findings = found(&mut rig);
    let kinds: Vec<_> = findings.iter().map(|it| it.fault).collect();
    assert_eq!(kinds, [Fault::NoLink, Fault::LostLinks], "{findings:?}");
    for it in &findings {
        assert_eq!(it.ends, [end((1, 1)), end((2, 0))], "{it:?}");
    }
    assert!(findings[0].sentence.ends_with("2 SubDevices do not answer"), "{findings:?}");
    assert!(rig.segment.connect(1, 1));
    let findings = found(&mut rig);
    assert_eq!(findings.iter().map(|it| it.fault).collect::<Vec<_>>(), [Fault::LostLinks], "{findings:?}");
    rig.main_device.clear_error_counters();
    wait(&mut rig);
    assert_eq!(found(&mut rig), []);
}
