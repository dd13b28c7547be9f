//! The layout of JSON text: the whitespace between its parts, which new parts imitate.

use std::ops::Range;

use pinfold_text::json_member;
use serde_json::Value;

/// The whitespace between the elements of an array or object.
pub(super) struct Layout {
    /// Before the first element.
    pub(super) lead: String,
    /// Between two elements, with the comma.
    pub(super) separator: String,
    /// After the last element.
    tail: String,
}

impl Layout {
    pub(super) fn of(
        text: &str,
        container: &Range<usize>,
        elements: &[Range<usize>],
    ) -> Option<Self> {
        let (first, last) = (elements.first()?, elements.last()?);
        let lead = text[container.start + 1..first.start].to_owned();
        let separator = match elements {
            [one, other, ..] => text[one.end..other.start].to_owned(),
            _ => format!(",{lead}"),
        };
        Some(Self { lead, separator, tail: text[last.end..container.end - 1].to_owned() })
    }

    /// The layout of something one level deeper.
    pub(super) fn inner(&self, indent: &str) -> Self {
        let lead = format!("{}{indent}", self.lead);
        let on_lines = self.lead.contains('\n');
        let separator = if on_lines { format!(",{lead}") } else { self.separator.clone() };
        Self { lead, separator, tail: self.lead.clone() }
    }

    pub(super) fn render(&self, [open, close]: [char; 2], elements: &[String]) -> String {
        if elements.is_empty() {
            return format!("{open}{close}");
        }
        let Self { lead, separator, tail } = self;
        format!("{open}{lead}{}{tail}{close}", elements.join(separator))
    }
}

/// A key with its value, in the text of an object.
pub(super) struct Member {
    pub(super) name: String,
    /// The key in its original spelling, and the text between it and the value.
    pub(super) key: String,
    pub(super) value: String,
}

pub(super) fn members(text: &str, elements: &[Range<usize>]) -> Vec<Member> {
    let member = |element: &Range<usize>| {
        let [key, value] = json_member(text, element.clone());
        let name = serde_json::from_str(&text[key.clone()]).unwrap_or_default();
        let key = text[key.start..value.start].to_owned();
        Member { name, key, value: text[value].to_owned() }
    };
    elements.iter().map(member).collect()
}

/// Sets a member, in alphabetical order if it is new.
pub(super) fn set(members: &mut Vec<Member>, name: &str, value: String) {
    let mut found = false;
    for member in members.iter_mut().filter(|member| member.name == name) {
        member.value.clone_from(&value);
        found = true;
    }
    if !found {
        let after = members.iter().position(|member| member.name.as_str() > name);
        let key = quoted(name) + &colon(members);
        let member = Member { name: name.into(), key, value };
        members.insert(after.unwrap_or(members.len()), member);
    }
}

/// The text between a key and its value.
pub(super) fn colon(members: &[Member]) -> String {
    let after_key =
        |member: &Member| member.key.rfind('"').map(|end| member.key[end + 1..].to_owned());
    members.first().and_then(after_key).unwrap_or_else(|| ": ".into())
}

/// A text, as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
