//! Servo drives by CiA 402 (IEC 61800-7-201).
