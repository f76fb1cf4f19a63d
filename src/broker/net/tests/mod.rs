//! Fetching from real servers on loopback. Each forbidden thing stands beside one that works.

mod addresses;
mod bounds;
mod redirects;
mod requests;
mod secrets;
mod server;
mod support;
mod tls;
