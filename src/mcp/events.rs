//! What a tool says while it runs becomes the progress of its call.

use std::sync::Arc;

use super::output::Output;
use crate::audit::Redactor;
use crate::broker::{Brokered, Events, Log, Progress};

/// Passes progress on.
pub struct Heard {
    output: Arc<Output>,
    redactor: Redactor,
}

impl Heard {
    /// To those who wait for this call.
    pub fn new(output: Arc<Output>, redactor: Redactor) -> Self {
        Self { output, redactor }
    }
}

impl Events for Heard {
    fn log(&self, log: Log) {
        self.output.tell(self.redactor.text(&log.message).into_owned());
    }

    fn progress(&self, progress: Progress) {
        let percent = (progress.fraction.clamp(0.0, 1.0) * 100.0).round();
        let text = progress.text.map(|text| format!(" {text}")).unwrap_or_default();
        self.output.tell(format!("{percent}%{}", self.redactor.text(&text)));
    }

    fn request(&self, _: &Brokered) {}
}
