//! The embedded store at its border: what survives, what happens to files that are not as they should be, and how the
//! store behaves while the disk refuses (DESIGN 8 and 18).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails, and says what it measured"
)]

mod disk;
mod files;
mod kill;
mod model;
mod support;
mod writing;
