//! Services, there and back.

use super::*;

fn emitted(emit: impl Fn(&mut [u8]) -> Result<usize, CoeFormatError>) -> Vec<u8> {
    let mut payload = [0xEE; 64];
    let length = emit(&mut payload).unwrap();
    for room in 0..length {
        let too_short = CoeFormatError::NoRoom { expected: length, found: room };
        assert_eq!(emit(&mut payload[..room]), Err(too_short));
    }
    payload[..length].to_vec()
}

#[test]
fn requests_stand_on_the_wire_as_the_standard_draws_them() {
    let normal = SdoPayload::Normal { total_size: 6, data: &[1, 2, 3, 4, 5] };
    let expedited = SdoPayload::fitting(&[0x34, 0x12], 64);
    let download = |payload| SdoRequest::InitiateDownload {
        index: 0x1C12,
        sub_index: 1,
        complete_access: false,
        payload,
    };
    let cases: [(SdoRequest<'_>, &[u8]); 7] = [
        (download(expedited), &[0, 0x20, 0x2B, 0x12, 0x1C, 1, 0x34, 0x12, 0, 0]),
        (download(normal), &[0, 0x20, 0x21, 0x12, 0x1C, 1, 6, 0, 0, 0, 1, 2, 3, 4, 5]),
        (
            SdoRequest::DownloadSegment { toggle: true, last: true, data: &[9, 8] },
            &[0, 0x20, 0x1B, 9, 8, 0, 0, 0, 0, 0],
        ),
        (
            SdoRequest::DownloadSegment { toggle: false, last: false, data: &[1, 2, 3, 4, 5, 6, 7, 8] },
            &[0, 0x20, 0x00, 1, 2, 3, 4, 5, 6, 7, 8],
        ),
        (
            SdoRequest::InitiateUpload { index: 0x1018, sub_index: 1, complete_access: true },
            &[0, 0x20, 0x50, 0x18, 0x10, 1, 0, 0, 0, 0],
        ),
        (SdoRequest::UploadSegment { toggle: true }, &[0, 0x20, 0x70, 0, 0, 0, 0, 0, 0, 0]),
        (
            SdoRequest::Abort { index: 0x6040, sub_index: 2, code: AbortCode::NO_SUB_INDEX },
            &[0, 0x20, 0x80, 0x40, 0x60, 2, 0x11, 0, 9, 6],
        ),
    ];
    for (request, bytes) in cases {
        assert_eq!(emitted(|payload| request.emit(payload)), bytes);
        assert_eq!(SdoRequest::parse(bytes), Ok(request));
    }
}

#[test]
fn responses_stand_on_the_wire_as_the_standard_draws_them() {
    let upload = |payload| SdoResponse::InitiateUpload {
        index: 0x1018,
        sub_index: 1,
        complete_access: false,
        payload,
    };
    let cases: [(SdoResponse<'_>, &[u8]); 6] = [
        (upload(SdoPayload::fitting(&[0x6A, 0, 0, 0], 64)), &[0, 0x30, 0x43, 0x18, 0x10, 1, 0x6A, 0, 0, 0]),
        (
            upload(SdoPayload::fitting(b"AKD-P", 64)),
            &[0, 0x30, 0x41, 0x18, 0x10, 1, 5, 0, 0, 0, b'A', b'K', b'D', b'-', b'P'],
        ),
        (
            SdoResponse::UploadSegment { toggle: false, last: true, data: &[] },
            &[0, 0x30, 0x0F, 0, 0, 0, 0, 0, 0, 0],
        ),
        (SdoResponse::DownloadSegment { toggle: true }, &[0, 0x30, 0x30, 0, 0, 0, 0, 0, 0, 0]),
        (
            SdoResponse::InitiateDownload { index: 0x1C12, sub_index: 0, complete_access: true },
            &[0, 0x30, 0x70, 0x12, 0x1C, 0, 0, 0, 0, 0],
        ),
        (
            SdoResponse::Abort { index: 0x6040, sub_index: 0, code: AbortCode::READ_ONLY },
            &[0, 0x30, 0x80, 0x40, 0x60, 0, 2, 0, 1, 6],
        ),
    ];
    for (response, bytes) in cases {
        assert_eq!(emitted(|payload| response.emit(payload)), bytes);
        assert_eq!(SdoResponse::parse(bytes), Ok(response));
    }
}

#[test]
fn every_cut_of_an_initiating_message_is_an_error() {
    let whole = [0, 0x30, 0x43, 0x18, 0x10, 1, 0x6A, 0, 0, 0];
    for length in 0..whole.len() {
        assert!(SdoResponse::parse(&whole[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn unknown_commands_are_named() {
    let error = SdoRequest::parse(&[0, 0x20, 0xA0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "SDO command specifier 5 at byte 2, expected 0 to 4");
}

#[test]
fn padding_behind_a_normal_transfer_is_not_data() {
    let bytes = [0, 0x30, 0x41, 8, 0x10, 0, 5, 0, 0, 0, b'A', b'K', b'D', b'-', b'P', 0xFF];
    let Ok(SdoResponse::InitiateUpload { payload, .. }) = SdoResponse::parse(&bytes) else { panic!() };
    assert_eq!((payload.data(), payload.total_size()), (&b"AKD-P"[..], 5));
}

#[test]
fn data_beyond_the_first_message_goes_in_segments() {
    let data = [7; 100];
    let payload = SdoPayload::fitting(&data, 64);
    assert_eq!((payload.data().len(), payload.total_size()), (54, 100));
    assert_eq!(SdoPayload::fitting(&[], 64), SdoPayload::Normal { total_size: 0, data: &[] });
}

#[test]
fn more_data_than_announced_is_refused() {
    let payload = SdoPayload::Normal { total_size: 1, data: &[1, 2] };
    let request = SdoRequest::InitiateDownload { index: 0, sub_index: 0, complete_access: false, payload };
    let error = CoeFormatError::MoreThanAnnounced { expected: 1, found: 2 };
    assert_eq!(request.emit(&mut [0; 20]), Err(error));
}
