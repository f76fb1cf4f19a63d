//! Lines: folders, variables and redirections that a reader could lose sight of.

use runner_policy::{Verdict, What};

use super::{LOOK, ask, line, policy, refused};

#[test]
fn variables_reach_through_wrappers() {
    refused(
        &policy(&[LOOK]),
        &[
            "LD_PRELOAD=./x.so nice sort a",
            "LD_PRELOAD=./x.so timeout 5 nice sort a",
            "FOO=1 nice sort a",
            "env LD_PRELOAD=./x.so nice sort a",
            "env FOO=1 nice sort a",
            "nice env LD_PRELOAD=./x.so sort a",
            "env FOO=1 timeout 5 env sort a",
            "LD_PRELOAD=x sh -c 'sort a'",
            "env LD_PRELOAD=x sh -c 'sort a'",
            "export LD_PRELOAD=x; nice sort a",
            "export FOO=1 && nice sort a",
            "env FOO=1 sh -c 'nice sort a'",
            "LD_PRELOAD=x; sort a",
        ],
        &["nice sort a", "env nice sort a", "sh -c 'nice sort a'"],
    );
}

#[test]
fn every_folder_that_a_line_can_be_in_is_judged() {
    refused(
        &policy(&[LOOK]),
        &[
            "cd x && true || cat ../s",
            "cd x && cd y && true || cat ../../s",
            "! cd x && cat ../s",
            "cd x || cat ../s",
            "cd x; cat ../s",
            "cd x && true; cat ../s",
            "cd ..; cat s",
            "cd .. && cat s",
            "true && cd x || true && cat ../s",
            "HOME=/etc cd && cat x",
            "CDPATH=/ cd etc && cat passwd",
            "cd - && cat x",
            "cd /etc && cat passwd",
            "cd x | cat ../s",
        ],
        &[
            "cd x && cat ../s",
            "cd x && cd y && cat ../s",
            "cd x && cat y || cat ./z",
            "cd x; cat y",
        ],
    );
}

#[test]
fn redirections_are_judged_wherever_they_stand() {
    refused(
        &policy(&[LOOK]),
        &[
            "cat a > b",
            "nice cat a > b",
            "sh -c 'cat a' > b",
            "sh -c 'cat a > b'",
            "cd x > b && cat a",
            "export A=1 > b; cat a",
            "> b",
            "< .env",
            "cat < .env",
            "nice cat < ./.env",
            "cat a >> b",
            "cat a 2> b",
            "cat a &> b",
            "cat a >& b",
            "cat a > /tmp/../w/b",
            "cat a > /dev/../w/b",
            "cat a | sort > b",
            "true > .env",
            "cat <<E > b\nx\nE",
        ],
        &["cat a > /dev/null", "cat a 2>&1", "cat a > /tmp/b", "cat <<'E'\nx\nE"],
    );
}

#[test]
fn denied_files_are_denied_in_every_spelling() {
    refused(
        &policy(&[LOOK]),
        &[
            "cat .env",
            "cat ./.env",
            "cat x/../.env",
            "cat x//.env",
            "cat /w/.env",
            "cat //w/.env",
            "cat /../w/./.env",
            "cat '.e'nv",
            "cat .e\\nv",
            "cat $'\\x2eenv'",
            "cat .{env,x}",
            "cat .env*",
            "cat .en?",
            "cat .[de]nv",
            "cat .??v",
            "cat .e*",
            "cat x/.en?",
            "cat */.en?",
            "cat s*.yml",
            "cat secrets.y?l",
            "cat -- .env",
            "cat - .env",
            "head -n1 .env",
            "head --lines=1 .env",
            "grep x .env",
            "grep -f .env x",
            "grep -rf.env x",
            "cd x && cat .env",
            "cd x && cat ../.env",
            "env -C x cat .env",
            "env -C x cat ../secrets.yml",
            "env --chdir=x cat ../secrets.yml",
            "cat ../x",
            "cat /etc/passwd",
            "cat /proc/self/environ",
            "cat /proc/self/cwd/.env",
            "cat ~/x",
            "cat ~/../../w/.env",
            "diff a .env",
            "wc -l < .env",
            "sort --files0-from=.env",
            "stat .env/",
        ],
        &[
            "cat a",
            "cat *",
            "cat src/*",
            "cat .gitignore",
            "cat *.yml",
            "cat .env.example",
            "cat a*",
        ],
    );
}

#[test]
fn a_folder_outside_is_outside_from_any_folder() {
    let look = policy(&[LOOK]);
    for (cwd, path) in [("/w/x", "../../s"), ("/w", "../s"), ("/w/x", "/s"), ("/w/x", "../../w2/s")]
    {
        let words = ["cat".to_owned(), path.to_owned()];
        assert_eq!(ask(&look, cwd, What::Argv(&words)).decision, Verdict::Deny, "{cwd} {path}");
    }
    assert_eq!(line(&look, "cat x/../s").decision, Verdict::Allow);
}
