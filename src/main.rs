//! entry
fn main(){}
