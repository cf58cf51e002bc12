//! The only unsafe code of the testbed.

mod counting;

pub use counting::CountingAllocator;
