//! Order never matters: of rules, of patterns in a list, of policies, of what is extended.

use proptest::prelude::*;
use runner_policy::What;

use super::make::{argv, ask, essence, line, policies, shape};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn of_rules(shape in shape(), seed in any::<u64>(), argv in argv(), line in line()) {
        let mut other = shape.clone();
        shuffle(&mut other.rules, seed);
        shuffle(&mut other.net, seed);
        let (one, two) = (policies(&[shape.text("p", "")], "p"), policies(&[other.text("p", "")], "p"));
        for what in [What::Argv(&argv), What::Line(&line), What::Net("https://a.example/v1/x")] {
            prop_assert_eq!(essence(ask(&one, what)), essence(ask(&two, what)));
        }
    }

    #[test]
    fn of_patterns_in_a_list(shape in shape(), argv in argv()) {
        let mut other = shape.clone();
        other.lists.iter_mut().for_each(|list| list.reverse());
        other.accept.reverse();
        let (one, two) = (policies(&[shape.text("p", "")], "p"), policies(&[other.text("p", "")], "p"));
        let (one, two) = (ask(&one, What::Argv(&argv)), ask(&two, What::Argv(&argv)));
        prop_assert_eq!((one.decision, one.code, one.grant), (two.decision, two.code, two.grant));
    }

    #[test]
    fn of_policies_and_of_what_is_extended(a in shape(), b in shape(), own in shape(), argv in argv(), line in line()) {
        let texts = [own.text("p", "extends: [a, b]\n"), a.text("a", ""), b.text("b", "")];
        let other = [b.text("b", ""), own.text("p", "extends: [b, a]\n"), a.text("a", "")];
        let (one, two) = (policies(&texts, "p"), policies(&other, "p"));
        for what in [What::Argv(&argv), What::Line(&line)] {
            prop_assert_eq!(essence(ask(&one, what)), essence(ask(&two, what)));
        }
        prop_assert_eq!(one.limits(&[]), two.limits(&[]));
        prop_assert_eq!(one.isolation(), two.isolation());
        prop_assert_eq!(one.engines(), two.engines());
    }

    #[test]
    fn of_what_it_stays_within(a in shape(), b in shape(), own in shape(), argv in argv()) {
        let texts = |head: &str| [own.text("p", head), a.text("a", ""), b.text("b", "")];
        let (one, two) = (policies(&texts("within: [a, b]\n"), "p"), policies(&texts("within: [b, a, a]\n"), "p"));
        prop_assert_eq!(essence(ask(&one, What::Argv(&argv))), essence(ask(&two, What::Argv(&argv))));
    }
}

/// A shuffle that depends on the seed alone.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(seed >> 33).unwrap_or(0) % (at + 1);
        items.swap(at, other);
    }
}
