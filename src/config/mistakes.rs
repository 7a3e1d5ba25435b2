//! Mistakes.
