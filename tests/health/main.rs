//! The health core at its border: what calls do to what callers are told. Time stands still unless a test moves it.

#[cfg(test)]
mod backend;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod footing;
#[cfg(test)]
mod judging;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod support;
#[cfg(test)]
mod trials;
#[cfg(test)]
mod users;
