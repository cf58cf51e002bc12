//! The controllers a robot file names.
#![forbid(unsafe_code)]
