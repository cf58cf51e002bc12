//! Oversampling: several samples of a channel in one exchange of process data. A PDO that holds a
//! sample is repeated for each sample, each time with the next index and the next objects
//! (ETG.2000, `OSFac` and `OSIndexInc` of a PDO).

use alloc::vec::Vec;

use super::{Direction, Pdo, PdoEntry, PdoField, PdoMapping, fields};

/// Distance between the objects of two samples: `OSIndexInc` of the terminals that are known
/// (EL37x2, EL47x2).
const OBJECT_STEP: u16 = 0x10;

impl PdoMapping {
    /// The same mapping with `samples` PDOs in place of each that `is_sample` accepts.
    pub(crate) fn oversampled(&self, samples: u8, is_sample: impl Fn(&Pdo) -> bool) -> Self {
        let each = |pdos: &[Pdo]| {
            let repeated = |pdo: &Pdo| -> Vec<Pdo> {
                let count = if is_sample(pdo) { samples.max(1).into() } else { 1 };
                (0..count).map(|number| nth(pdo, number)).collect()
            };
            pdos.iter().flat_map(repeated).collect()
        };
        Self { outputs: each(&self.outputs), inputs: each(&self.inputs) }
    }

    /// Channels with so many samples in one exchange, in their order: the entries of each, the
    /// oldest sample first. A channel with a single sample is left out.
    #[must_use]
    pub fn sampled_channels(&self, direction: Direction, samples: u8) -> Vec<Vec<(&PdoEntry, PdoField)>> {
        let pdos = self.pdos(direction);
        let mut entries = fields(pdos);
        let mut channels: Vec<Vec<(&PdoEntry, PdoField)>> = Vec::new();
        let mut before: Option<&Pdo> = None;
        for pdo in pdos {
            let own: Vec<_> = entries.by_ref().take(pdo.entries.len()).collect();
            let is_next = before.is_some_and(|before| follows(before, pdo));
            before = Some(pdo);
            match channels.last_mut() {
                Some(channel) if is_next => channel.extend(own),
                _ => channels.push(own),
            }
        }
        channels.retain(|channel| samples > 1 && channel.len() == usize::from(samples));
        channels
    }
}

/// The PDO `number` samples behind `pdo`.
fn nth(pdo: &Pdo, number: u16) -> Pdo {
    let mut it = pdo.clone();
    it.index = it.index.wrapping_add(number);
    for entry in it.entries.iter_mut().filter(|entry| entry.index != 0) {
        entry.index = entry.index.wrapping_add(OBJECT_STEP.wrapping_mul(number));
    }
    it
}

/// True if `pdo` holds the sample behind that of `before`.
fn follows(before: &Pdo, pdo: &Pdo) -> bool {
    let next = nth(before, 1);
    let ([expected], [found]) = (next.entries.as_slice(), pdo.entries.as_slice()) else { return false };
    (next.index, next.sync_manager) == (pdo.index, pdo.sync_manager)
        && expected.mapping_value() == found.mapping_value()
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn pdo(index: u16, sync_manager: u8, value: u32) -> Pdo {
        let entries = Vec::from([PdoEntry::from_mapping_value(value)]);
        Pdo { index, sync_manager: Some(sync_manager), fixed: true, name: String::new(), entries }
    }

    /// An EL3702 with one sample of each of its two channels.
    fn el3702() -> PdoMapping {
        let inputs = [
            pdo(0x1B00, 0, 0x6800_0110),
            pdo(0x1A00, 0, 0x6000_0110),
            pdo(0x1B01, 1, 0x6800_0210),
            pdo(0x1A80, 1, 0x6000_0210),
            pdo(0x1B10, 2, 0x1D09_9820),
        ];
        PdoMapping { outputs: Vec::new(), inputs: inputs.into() }
    }

    /// Samples lie side by side behind the counter of their channel, each in the next PDO with the
    /// next object.
    // feature(protocol): oversampling: PDOs of several samples in one exchange, as the SII marks them or the configuration names them
    #[test]
    fn a_sample_is_repeated_with_the_next_pdo_and_the_next_object() {
        let mapping = el3702().oversampled(3, |pdo| matches!(pdo.index, 0x1A00 | 0x1A80));
        let found: Vec<_> = mapping.inputs.iter().map(|it| (it.index, it.entries[0].index)).collect();
        let expected = [
            (0x1B00, 0x6800),
            (0x1A00, 0x6000),
            (0x1A01, 0x6010),
            (0x1A02, 0x6020),
            (0x1B01, 0x6800),
            (0x1A80, 0x6000),
            (0x1A81, 0x6010),
            (0x1A82, 0x6020),
            (0x1B10, 0x1D09),
        ];
        assert_eq!(found, expected);
        assert_eq!(mapping.input_bits(), 2 * 4 * 16 + 32);
    }

    /// Channels are the runs of exactly that many samples; counters and other runs are none.
    #[test]
    fn channels_are_runs_of_as_many_samples() {
        let mapping = el3702().oversampled(3, |pdo| matches!(pdo.index, 0x1A00 | 0x1A80));
        let offsets = |samples| -> Vec<Vec<usize>> {
            let channels = mapping.sampled_channels(Direction::Input, samples);
            channels.iter().map(|it| it.iter().map(|(_, field)| field.bit_offset).collect()).collect()
        };
        assert_eq!(offsets(3), [[16, 32, 48], [80, 96, 112]]);
        assert!(offsets(2).is_empty() && offsets(1).is_empty());
        assert!(mapping.sampled_channels(Direction::Output, 3).is_empty());
        // One sample of a channel is no array.
        assert!(el3702().sampled_channels(Direction::Input, 1).is_empty());
    }
}
