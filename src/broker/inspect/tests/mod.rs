//! Inspection over loopback: real TLS on both sides.

mod attacks;
mod clients;
mod requests;
mod support;
