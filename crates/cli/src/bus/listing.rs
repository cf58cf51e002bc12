//! The objects that a SubDevice lists: an object that fails does not hide the others.

use ethercat::main_device::{MailboxError, MailboxService};
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::{ListType, ObjectCode, ObjectDescription};

use super::dictionary::DictionaryItem;
use super::entry::{Entry, Unanswered, entry_service, readable};
use crate::object_address::ObjectAddress;

/// Questions in a row without any answer after which the rest is not asked: each takes seconds.
const SILENCES: u32 = 3;

/// A listing under way.
pub(super) struct Listing<'a, F> {
    ask: F,
    /// Grows with each object and entry.
    items: &'a mut Vec<DictionaryItem>,
    /// Answers that were refused, short or missing.
    unread: usize,
    silences: u32,
}

/// Reason that a listing ended early, and its step.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) doing: String,
    pub(super) why: Unanswered,
}

impl<'a, F: FnMut(MailboxService) -> Result<Vec<u8>, Unanswered>> Listing<'a, F> {
    pub(super) fn new(ask: F, items: &'a mut Vec<DictionaryItem>) -> Self {
        Self { ask, items, unread: 0, silences: 0 }
    }

    /// Lists all objects, and returns how many answers were no proper ones.
    pub(super) fn run(mut self) -> Result<usize, Ended> {
        let doing = || "listing the objects".to_owned();
        let list = (self.ask)(MailboxService::ObjectList(ListType::ALL))
            .map_err(|why| Ended { doing: doing(), why })?;
        // The first two bytes repeat the list type.
        for index in list.get(2..).unwrap_or_default().chunks_exact(2) {
            self.object(u16::from_le_bytes([index[0], index[1]]))?;
        }
        Ok(self.unread)
    }

    fn object(&mut self, index: u16) -> Result<(), Ended> {
        let described = (self.ask)(MailboxService::DescribeObject { index })
            .and_then(|bytes| last_sub_index(index, &bytes).map_err(Unanswered::from));
        let last = match described {
            Ok((object, last)) => {
                self.silences = 0;
                self.items.push(object);
                last
            }
            Err(why) => return self.note(index, None, format!("object {index:#06x}"), why),
        };
        for sub_index in 0..=last {
            let address = ObjectAddress { index, sub_index };
            match (self.ask)(entry_service(address)).and_then(|bytes| Ok(Entry::parse(&bytes)?)) {
                Ok(entry) => {
                    self.silences = 0;
                    self.items.push(DictionaryItem::Entry { address, entry, value: None });
                }
                // Sub-indices need not be without gaps.
                Err(Unanswered::Mailbox(MailboxError::Aborted(AbortCode::NO_SUB_INDEX))) => {}
                Err(why) => self.note(index, Some(sub_index), format!("object {address}"), why)?,
            }
        }
        Ok(())
    }

    /// Notes an answer that was none; ends where going on makes no sense.
    fn note(
        &mut self,
        index: u16,
        sub_index: Option<u8>,
        what: String,
        why: Unanswered,
    ) -> Result<(), Ended> {
        self.unread += 1;
        let is_silence = matches!(
            why,
            Unanswered::Mailbox(
                MailboxError::Timeout(_) | MailboxError::NoAnswer { .. } | MailboxError::Unfinished { .. }
            )
        );
        self.silences = if is_silence { self.silences + 1 } else { 0 };
        let Unanswered::Mailbox(error) = &why else {
            return Err(Ended { doing: format!("reading {what}"), why });
        };
        self.items.push(DictionaryItem::Unread { index, sub_index, why: error.to_string() });
        if self.silences < SILENCES {
            return Ok(());
        }
        Err(Ended {
            doing: format!("reading {what}: {SILENCES} consecutive requests without an answer"),
            why,
        })
    }
}

/// An object, and its last sub-index.
fn last_sub_index(index: u16, bytes: &[u8]) -> Result<(DictionaryItem, u8), MailboxError> {
    let object = ObjectDescription::parse(bytes).map_err(MailboxError::Format)?;
    let (kind, last) = match object.object_code {
        ObjectCode::VARIABLE => ("variable", 0),
        ObjectCode::ARRAY => ("array", object.maximum_sub_index),
        ObjectCode::RECORD => ("record", object.maximum_sub_index),
        _ => ("object", object.maximum_sub_index),
    };
    Ok((DictionaryItem::Object { index, kind, name: readable(object.name) }, last))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ethercat_linux::bring_up::BringUpError;

    use super::*;
    use crate::bus::dictionary::json;

    fn lines(items: &[DictionaryItem]) -> String {
        items.iter().map(|it| format!("{it}\n")).collect()
    }

    /// A device with five objects; one description is cut short, one refused, one entry refused.
    fn odd(service: MailboxService) -> Result<Vec<u8>, Unanswered> {
        let aborted = |code| Err(Unanswered::Mailbox(MailboxError::Aborted(code)));
        match service {
            MailboxService::ObjectList(_) => {
                Ok([1_u16, 0x1000, 0x2000, 0x3000, 0x4000, 0x5000].map(u16::to_le_bytes).concat())
            }
            MailboxService::DescribeObject { index: 0x2000 } => Ok(vec![0x00, 0x20, 5]),
            MailboxService::DescribeObject { index: 0x3000 } => aborted(AbortCode::GENERAL),
            MailboxService::DescribeObject { index } => {
                let [low, high] = index.to_le_bytes();
                let record = [low, high, 5, 0, 3, 9];
                Ok([&record[..], b"thing"].concat())
            }
            MailboxService::DescribeEntry { index: 0x4000, sub_index: 2, .. } => {
                aborted(AbortCode::HARDWARE)
            }
            MailboxService::DescribeEntry { sub_index: 3, .. } => aborted(AbortCode::NO_SUB_INDEX),
            MailboxService::DescribeEntry { index, sub_index, .. } => {
                let [low, high] = index.to_le_bytes();
                let entry = [low, high, sub_index, 0, 6, 0, 16, 0, 7, 0];
                Ok([&entry[..], b"word"].concat())
            }
            other => panic!("{other:?}"),
        }
    }

    // feature(program): `sdo list` shows what came, with a note for each answer that was none
    #[test]
    fn one_short_answer_and_one_refused_hide_nothing_else() {
        let mut items = Vec::new();
        let unread = Listing::new(odd, &mut items).run().unwrap();
        assert_eq!(unread, 3);
        let text = lines(&items);
        for (object, lines) in [("0x1000", 4), ("0x2000", 1), ("0x3000", 1), ("0x4000", 4), ("0x5000", 4)] {
            let found: Vec<_> = text.lines().filter(|line| line.trim_start().starts_with(object)).collect();
            assert_eq!(found.len(), lines, "{object}: {text}");
        }
        let noted = |place: &str, why: &str| {
            text.lines().any(|line| line.trim_start().starts_with(place) && line.contains(why))
        };
        assert!(noted("0x2000", "? "), "{text}");
        assert!(noted("0x3000", "? aborted, 0x08000000"), "{text}");
        assert!(noted("0x4000:02", "? aborted, 0x06060000"), "{text}");
        let json = json(&items);
        assert_eq!(json.as_array().map(Vec::len), Some(5), "{json}");
        let word = serde_json::json!({ "sub_index": 1, "type": "uint16", "data_type": "0x0006", "bits": 16,
            "access": { "pre_op": "r", "safe_op": "r", "op": "r" }, "name": "word" });
        assert_eq!(
            (&json[0]["kind"], &json[0]["name"], &json[0]["entries"][1]),
            (&"record".into(), &"thing".into(), &word)
        );
        assert!(
            json[2]["error"].as_str().is_some_and(|why| why.starts_with("aborted, 0x08000000")),
            "{json}"
        );
        let unread = &json[3]["entries"][2];
        assert!(unread["sub_index"] == 2 && unread["error"].is_string(), "{json}");
    }

    // feature(program): `sdo list` shows what came, with a note for each answer that was none
    #[test]
    fn silent_device_is_abandoned_and_its_replies_are_kept() {
        let mut asked = 0;
        let falls_silent = |service| {
            asked += 1;
            let silent = asked > 7;
            if silent { Err(MailboxError::Timeout(Duration::from_secs(2)).into()) } else { odd(service) }
        };
        let mut items = Vec::new();
        let ended = Listing::new(falls_silent, &mut items).run().unwrap_err();
        let text = lines(&items);
        assert!(matches!(ended.why, Unanswered::Mailbox(MailboxError::Timeout(_))), "{ended:?}");
        assert_eq!(asked, 7 + SILENCES);
        assert!(text.contains("0x1000:02"), "{text}");
    }

    #[test]
    fn an_interruption_ends_it_at_once() {
        let mut asked = 0;
        let interrupted = |service| {
            asked += 1;
            if asked > 3 { Err(Unanswered::Bus(BringUpError::Stopped)) } else { odd(service) }
        };
        let mut items = Vec::new();
        let ended = Listing::new(interrupted, &mut items).run().unwrap_err();
        let text = lines(&items);
        assert!(matches!(ended.why, Unanswered::Bus(BringUpError::Stopped)), "{ended:?}");
        assert_eq!(asked, 4);
        assert!(text.starts_with("0x1000     "), "{text}");
    }
}
