//! The MainDevice.
