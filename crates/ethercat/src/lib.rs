//! The EtherCAT protocol: bytes and time in, bytes and events out.
