//! How the time of a call grows with the files of the workspace, and with the changes in the journal.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::plot::Series;
use super::{Place, quantile, relative};

/// How often each call is made.
const CALLS: usize = 300;

/// The median of many calls, in milliseconds.
fn median(client: &mut Client, mut call: impl FnMut(usize) -> (&'static str, Value, bool)) -> f64 {
    let mut times: Vec<Duration> = (0..CALLS)
        .map(|number| {
            let call = call(number);
            let begin = Instant::now();
            assert!(client.call(call));
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    quantile(&times, 0.5)
}

/// The calls that are compared, by name.
fn measured(client: &mut Client, files: usize) -> [(&'static str, f64); 3] {
    let read = |number: usize| ("file.read", json!({"path": relative(number * 7 % files)}), true);
    let write = |number: usize| {
        ("file.write", json!({"path": "own/a.txt", "content": format!("{number}\n")}), true)
    };
    let search = |number: usize| {
        ("file.search", json!({"pattern": format!("file {} line 7 ", number % files)}), true)
    };
    // The first searches build the index.
    for number in 0..20 {
        assert!(client.call(search(number)));
    }
    std::thread::sleep(Duration::from_secs(2));
    [
        ("read", median(client, read)),
        ("write", median(client, write)),
        ("search", median(client, search)),
    ]
}

fn table(what: &str, rows: &[(usize, [(&'static str, f64); 3])]) -> Vec<Series> {
    println!("\n| {what} | read (ms) | write (ms) | search (ms) |\n|---:|---:|---:|---:|");
    for (number, [(_, read), (_, write), (_, search)]) in rows {
        println!("| {number} | {read:.3} | {write:.3} | {search:.3} |");
    }
    let series = |at: usize| Series {
        name: rows[0].1[at].0.into(),
        points: rows.iter().map(|(number, times)| (*number as f64, times[at].1)).collect(),
    };
    (0..3).map(series).collect()
}

/// Measures with more files in the workspace.
pub(crate) fn with_files() -> Vec<Series> {
    let rows: Vec<_> = [500, 5_000, 50_000]
        .map(|files| {
            let place = Place::new(files);
            let token = place.token("agent", &[]);
            let mut web = place.serve();
            web.token = token;
            (files, measured(&mut Client::new(&web), files))
        })
        .into();
    table("files", &rows)
}

/// Measures with more changes in the journal.
pub(crate) fn with_history() -> Vec<Series> {
    let (place, files) = (Place::new(500), 500);
    let token = place.token("agent", &[]);
    let mut web = place.serve();
    web.token = token;
    let mut client = Client::new(&web);
    let (mut rows, mut made) = (Vec::new(), 0);
    for changes in [100, 1_000, 10_000] {
        while made < changes {
            let write =
                json!({"path": format!("own/{}.txt", made % 50), "content": format!("{made}\n")});
            assert!(client.call(("file.write", write, true)));
            made += 1;
        }
        rows.push((changes, measured(&mut client, files)));
        made += CALLS;
    }
    table("changes", &rows)
}
