//! The `toolvane` binary.

fn main() {}
