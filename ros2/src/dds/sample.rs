//! Samples of a topic: both ends that they go through, and the messages in them.

use std::convert::Infallible;

use rustdds::bytes::Bytes;
use rustdds::dds::with_key::WriteOptionsBuilder;
use rustdds::no_key::{
    DataWriter, Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter, SimpleDataReader,
};
use rustdds::rpc::SampleIdentity;
use rustdds::serialization::{deserialize_from_cdr_with_rep_id, to_writer_with_rep_id};
use rustdds::{RepresentationIdentifier, Timestamp, mio1};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writer of one topic.
pub(crate) struct Writer {
    pub(super) inner: DataWriter<Bytes, RawAdapter>,
}

impl Writer {
    /// Sends `message`; `false` if it was not accepted: reliable readers lag behind.
    pub(crate) fn send<T: Serialize>(&self, message: &T) -> bool {
        let mut bytes = Vec::with_capacity(512);
        encode(message, &mut bytes) && self.send_bytes(bytes, None)
    }

    pub(super) fn send_bytes(&self, bytes: Vec<u8>, related: Option<SampleIdentity>) -> bool {
        let options = WriteOptionsBuilder::new()
            .source_timestamp(Timestamp::now())
            .related_sample_identity_opt(related)
            .build();
        self.inner.write_with_options(Bytes::from(bytes), options).is_ok()
    }
}

/// Reader of one topic.
pub(crate) struct Reader {
    pub(super) inner: SimpleDataReader<Sample, RawAdapter>,
}

impl Reader {
    /// Next sample, if there is one.
    pub(crate) fn take(&self) -> Option<Sample> {
        self.inner.drain_read_notifications();
        loop {
            match self.inner.try_take_one() {
                Ok(Some(change)) => {
                    let related = change.related_sample_identity();
                    let identity = SampleIdentity {
                        writer_guid: change.writer_guid,
                        sequence_number: change.sequence_number,
                    };
                    return Some(Sample { related, identity, ..change.into_value() });
                }
                Ok(None) => return None,
                // An unknown encoding is skipped; the reader has moved on.
                Err(_) => {}
            }
        }
    }

    /// Wakes `registry`'s poll under `token` when samples arrive. Edge-triggered: take until there
    /// is none.
    pub(crate) fn register(
        &mut self,
        registry: &mio1::Registry,
        token: mio1::Token,
    ) -> std::io::Result<()> {
        mio1::event::Source::register(&mut self.inner, registry, token, mio1::Interest::READABLE)
    }
}

/// Sample received on a topic.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Body, without the header that gives the encoding.
    pub(crate) bytes: Bytes,
    /// Encoding of the body.
    pub(crate) encoding: RepresentationIdentifier,
    /// Writer of the sample, and its sequence number there.
    pub(crate) identity: SampleIdentity,
    /// Related sample, if the sender gave one.
    pub(crate) related: Option<SampleIdentity>,
}

impl Sample {
    /// True if numbers are little-endian.
    pub(crate) fn little_endian(&self) -> bool {
        self.encoding == RepresentationIdentifier::CDR_LE
    }

    /// Decodes the message.
    ///
    /// # Errors
    /// Reason for which the bytes are not such a message.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, String> {
        decode(&self.bytes, self.encoding)
    }
}

/// Decodes `bytes`. Bytes after the last field are ignored: later versions of a message add fields.
///
/// # Errors
/// Reason for which the bytes are not such a message.
pub(crate) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    encoding: RepresentationIdentifier,
) -> Result<T, String> {
    deserialize_from_cdr_with_rep_id(bytes, encoding)
        .map(|(message, _)| message)
        .map_err(|error| format!("{} bytes are no such message: {error}", bytes.len()))
}

/// Appends `message`, little-endian; alignment counts from the present end, which has to be aligned
/// to 8.
pub(crate) fn encode<T: Serialize>(message: &T, bytes: &mut Vec<u8>) -> bool {
    to_writer_with_rep_id(bytes, message, RepresentationIdentifier::CDR_LE).is_ok()
}

/// Passes bytes unchanged.
pub(crate) struct RawAdapter;

const ENCODINGS: [RepresentationIdentifier; 2] =
    [RepresentationIdentifier::CDR_LE, RepresentationIdentifier::CDR_BE];

impl DeserializerAdapter<Sample> for RawAdapter {
    type Error = Infallible;
    type Decoded = Sample;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &ENCODINGS
    }

    fn transform_decoded(decoded: Sample) -> Sample {
        decoded
    }
}

impl DefaultDecoder<Sample> for RawAdapter {
    type Decoder = RawDecoder;
    const DECODER: RawDecoder = RawDecoder;
}

/// Copies the bytes: the receive buffer belongs to another thread.
#[derive(Clone)]
pub(crate) struct RawDecoder;

impl Decode<'_, Sample> for RawDecoder {
    type Error = Infallible;

    fn decode_bytes(self, bytes: &[u8], encoding: RepresentationIdentifier) -> Result<Sample, Infallible> {
        let bytes = Bytes::copy_from_slice(bytes);
        Ok(Sample { bytes, encoding, identity: SampleIdentity::default(), related: None })
    }
}

impl SerializerAdapter<Bytes> for RawAdapter {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(bytes: &Bytes) -> Result<Bytes, Infallible> {
        Ok(bytes.clone())
    }
}
