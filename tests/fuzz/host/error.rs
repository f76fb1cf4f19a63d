//! The part of the host's errors that the broker implements.
#![allow(dead_code, reason = "not everything is used here")]

use std::fmt;

use crate::exit::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Usage,
    Policy,
    Command,
    Engine,
    Runner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    CanHelp,
    CannotHelp,
}

pub trait Failure: fmt::Display {
    fn code(&self) -> &'static str;
    fn kind(&self) -> Kind;
    fn fault(&self) -> Fault;
    fn retry(&self) -> Retry {
        Retry::CannotHelp
    }
    fn hint(&self) -> Option<String> {
        None
    }
}
