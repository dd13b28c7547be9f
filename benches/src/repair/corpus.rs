//! Edits with typical mistakes of models.

/// An edit that is refused.
pub(crate) struct Case {
    /// The model's mistake.
    pub(crate) kind: &'static str,
    pub(crate) file: String,
    pub(crate) old: String,
    /// The refusal has to contain one of these words.
    pub(crate) reasons: &'static [&'static str],
}

const RUST: &str = r#"//! Opens connections.

use std::time::Duration;

/// A connection that is kept open.
pub struct Connection {
    host: String,
    port: u16,
}

impl Connection {
    /// Connects to a host.
    pub fn open(host: &str, port: u16) -> Result<Self, Error> {
        let address = format!("{host}:{port}");
        log::info!("connecting to {}", address);
        let stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        if port < 1024 && !is_root() {
            return Err(Error::Privileged { port });
        }
        Ok(Self { host: host.to_owned(), port })
    }

    pub fn close(self) -> Result<(), Error> {
        println!("closing \"{}\"\n", self.host);
        Ok(())
    }
}
"#;

const PYTHON: &str = "import os\nimport re\n\nPATTERN = re.compile(r\"(\\d+)-(\\w+)\")\n\n\ndef load(path, strict=False):\n    \"\"\"Loads a file\u{2019}s lines \u{2013} all of them\u{2026}\"\"\"\n    with open(path, encoding=\"utf-8\") as f:\n        lines = f.read().split(\"\\n\")\n    if strict and not lines:\n        raise ValueError(\"empty: %s\" % path)\n    result = []\n    for line in lines:\n        match = PATTERN.match(line)\n        if match:\n            result.append(match.group(1))\n        else:\n            print('skipped', line)\n    return result\n\n\nclass Caf\u{e9}:\n    name = \"Caf\u{e9} M\u{fc}ller\"\n\n    def greet(self):\n        return f\"Gr\u{fc}\u{df}e aus dem {self.name}\"\n";

const GO: &str = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\n// Config holds settings.\ntype Config struct {\n\tName    string\n\tTimeout int\n}\n\nfunc main() {\n\tcfg := Config{Name: \"app\", Timeout: 30}\n\tif len(os.Args) > 1 {\n\t\tcfg.Name = os.Args[1]\n\t}\n\tfor i := 0; i < 3; i++ {\n\t\tfmt.Printf(\"%s\\t%d\\n\", cfg.Name, i)\n\t}\n\tfmt.Println(\"done\", cfg.Timeout)\n}\n";

const HTML: &str = "<!DOCTYPE html>\n<html>\n  <head>\n    <title>Fish &amp; Chips</title>\n  </head>\n  <body class=\"main\">\n    <p>Price:\u{a0}5\u{a0}EUR</p>\n    <a href='/order?a=1&amp;b=2'>Order</a>\n    <script>\n      if (a < b && c > d) {\n        alert(\"ok\");\n      }\n    </script>\n  </body>\n</html>\n";

const JSON: &str = "{\n  \"name\": \"app\",\n  \"version\": \"1.2.0\",\n  \"scripts\": {\n    \"build\": \"tsc -p .\",\n    \"test\": \"jest --coverage\",\n    \"lint\": \"eslint \\\"src/**/*.ts\\\"\"\n  },\n  \"paths\": [\"C:\\\\Users\\\\me\\\\app\", \"/usr/local\"]\n}\n";

/// A mistake: its name, its effect on lines, and the words for it.
struct Mistake {
    kind: &'static str,
    apply: fn(&[&str]) -> String,
    reasons: &'static [&'static str],
}

fn each_line(lines: &[&str], change: impl Fn(&str) -> String) -> String {
    lines.iter().map(|line| change(line)).collect::<Vec<_>>().join("\n")
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        kind: "line breaks written out",
        apply: |lines| lines.join("\\n"),
        reasons: &["\\n written out"],
    },
    Mistake {
        kind: "quotes escaped",
        apply: |lines| lines.join("\n").replace('"', "\\\""),
        reasons: &["\\\" written out", "\\\\\" written out", "\\\\\\\" written out"],
    },
    Mistake {
        kind: "tabs written out",
        apply: |lines| lines.join("\n").replace('\t', "\\t"),
        reasons: &["\\t written out"],
    },
    Mistake {
        kind: "backslashes doubled",
        apply: |lines| lines.join("\n").replace('\\', "\\\\"),
        reasons: &["written out"],
    },
    Mistake {
        kind: "entities",
        apply: |lines| lines.join("\n").replace('<', "&lt;").replace('>', "&gt;"),
        reasons: &["&lt; written out", "&gt; written out"],
    },
    Mistake {
        kind: "entities resolved",
        apply: |lines| lines.join("\n").replace("&amp;", "&"),
        reasons: &["&amp; written out"],
    },
    Mistake {
        kind: "other quotes",
        apply: |lines| lines.join("\n").replace('"', "'"),
        reasons: &["' where the file has \""],
    },
    Mistake {
        kind: "curly quotes",
        apply: |lines| lines.join("\n").replace('"', "\u{201d}"),
        reasons: &["(U+201D) where the file has \""],
    },
    Mistake {
        kind: "straight quotes, dashes and dots",
        apply: |lines| {
            let text = lines.join("\n").replace('\u{2019}', "'");
            text.replace('\u{2013}', "-").replace('\u{2026}', "...")
        },
        reasons: &["' where the file has \u{2019} (U+2019)"],
    },
    Mistake {
        kind: "ordinary spaces",
        apply: |lines| lines.join("\n").replace('\u{a0}', " "),
        reasons: &["no-break space"],
    },
    Mistake {
        kind: "no-break spaces",
        apply: |lines| {
            each_line(lines, |line| match line.trim_start().split_once(' ') {
                Some((one, rest)) => {
                    format!("{}{one}\u{a0}{rest}", &line[..line.len() - line.trim_start().len()])
                }
                None => line.to_owned(),
            })
        },
        reasons: &["no-break space"],
    },
    Mistake {
        kind: "zero-width space",
        apply: |lines| lines.join("\n").replacen('(', "(\u{200b}", 1),
        reasons: &["U+200B after"],
    },
    Mistake {
        kind: "decomposed",
        apply: |lines| lines.join("\n").replace('\u{e9}', "e\u{301}").replace('\u{fc}', "u\u{308}"),
        reasons: &["another Unicode form"],
    },
    Mistake {
        kind: "full-width",
        apply: |lines| lines.join("\n").replace('(', "\u{ff08}").replace(')', "\u{ff09}"),
        reasons: &["full-width"],
    },
    Mistake {
        kind: "letter case",
        apply: |lines| {
            each_line(lines, |line| {
                line.replace("name", "Name").replace("return", "Return").replace("port", "Port")
            })
        },
        reasons: &["letter case"],
    },
    Mistake {
        kind: "indentation doubled",
        apply: |lines| {
            let mut number = 0;
            let lines: Vec<String> = lines
                .iter()
                .map(|line| {
                    number += 1;
                    let indent = line.len() - line.trim_start().len();
                    if number % 2 == 0 {
                        format!("{} {line}", &line[..indent])
                    } else {
                        (*line).to_owned()
                    }
                })
                .collect();
            lines.join("\n")
        },
        reasons: &["indentation"],
    },
    Mistake {
        kind: "whitespace inside",
        apply: |lines| lines.join("\n").replace(", ", ",").replace(" = ", "  =  "),
        reasons: &["whitespace inside the line"],
    },
    Mistake {
        kind: "line numbers with a tab",
        apply: |lines| {
            let numbered = lines.iter().enumerate();
            numbered
                .map(|(at, line)| format!("{:>6}\t{line}", at + 10))
                .collect::<Vec<_>>()
                .join("\n")
        },
        reasons: &["leave out the line number"],
    },
    Mistake {
        kind: "line numbers with a bar",
        apply: |lines| {
            let numbered = lines.iter().enumerate();
            numbered
                .map(|(at, line)| format!("{} | {line}", at + 10))
                .collect::<Vec<_>>()
                .join("\n")
        },
        reasons: &["leave out the line number"],
    },
    Mistake {
        kind: "diff markers",
        apply: |lines| each_line(lines, |line| format!("-{line}")),
        reasons: &["diff marker"],
    },
    Mistake {
        kind: "a line dropped",
        apply: |lines| {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != 1);
            kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
        },
        reasons: &["missing in the text"],
    },
    Mistake {
        kind: "a line added",
        apply: |lines| {
            let mut lines = lines.to_vec();
            lines.insert(1, "    # TODO: check this before the release");
            lines.join("\n")
        },
        reasons: &["missing in the file"],
    },
    Mistake {
        kind: "a line doubled",
        apply: |lines| {
            let mut lines = lines.to_vec();
            lines.insert(1, lines[0]);
            lines.join("\n")
        },
        reasons: &["missing in the file"],
    },
    Mistake {
        kind: "lines swapped",
        apply: |lines| {
            let mut lines = lines.to_vec();
            lines.swap(0, 1);
            lines.join("\n")
        },
        reasons: &["another order"],
    },
    Mistake {
        kind: "lines left out",
        apply: |lines| format!("{}\n...\n{}", lines[0], lines[lines.len() - 1]),
        reasons: &["left out where the text has \"...\""],
    },
    Mistake {
        kind: "existing code",
        apply: |lines| {
            format!("{}\n    // ... existing code ...\n{}", lines[0], lines[lines.len() - 1])
        },
        reasons: &["left out where the text has"],
    },
    Mistake {
        kind: "a stale word",
        apply: |lines| {
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let last = lines.len() - 1;
            lines[last] = lines[last].replace(['e', 'i'], "x");
            lines.join("\n")
        },
        reasons: &["where the file has", "missing in the file"],
    },
    Mistake {
        kind: "another last line",
        apply: |lines| {
            let kept = &lines[..lines.len() - 1];
            format!("{}\n    something_that_was_here_before()", kept.join("\n"))
        },
        reasons: &["missing in the file"],
    },
    Mistake {
        kind: "only the last line's words differ",
        apply: |lines| format!("{} // as it was", lines.join("\n")),
        reasons: &["not in the file", "missing in the file", "where the file has"],
    },
    Mistake {
        kind: "only parts of lines",
        apply: |lines| {
            each_line(lines, |line| {
                let words: Vec<&str> = line.split(' ').collect();
                words[..words.len().max(2) - 1].join(" ")
            })
        },
        reasons: &[
            "part of the line",
            "missing in the text",
            "where the file has",
            "missing in the file",
        ],
    },
];

/// Every mistake in several places of several files, wherever it makes a difference.
pub(crate) fn corpus() -> Vec<Case> {
    let mut cases = Vec::new();
    for file in [RUST, PYTHON, GO, HTML, JSON] {
        let lines: Vec<&str> = file.lines().collect();
        for mistake in MISTAKES {
            let mut found = 0;
            for start in (0..lines.len()).step_by(2) {
                let taken: Vec<&str> = lines[start..].iter().copied().take(3 + start % 3).collect();
                let enough = taken.len() >= 3 && taken.iter().all(|line| line.trim().len() > 2);
                if !enough || found == 3 {
                    continue;
                }
                let old = (mistake.apply)(&taken);
                if file.contains(&old) {
                    continue;
                }
                found += 1;
                let (kind, reasons) = (mistake.kind, mistake.reasons);
                cases.push(Case { kind, file: file.to_owned(), old, reasons });
            }
        }
    }
    for line_break in ["\r", "\u{2028}"] {
        for start in 0..5 {
            let lines: Vec<&str> = RUST.lines().skip(9).collect();
            let (file, old) = (lines.join(line_break), lines[start..start + 3].join("\n"));
            let reasons = &["as line break"];
            cases.push(Case { kind: "other line breaks in the file", file, old, reasons });
        }
    }
    cases
}
