//! The commands in the first lines of `deploy/Containerfile`, with `podman`: the image is built and served from.
//!
//! Needs root, `podman`, and an engine that can start containers on this machine. Images, containers and volumes are
//! in the test's own directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pinfold_testkit::mcp::Web;
use pinfold_testkit::skipped;
use serde_json::{Value, json};

use crate::image::{Image, libraries};
use crate::{Place, called, eventually, recipe};

const NAME: &str = "served";

/// `podman` with its own storage and configuration. The container ends with the test.
struct Engine {
    directory: PathBuf,
}

impl Engine {
    fn new(directory: PathBuf) -> Self {
        fs::create_dir_all(&directory).unwrap();
        let path = |name: &str| directory.join(name).display().to_string();
        // A driver that needs no support of the kernel.
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = {:?}\nrunroot = {:?}\n",
            path("storage"),
            path("run")
        );
        fs::write(directory.join("storage.conf"), storage).unwrap();
        let engine = Self { directory };
        engine.use_runtime("crun");
        engine
    }

    fn use_runtime(&self, runtime: &str) {
        // The usual limits are more than root may have in some containers.
        let engine = format!(
            "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n\
             [engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = {runtime:?}\n"
        );
        fs::write(self.directory.join("containers.conf"), engine).unwrap();
    }

    /// Runs a command of a shell.
    fn run(&self, command: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.directory);
        shell.env("CONTAINERS_CONF", self.directory.join("containers.conf"));
        shell.env("CONTAINERS_STORAGE_CONF", self.directory.join("storage.conf"));
        // That driver would copy the program for each instruction.
        shell.env("BUILDAH_LAYERS", "false");
        shell.output().unwrap()
    }

    fn succeeds(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "{command}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.run(&format!("podman rm --force --volumes {NAME}"));
    }
}

/// The program and, if it is not static, its libraries, beside the Containerfile.
fn put_program(directory: &Path, recipe: &str) {
    let program = std::env::var_os("PINFOLD_IMAGE_PROGRAM").map(PathBuf::from);
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_pinfold").into());
    fs::copy(&program, directory.join("pinfold")).unwrap();
    let mut recipe = recipe.to_owned();
    for library in libraries(&program) {
        let path = library.to_str().unwrap();
        let copy = directory.join("libraries").join(path.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&library, copy).unwrap();
        recipe += &format!("COPY libraries{path} {path}\n");
    }
    fs::write(directory.join("Containerfile"), recipe).unwrap();
}

/// An engine that has built the image and can start it, without the options that the recipe asks for. Otherwise the
/// reason.
fn engine_with_image(place: &Place, text: &str, build: &str) -> Result<Engine, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can build an image here".into());
    }
    let engine = Engine::new(place.path("engine"));
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let version = engine.run("podman --version");
    if !version.status.success() {
        return Err(said(&version));
    }
    put_program(&engine.directory, text);
    engine.succeeds(build);
    let mut reasons = String::new();
    for runtime in ["crun", "runc"] {
        engine.use_runtime(runtime);
        let trial = engine.run("podman run --rm --network host pinfold --version");
        if trial.status.success() {
            return Ok(engine);
        }
        reasons += &format!("; {runtime}: {}", said(&trial));
    }
    Err(format!("`podman` cannot start a container{reasons}"))
}

#[test]
fn the_commands_of_the_recipe_build_an_image_and_serve_from_it() {
    let (text, place) = (recipe("Containerfile"), Place::new(&[]));
    let image = Image::parse(&text);
    let [build, serve] = &image.engine[..] else { panic!("{image:?}") };
    let engine = match engine_with_image(&place, &text, build) {
        Ok(engine) => engine,
        Err(reason) => return skipped(&format!("PODMAN WAS NOT TRIED: {reason}")),
    };
    let mut token = String::new();
    for line in &image.preparation {
        token += &engine.succeeds(&line.replacen("pinfold", env!("CARGO_BIN_EXE_pinfold"), 1));
    }
    let workspace = engine.directory.join("workspace");
    fs::write(workspace.join("a.txt"), "one\n").unwrap();
    // On the host's network, since the engine would leave a bridge behind, and at a free port.
    assert!(serve.contains("--publish 127.0.0.1:8700:8700"), "{serve}");
    let serve = serve.replace("--publish 127.0.0.1:8700:8700", "--network host");
    let serve = serve.replacen("podman run", &format!("podman run --detach --name {NAME}"), 1);
    let command = image.command[1..].join(" ").replace("0.0.0.0:8700", "127.0.0.1:0");
    engine.succeeds(&format!("{serve} {command}"));
    let mut address = None;
    eventually("it does not listen", || {
        let output = engine.run(&format!("podman logs {NAME}"));
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of = |line: Value| {
            let url = line["message"].as_str()?.strip_prefix("listening on http://")?;
            url.strip_suffix("/mcp").map(str::to_owned)
        };
        address = lines.filter_map(of).next();
        address.is_some()
    });
    let web = Web::opened(address.unwrap(), &token, "/mcp");
    assert_eq!(web.send("GET", "/readyz", &[], b"").body, "ok\n");
    let session = web.session();
    let write = json!({"file_path": "/workspace/new.txt", "content": "new\n"});
    assert_eq!(called(&web, &session, "Write", &write)["success"], true);
    assert_eq!(fs::read_to_string(workspace.join("new.txt")).unwrap(), "new\n");
    let facts = "{{.HostConfig.ReadonlyRootfs}} {{.Config.User}} {{.EffectiveCaps}}";
    let facts = engine.succeeds(&format!("podman inspect --format '{facts}' {NAME}"));
    assert_eq!(facts, "true 10001:10001 []");
    engine.succeeds(&format!("podman stop --time 60 {NAME}"));
    let code =
        engine.succeeds(&format!("podman inspect --format '{{{{.State.ExitCode}}}}' {NAME}"));
    assert_eq!(code, "0", "SIGTERM does not end it");
}
