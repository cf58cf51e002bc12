//! Emergencies: unrequested messages of a SubDevice (ETG.1000.6, 5.6.3; CiA 301, 7.2.7).

use super::{
    CoeFormatError, CoeHeader, CoeService, HEADER_LENGTH, SDO_LENGTH, expect, field, read_u16, room,
};

/// An emergency message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emergency {
    /// Error code by CiA 301 and the device profile; 0x00xx: error reset or none.
    pub error_code: u16,
    /// The error register, object 0x1001.
    pub error_register: u8,
    /// The manufacturer's own.
    pub data: [u8; 5],
}

impl Emergency {
    /// The emergency in a mailbox payload.
    ///
    /// # Errors
    /// [`CoeFormatError::Truncated`], [`CoeFormatError::WrongService`].
    pub fn parse(payload: &[u8]) -> Result<Self, CoeFormatError> {
        expect(payload, CoeService::Emergency)?;
        let bytes: [u8; 8] = field(payload, HEADER_LENGTH)?;
        Ok(Self {
            error_code: read_u16(&bytes, 0).unwrap_or(0),
            error_register: bytes[2],
            data: [bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]],
        })
    }

    /// Writes the message into `payload` and returns its bytes, 10.
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`].
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, CoeFormatError> {
        let message = room(payload, SDO_LENGTH)?;
        message[0..2].copy_from_slice(&CoeHeader::new(CoeService::Emergency).emit());
        message[2..4].copy_from_slice(&self.error_code.to_le_bytes());
        message[4] = self.error_register;
        message[5..10].copy_from_slice(&self.data);
        Ok(SDO_LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emergencies_parse_back_and_cuts_are_named() {
        let emergency = Emergency { error_code: 0x7305, error_register: 0x21, data: [1, 2, 3, 4, 5] };
        let mut payload = [0; 12];
        assert_eq!(emergency.emit(&mut payload), Ok(10));
        assert_eq!(payload[..10], [0, 0x10, 0x05, 0x73, 0x21, 1, 2, 3, 4, 5]);
        assert_eq!(Emergency::parse(&payload), Ok(emergency));
        let cut = Emergency::parse(&payload[..9]);
        assert_eq!(cut, Err(CoeFormatError::Truncated { expected: 10, found: 9 }));
    }
}
