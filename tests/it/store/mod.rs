//! The embedded store at its border: what survives, what happens to files that are not as they should be, and how the
//! store behaves while the disk refuses (DESIGN 8 and 18).

mod disk;
mod files;
mod kill;
mod model;
mod support;
mod writing;
