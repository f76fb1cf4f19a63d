//! Inspection over loopback: real TLS on both sides.

mod attacks;
mod requests;
mod support;
