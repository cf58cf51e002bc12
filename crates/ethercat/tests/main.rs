//! The protocol: its example, and images of real devices.

mod examples;
mod sii_images;
