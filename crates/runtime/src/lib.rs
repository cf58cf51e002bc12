//! The real-time cycle on Linux: clock, scheduling, links.
