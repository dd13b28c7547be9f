//! Which content is visible: layers that a reader shows or hides (ISO 32000-2, 8.11).

use std::collections::HashSet;

use hayro_syntax::object::dict::keys::{BASE_STATE, D, OCGS, OCMD, OCPROPERTIES, OFF, ON, P, TYPE};
use hayro_syntax::object::{Array, Dict, Name, ObjectIdentifier};

/// The layers that are hidden by default, and whether the current content is in one of them.
#[derive(Default)]
pub(crate) struct OptionalContent {
    hidden: HashSet<ObjectIdentifier>,
    visible: Vec<bool>,
}

impl OptionalContent {
    pub(crate) fn of_document(catalog: &Dict<'_>) -> Self {
        let Some(properties) = catalog.get::<Dict<'_>>(OCPROPERTIES) else {
            return Self::default();
        };
        let Some(default) = properties.get::<Dict<'_>>(D) else { return Self::default() };
        let mut hidden = HashSet::new();
        if default.get::<Name<'_>>(BASE_STATE).is_some_and(|state| &*state == b"OFF") {
            hidden.extend(members(&properties, OCGS));
        }
        for shown in members(&default, ON) {
            hidden.remove(&shown);
        }
        hidden.extend(members(&default, OFF));
        Self { hidden, visible: Vec::new() }
    }

    pub(crate) fn is_visible(&self) -> bool {
        self.visible.last().copied().unwrap_or(true)
    }

    /// Begins content that is visible if the content around it is.
    pub(crate) fn begin(&mut self) {
        self.visible.push(self.is_visible());
    }

    /// Begins the content of a layer, or of several (`OCMD`).
    pub(crate) fn begin_group(&mut self, group: &Dict<'_>, id: Option<ObjectIdentifier>) {
        let is_membership = group.get::<Name<'_>>(TYPE).is_some_and(|kind| &*kind == OCMD);
        let is_shown = match id {
            Some(id) if !is_membership => !self.hidden.contains(&id),
            _ => self.shows_members(group),
        };
        self.visible.push(self.is_visible() && is_shown);
    }

    /// How many contents are within each other.
    pub(crate) fn depth(&self) -> usize {
        self.visible.len()
    }

    /// Ends the innermost contents, until there are so many.
    pub(crate) fn end_down_to(&mut self, depth: usize) {
        self.visible.truncate(depth);
    }

    pub(crate) fn end(&mut self) {
        self.visible.pop();
    }

    fn shows_members(&self, group: &Dict<'_>) -> bool {
        let layers = match group.get::<Array<'_>>(OCGS) {
            Some(_) => members(group, OCGS),
            None => group.get_ref(OCGS).map(ObjectIdentifier::from).into_iter().collect(),
        };
        let is_hidden = |layer: &ObjectIdentifier| self.hidden.contains(layer);
        if layers.is_empty() {
            return true;
        }
        match group.get::<Name<'_>>(P).as_deref() {
            Some(b"AllOn") => !layers.iter().any(is_hidden),
            Some(b"AnyOff") => layers.iter().any(is_hidden),
            Some(b"AllOff") => layers.iter().all(is_hidden),
            _ => !layers.iter().all(is_hidden),
        }
    }
}

/// The layers in an array of a dictionary.
fn members(dictionary: &Dict<'_>, key: &[u8]) -> Vec<ObjectIdentifier> {
    let Some(array) = dictionary.get::<Array<'_>>(key) else { return Vec::new() };
    array.raw_iter().filter_map(|item| item.as_obj_ref()).map(ObjectIdentifier::from).collect()
}
