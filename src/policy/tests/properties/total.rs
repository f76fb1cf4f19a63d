//! Every question has an answer, the same each time; and under a reading policy only reading is allowed.

use proptest::prelude::*;
use runner_policy::{Verdict, What};

use super::make::{argv, ask, line, policies, shape};

const LOOK: &str = "policy: 1\nname: look\nfiles: { read: [\"**\"], deny: [\"**/.env\"] }\ncommands:\n  - { id: look, allow: catalog }\nenv: { accept: [CI] }\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn decisions_are_total_and_the_same_each_time(shape in shape(), argv in argv(), line in line(), text in any::<String>()) {
        let p = policies(&[shape.text("p", "")], "p");
        for what in [What::Argv(&argv), What::Line(&line), What::Line(&text), What::Read(&text), What::Write(&text), What::Net(&text), What::Env(&text)] {
            prop_assert_eq!(ask(&p, what), ask(&p, what));
        }
    }

    #[test]
    fn any_words_at_all_are_judged(words in prop::collection::vec(any::<String>(), 0..8)) {
        let p = policies(&[LOOK.to_owned()], "look");
        let _ = ask(&p, What::Argv(&words));
        let _ = ask(&p, What::Line(&words.join(" ")));
    }

    #[test]
    fn only_reading_is_allowed_by_a_reading_policy(argv in argv(), line in line()) {
        let p = policies(&[LOOK.to_owned()], "look");
        for what in [What::Argv(&argv), What::Line(&line)] {
            let decision = ask(&p, what);
            if decision.decision == Verdict::Allow {
                for effect in &decision.effects {
                    let free = effect.effect == "write" && (effect.object.starts_with("/tmp/") || effect.object.starts_with("/dev/"));
                    prop_assert!(["read", "env"].contains(&effect.effect) || free, "{:?}", effect);
                    prop_assert!(effect.effect != "read" || !effect.object.ends_with(".env"), "{:?}", effect);
                }
            }
        }
    }
}
