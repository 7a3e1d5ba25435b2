//! The health core at its border: what calls do to what callers are told. Time stands still unless a test moves it.

mod backend;
mod bounds;
mod footing;
mod judging;
mod model;
mod properties;
mod restart;
mod support;
mod trials;
mod users;
