//! Hardens the process, hands over to the command line, and exits with its code.

use std::ffi::OsString;
use std::process::ExitCode;

use runner::call::launch::watchdog;
use runner::doctor::inside;
use runner::workspace::survey;
use runner::{cli, engine, sys};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let code = match sys::harden() {
        Ok(()) => {
            let internal = watchdog::main(&words)
                .or_else(|| engine::hold(&words))
                .or_else(|| inside::main(&words));
            match internal {
                Some(code) => return code,
                None => cli::run(&words),
            }
        }
        Err(error) => cli::report_and_end(error, &words),
    };
    survey::settle();
    code.into()
}
