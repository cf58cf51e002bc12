use std::collections::VecDeque;

use serde_json::json;

use super::*;

fn wish(attached: u64, scope: &[u16]) -> Wish {
    Wish { attached, wish: 7, scope: scope.to_vec() }
}

/// Numbers of a message with rows.
fn numbers(message: &Message) -> Vec<f64> {
    let Message::Binary(bytes) = message else { panic!("{message:?}") };
    bytes.chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn waiting(queue: &mut Receiver<Message>) -> VecDeque<Message> {
    std::iter::from_fn(|| queue.try_recv().ok()).collect()
}

#[test]
fn a_page_gets_newest_documents_all_events_and_its_channels() {
    let hub = Hub::default();
    let (page, mut queue) = hub.join().unwrap();
    hub.attach(1, 3);
    hub.set(1, Slot::Picture, &json!({ "kind": "picture", "old": true }));
    hub.set(1, Slot::Picture, &json!({ "kind": "picture" }));
    hub.event(&json!({ "kind": "event" }));
    hub.select(page, wish(1, &[2, 0])).unwrap();
    for cycle in 10..13_u32 {
        hub.row(u64::from(cycle), f64::from(cycle) / 1e3, 4, |channel| f64::from(channel) * 100.0);
    }
    hub.send(4);
    let mut got = waiting(&mut queue);
    assert_eq!(got.pop_front().unwrap().to_text().unwrap(), r#"{"kind":"picture"}"#);
    assert_eq!(got.pop_front().unwrap().to_text().unwrap(), r#"{"kind":"event"}"#);
    let rows = numbers(&got.pop_front().unwrap());
    assert_eq!(rows[..6], [1.0, 7.0, 3.0, 4.0, 4.0, 0.0]);
    assert_eq!(rows[8..16], [10.0, 0.010, 200.0, 0.0, 11.0, 0.011, 200.0, 0.0]);
    assert!(got.is_empty(), "{got:?}");
    hub.send(4);
    assert!(waiting(&mut queue).is_empty(), "nothing twice");
}

// feature(program): a slow browser loses rows of `serve`, which are counted and reported; the newest documents wait in bounded memory
#[test]
fn a_slow_page_has_a_bounded_queue_and_sees_its_losses() {
    let hub = Hub::default();
    let (page, mut queue) = hub.join().unwrap();
    hub.attach(1, 1);
    hub.select(page, wish(1, &[0])).unwrap();
    for cycle in 0..10_000 {
        hub.row(cycle, 0.0, 0, |_| 1.0);
        if cycle % 10 == 9 {
            hub.set(1, Slot::Picture, &json!(cycle));
            hub.event(&json!({ "number": cycle }));
            hub.send(0);
        }
    }
    let got = waiting(&mut queue);
    assert_eq!(got.len(), QUEUE);
    let of_rows = |all: &VecDeque<Message>| -> Vec<Vec<f64>> {
        all.iter().filter(|it| matches!(it, Message::Binary(_))).map(numbers).collect()
    };
    let kept: f64 = of_rows(&got).iter().map(|rows| rows[2]).sum();
    hub.row(10_000, 0.0, 0, |_| 1.0);
    let mut after = VecDeque::new();
    for _ in 0..EVENTS {
        hub.send(0);
        after.extend(waiting(&mut queue));
    }
    let rows = of_rows(&after);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][5] + kept, 10_000.0, "each row came, or was counted");
    let texts: Vec<&str> = after.iter().filter_map(|it| it.to_text().ok()).collect();
    assert_eq!(texts[0], "9999", "the newest picture");
    assert!(texts[1].contains("events_missed"), "{}", texts[1]);
    assert_eq!(texts[2..].len(), EVENTS);
}

#[test]
fn impossible_wishes_are_refused_and_outdated_ones_ignored() {
    let hub = Hub::default();
    let (page, mut queue) = hub.join().unwrap();
    hub.attach(1, 3);
    assert!(hub.select(page, wish(1, &[3])).unwrap_err().contains("channels below 3, found 3"));
    assert!(
        hub.select(page, wish(1, &[0; CHANNELS + 1]))
            .unwrap_err()
            .contains("64 channels at most, found 65")
    );
    hub.select(page, wish(9, &[999])).unwrap();
    hub.select(page, wish(1, &[0])).unwrap();
    hub.attach(2, 3);
    hub.row(1, 0.0, 0, |_| 1.0);
    hub.send(0);
    assert!(waiting(&mut queue).is_empty());
}

#[test]
fn pages_are_counted_and_one_that_leaves_makes_room() {
    let hub = Hub::default();
    let pages: Vec<_> = (0..PAGES).map(|_| hub.join().unwrap()).collect();
    assert!(hub.join().is_none());
    hub.leave(pages[3].0);
    assert!(hub.join().is_some());
}
