//! The SubDevice information interface.
