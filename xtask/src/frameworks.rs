//! Agent frameworks against the server, each with its own packages below `target`, and the table of results.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, anyhow, bail};
use serde_json::Value;

use crate::packages::{once, pip, run as must};

/// The scripts that call the server through the frameworks.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cli/tests/frameworks");
const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target");
/// The page with the table, between two marks.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CLIENTS.md");
const MARKS: [&str; 2] = ["<!-- cargo xtask frameworks -->\n", "<!-- end -->\n"];

const STEPS: [&str; 5] = ["list", "read", "edit", "refused edit", "approval"];

/// A framework, and the packages that its script needs. The first one's version is shown.
struct Framework {
    title: &'static str,
    script: &'static str,
    packages: &'static [&'static str],
}

const FRAMEWORKS: [Framework; 9] = [
    Framework {
        title: "LangChain",
        script: "check_langchain.py",
        packages: &["langchain-mcp-adapters==0.3.2", "langchain==1.4.7"],
    },
    Framework {
        title: "LlamaIndex",
        script: "check_llamaindex.py",
        packages: &["llama-index-tools-mcp==0.6.0", "llama-index-core==0.14.25"],
    },
    Framework {
        title: "AutoGen",
        script: "check_autogen.py",
        packages: &["autogen-ext[mcp]==0.7.5", "autogen-agentchat==0.7.5", "mcp<2"],
    },
    Framework {
        title: "openai-agents",
        script: "check_openai_agents.py",
        packages: &["openai-agents==0.24.0"],
    },
    Framework {
        title: "pydantic-ai",
        script: "check_pydantic_ai.py",
        packages: &["pydantic-ai-slim[mcp]==2.66.0"],
    },
    Framework {
        title: "smolagents",
        script: "check_smolagents.py",
        packages: &["smolagents[mcp]==1.26.0", "mcp[ws]<2"],
    },
    Framework { title: "mcp-use", script: "check_mcp_use.py", packages: &["mcp-use==1.7.1"] },
    Framework { title: "fastmcp", script: "check_fastmcp.py", packages: &["fastmcp==4.1.2"] },
    Framework {
        title: "Vercel AI SDK",
        script: "check_ai.mjs",
        packages: &["ai@6.0.326", "@ai-sdk/mcp@1.0.101"],
    },
];

/// Runs every script and writes the table. Fails if a step fails that worked when the table was last written.
pub(crate) fn run() -> Result<()> {
    crate::run(&["build", "--package", "pinfold-cli"], &[])?;
    let pinfold = Path::new(TARGET).join("debug/pinfold").canonicalize()?;
    let mut table = String::from("| framework | version |");
    STEPS.iter().for_each(|step| table.push_str(&format!(" {step} |")));
    table.push_str(&format!("\n|{}\n", "---|".repeat(STEPS.len() + 2)));
    let mut failed = Vec::new();
    for framework in &FRAMEWORKS {
        let version = framework.packages[0].rsplit(['=', '@']).next().unwrap_or_default();
        write!(table, "| {} | {version} |", framework.title)?;
        match framework.check(&pinfold) {
            Ok(steps) => {
                for step in STEPS {
                    let cell = match &steps[step] {
                        Value::Bool(true) => "yes",
                        Value::String(why) => why,
                        _ => {
                            failed.push(format!("{}: {step}", framework.title));
                            "**no**"
                        }
                    };
                    write!(table, " {cell} |")?;
                }
            }
            Err(problem) => {
                eprintln!("xtask: !!! {}: {problem} !!!", framework.title);
                failed.push(format!("{}: {problem}", framework.title));
                write!(table, " **could not be tried** |{}", " |".repeat(STEPS.len() - 1))?;
            }
        }
        table.push('\n');
    }
    crate::write_between(Path::new(PAGE), MARKS, &table)?;
    print!("{table}");
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}

impl Framework {
    /// Installs the packages, runs the script, and returns which steps worked.
    fn check(&self, pinfold: &Path) -> Result<Value> {
        let home =
            Path::new(TARGET).join("frameworks").join(self.packages.join("+").replace('/', "_"));
        fs::create_dir_all(&home)?;
        let home = home.canonicalize()?;
        let script = Path::new(SCRIPTS).join(self.script);
        let mut command = if self.script.ends_with(".mjs") {
            let modules = self.install_node(&home)?;
            let mut node = Command::new("node");
            node.arg(script).arg(pinfold).arg(modules);
            node
        } else {
            let mut python = Command::new(self.install_python(&home)?);
            python.arg(script).arg(pinfold).env("PYTHONDONTWRITEBYTECODE", "1");
            python
        };
        command.env("MCP_USE_ANONYMIZED_TELEMETRY", "false");
        eprintln!("xtask: {}", self.script);
        let printed = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        let report = printed.lines().last().ok_or_else(|| anyhow!("`{}` failed", self.script))?;
        Ok(serde_json::from_str(report)?)
    }

    fn install_python(&self, home: &Path) -> Result<PathBuf> {
        let python = home.join("bin/python");
        let install = || {
            must(Command::new("python3").args(["-m", "venv"]).arg(home))?;
            must(pip(&python).args(self.packages))
        };
        once(home, install).map_err(|problem| anyhow!("does not install: {problem}"))?;
        Ok(python)
    }

    fn install_node(&self, home: &Path) -> Result<PathBuf> {
        let install = || {
            fs::write(home.join("package.json"), "{}").map_err(|error| error.to_string())?;
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
            must(npm.args(self.packages).current_dir(home))
        };
        once(home, install).map_err(|problem| anyhow!("does not install: {problem}"))?;
        Ok(home.join("node_modules"))
    }
}
