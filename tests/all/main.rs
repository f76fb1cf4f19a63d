//! The one integration test binary. Each module has a purpose; what they share is in `support`.

mod cli;
mod docs;
mod support;
