//! Bytes with their encoding, and messages made of them.

use std::convert::Infallible;

use rustdds::RepresentationIdentifier;
use rustdds::bytes::Bytes;
use rustdds::no_key::{Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter};
use rustdds::rpc::SampleIdentity;
use rustdds::serialization::{deserialize_from_cdr_with_rep_id, to_writer_with_rep_id};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What came on a topic.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The body, without the header that gives the encoding.
    pub(crate) bytes: Bytes,
    /// How it is encoded.
    pub(crate) encoding: RepresentationIdentifier,
    /// Who sent it, and the number of it there.
    pub(crate) identity: SampleIdentity,
    /// The sample it belongs to, if the sender said so.
    pub(crate) related: Option<SampleIdentity>,
}

impl Sample {
    /// Whether numbers stand with their low byte first.
    pub(crate) fn little_endian(&self) -> bool {
        self.encoding == RepresentationIdentifier::CDR_LE
    }

    /// The message it is.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, String> {
        decode(&self.bytes, self.encoding)
    }
}

/// The message that `bytes` are. What follows its last field is left alone: later versions of a message add fields.
///
/// # Errors
/// Why they are none.
pub(crate) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    encoding: RepresentationIdentifier,
) -> Result<T, String> {
    deserialize_from_cdr_with_rep_id(bytes, encoding)
        .map(|(message, _)| message)
        .map_err(|error| format!("{} bytes are no such message: {error}", bytes.len()))
}

/// Appends `message`, low byte first; alignment counts from the end of what is there, which has to be aligned to 8.
pub(crate) fn encode<T: Serialize>(message: &T, bytes: &mut Vec<u8>) -> bool {
    to_writer_with_rep_id(bytes, message, RepresentationIdentifier::CDR_LE).is_ok()
}

/// Lets bytes through as they are.
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

/// Copies: the receive buffer is another thread's.
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
