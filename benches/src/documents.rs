//! The text of PDFs, compared with `pdftotext`: share of words found, their order, time, failures.
//!
//! `cargo xtask bench documents DIR…` reads every PDF below the directories.

use std::collections::HashMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pinfold_pdf::{Budget, PdfRequest, extract};

pub(crate) fn run() {
    let mut files = Vec::new();
    std::env::args().skip(2).for_each(|directory| collect(Path::new(&directory), &mut files));
    assert!(!files.is_empty(), "usage: cargo xtask bench documents DIR…");
    files.sort();
    let (mut scores, mut orders) = (Vec::new(), Vec::new());
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    let (mut panics, mut refused, mut empty, mut unknown) = (0, 0, 0, 0);
    for file in &files {
        let content = fs::read(file).unwrap();
        let request = PdfRequest { first: 1, last: usize::MAX, max_bytes: usize::MAX };
        let start = Instant::now();
        let extracted = catch_unwind(|| extract(content, request, Budget::default(), &|| true));
        ours += start.elapsed();
        let start = Instant::now();
        let reference = Command::new("pdftotext").arg(file).arg("-").output().unwrap().stdout;
        theirs += start.elapsed();
        let extracted = match extracted {
            Err(_) => {
                panics += 1;
                continue;
            }
            Ok(Err(_)) => {
                refused += 1;
                continue;
            }
            Ok(Ok(extracted)) => extracted,
        };
        let reference = words(&String::from_utf8_lossy(&reference));
        if reference.len() < 20 {
            empty += 1;
            continue;
        }
        unknown += usize::from(extracted.unmapped_glyphs * 20 > extracted.glyphs);
        let found = words(&extracted.pages.join("\n"));
        scores.push(in_common(&found, &reference));
        orders.push(in_order(&found, &reference));
    }
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let (compared, all) = (scores.len(), files.len());
    println!(
        "{all} files; {compared} compared, {empty} without text, {refused} refused, {panics} panics"
    );
    println!("{unknown} with more than 5 % of their letters unknown");
    println!("words in common (F1)      {}", spread(scores));
    println!("pairs of words in common  {}", spread(orders));
    println!("time, in this process / pdftotext as a process: {ratio:.2}");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "pdf") && path.is_file() {
            files.push(path);
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let split = text.split(|letter: char| !letter.is_alphanumeric());
    split.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The share of elements that the other list has, too, between 0 and 1.
fn in_common<T: std::hash::Hash + Eq>(one: &[T], other: &[T]) -> f64 {
    let mut counts: HashMap<&T, (usize, usize)> = HashMap::new();
    one.iter().for_each(|word| counts.entry(word).or_default().0 += 1);
    other.iter().for_each(|word| counts.entry(word).or_default().1 += 1);
    let common: usize = counts.values().map(|(one, other)| one.min(other)).sum();
    2.0 * common as f64 / (one.len() + other.len()).max(1) as f64
}

/// The same for pairs of adjacent words.
fn in_order(one: &[String], other: &[String]) -> f64 {
    let pairs = |words: &[String]| {
        words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect::<Vec<_>>()
    };
    in_common(&pairs(one), &pairs(other))
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    format!("mean {mean:.3}, median {:.3}, lowest tenth below {:.3}", at(0.5), at(0.1))
}
