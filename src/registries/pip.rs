//! pip's configuration: sections of `KEY = VALUE` lines, values go on in indented lines. Pure.

use runner_policy::net::Registry;

use super::source::{Source, Use};

/// Where pip installs from if no file says anything else: its own constant.
const DEFAULT: &str = "https://pypi.org/simple";

/// The host to which the pages of an index lead for the packages themselves.
const FILES: [(&str, &str); 1] = [("pypi.org", "https://files.pythonhosted.org/")];

/// What the files say, the strongest last.
///
/// # Errors
/// Why an index cannot be used.
pub(super) fn read(texts: &[String]) -> Result<Vec<Source>, String> {
    let (mut index, mut extra) = (DEFAULT.to_owned(), Vec::new());
    // What is said for `pip install` alone is stronger than what is said for all of pip.
    for section in ["global", "install"] {
        for (key, value) in texts.iter().flat_map(|text| values(text, section)) {
            match key.as_str() {
                "index-url" => index = value,
                "extra-index-url" => {
                    extra = value.split_whitespace().map(str::to_owned).collect();
                }
                "no-index" if ["1", "true", "yes", "on"].contains(&value.as_str()) => {
                    return Ok(Vec::new());
                }
                _ => {}
            }
        }
    }
    let mut sources = vec![source(Use::Default, &index)?];
    for url in extra {
        sources.push(source(Use::Extra, &url)?);
    }
    for (host, files) in FILES {
        if sources.iter().any(|source| source.host == host && source.tls) {
            sources.push(source(Use::Files, files)?);
        }
    }
    Ok(sources)
}

fn source(used: Use, url: &str) -> Result<Source, String> {
    Source::parse(Registry::Pip, used, url)
        .ok_or_else(|| "an index of pip is no plain http or https URL".to_owned())
}

/// The assignments of one section.
fn values(text: &str, section: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = name.trim() == section;
        } else if inside && line.starts_with([' ', '\t']) {
            if let Some((_, value)) = found.last_mut() {
                value.push(' ');
                value.push_str(trimmed);
            }
        } else if inside && let Some((key, value)) = trimmed.split_once(['=', ':']) {
            let key = key.trim().to_ascii_lowercase().replace('_', "-");
            found.push((key, value.trim().to_owned()));
        }
    }
    found
}
