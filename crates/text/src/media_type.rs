//! Media types of text files, by name, since their contents look alike.

/// The media type of a text file with this name, or `text/plain` if it is unknown.
pub fn text_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "c" | "h" => "text/x-c",
        "cc" | "cpp" | "cxx" | "hh" | "hpp" => "text/x-c++",
        "cs" => "text/x-csharp",
        "css" => "text/css",
        "csv" => "text/csv",
        "go" => "text/x-go",
        "htm" | "html" => "text/html",
        "ipynb" => "application/x-ipynb+json",
        "java" => "text/x-java",
        "js" | "mjs" | "cjs" | "jsx" => "text/javascript",
        "json" | "jsonc" => "application/json",
        "jsonl" | "ndjson" => "application/jsonl",
        "kt" => "text/x-kotlin",
        "lua" => "text/x-lua",
        "md" | "markdown" => "text/markdown",
        "php" => "text/x-php",
        "pl" | "pm" => "text/x-perl",
        "py" | "pyi" => "text/x-python",
        "rb" => "text/x-ruby",
        "rs" => "text/x-rust",
        "sh" | "bash" | "zsh" => "text/x-shellscript",
        "sql" => "application/sql",
        "svg" => "image/svg+xml",
        "swift" => "text/x-swift",
        "tex" => "text/x-tex",
        "toml" => "application/toml",
        "ts" | "tsx" | "mts" | "cts" => "text/x-typescript",
        "tsv" => "text/tab-separated-values",
        "xml" | "xsd" | "xsl" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_decides() {
        for (name, mime) in [
            ("main.rs", "text/x-rust"),
            ("App.TSX", "text/x-typescript"),
            ("a.rs.md", "text/markdown"),
            ("Makefile", "text/plain"),
            ("rs", "text/plain"),
        ] {
            assert_eq!(text_type(name), mime, "{name}");
        }
    }
}
