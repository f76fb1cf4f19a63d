//! A place in a queue, held by a lock on a file.

use std::time::Duration;

use serde_json::{Value, json};

use crate::sys::lease::{Exclusive, Lease};

/// A call's place among those that run. It is given back when this is dropped, or when the process ends.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub struct Place {
    _slot: Lease<Exclusive>,
    queued: Duration,
}

impl Place {
    pub(super) fn new(slot: Lease<Exclusive>, queued: Duration) -> Self {
        Self { _slot: slot, queued }
    }

    /// How long the call waited for it.
    #[must_use]
    pub fn queued(&self) -> Duration {
        self.queued
    }

    /// Adds the wait to the phases in a result's metadata: it is a part of what the call took.
    pub fn tell(&self, metadata: &mut Value) {
        let Some(phases) = metadata.get_mut("duration_ms").and_then(Value::as_object_mut) else {
            return;
        };
        // To a tenth of a microsecond, as the other phases.
        let ms = |seconds: f64| (seconds * 1e7).round() / 1e4;
        let total = phases.get("total").and_then(Value::as_f64).unwrap_or_default();
        let queued = self.queued.as_secs_f64();
        phases.insert("queued".to_owned(), json!(ms(queued)));
        phases.insert("total".to_owned(), json!(ms(total / 1e3 + queued)));
    }
}
