//! Sixty-four SubDevices at 4 kHz in virtual time, with mailbox traffic during process data.
use crate::rig;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::main_device::{Configuration, Event, MailboxRequest, MailboxService};

use rig::{Rig, drives, to_op};

const SUB_DEVICES: u32 = 64;

const PERIOD: Duration = Duration::from_micros(250);

/// One in this many gets requests.
const ASKED: usize = 4;

const CYCLES: usize = 8_000;

/// Bytes of a frame on the wire in addition to the ones in memory: preamble, check sequence and
/// gap.
const AROUND: usize = 8 + 4 + 12;

/// ns for a byte at 100 Mbit/s.
const BYTE: usize = 80;

fn ask(rig: &mut Rig, position: usize, data: Vec<u8>) {
    // An expedited transfer, and a segmented one.
    let (index, sub_index) = if data.first() == Some(&0) { (0x1018, 4) } else { (0x1008, 0) };
    let service = MailboxService::Upload { index, sub_index, complete_access: false };
    rig.main_device.submit(MailboxRequest { position: position as u16, service, data }).unwrap();
}

// feature(main-device): 64 SubDevices at 4 kHz with SDO traffic to sixteen at once: every working counter right, no cycle lost, on a wire of 100 Mbit/s
/// Sixteen receive requests for their serial number and name without a pause. Each is answered
/// again and again, every cycle is complete, and all its frames fit on a wire of 100 Mbit/s within
/// the period.
#[test]
fn sixty_four_at_4_khz_with_sdo_traffic_lose_no_cycle() {
    let configuration = Configuration { period: PERIOD, ..to_op() };
    let mut rig = Rig::new(configuration, drives(SUB_DEVICES));
    rig.period = PERIOD;
    let bytes = Arc::new(Mutex::new((0, 0)));
    let noted = Arc::clone(&bytes);
    rig.tamper = Some(Box::new(move |frame| {
        let mut noted = noted.lock().unwrap();
        *noted = (noted.0 + 1, noted.1 + frame.len() + AROUND);
    }));
    rig.run_up();
    rig.events.clear();
    let mut answers = vec![[0; 2]; SUB_DEVICES as usize];
    let asked = (0..SUB_DEVICES as usize).step_by(ASKED);
    asked.clone().for_each(|position| ask(&mut rig, position, vec![0; 64]));
    let mut longest = Duration::ZERO;
    for cycle in 0..CYCLES {
        *bytes.lock().unwrap() = (0, 0);
        let report = rig.cycle();
        assert!(report.all_fresh && !report.spread, "cycle {cycle}: {report:?}");
        assert_eq!((report.frames_lost, report.working_counter_errors), (0, 0), "cycle {cycle}");
        assert!(rig.main_device.working_counters().all(|it| it.is_complete()), "cycle {cycle}");
        let on_the_wire = Duration::from_nanos((bytes.lock().unwrap().1 * BYTE) as u64);
        longest = longest.max(on_the_wire);
        for event in std::mem::take(&mut rig.events) {
            let Event::Mailbox(outcome) = event else { panic!("cycle {cycle}: {event:?}") };
            assert_eq!(outcome.result, Ok(()), "cycle {cycle}: {:?}", outcome.request);
            let (position, mut data) = (usize::from(outcome.request.position), outcome.request.data);
            let is_name = matches!(outcome.request.service, MailboxService::Upload { index: 0x1008, .. });
            match is_name {
                true => assert_eq!(data, format!("drive {position}").into_bytes()),
                false => assert_eq!(data, (position as u32).to_le_bytes()),
            }
            answers[position][usize::from(is_name)] += 1;
            data.resize(64, 0);
            data[0] = u8::from(!is_name);
            ask(&mut rig, position, data);
        }
    }
    println!("the longest cycle is {longest:?} on a wire of 100 Mbit/s; answers of each: {:?}", answers[0]);
    assert!(longest < PERIOD, "{longest:?} on the wire");
    for position in asked {
        let [serials, names] = answers[position];
        assert!(serials > 50 && names > 50, "{position}: {serials} and {names}");
    }
}
