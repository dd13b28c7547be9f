//! Pages of results: each within its budget, and together complete.

use pinfold::operations::{AnswerWith, Search};
use pinfold::{Role, Session};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::{lines, search, workspace, write};

fn with_context(before: usize, after: usize) -> AnswerWith {
    AnswerWith::Lines { before, after }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_together_are_the_whole(
        files in prop::collection::vec(prop::collection::vec(0..4_u8, 0..30), 1..6),
        most in 1..12_u64,
        budget in 60..2_000_usize,
        context in 0..4_usize,
    ) {
        let dir = TempDir::new().unwrap();
        let mut expected = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let name = format!("d{}/f{number}", number % 2);
            let text: String = file.iter().map(|kind| match kind {
                0 => "match here\n",
                _ => "other\n",
            }).collect();
            write(dir.path(), &name, text.as_bytes());
            let hits = file.iter().zip(1..).filter(|(kind, _)| **kind == 0);
            expected.extend(hits.map(|(_, line)| (name.clone(), line, "match here\n".to_owned())));
        }
        expected.sort();
        let session = Session::open([dir.path()]).unwrap();
        let mut found = Vec::new();
        loop {
            let page = search(&session, &Search::new("match").with_skip(found.len() as u64).with_max_results(Some(most)).with_budget(budget).with_answer(with_context(context, context)));
            prop_assert_eq!(page.total, expected.len() as u64);
            prop_assert_eq!(page.shown, lines(&page).len() as u64);
            prop_assert!(page.shown <= most);
            for file in &page.files {
                // Every line is one of the file's, in order, and near a match that is shown.
                let numbers: Vec<_> = file.lines.iter().map(|line| line.number).collect();
                prop_assert!(numbers.is_sorted_by(|one, other| one < other));
                for line in &file.lines {
                    let near = file.lines.iter().any(|other| {
                        other.role == Role::Match && other.number.abs_diff(line.number) <= context as u64
                    });
                    prop_assert!(near);
                }
            }
            found.extend(lines(&page));
            if found.len() == expected.len() {
                break;
            }
            prop_assert!(page.shown > 0, "no progress");
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_page_is_found_again_where_its_lines_were_too_many_to_keep() {
    let dir = TempDir::new().unwrap();
    let many = "a line that matches, as all of them do\n".repeat(5_000);
    for number in 0..60 {
        write(dir.path(), &format!("f{number:02}"), many.as_bytes());
    }
    let session = Session::open([dir.path()]).unwrap();
    for skip in [0, 4_999, 150_000, 299_995] {
        let page =
            search(&session, &Search::new("matches").with_skip(skip).with_max_results(Some(3)));
        assert_eq!((page.total, page.shown), (300_000, 3));
        let first = &lines(&page)[0];
        let (file, line) = (skip / 5_000, skip % 5_000 + 1);
        assert_eq!((first.0.as_str(), first.1), (format!("f{file:02}").as_str(), line));
    }
}

#[test]
fn context_at_the_edge_of_a_page_belongs_to_matches_on_it() {
    let (_dir, session) = workspace(&[("f", "a\nM1\nb\nc\nM2\nM3\nd\ne\nf\nM4\n")]);
    let shown = |skip, most| {
        let page = search(
            &session,
            &Search::new("M")
                .with_skip(skip)
                .with_max_results(Some(most))
                .with_answer(with_context(1, 1)),
        );
        let lines = page.files[0].lines.iter();
        lines.map(|line| (line.number, line.role)).collect::<Vec<_>>()
    };
    use Role::{Context, Elsewhere, Match};
    assert_eq!(shown(0, 1), [(1, Context), (2, Match), (3, Context)]);
    assert_eq!(shown(1, 1), [(4, Context), (5, Match), (6, Elsewhere)]);
    assert_eq!(shown(2, 1), [(5, Elsewhere), (6, Match), (7, Context)]);
    assert_eq!(shown(3, 1), [(9, Context), (10, Match)]);
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let long = format!("{}NEEDLE{}\n", "é".repeat(50_000), "ü".repeat(60_000));
    let (_dir, session) = workspace(&[("f", &long)]);
    let text = &lines(&search(&session, &Search::new("NEEDLE")))[0].2;
    assert!(text.starts_with("[+49500 characters] ...ééé"), "{}", &text[..60]);
    assert!(text.ends_with("... [+58506 characters]\n"));
    assert!(text.contains("éNEEDLEü"));
    let kept = text.chars().filter(|character| "éüNEDL".contains(*character)).count();
    assert_eq!(kept, 2_000);
}

#[test]
fn a_page_does_not_wait_for_the_total() {
    let dir = TempDir::new().unwrap();
    for number in 0..200 {
        write(dir.path(), &format!("f{number:03}"), b"match\nmatch\n");
    }
    let session = Session::open([dir.path()]).unwrap();
    let page = |answer, most, max_count_bytes| {
        let request = Search::new("match").with_answer(answer).with_max_results(Some(most));
        search(&session, &request.with_max_count_bytes(max_count_bytes))
    };
    for answer in [with_context(0, 0), AnswerWith::Counts, AnswerWith::Files] {
        let rows = if answer == with_context(0, 0) { 400 } else { 200 };
        let early = page(answer, 20, Some(0));
        assert!(!early.counted_all && early.shown == 20, "{early:?}");
        assert!((20..rows).contains(&early.total), "{answer:?}: {}", early.total);
        // However the threads take turns, it is the same.
        assert_eq!(early.total, page(answer, 20, Some(0)).total);
        for exact in [page(answer, 20, Some(1_000_000)), page(answer, 20, None)] {
            assert!(exact.counted_all);
            assert_eq!(exact.total, rows, "{answer:?}");
            let places = |page: &pinfold::operations::Searched| -> Vec<_> {
                page.files.iter().map(|file| file.place.clone()).collect()
            };
            assert_eq!(places(&early), places(&exact));
        }
        // A page that holds all of them has nothing left to count.
        let all = page(answer, rows, Some(0));
        assert!(all.counted_all && all.total == rows && all.shown == rows, "{all:?}");
    }
}

#[test]
fn the_first_page_of_a_first_search_is_that_of_a_later_one() {
    let dir = TempDir::new().unwrap();
    for number in 0..40 {
        for path in ["a/x", "a.c", "a/b/c", "a-b/y", "z/.hidden", "z/ignored/f", "Z"] {
            write(dir.path(), &format!("{}/{path}", number / 4), b"match\nno\nmatch\n");
            write(dir.path(), &format!("{}/{path}{number}", number / 4), b"match\n");
        }
    }
    write(dir.path(), ".gitignore", b"ignored\n");
    let later = Session::open([dir.path()]).unwrap();
    search(&later, &Search::new("nowhere"));
    for (most, max_count_bytes) in
        [(1, 0), (7, 0), (30, 100), (60, 2_000), (30, 1_000_000), (5_000, 0)]
    {
        for answer in [with_context(1, 0), AnswerWith::Counts] {
            let request = Search::new("match").with_answer(answer).with_max_results(Some(most));
            let request = request.with_max_count_bytes(Some(max_count_bytes));
            let first = search(&Session::open([dir.path()]).unwrap(), &request);
            let later = search(&later, &request);
            assert_eq!(format!("{:?}", first.files), format!("{:?}", later.files), "{most}");
            assert_eq!(
                (first.shown, first.total, first.counted_all),
                (later.shown, later.total, later.counted_all),
                "{most} {max_count_bytes}"
            );
        }
    }
}
