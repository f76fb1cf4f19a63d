//! How often the requests of each rule were made in this call.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use runner_policy::net::Count;

use crate::broker::Refusal;
use crate::codes::Code;

/// Requests by rule.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<HashMap<String, u64>>);

impl Counts {
    /// Counts one request for every rule that has a say.
    ///
    /// # Errors
    /// One of them was used as often as it may be; then none counts it.
    pub(super) fn charge(&self, counts: &[Count]) -> Result<(), Refusal> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Count { rule, most } in counts {
            if made.get(rule).is_some_and(|made| made >= most) {
                let message = format!("`{rule}` allows {most} requests in one call");
                return Err(Refusal::new(Code::LimitReached, message)
                    .hint("a larger `limits: { count: … }` of the rule would allow more"));
            }
        }
        for Count { rule, .. } in counts {
            *made.entry(rule.clone()).or_default() += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_counts_for_itself_and_a_refused_request_counts_for_none() {
        let counts = Counts::default();
        let of = |rule: &str, most| Count { rule: rule.to_owned(), most };
        let (a, b) = (of("p/a", 2), of("q/b", 3));
        assert_eq!(counts.charge(&[a.clone(), b.clone()]), Ok(()));
        assert_eq!(counts.charge(std::slice::from_ref(&a)), Ok(()));
        assert_eq!(counts.charge(&[a, b.clone()]).unwrap_err().code, Code::LimitReached);
        assert_eq!(counts.charge(std::slice::from_ref(&b)), Ok(()));
        assert_eq!(counts.charge(std::slice::from_ref(&b)), Ok(()));
        assert!(counts.charge(&[b]).is_err());
    }
}
