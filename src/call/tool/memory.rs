//! What is remembered of modules: what they said when they were last asked, if nothing of them has changed.
//!
//! For lists, which must not start anything: no compiler, no sandbox.

use super::describe;
use super::prepare::source;
use crate::policy_files::Places;
use crate::store::Store;
use crate::tool::compile::Compiler;
use crate::tool::{Definition, Tool};

/// What was said before.
pub struct Memory<'p> {
    places: &'p Places,
    compiler: Compiler,
    store: Option<Store>,
}

impl<'p> Memory<'p> {
    /// That of these places. Where nothing was ever recorded nothing is made.
    #[must_use]
    pub fn open(places: &'p Places) -> Self {
        let state = places.state.as_deref();
        let store = Store::existing(state).ok().flatten();
        Self { places, compiler: Compiler::new(state), store }
    }

    /// What a module said.
    #[must_use]
    pub fn remembered(&self, tool: &Tool) -> Option<Definition> {
        let store = self.store.as_ref()?;
        let compiled = self.compiler.remembered(&source(tool, self.places).ok()?)?;
        describe::remembered(tool, &compiled, store).ok().flatten()
    }
}
