//! How long a call takes and what it costs, as the tool's author says.

use serde_json::Value;

use super::definition::Definition;
use super::metadata::Metadata;

/// Millionths in one.
const MILLION: f64 = 1e6;

/// What an author expects. Shown with the question for an approval; the cost counts towards the day's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimates {
    /// Milliseconds of a call.
    pub time: Option<u64>,
    /// Millionths of a US dollar of a call.
    pub cost: Option<u64>,
}

impl Estimates {
    /// From what a tool says: the most expensive capability, or what the tool costs as a whole.
    #[must_use]
    pub fn of(about: &Metadata) -> Self {
        let costs = about.capabilities.iter().filter_map(|it| it.estimated_cost);
        let whole = about.cost_info.as_ref().and_then(|it| it.estimated_cost);
        Self {
            time: about.capabilities.iter().filter_map(|it| it.estimated_time).max(),
            cost: costs.chain(whole).map(millionths).max(),
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

/// Dollars as millionths of one, rounded up. Beyond any price it is the largest number there is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no price is negative; casting saturates"
)]
fn millionths(dollars: f64) -> u64 {
    (dollars * MILLION).ceil() as u64
}

/// What a tool says that a call cost, in millionths of a US dollar; `None` if that is no price: negative, without bound,
/// or no number.
#[must_use]
pub fn reported(cost: &Value) -> Option<u64> {
    cost.as_f64().filter(|dollars| dollars.is_finite() && *dollars >= 0.0).map(millionths)
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
        Estimates::of(&self.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_is_said_counts() {
        let text = "name: t\ndescription: x\ncapabilities:\n  - { action: a, estimatedCost: 0.001, estimatedTime: 1500 }\n  - { action: b, estimatedTime: 45000 }\ncostInfo: { model: usage_based, estimatedCost: 0.3 }\ncode: export const execute = 1\n";
        let read = |text: &str| super::super::read::parse("t", text, &"t".parse().unwrap());
        let it = read(text).unwrap().estimates();
        assert_eq!((it.time, it.cost), (Some(45_000), Some(300_000)));
        assert_eq!(
            it.lines(),
            [("takes", "about 45 s".to_owned()), ("costs", "about $0.30".to_owned())]
        );
        assert!(read(&text.replace("0.3", "-1")).is_err(), "nothing costs less than nothing");
        assert_eq!(Estimates::of(&Metadata::default()), Estimates::default());
        assert_eq!((shown(1), shown(2_500_000)), ("$0.000001".to_owned(), "$2.50".to_owned()));
    }

    #[test]
    fn what_a_tool_says_it_cost_is_a_price_or_nothing() {
        use serde_json::json;
        let costs =
            [(json!(0), 0), (json!(0.3), 300_000), (json!(1e-9), 1), (json!(1e300), u64::MAX)];
        for (said, millionths) in costs {
            assert_eq!(reported(&said), Some(millionths), "{said}");
        }
        for said in [json!(-1), json!(-0.01), json!("1"), json!(null), json!([1]), json!("NaN")] {
            assert_eq!(reported(&said), None, "{said}");
        }
    }
}
