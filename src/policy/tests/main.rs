//! The one integration test binary of the policy engine. Each module has a purpose.

mod attacks;
mod catalog;
mod destinations;
mod loading;
mod properties;
mod shell;
