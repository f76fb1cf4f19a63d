//! A panic is our fault and says so: exit code 125 and a report, never a raw abort.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// Where the last panic happened; the payload alone does not know.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// `runner` itself is broken.
#[derive(Debug, thiserror::Error)]
#[error("this is a bug in runner: {what}{}", in_brackets(.place.as_deref()))]
pub struct Bug {
    what: String,
    place: Option<String>,
}

/// Runs `work`; a panic in it becomes a [`Bug`].
///
/// # Errors
/// It panicked.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Bug> {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Bug {
        what: text(payload.as_ref()),
        place: PLACE.lock().unwrap_or_else(PoisonError::into_inner).take(),
    })
}

fn text(payload: &(dyn Any + Send)) -> String {
    let known = payload.downcast_ref::<String>().map(String::as_str);
    known.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

/// The place in brackets, or nothing if it is not known.
fn in_brackets(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" ({place})"))
}

impl Failure for Bug {
    fn code(&self) -> Code {
        Code::Bug
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Runner
    }

    fn hint(&self) -> Option<String> {
        Some(format!(
            "please report it with the command line and version {}",
            env!("CARGO_PKG_VERSION")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_place() {
        let bug = catch(|| panic!("index {}", 7)).map(|(): ()| ()).unwrap_err();
        assert!(bug.to_string().contains("index 7 (src/cli/bug.rs:"), "{bug}");
        assert_eq!(bug.kind().exit().get(), 125);
    }
}
