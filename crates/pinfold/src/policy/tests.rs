//! Tables of mode, operation and rule, and every known way around a rule.

use proptest::prelude::*;

use super::*;

const ROOT: &str = "/ws";

fn policy(mode: Mode, allow: &[&str], ask: &[&str], deny: &[&str]) -> Policy {
    let list = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    let permissions = Permissions { mode, allow: list(allow), ask: list(ask), deny: list(deny) };
    Policy::new(&permissions, vec![ROOT.into()], &[]).unwrap()
}

/// `a`llow, as`k` or `d`eny.
fn decided(policy: &Policy, access: Access, path: &str) -> char {
    let real = Path::new(ROOT).join(path);
    match policy.decide(access, Some(&real), Some(&real), false) {
        Decision::Allow(_) => 'a',
        Decision::Ask(_) => 'k',
        Decision::Deny(_) => 'd',
    }
}

#[test]
fn every_mode_without_rules() {
    use Mode::*;
    const PATHS: [&str; 4] = ["src/a.rs", ".env", ".git/config", ".env.example"];
    // For each of the paths: Read, Write, Delete.
    for (mode, expected) in [
        (Ask, ["akk", "kkk", "akk", "akk"]),
        (SecureFileAccess, ["aaa", "kaa", "akk", "aaa"]),
        (AcceptEdits, ["aak", "kak", "akk", "aak"]),
        (Plan, ["add", "kdd", "add", "add"]),
        (DontAsk, ["akk", "kkk", "akk", "akk"]),
        (BypassPermissions, ["aaa", "aaa", "aaa", "aaa"]),
    ] {
        let policy = policy(mode, &[], &[], &[]);
        for (path, expected) in PATHS.into_iter().zip(expected) {
            let found: String = [Access::Read, Access::Write, Access::Delete]
                .into_iter()
                .map(|access| decided(&policy, access, path))
                .collect();
            assert_eq!(found, expected, "{} {path}", mode.name());
        }
        assert_eq!(policy.asks_nobody(), mode == DontAsk);
    }
}

#[test]
fn deny_beats_ask_beats_allow_beats_mode() {
    // (allow, ask, deny) and the decision in each mode, for Write(src/a.rs).
    for (rules, expected) in [
        ((false, false, false), "kaadka"),
        ((true, false, false), "aaadaa"),
        ((false, true, false), "kkkdka"),
        ((true, true, false), "kkkdka"),
        ((false, false, true), "dddddd"),
        ((true, false, true), "dddddd"),
        ((false, true, true), "dddddd"),
        ((true, true, true), "dddddd"),
    ] {
        let rule = |given: bool| if given { &["Edit(src/**)"][..] } else { &[] };
        let found: String = Mode::ALL
            .into_iter()
            .map(|mode| {
                let policy = policy(mode, rule(rules.0), rule(rules.1), rule(rules.2));
                decided(&policy, Access::Write, "src/a.rs")
            })
            .collect();
        assert_eq!(found, expected, "{rules:?}");
    }
}

#[test]
fn an_explicit_allow_lifts_what_is_asked_by_itself() {
    let allowing = |rule| policy(Mode::SecureFileAccess, &[rule], &[], &[]);
    assert_eq!(decided(&allowing("Read(.env)"), Access::Read, ".env"), 'a');
    assert_eq!(decided(&allowing("Read(.env)"), Access::Read, ".env.local"), 'k');
    assert_eq!(decided(&allowing("Edit(.github/**)"), Access::Write, ".github/workflows/x"), 'a');
    assert_eq!(decided(&allowing("*"), Access::Delete, ".git/config"), 'a');
    assert_eq!(decided(&allowing("Read(.env)"), Access::Write, ".git/config"), 'k');
}

#[test]
fn rules_speak_of_operations() {
    for (rule, expected) in [
        ("Read", "daa"),
        ("Write", "ada"),
        ("Edit", "ada"),
        ("Delete", "aad"),
        ("*", "ddd"),
        ("*(a)", "ddd"),
    ] {
        let policy = policy(Mode::SecureFileAccess, &[], &[], &[rule]);
        let found: String = [Access::Read, Access::Write, Access::Delete]
            .into_iter()
            .map(|access| decided(&policy, access, "a"))
            .collect();
        assert_eq!(found, expected, "{rule}");
    }
}

#[test]
fn patterns_are_gitignores() {
    for (pattern, matching, other) in [
        ("src/**", &["src/a", "src/b/c"][..], &["src", "x/src/a", "srcs/a"][..]),
        ("/src", &["src", "src/a/b"], &["x/src"]),
        ("*.rs", &["a.rs", "x/y/b.rs"], &["a.rsx", "rs"]),
        ("secrets/", &["secrets/a", "x/secrets/b"], &["secret/a"]),
        ("a?c", &["abc"], &["abbc"]),
        ("[ab].txt", &["a.txt"], &["c.txt"]),
        ("\\!x", &["!x"], &["x"]),
        (" src/** ", &["src/a"], &["x/src/a"]),
        ("src/**\u{a0}", &["src/a"], &["x/src/a"]),
        ("./src/**", &["src/a"], &["x/src/a"]),
        ("./src", &["src/a"], &["x/src/a"]),
        ("/ws/src/**", &["src/a"], &["x/src/a", "ws/src/a"]),
        ("src\\ ", &["src "], &["srcs"]),
    ] {
        let policy = policy(Mode::SecureFileAccess, &[], &[], &[&format!("Read({pattern})")]);
        for path in matching {
            assert_eq!(decided(&policy, Access::Read, path), 'd', "{pattern} {path}");
        }
        for path in other {
            assert_eq!(decided(&policy, Access::Read, path), 'a', "{pattern} {path}");
        }
    }
}

#[test]
fn a_rule_with_a_blank_too_many_takes_nothing_from_others() {
    let policy = policy(Mode::SecureFileAccess, &[], &[], &["Read(secrets/**)", "Read(**/*.txt )"]);
    assert_eq!(decided(&policy, Access::Read, "secrets/key.txt"), 'd');
    assert_eq!(decided(&policy, Access::Read, "a.txt"), 'd');
}

#[test]
fn exceptions_are_within_a_list() {
    let deny = ["Read(secrets/**)", "Read(!secrets/public.txt)", "Edit(!x)"];
    let policy = policy(Mode::SecureFileAccess, &[], &[], &deny);
    assert_eq!(decided(&policy, Access::Read, "secrets/a"), 'd');
    assert_eq!(decided(&policy, Access::Read, "secrets/public.txt"), 'a');
    assert_eq!(decided(&policy, Access::Write, "x"), 'a');
}

#[test]
fn no_spelling_slips_by_a_rule_that_refuses() {
    let denying = policy(Mode::SecureFileAccess, &[], &[], &["Read(Geheim/Schlüssel.txt)"]);
    for path in [
        "Geheim/Schlüssel.txt",
        "geheim/SCHLÜSSEL.TXT",
        "Geheim/Schlu\u{308}ssel.txt",
        "Geheim/Schl\u{200D}üssel.txt",
        "Geheim./Schlüssel.txt ",
        "ＧＥＨＥＩＭ/Schlüssel.txt",
    ] {
        assert_eq!(decided(&denying, Access::Read, path), 'd', "{path:?}");
    }
    // An allow rule covers only the resolved path, exactly.
    let allowing = policy(Mode::Ask, &["Edit(src/a.rs)"], &[], &[]);
    assert_eq!(decided(&allowing, Access::Write, "src/a.rs"), 'a');
    assert_eq!(decided(&allowing, Access::Write, "src/A.rs"), 'k');
    assert_eq!(decided(&allowing, Access::Write, "src/a.rs."), 'k');
}

#[test]
fn the_path_as_given_and_as_it_leads_are_both_looked_at() {
    let policy =
        policy(Mode::Ask, &["Read(public/**)", "Edit(public/**)"], &[], &["Read(secrets/**)"]);
    let decide = |access, given: &str, real: &str| {
        let [given, real] = [given, real].map(|path| Path::new(ROOT).join(path));
        policy.decide(access, Some(&given), Some(&real), false)
    };
    assert!(matches!(decide(Access::Read, "public/x", "secrets/y"), Decision::Deny(_)));
    assert!(matches!(decide(Access::Read, "secrets/x", "public/y"), Decision::Deny(_)));
    // An allow rule covers only the path that the link leads to.
    assert!(matches!(decide(Access::Write, "public/x", "other/y"), Decision::Ask(_)));
    assert!(matches!(decide(Access::Write, "other/x", "public/y"), Decision::Allow(_)));
}

#[test]
fn rules_that_do_not_parse_are_named() {
    for (rule, problem) in [
        ("Edit(src/**", "Operation(pattern)"),
        ("", "Operation(pattern)"),
        ("(x)", "Operation(pattern)"),
        ("Edit()", "empty pattern"),
        ("Edit( )", "empty pattern"),
        ("Edit(!)", "empty pattern"),
        ("Edit(/)", "empty pattern"),
        ("Edit(#x)", "comment"),
        ("Edit(a[)", "pattern"),
        ("Edit({a,b)", "pattern"),
        ("Edit(\"src/**\")", "quote"),
        ("Edit(~/x)", "`~`"),
        ("Edit(!!x)", "second `!`"),
        ("Edit(a/../b)", "`..`"),
        ("Edit(a//b)", "empty name"),
        ("Edit({{{{{{{{{{{{a}}}}}}}}}}}})", "deeply nested"),
        ("Grep(x)", "`Read` covers reading, listing, finding and searching"),
        ("file.patch(x)", "`Write` or `Edit` covers every change of content"),
        ("Reed(x)", "names no operation"),
        ("read", "names no operation"),
    ] {
        let permissions = Permissions { deny: vec![rule.into()], ..Permissions::default() };
        let error = Policy::new(&permissions, vec![ROOT.into()], &[]).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(error.contains(&format!("the deny rule `{rule}`")), "{error}");
    }
}

#[test]
fn our_own_files_are_out_of_reach_in_every_mode() {
    for mode in Mode::ALL {
        let mut policy = policy(mode, &["*"], &[], &[]);
        policy.deny_files([PathBuf::from("/ws/state"), PathBuf::from("/elsewhere")]);
        for access in [Access::Read, Access::Write, Access::Delete] {
            assert_eq!(decided(&policy, access, "state"), 'd');
            assert_eq!(decided(&policy, access, "state/journal/log.jsonl"), 'd');
        }
        assert_eq!(decided(&policy, Access::Read, "states"), 'a');
        // For other paths, the quick check is as fast as without them.
        assert!(quick(&policy, "a") && quick(&policy, "src/state"));
        assert!(!quick(&policy, "state") && !quick(&policy, "state/journal"));
        policy.deny_files([PathBuf::from("/")]);
        assert!(!quick(&policy, "a"));
    }
}

#[test]
fn the_rule_that_would_allow_something_does() {
    for path in ["a/b.txt", "odd [x]*?{y}\\z!#.txt", "!x", "#x", "end ", "ü"] {
        let real = Path::new(ROOT).join(path);
        let rule = policy(Mode::Ask, &[], &[], &[]).allowing(Access::Write, &real).unwrap();
        let allowing = policy(Mode::Ask, &[&rule], &[], &[]);
        assert_eq!(decided(&allowing, Access::Write, path), 'a', "{rule}");
        assert_eq!(decided(&allowing, Access::Write, "other"), 'k', "{rule}");
    }
}

#[test]
fn names_that_cannot_be_typed_are_no_rules() {
    for path in ["a\tb", "a\u{1b}[2J", "a\n", "end\u{a0}", "\u{202e}x"] {
        let real = Path::new(ROOT).join(path);
        assert_eq!(
            policy(Mode::Ask, &[], &[], &[]).allowing(Access::Write, &real),
            None,
            "{path:?}"
        );
    }
}

/// The quick check of a walk.
fn quick(policy: &Policy, path: &str) -> bool {
    policy.no_rule_can_match(Access::Read, path.as_bytes())
}

#[test]
fn most_files_are_shown_without_a_second_look() {
    let plain = policy(Mode::SecureFileAccess, &["Edit"], &[], &[]);
    for path in ["src/main.rs", "a", "Makefile", "docs/x.md"] {
        assert!(quick(&plain, path), "{path}");
    }
    for path in [
        ".env",
        "a/.ssh/x",
        "x.PEM",
        "id_rsa",
        "a ",
        "é",
        ".config/gh/hosts.yml",
        "server.pem/x.txt",
        "id_rsa/x",
    ] {
        assert!(!quick(&plain, path), "{path}");
    }
    assert!(!quick(&policy(Mode::Plan, &[], &["Read(x)"], &[]), "src/main.rs"));
    let rules = policy(Mode::Plan, &[], &["Read(*.key)"], &["Read(secrets/**/[ab])"]);
    assert!(quick(&rules, "src/main.rs"));
    for path in ["a.Key", "SECRETS/x/a", "x/secrets"] {
        assert!(!quick(&rules, path), "{path}");
    }
}

#[test]
fn a_spelling_is_made_absolute() {
    for (path, expected) in [
        ("a/b", "/ws/a/b"),
        ("./a//b/.", "/ws/a/b"),
        ("a/../.env", "/ws/.env"),
        ("/ws/a/../b", "/ws/b"),
        ("../../../x", "/x"),
    ] {
        assert_eq!(normalized(path, Path::new(ROOT)), Path::new(expected));
    }
}

proptest! {
    /// The quick check never misses a rule.
    #[test]
    fn a_path_that_a_rule_matches_gets_a_second_look(
        patterns in prop::collection::vec(
            "!?/?(\\*\\*/)?(ab|aBc|b\\.k|[ab]|\\*|\\?|/|\\[ab\\]|\\{ab,ba\\}|\\\\b){1,5}", 1..4),
        path in "[abAB](ab|bc|b|\\.k|K| |\\.|/a|\u{212a}){0,6}",
    ) {
        let rules: Vec<_> = patterns.iter().map(|pattern| format!("Read({pattern})")).collect();
        let permissions = Permissions { deny: rules, ..Permissions::default() };
        let Ok(policy) = Policy::new(&permissions, vec!["/ws".into()], &[]) else { return Ok(()) };
        let names = Names::new([Path::new(path.as_str())].into_iter(), false);
        if policy.deny.matches(Access::Read, &names).is_some() {
            prop_assert!(!quick(&policy, &path), "{patterns:?} {path}");
        }
    }
}
