//! The machine under the cycle: read, checked, prepared, put back.
