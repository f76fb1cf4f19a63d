//! awk programs: whether one can run programs, or open files that its operands do not name.
//!
//! A search, not a parser: awk has no second spelling of its words, so a program without them cannot
//! do what they do. What is found inside a text or a pattern counts as well.

/// Words that run programs, read other files, change the list of files, or name functions at run time.
const OPENS: [&str; 8] =
    ["system", "getline", "ARGV", "ARGC", "SYMTAB", "FUNCTAB", "extension", "@"];

/// Whether a program does no more than compute and print to standard output.
pub(super) fn only_prints(program: &str) -> bool {
    let opens = OPENS.iter().any(|word| program.contains(word));
    // A continued line could join what is looked for.
    let continued = program.contains("\\\n") || program.contains("\\\r");
    !opens && !continued && !redirects(program)
}

/// `>` and `|` are redirections after `print` and `printf` only; before them they compare and alternate.
fn redirects(program: &str) -> bool {
    let Some(print) = program.find("print") else { return false };
    let rest = program[print..].replace("||", "").replace(">=", "");
    rest.contains(['>', '|'])
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn programs_that_compute_and_print_are_harmless() {
        for program in [
            "{print $1}",
            "$3 > 5 {print $1}",
            "/a|b/ { n++ } END { print n }",
            "NR==FNR{a[$1];next} ($1 in a) || $2 >= 3 {print}",
            "BEGIN{FS=\":\"} {printf \"%s\\n\", $2}",
            "{ if ($1 > m) m = $1 } END { print m }",
            "length > 80",
            "{print a >= b}",
        ] {
            assert!(only_prints(program), "{program}");
        }
    }

    #[test]
    fn what_runs_or_opens_is_found() {
        for program in [
            "BEGIN{system(\"id\")}",
            "{print > \"x\"}",
            "{print >> \"x\"}",
            "{print(1)>\"x\"}",
            "{printf \"a\" >$1}",
            "{print \"a;\" > \"x\"}",
            "{print | \"sh\"}",
            "{print |& \"sh\"}",
            "{print || 1 | \"sh\"}",
            "BEGIN{\"id\" | getline x}",
            "{getline < \"x\"}",
            "BEGIN{ARGV[1]=\"x\";ARGC=2}",
            "BEGIN{f=\"sys\" \"tem\";@f(\"id\")}",
            "@load \"filefuncs\"",
            "BEGIN{SYMTAB[\"AR\" \"GV\"]}",
            "BEGIN{sys\\\ntem(\"id\")}",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
