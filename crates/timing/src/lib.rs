//! Cycle records, statistics and tables of time: pure numbers.
