//! How long a call takes and what it costs, as the tool's author says.

use serde_json::Value;

use super::definition::{Body, Definition};

/// Millionths in one.
const MILLION: f64 = 1e6;

/// What an author expects. Shown to whoever approves; the cost counts towards the day's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimates {
    /// Milliseconds of a call.
    pub time: Option<u64>,
    /// Millionths of a US dollar of a call.
    pub cost: Option<u64>,
}

impl Estimates {
    /// From a description: the most expensive capability, or what the tool costs as a whole.
    #[must_use]
    pub fn of(notes: &Value) -> Self {
        let capabilities = || notes["capabilities"].as_array().into_iter().flatten();
        let dollars = |value: &Value| {
            let dollars = value.as_f64().filter(|it| it.is_finite() && *it >= 0.0)?;
            // Beyond any price it is the largest number there is.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a positive number; casting saturates"
            )]
            Some((dollars * MILLION).ceil() as u64)
        };
        let costs = capabilities().filter_map(|it| dollars(&it["estimatedCost"]));
        let whole = dollars(&notes["costInfo"]["estimatedCost"]);
        Self {
            time: capabilities().filter_map(|it| it["estimatedTime"].as_u64()).max(),
            cost: costs.chain(whole).max(),
        }
    }

    /// The lines of a question.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let time = self.time.map(|time| ("takes", format!("about {} s", time.div_ceil(1_000))));
        let cost = self.cost.map(|cost| ("costs", format!("about {}", shown(cost))));
        time.into_iter().chain(cost).collect()
    }
}

/// Millionths of a dollar as dollars.
#[must_use]
pub fn shown(cost: u64) -> String {
    let (whole, part) = (cost / 1_000_000, cost % 1_000_000);
    let part = format!("{part:06}");
    let part = part.trim_end_matches('0');
    format!("${whole}.{part:0<2}")
}

impl Definition {
    /// How long a call takes and what it costs.
    #[must_use]
    pub fn estimates(&self) -> Estimates {
        match &self.body {
            Body::Module(described) => Estimates::of(&described.notes),
            Body::Yaml { .. } => Estimates::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_most_that_is_said_counts() {
        let notes = json!({
            "capabilities": [{"action": "a", "estimatedCost": 0.001, "estimatedTime": 1500}, {"action": "b", "estimatedTime": 45000}],
            "costInfo": {"model": "usage_based", "estimatedCost": 0.3},
        });
        let it = Estimates::of(&notes);
        assert_eq!((it.time, it.cost), (Some(45_000), Some(300_000)));
        assert_eq!(
            it.lines(),
            [("takes", "about 45 s".to_owned()), ("costs", "about $0.30".to_owned())]
        );
        assert_eq!(
            Estimates::of(&json!({"costInfo": {"estimatedCost": -1}})),
            Estimates::default()
        );
        assert_eq!((shown(1), shown(2_500_000)), ("$0.000001".to_owned(), "$2.50".to_owned()));
    }
}
