//! The built-in catalog: grammars of known programs, compiled at build time from `catalog/*.yml`.
//!
//! A grammar is unpacked when its program is first asked for, so a process pays for what it reads.

use crate::grammar::Program;

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// The grammar of the program with exactly this name.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static Program> {
    let at = NAMES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    let index = NAMES[at].1;
    if let Some(program) = LOADED[index].get() {
        return Some(program);
    }
    // The build wrote these bytes; a failure here is a broken executable, and an unknown program is denied.
    let program = postcard::from_bytes(BLOBS[index]).ok()?;
    Some(LOADED[index].get_or_init(|| program))
}

/// Every name in the catalog, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// Every program, once, in the order of names.
pub fn programs() -> impl Iterator<Item = &'static Program> {
    names().filter_map(|name| lookup(name).filter(|program| program.name == name))
}
