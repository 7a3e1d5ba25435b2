//! Telemetry at its border: what a scraper reads after certain things have happened, in each of the three formats, and
//! what stays bounded (DESIGN 16).

mod exposition;
mod happenings;
