//! `file_search`: by content or by name.
//!
//! What may be seen is the broker's answer: a path that the policy denies is in no list that it gives, and so cannot show
//! up here, not even as a name. What is left out beyond that (ignored, hidden, binary, large) is for the reader's sake, and
//! counted.
//!
//! | part | duty |
//! | --- | --- |
//! | `ignored` | what `.gitignore` files say |
//! | `paths` | which files there are |
//! | `content` | matching lines of one file |
//! | `run` | one call |

mod content;
mod ignored;
mod paths;
mod run;

pub(super) use run::run;
