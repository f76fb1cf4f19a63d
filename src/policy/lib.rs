//! policy
pub mod catalog;
pub mod effect;
pub mod finding;
pub mod grammar;
pub mod limits;
pub mod net;
pub mod paths;
pub mod reading;
pub mod shell;
pub mod variables;
pub mod word;
pub mod yaml;
