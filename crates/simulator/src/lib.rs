//! SubDevices in software, and the cable between them.
