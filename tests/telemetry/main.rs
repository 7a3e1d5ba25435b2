//! Telemetry at its border: what a scraper reads after certain things have happened, in each of the three formats, and
//! what stays bounded (DESIGN 16).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod exposition;
mod happenings;
