//! A session with caches has the same results as one without, even right after a change.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pinfold::operations::{AnswerWith, Find, FindOrder, Search, Searched};
use pinfold::{IndexMode, IndexSummary, Permissions, Session, Settings};
use pinfold_testkit::Random;
use tempfile::TempDir;

use crate::{search, write};

const WORDS: [&str; 8] =
    ["alpha_beta", "Gamma", "delta9", "epsilon(", "zeta\tzeta", "η theta", "iota = 1", "KAPPA"];

fn text(random: &mut Random, lines: usize) -> String {
    let line = |random: &mut Random| {
        let number = random.below(1_000_000);
        format!("{} {number} {}\n", WORDS[random.below(8)], WORDS[random.below(8)])
    };
    (0..lines).map(|_| line(random)).collect()
}

/// A tree that is watched and indexed: more than 1,000 entries, more than 8 MB of text.
fn large() -> TempDir {
    let dir = TempDir::new().unwrap();
    let mut random = Random(1);
    let long = text(&mut random, 10_000);
    for number in 0..1_100 {
        let path = format!("d{}/{number}.txt", number / 100);
        let small = format!("file_{number}\n{}", text(&mut random, 2));
        write(dir.path(), &path, small.as_bytes());
    }
    for number in 0..45 {
        let content = format!("{long}only_in_{number}\n{}", text(&mut random, 10));
        write(dir.path(), &format!("long/{number}.c"), content.as_bytes());
    }
    write(dir.path(), "odd/nul.bin", b"alpha_beta first\nsecond\0after_nul_only\n");
    write(dir.path(), "odd/bom.txt", b"\xFF\xFEo\0n\0l\0y\0_\0i\0n\0_\0b\0o\0m\0\n\0");
    dir
}

fn mutate(root: &Path, random: &mut Random) {
    let some = |random: &mut Random| match random.below(6) {
        0 => root.join(format!("long/{}.c", random.below(36))),
        1 => root.join(format!("d1/{}.txt", 100 + random.below(100))),
        2 => root.join(format!("d3/.hidden{}", random.below(3))),
        3 => root.join(format!("d3/{}.log", random.below(3))),
        4 => root.join(format!("{}.withheld", random.below(3))),
        _ => root.join(format!("new/{}/x.txt", random.below(3))),
    };
    let (path, other) = (some(random), some(random));
    let added = text(random, 1)
        + ["fresh_word\n", "only_in_7\n", "FRESH_word only_in_bom\n"][random.below(3)];
    let _ = match random.below(8) {
        0 => fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(&path, added)),
        1 => fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, added.as_bytes())),
        2 => fs::rename(&path, &other),
        3 => fs::remove_file(&path),
        4 => fs::rename(root.join("d2"), root.join("moved")),
        5 => fs::rename(root.join("moved"), root.join("d2")),
        6 => fs::write(root.join(".gitignore"), ["d1/\n", "*.c\n", "*.log\n"][random.below(3)]),
        _ => std::os::unix::fs::symlink("long/9.c", &path),
    };
}

fn answer(searched: &Searched) -> String {
    let mut searched = format!("{searched:?}");
    // Where lines are kept in memory is not a part of the answer.
    searched.retain(|letter| letter != ' ');
    searched
}

/// A session with caches, and one without. Neither shows everything.
fn sessions(dir: &TempDir) -> [Session; 2] {
    [IndexMode::Auto, IndexMode::Off].map(|index| {
        let deny = vec!["Read(*.withheld)".into()];
        let permissions = Permissions { deny, ..Permissions::default() };
        let settings = Settings::default().with_index(index).with_permissions(permissions);
        Session::with_settings([dir.path()], settings).unwrap()
    })
}

/// Searches, and waits until the files are indexed.
fn indexed(session: &Session) -> IndexSummary {
    for _ in 0..3 {
        search(session, &Search::new("nowhere_at_all"));
    }
    let begin = Instant::now();
    loop {
        let summary = session.index_summary();
        if !summary.is_building && summary.files > 0 {
            return summary;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{summary:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn files_that_change_are_indexed_again_and_do_not_fill_the_memory() {
    let dir = large();
    let [remembering, _] = sessions(&dir);
    let first = indexed(&remembering);
    for round in 0..8 {
        let mut random = Random(100 + round);
        let long = text(&mut random, 10_000);
        for number in 0..45 {
            let content = format!("{long}round_{round}_of_{number}\n");
            write(dir.path(), &format!("long/{number}.c"), content.as_bytes());
        }
        let now = indexed(&remembering);
        // A few files that are left over are not worth another segment.
        let indexed = first.files - 10..=first.files;
        assert!(indexed.contains(&now.files), "round {round}: {now:?} {first:?}");
        assert!(now.bytes < 2 * first.bytes + (4 << 20), "round {round}: {now:?}");
        let last = search(&remembering, &Search::new(format!("round_{round}_of_44")));
        assert_eq!(last.matches, 1, "round {round}");
    }
}

#[test]
fn an_indexed_search_is_never_stale() {
    let dir = large();
    let [remembering, forgetful] = sessions(&dir);
    let summary = indexed(&remembering);
    assert!(summary.files > 1_000 && summary.bytes < 8 << 20, "{summary:?}");
    assert!(summary.content_bytes > 8 << 20, "a tree of this size is kept as a whole: {summary:?}");
    let lines = AnswerWith::Lines { before: 0, after: 0 };
    let queries = [
        Search::new("only_in_7").with_answer(lines),
        Search::new("only_in_bom").with_answer(AnswerWith::Counts),
        Search::new("after_nul_only|first").with_answer(lines),
        Search::new("fresh_WORD")
            .with_ignore_case(true)
            .with_answer(AnswerWith::Lines { before: 1, after: 2 }),
        Search::new("file_1[0-4]9$").with_answer(AnswerWith::Files),
        Search::new("KAPPA\\n.*only_in").with_multiline(true).with_answer(AnswerWith::Counts),
        Search::new("epsilon(")
            .with_literal(true)
            .with_glob(Some("*.txt".into()))
            .with_answer(AnswerWith::Files),
        Search::new("nowhere_at_all").with_answer(AnswerWith::Files),
    ];
    let mut random = Random(3);
    for step in 0..60 {
        for _ in 0..random.below(4) {
            mutate(dir.path(), &mut random);
        }
        let query = &queries[step % queries.len()];
        let (ours, fresh) = (search(&remembering, query), search(&forgetful, query));
        assert_eq!(answer(&ours), answer(&fresh), "step {step}: {query:?}");
    }
}

#[test]
fn names_are_found_as_a_walk_finds_them() {
    let dir = large();
    let [remembering, forgetful] = sessions(&dir);
    std::os::unix::fs::symlink("long/7.c", dir.path().join("linked.c")).unwrap();
    write(dir.path(), ".hidden/inside.txt", b"");
    let patterns = ["**/*.txt", "**/1*", "**/*{7,8}.c", "d1/**/*.txt", "**/*2?.c", "**/long/**"];
    let mut random = Random(5);
    for step in 0..40 {
        if step > 4 {
            mutate(dir.path(), &mut random);
        }
        // The last ones name what is hidden.
        for pattern in patterns.iter().chain(&["**/.hidden/*", "**/.git*"]) {
            for order in [FindOrder::NewestFirst, FindOrder::Path] {
                let find = Find::new(*pattern).with_order(order).with_max_files(30);
                let found = |session: &Session| session.perform(&find).unwrap().outcome;
                let (ours, fresh) = (found(&remembering), found(&forgetful));
                assert_eq!(format!("{ours:?}"), format!("{fresh:?}"), "step {step}: {pattern}");
            }
        }
    }
}

/// A link to a file that is cached is resolved only once.
#[test]
fn a_link_is_followed_anew_after_each_change() {
    let dir = large();
    let [remembering, forgetful] = sessions(&dir);
    let path = |name: &str| dir.path().join(name);
    let link = |target: &str, name: &str| {
        let _ = fs::remove_file(path(name));
        std::os::unix::fs::symlink(target, path(name)).unwrap();
    };
    link("../long/7.c", "d1/one.link");
    link("one.link", "d1/two.link");
    link("../way/7.c", "d1/three.link");
    link("long", "way");
    let changes: [&dyn Fn(); 11] = [
        &|| {},
        &|| write(dir.path(), "long/7.c", b"another length"),
        &|| link("../long/8.c", "d1/one.link"),
        &|| link("d2", "way"),
        &|| write(dir.path(), "d2/7.c", b"short"),
        &|| fs::rename(path("long/8.c"), path("long/aside.c")).unwrap(),
        &|| fs::rename(path("long/9.c"), path("long/8.c")).unwrap(),
        &|| write(dir.path(), "a_new_first_file", b""),
        &|| fs::rename(path("long"), path("longer")).unwrap(),
        &|| fs::rename(path("d2"), path("long")).unwrap(),
        &|| link("../0.withheld", "d1/one.link"),
    ];
    write(dir.path(), "0.withheld", b"");
    for (number, change) in changes.iter().enumerate() {
        change();
        // From the third call on, names are found without a walk.
        for call in 0..4 {
            let find = Find::new("**/*.link").with_order(FindOrder::Path);
            let found = |session: &Session| session.perform(&find).unwrap().outcome;
            let (ours, fresh) = (found(&remembering), found(&forgetful));
            assert_eq!(format!("{ours:?}"), format!("{fresh:?}"), "change {number}, call {call}");
        }
    }
}
