//! Values of signals in words, where a peer may have written anything.

use types::Value;

/// Code of the value's kind, and its word; zeros for none.
pub(crate) fn encode(value: Option<Value>) -> [u64; 2] {
    let kind = match value {
        None => return [0; 2],
        Some(Value::Bool(_)) => 1,
        Some(Value::Unsigned(_)) => 2,
        Some(Value::Signed(_)) => 3,
        Some(Value::Real(_)) => 4,
    };
    [kind, value.map_or(0, Value::word)]
}

/// Value of a code and a word, unchecked: it may be NaN or infinite.
///
/// # Errors
/// Words that are no value.
pub(crate) fn decode(kind: u64, word: u64) -> Result<Option<Value>, NoValue> {
    Ok(Some(match (kind, word) {
        (0, _) => return Ok(None),
        (1, 0 | 1) => Value::Bool(word == 1),
        (2, _) => Value::Unsigned(word),
        (3, _) => Value::Signed(word as i64),
        (4, _) => Value::Real(f64::from_bits(word)),
        _ => return Err(NoValue),
    }))
}

/// Words that are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoValue;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_other_words_are_none() {
        let values = [Value::Bool(true), Value::Unsigned(u64::MAX), Value::Signed(-3), Value::Real(-0.5)];
        for value in values.into_iter().map(Some).chain([None]) {
            let [kind, word] = encode(value);
            assert_eq!(decode(kind, word), Ok(value));
        }
        assert_eq!(
            (decode(1, 2), decode(5, 0), decode(u64::MAX, 0)),
            (Err(NoValue), Err(NoValue), Err(NoValue))
        );
    }
}
