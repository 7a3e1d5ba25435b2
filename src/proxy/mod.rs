//! The data path: what a call passes between the dispatcher and the tool backend.

pub mod net;
