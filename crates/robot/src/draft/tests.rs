//! Drafts of SubDevices that exist in a test only.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]
