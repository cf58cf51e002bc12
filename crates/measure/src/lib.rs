//! The papers' experiments: each runs, records, and reports beside the paper's own numbers.
