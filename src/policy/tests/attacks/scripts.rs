//! Scripts in arguments: sed's language, and lines for shells inside commands.

use super::{LOOK, policy, refused};

#[test]
fn sed_scripts_that_only_seem_to_print() {
    refused(
        &policy(&[LOOK]),
        &[
            "sed -n ':a\te id' f",
            "sed -n ':a\te id;ba' f",
            "sed -n -e 'a\\' -e 's/\ne id\n/x/p' f",
            "sed -n -e 'i\\' -e 's/\ne id\n/x/p' f",
            "sed -n 's/\ne id\n/x/p' f",
            "sed 's/x/id/e' f",
            "sed '1!e id' f",
            "sed 'w out' f",
            "sed -n '/x/w out' f",
            "sed 's/a/b/w out' f",
            "sed 'r .env' f",
            "sed 'R .env' f",
            "sed -i p f",
            "sed -ni p f",
            "sed --in-place p f",
            "sed -f x f",
            "sed -s -n -e p -e 'e id' f",
            "sed --expression='e id' f",
            "sed p .env",
            "sed -n '$!{p;e id\n}' f",
            "sed '{:a}s/;e id\n}\n#/x/' f",
            "sed 'y/a/b/;e id' f",
            "sed 'sxaxbxe' f",
            "sed 's,x,id,ge' f",
            "sed '# x\ne id' f",
            "sed 'b;e id' f",
            "sed 'ba\ne id' f",
            "sed 'a x\ne id' f",
            "sed '}e id' f",
            "sed -E 's/(x)/id/me' f",
            "sed 's\néa\né' f",
            "sed -n ':a#x e id' f",
            "sed -n '{ba}# ;e id\n}' f",
        ],
        &[
            "sed -n 1,5p f",
            "sed -n '/x/,/y/p' f",
            "sed 's/a/b/g' f",
            "sed -n ':a;N;$!ba;s/\\n/ /gp' f",
            "sed -e p -e d f",
            "sed 's|a|b|;s/c/d/2' f",
            "sed '1i\\\nhello' f",
        ],
    );
}

#[test]
fn lines_for_shells_are_read_as_lines() {
    refused(
        &policy(&[LOOK]),
        &[
            "sh -c 'cat .env'",
            "sh -c 'cat a' > x",
            "sh -c 'sort -o x a'",
            "sh -ec 'sort -o x a'",
            "bash -lc 'sort -o x a'",
            "bash -c -- 'sort -o x a'",
            "bash -c 'cat $0' .env",
            "bash -c \"sh -c 'cat .env'\"",
            "sh -s",
            "sh x",
            "sh < x",
            "sh -c 'cat a' -c 'cat .env' > b",
            "sh",
            "bash -ic 'cat a'",
            "bash --rcfile x -c 'cat a'",
            "bash +c 'cat a'",
            "busybox sh -c 'cat .env'",
            "busybox cat .env",
            "env -S 'cat .env'",
            "env -S'sort -o x a'",
            "env --split-string='sort -o x a'",
            "env -iS 'sort -o x a'",
            "find . -exec sh -c 'cat {}' ';'",
            "watch 'sort -o x a'",
            "watch sort -o x a",
            "script -c 'sort -o x a' /dev/null",
            "parallel sort -o x ::: a",
            "nice sh -c 'timeout 5 sh -c \"sort -o x a\"'",
        ],
        &["sh -c 'cat a'", "bash -c 'cat a && sort b'", "busybox cat a", "env cat a"],
    );
}
