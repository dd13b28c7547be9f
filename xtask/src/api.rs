//! The public API of the crate `pinfold`, as `rustdoc` shows it, in `crates/pinfold/api.txt`.
//!
//! A change of the API changes that file, so a review sees it. The text comes from the HTML that `cargo doc` writes, since
//! its JSON needs a nightly toolchain. It has every item with its fields, variants, methods and trait implementations, without
//! automatic and blanket ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::release::home;
use crate::run;

/// Writes the documentation of `pinfold`, and compares its API with the file.
pub(crate) fn check_fresh() -> Result<()> {
    run(&["doc", "--package", "pinfold", "--no-deps"], &[])?;
    check()
}

/// Compares the API in the documentation with the file, or writes the file with `PINFOLD_BLESS=1`.
pub(crate) fn check() -> Result<()> {
    let file = home().join("crates/pinfold/api.txt");
    let found = api(&home().join("target/doc/pinfold"))?;
    if std::env::var_os("PINFOLD_BLESS").is_some() {
        fs::write(&file, &found)?;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    if let Some(line) = first_difference(&expected, &found) {
        bail!(
            "the public API is not that of crates/pinfold/api.txt: {line}\n\
             If that is meant, run `PINFOLD_BLESS=1 cargo xtask api` and commit the file."
        );
    }
    Ok(())
}

fn first_difference(expected: &str, found: &str) -> Option<String> {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return None,
            (expected, found) if expected == found => {}
            (_, Some(found)) => return Some(format!("`{found}` is new")),
            (Some(expected), None) => return Some(format!("`{expected}` is missing")),
        }
    }
}

/// The API of the crate that is documented in a directory.
fn api(directory: &Path) -> Result<String> {
    // The pages of removed items stay in the directory, so the index decides.
    let index = directory.join("all.html");
    let index = fs::read_to_string(&index).with_context(|| format!("cannot read {index:?}"))?;
    let links = index.split("href=\"").skip(1).filter_map(|link| link.split('"').next());
    let pages: BTreeSet<&str> = links.filter(|link| is_item(link)).collect();
    let mut text = String::new();
    for page in pages {
        text += &format!("# {}\n", page.trim_end_matches(".html"));
        for line in items(&fs::read_to_string(directory.join(page))?) {
            text += &format!("{line}\n");
        }
        text.push('\n');
    }
    Ok(text)
}

/// Whether a link is to the page of an item, such as `media/struct.Picture.html`.
fn is_item(link: &str) -> bool {
    let name = link.rsplit('/').next().unwrap_or_default();
    link.ends_with(".html") && !link.starts_with("..") && name.split('.').count() == 3
}

/// The declarations of a page: of the item, its methods and its trait implementations.
fn items(html: &str) -> Vec<String> {
    // Automatic and blanket implementations come last.
    let end = html.find("id=\"synthetic-implementations\"").unwrap_or(html.len());
    let html = &html[..end];
    let traits = html.find("id=\"trait-implementations\"").unwrap_or(html.len());
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((at, (open, close))) = STARTS
        .iter()
        .filter_map(|start| rest.find(start.0).map(|at| (at, *start)))
        .min_by_key(|(at, _)| *at)
    {
        let offset = html.len() - rest.len() + at;
        let body = &rest[at + open.len()..];
        let Some((inner, after)) = body.split_once(close) else { break };
        rest = after;
        // The methods of a trait implementation are those of the trait, and variants are in their enum.
        let is_listed = match open {
            METHOD => offset < traits,
            IMPLEMENTATION => {
                inner.starts_with("impl")
                    && !SKIPPED.iter().any(|name| plain(inner).starts_with(name))
            }
            _ => true,
        };
        if is_listed {
            found.extend(plain(inner).lines().map(|line| line.trim_end().to_owned()));
        }
    }
    found
}

const IMPLEMENTATION: &str = "<h3 class=\"code-header\">";
const METHOD: &str = "<h4 class=\"code-header\">";

/// Implementations that are implied by another one, or need the feature `schema`.
const SKIPPED: [&str; 3] =
    ["impl StructuralPartialEq for", "impl JsonSchema for", "impl Serialize for"];

/// The tags around the declaration of an item, of an implementation and of a method.
const STARTS: [(&str, &str); 3] = [
    ("<pre class=\"rust item-decl\"><code>", "</code></pre>"),
    (IMPLEMENTATION, "</h3>"),
    (METHOD, "</h4>"),
];

/// HTML without tags and entities.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text += before;
        // Attributes are separate blocks. A summary says how many fields are folded.
        let end = if after.starts_with("summary") { "</summary>" } else { ">" };
        text += if after.starts_with("/div>") { "\n" } else { "" };
        rest = after.split_once(end).map_or("", |(_, rest)| rest);
    }
    text += rest;
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " ")];
    let entities = entities.into_iter().chain([("\u{a0}", " "), ("&amp;", "&")]);
    entities.fold(text, |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_its_declarations() {
        let html = "<pre class=\"rust item-decl\"><code><div class=\"code-attribute\">#[x]</div>pub struct \
                    A&lt;T&gt; {<summary>Show 1 field</summary>\n    pub a: <a href=\"b\">T</a>,\n}</code></pre>\
                    <h4 class=\"code-header\">pub fn b()</h4>\
                    <h2 id=\"trait-implementations\"></h2><h3 class=\"code-header\">impl C for A</h3>\
                    <h4 class=\"code-header\">fn c()</h4>\
                    <h2 id=\"synthetic-implementations\"></h2><h3 class=\"code-header\">impl Send for A</h3>";
        let expected =
            ["#[x]", "pub struct A<T> {", "    pub a: T,", "}", "pub fn b()", "impl C for A"];
        assert_eq!(items(html), expected);
    }

    #[test]
    fn a_change_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").as_deref(), Some("`c` is new"));
        assert_eq!(first_difference("a\nb\n", "a\n").as_deref(), Some("`b` is missing"));
    }
}
