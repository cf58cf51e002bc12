//! Units and trajectories of moving things: pure numbers.
