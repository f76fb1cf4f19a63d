//! Where each reference of a schema leads: pointers, `$anchor`, `$dynamicAnchor`, and schemas with an `$id` of their own.
//!
//! Everything is looked for in the schema itself and in the standard's own schemas, which the library carries. Nothing
//! is fetched: a reference to anything else is a problem. Names that stand twice are one too, because the library
//! could choose otherwise than what is counted here.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use referencing::{meta, uri};
use serde_json::{Map, Value};

use super::keywords::held;
use super::references::{decoded, target};
use super::spans::step;

/// Most schemas inside one: each is compiled.
pub(super) const MAX_SCHEMAS: usize = 5_000;
/// Longest URI of a schema, in bytes.
const MAX_URI: usize = 4_096;
/// The base of a schema without an `$id`, as the library has it.
const UNNAMED: &str = "json-schema:///";
/// The schemas of the standard.
const STANDARD: &str = "https://json-schema.org/draft/2020-12/";

/// A place in the schema (document 0) or in one of the standard's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    document: usize,
    pointer: String,
}

impl Place {
    fn own(pointer: String) -> Self {
        Self { document: 0, pointer }
    }

    /// What stands there.
    pub(super) fn find<'s>(&self, root: &'s Value) -> Option<&'s Value> {
        let document = match self.document.checked_sub(1) {
            None => root,
            Some(at) => STANDARDS.get(at)?.1,
        };
        document.pointer(&self.pointer)
    }
}

/// The references of one schema that do not lead from the root by a pointer.
#[derive(Debug)]
pub(super) struct Link {
    /// The schema that refers.
    pub from: Place,
    /// Where `$ref` leads.
    pub to: Option<Place>,
    /// Where `$dynamicRef` may lead.
    pub dynamic: Vec<Place>,
}

/// What is wrong with a name or a reference.
#[derive(Debug)]
pub(super) enum Problem {
    /// It leads out of the schema.
    Leaves(String),
    /// It leads to nothing, or to no schema.
    Nowhere(String),
    /// It is no reference.
    Malformed(String),
    /// It stands twice.
    Twice(String),
    /// It stands where no schema is expected.
    Misplaced(&'static str),
}

/// A schema gone through.
pub(super) struct Survey<'s> {
    /// Every schema inside it, and what references lead to in it.
    pub schemas: Vec<(String, &'s Map<String, Value>)>,
    /// References that do not lead from the root by a pointer.
    pub links: Vec<Link>,
    /// Every schema that some reference leads to, once.
    pub targets: Vec<&'s Value>,
    /// What is wrong, each with its pointer.
    pub problems: Vec<(String, Problem)>,
}

/// Goes through a schema; `None` if there are too many in it.
pub(super) fn survey(root: &Value) -> Option<Survey<'_>> {
    let mut walk = Walk::new(root);
    walk.enter(Place::own(String::new()), root, &Rc::from(UNNAMED), Found::Expected)?;
    let mut references = Vec::new();
    let mut at = 0;
    while let Some(known) = walk.schemas.get(at) {
        let (place, schema, base) = (known.place.clone(), known.schema, Rc::clone(&known.base));
        for key in ["$ref", "$dynamicRef"] {
            let Some(reference) = schema.get(key).and_then(Value::as_str) else { continue };
            match walk.follow(reference, &base)? {
                Ok(to) => references.push((place.clone(), key, reference, to)),
                Err(problem) => walk.problem(&place, key, problem),
            }
        }
        at += 1;
    }
    Some(walk.finish(references))
}

/// The standard's own schemas, by what follows [`STANDARD`].
static STANDARDS: [(&str, &LazyLock<Arc<Value>>); 8] = [
    ("schema", &meta::DRAFT202012),
    ("meta/core", &meta::DRAFT202012_CORE),
    ("meta/applicator", &meta::DRAFT202012_APPLICATOR),
    ("meta/unevaluated", &meta::DRAFT202012_UNEVALUATED),
    ("meta/validation", &meta::DRAFT202012_VALIDATION),
    ("meta/meta-data", &meta::DRAFT202012_META_DATA),
    ("meta/format-annotation", &meta::DRAFT202012_FORMAT_ANNOTATION),
    ("meta/content", &meta::DRAFT202012_CONTENT),
];

/// Whether names may stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// A keyword holds the schema.
    Expected,
    /// Only a reference says that it is one: names in it are not known to the library.
    Referred,
}

struct Known<'s> {
    place: Place,
    schema: &'s Map<String, Value>,
    base: Rc<str>,
}

struct Walk<'s> {
    root: &'s Value,
    schemas: Vec<Known<'s>>,
    /// The bases of schemas, booleans too.
    bases: HashMap<Place, Rc<str>>,
    /// Schemas with a URI.
    resources: HashMap<String, Place>,
    anchors: HashMap<(Rc<str>, String), Place>,
    dynamic: BTreeMap<String, Vec<Place>>,
    problems: Vec<(String, Problem)>,
}

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Self {
        Self {
            root,
            schemas: Vec::new(),
            bases: HashMap::new(),
            resources: HashMap::from([(UNNAMED.to_owned(), Place::own(String::new()))]),
            anchors: HashMap::new(),
            dynamic: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, place: &Place, key: &str, problem: Problem) {
        // The standard's schemas are right, or refused as a whole by who refers to them.
        if place.document == 0 {
            self.problems.push((step(&place.pointer, key), problem));
        }
    }

    /// Notes a schema and all that it holds; `None` if there are too many.
    fn enter(
        &mut self,
        place: Place,
        value: &'s Value,
        base: &Rc<str>,
        found: Found,
    ) -> Option<()> {
        let mut open = vec![(place, value, Rc::clone(base))];
        while let Some((place, value, base)) = open.pop() {
            if self.bases.contains_key(&place) {
                continue;
            }
            let Value::Object(schema) = value else {
                self.bases.insert(place, base);
                continue;
            };
            if self.schemas.len() >= MAX_SCHEMAS {
                return None;
            }
            let base = self.named(&place, schema, base, found);
            self.bases.insert(place.clone(), Rc::clone(&base));
            for (pointer, inner) in held(schema, &place.pointer) {
                let document = place.document;
                open.push((Place { document, pointer }, inner, Rc::clone(&base)));
            }
            self.schemas.push(Known { place, schema, base });
        }
        Some(())
    }

    /// Notes the names of a schema; its own base.
    fn named(
        &mut self,
        place: &Place,
        schema: &Map<String, Value>,
        base: Rc<str>,
        found: Found,
    ) -> Rc<str> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        if found == Found::Referred {
            for key in ["$id", "$anchor", "$dynamicAnchor"] {
                if schema.contains_key(key) {
                    self.problem(place, key, Problem::Misplaced(key));
                }
            }
            return base;
        }
        let mut here = base;
        if let Some(id) = text("$id") {
            match resolved(&here, id.trim_end_matches('#')) {
                Some(uri) => {
                    here = Rc::from(uri.as_str());
                    let before = self.resources.insert(uri.clone(), place.clone());
                    let standard = place.document == 0 && uri.starts_with(STANDARD);
                    if standard || before.is_some_and(|before| before != *place) {
                        self.problem(place, "$id", Problem::Twice(uri));
                    }
                }
                None => self.problem(place, "$id", Problem::Malformed(id.to_owned())),
            }
        }
        for key in ["$anchor", "$dynamicAnchor"] {
            let Some(name) = text(key) else { continue };
            let before = self.anchors.insert((Rc::clone(&here), name.to_owned()), place.clone());
            if before.is_some_and(|before| before != *place) {
                self.problem(place, key, Problem::Twice(name.to_owned()));
            }
            if key == "$dynamicAnchor" {
                self.dynamic.entry(name.to_owned()).or_default().push(place.clone());
            }
        }
        here
    }

    /// Where a reference leads that stands in a schema with this base; `None` if there are too many schemas now.
    fn follow(&mut self, reference: &str, base: &Rc<str>) -> Option<Result<Place, Problem>> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let malformed = || Problem::Malformed(reference.to_owned());
        if fragment.contains('#') {
            return Some(Err(malformed()));
        }
        let uri = if uri.is_empty() { Some(base.to_string()) } else { resolved(base, uri) };
        let Some(uri) = uri else { return Some(Err(malformed())) };
        if !self.resources.contains_key(&uri) && uri.starts_with(STANDARD) {
            self.enter_standard(&uri)?;
        }
        let Some(resource) = self.resources.get(&uri).cloned() else {
            return Some(Err(Problem::Leaves(reference.to_owned())));
        };
        let nowhere = || Problem::Nowhere(reference.to_owned());
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let anchor = self.anchors.get(&(Rc::from(uri.as_str()), fragment.to_owned()));
            return Some(anchor.cloned().ok_or_else(nowhere));
        }
        let Some(pointer) = decoded(fragment) else { return Some(Err(malformed())) };
        let place = Place {
            document: resource.document,
            pointer: format!("{}{pointer}", resource.pointer),
        };
        let Some(value) = place.find(self.root).filter(|it| it.is_object() || it.is_boolean())
        else {
            return Some(Err(nowhere()));
        };
        if !self.bases.contains_key(&place) {
            if self.crosses(&resource, &place) {
                return Some(Err(Problem::Misplaced("$id")));
            }
            self.enter(place.clone(), value, &Rc::from(uri.as_str()), Found::Referred)?;
        }
        Some(Ok(place))
    }

    /// Whether a schema with an `$id` of its own stands between a resource and a place in it.
    fn crosses(&self, resource: &Place, place: &Place) -> bool {
        self.resources.values().any(|other| {
            other.document == place.document
                && other.pointer.len() > resource.pointer.len()
                && place.pointer.strip_prefix(&other.pointer).is_some_and(|it| it.starts_with('/'))
        })
    }

    fn enter_standard(&mut self, uri: &str) -> Option<()> {
        let name = uri.strip_prefix(STANDARD).unwrap_or_default();
        let Some(at) = STANDARDS.iter().position(|(known, _)| *known == name) else {
            return Some(());
        };
        let place = Place { document: at + 1, pointer: String::new() };
        self.enter(place, STANDARDS[at].1, &Rc::from(uri), Found::Expected)
    }

    fn finish(self, references: Vec<(Place, &str, &str, Place)>) -> Survey<'s> {
        let mut links: BTreeMap<Place, Link> = BTreeMap::new();
        let mut targets: BTreeMap<Place, &'s Value> = BTreeMap::new();
        for (from, key, reference, to) in references {
            let all = match key {
                "$ref" => vec![to],
                _ => self.dynamic_targets(reference, to),
            };
            for place in &all {
                if let Some(value) = place.find(self.root) {
                    targets.insert(place.clone(), value);
                }
            }
            let plain = target(self.root, reference).map(std::ptr::from_ref);
            let leads = all.first().and_then(|to| to.find(self.root)).map(std::ptr::from_ref);
            if key == "$ref" && from.document == 0 && plain == leads {
                continue;
            }
            let empty = || Link { from: from.clone(), to: None, dynamic: Vec::new() };
            let link = links.entry(from.clone()).or_insert_with(empty);
            match key {
                "$ref" => link.to = all.into_iter().next(),
                _ => link.dynamic = all,
            }
        }
        let own = self.schemas.into_iter().filter(|known| known.place.document == 0);
        Survey {
            schemas: own.map(|known| (known.place.pointer, known.schema)).collect(),
            links: links.into_values().collect(),
            targets: targets.into_values().collect(),
            problems: self.problems,
        }
    }

    /// Where a `$dynamicRef` may lead: to every schema with that dynamic anchor, if its own target has it.
    fn dynamic_targets(&self, reference: &str, to: Place) -> Vec<Place> {
        let name = reference.split_once('#').map_or("", |(_, name)| name);
        match self.dynamic.get(name).filter(|places| places.contains(&to)) {
            Some(places) => places.clone(),
            None => vec![to],
        }
    }
}

/// A URI reference, made absolute; nothing if it is none, or too long.
fn resolved(base: &str, reference: &str) -> Option<String> {
    if reference.len() > MAX_URI {
        return None;
    }
    let base = uri::from_str(base).ok()?;
    let resolved = uri::resolve_against(&base.borrow(), reference).ok()?;
    let absolute = resolved.as_str().trim_end_matches('#');
    (absolute.len() <= MAX_URI).then(|| absolute.to_owned())
}
