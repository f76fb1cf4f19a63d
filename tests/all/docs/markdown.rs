//! As much of Markdown as the checks need: lines outside of code, fenced blocks, headings and links.

/// A page, split.
pub struct Markdown<'t> {
    /// Lines outside of fenced blocks and comments, with their numbers.
    pub lines: Vec<(usize, &'t str)>,
    /// Fenced blocks in order.
    pub blocks: Vec<Block<'t>>,
}

/// A fenced block.
pub struct Block<'t> {
    /// The number of its first line inside.
    pub line: usize,
    /// The words after the fence: the language, then what a check does with it.
    pub info: &'t str,
    pub text: String,
}

impl<'t> Markdown<'t> {
    pub fn of(text: &'t str) -> Self {
        let (mut lines, mut blocks) = (Vec::new(), Vec::<Block<'t>>::new());
        let (mut fenced, mut comment) = (false, false);
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            if let Some(info) = line.strip_prefix("```") {
                if !fenced {
                    blocks.push(Block { line: number + 1, info: info.trim(), text: String::new() });
                }
                fenced = !fenced;
            } else if fenced {
                let block = blocks.last_mut().expect("a block is open");
                block.text.push_str(line);
                block.text.push('\n');
            } else {
                comment |= line.starts_with("<!--");
                if !comment {
                    lines.push((number, line));
                }
                comment &= !line.contains("-->");
            }
        }
        Self { lines, blocks }
    }

    /// The anchors of its headings, as GitHub makes them.
    pub fn anchors(&self) -> Vec<String> {
        let headings = self.lines.iter().filter(|(_, line)| line.starts_with('#'));
        headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
    }

    /// The targets of its links, with their lines.
    pub fn links(&self) -> Vec<(usize, &'t str)> {
        let mut links = Vec::new();
        for (number, line) in &self.lines {
            let mut rest = *line;
            while let Some((_, after)) = rest.split_once("](") {
                let (target, after) = after.split_once(')').unwrap_or((after, ""));
                links.push((*number, target));
                rest = after;
            }
        }
        links
    }

    /// Its running text by paragraph or list item, each with its first line. No tables, headings and code in lines.
    pub fn paragraphs(&self) -> Vec<(usize, String)> {
        let mut found: Vec<(usize, String)> = Vec::new();
        let mut before = 0;
        for (number, line) in &self.lines {
            let text = line.trim();
            let aside =
                text.is_empty() || text.starts_with(['|', '#', '<']) || line.starts_with("    ");
            if aside {
                before = 0;
                continue;
            }
            let item = text.starts_with("- ")
                || text.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
            match found.last_mut() {
                Some((_, paragraph)) if before + 1 == *number && !item => {
                    paragraph.push(' ');
                    paragraph.push_str(text);
                }
                _ => found.push((*number, text.trim_start_matches("- ").to_owned())),
            }
            before = *number;
        }
        found
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
