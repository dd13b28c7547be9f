//! Decides whether a regex can be compiled without Unicode for ASCII text.
//!
//! Compiling `\w` with all of its letters takes 2 ms, longer than searching a small tree. Without Unicode it takes a
//! tenth of that. If the pattern itself is ASCII, it matches the same ASCII text either way: each class has the same
//! ASCII members, and so has every union, difference, negation and case folding of such classes. A letter outside
//! ASCII in the pattern may fold to an ASCII letter (U+212A to `k`), so such a pattern has no ASCII matcher.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassSet, ClassSetItem, Flag, Flags, FlagsItemKind, GroupKind, Literal,
};

/// The relevant properties of a pattern.
#[derive(Default)]
struct Seen {
    /// Its meaning in ASCII text may depend on Unicode.
    may_differ: bool,
    /// It takes long to compile with Unicode.
    is_slow: bool,
}

/// Whether compiling a regex without Unicode is worth it, and gives the same matches in ASCII text.
pub(super) fn can_compile_as_ascii(pattern: &str) -> bool {
    let Ok(ast) = Parser::new().parse(pattern) else { return false };
    let mut seen = Seen::default();
    seen.read(&ast);
    seen.is_slow && !seen.may_differ
}

impl Seen {
    fn read(&mut self, ast: &Ast) {
        match ast {
            Ast::Empty(_) => {}
            // Assertions include word boundaries.
            Ast::Dot(_) | Ast::Assertion(_) | Ast::ClassPerl(_) => self.is_slow = true,
            Ast::ClassUnicode(_) => self.may_differ = true,
            Ast::Flags(flags) => self.flags(&flags.flags),
            Ast::Literal(literal) => self.literal(literal),
            Ast::ClassBracketed(class) => {
                self.is_slow |= class.negated;
                self.set(&class.kind);
            }
            Ast::Repetition(repetition) => self.read(&repetition.ast),
            Ast::Group(group) => {
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.flags(flags);
                }
                self.read(&group.ast);
            }
            Ast::Alternation(alternation) => alternation.asts.iter().for_each(|ast| self.read(ast)),
            Ast::Concat(concat) => concat.asts.iter().for_each(|ast| self.read(ast)),
        }
    }

    fn set(&mut self, set: &ClassSet) {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(operation) => {
                self.set(&operation.lhs);
                self.set(&operation.rhs);
            }
        }
    }

    fn item(&mut self, item: &ClassSetItem) {
        match item {
            // POSIX classes are always ASCII.
            ClassSetItem::Empty(_) | ClassSetItem::Ascii(_) => {}
            ClassSetItem::Literal(literal) => self.literal(literal),
            ClassSetItem::Range(range) => {
                self.literal(&range.start);
                self.literal(&range.end);
            }
            ClassSetItem::Unicode(_) => self.may_differ = true,
            ClassSetItem::Perl(_) => self.is_slow = true,
            ClassSetItem::Bracketed(class) => {
                self.is_slow |= class.negated;
                self.set(&class.kind);
            }
            ClassSetItem::Union(union) => union.items.iter().for_each(|item| self.item(item)),
        }
    }

    fn literal(&mut self, literal: &Literal) {
        self.may_differ |= !literal.c.is_ascii();
    }

    fn flags(&mut self, flags: &Flags) {
        let switches_unicode =
            |kind: &FlagsItemKind| matches!(kind, FlagsItemKind::Flag(Flag::Unicode | Flag::CRLF));
        self.may_differ |= flags.items.iter().any(|item| switches_unicode(&item.kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ascii_patterns_compile_as_ascii() {
        for (pattern, expected) in [
            (r"static\s+int\s+\w+_probe\(", true),
            (r"\bpage\b", true),
            (r"(?i)[^k]+x.", true),
            (r"[\w--[a-f]]", true),
            // These compile as quickly with Unicode.
            ("mutex_lock", false),
            ("[0-9]{3}-[a-f]+", false),
            // These letters fold to ASCII, or may.
            (r"(?i)\u{212a}\w", false),
            (r"\w[\x7F-\u{17f}]", false),
            ("é.", false),
            (r"\pL\w", false),
            (r"[\w\p{Greek}]", false),
            (r"(?-u)\w", false),
            (r"(?-u:\w)\xff", false),
            ("(", false),
        ] {
            assert_eq!(can_compile_as_ascii(pattern), expected, "{pattern}");
        }
    }
}
