//! The image of `deploy/Containerfile`: the test follows the file's instructions, and runs the server in the result.
//!
//! No container engine is needed: a directory is assembled as the file says, mounted read-only in a mount namespace,
//! and the program runs in it as the file's user. That needs root.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pinfold_testkit::mcp::Web;
use pinfold_testkit::skipped;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Place, called, eventually, is_let_in, recipe};

/// The instructions of the Containerfile.
#[derive(Debug, Default)]
pub(crate) struct Image {
    copied: (String, String),
    environment: Vec<(String, String)>,
    user: u32,
    directory: String,
    volumes: Vec<String>,
    /// The commands in the first lines that come before those of the container engine.
    pub(crate) preparation: Vec<String>,
    /// The volumes of the command in the first lines: a directory beside the file or a name, and the path in the image.
    mounted: Vec<(String, String)>,
    pub(crate) command: Vec<String>,
    /// The commands of the container engine in the first lines: one that builds the image, and one that runs it.
    pub(crate) engine: Vec<String>,
}

impl Image {
    pub(crate) fn parse(text: &str) -> Self {
        let mut image = Self::default();
        let list = |value: &str| serde_json::from_str::<Vec<String>>(value).unwrap();
        for volume in text.split("--volume ").skip(1) {
            let (from, to) = volume.split(' ').next().unwrap().split_once(':').unwrap();
            image.mounted.push((from.into(), to.trim_end_matches(":ro").into()));
        }
        let commands = text.lines().filter_map(|line| line.strip_prefix("#   "));
        let (engine, preparation): (Vec<_>, Vec<_>) =
            commands.partition(|line| line.starts_with("podman ") || line.starts_with(' '));
        image.preparation = preparation.into_iter().map(str::to_owned).collect();
        image.engine = engine.join("\n").replace("\\\n", "").lines().map(str::to_owned).collect();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (word, value) = line.split_once(' ').unwrap();
            match word {
                "FROM" => assert_eq!(value, "scratch"),
                "COPY" => {
                    let value = value.strip_prefix("--chmod=0555 ").unwrap();
                    let (from, to) = value.split_once(' ').unwrap();
                    image.copied = (from.into(), to.into());
                }
                "ENV" => {
                    let pairs = value.split(' ').map(|pair| pair.split_once('=').unwrap());
                    image.environment = pairs.map(|(key, it)| (key.into(), it.into())).collect();
                }
                "USER" => image.user = value.split_once(':').unwrap().0.parse().unwrap(),
                "WORKDIR" => image.directory = value.into(),
                "VOLUME" => image.volumes = list(value),
                "ENTRYPOINT" | "CMD" => image.command.extend(list(value)),
                "EXPOSE" => {}
                "STOPSIGNAL" => assert_eq!(value, "SIGTERM"),
                _ => panic!("{line}: what is to be done?"),
            }
        }
        image
    }
}

/// The libraries that a program loads. A static one, which the image is for, loads none.
pub(crate) fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(|path| PathBuf::from(path.trim_end_matches(':'))).filter(|it| it != program).collect()
}

/// A PDF with a page, which a process of its own reads.
pub(crate) fn pdf() -> String {
    let setup = include_str!("../../../../scenarios/read/pdf/setup.json");
    let setup: Value = serde_json::from_str(setup).unwrap();
    setup["steps"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_image_serves_as_its_user_from_a_read_only_root() {
    if !rustix::process::geteuid().is_root() {
        return skipped("THE IMAGE WAS NOT TRIED: only root can mount what it consists of");
    }
    let image = Image::parse(&recipe("Containerfile"));
    let place = Place::new(&[]);
    let root = place.path("image");
    let given = std::env::var_os("PINFOLD_IMAGE_PROGRAM").map(PathBuf::from);
    let is_given = given.is_some();
    let program = given.unwrap_or_else(|| env!("CARGO_BIN_EXE_pinfold").into());
    fs::create_dir_all(&root).unwrap();
    assert_eq!(image.copied.0, "pinfold");
    let inside = |path: &str| root.join(path.trim_start_matches('/'));
    fs::copy(&program, inside(&image.copied.1)).unwrap();
    fs::set_permissions(inside(&image.copied.1), fs::Permissions::from_mode(0o555)).unwrap();
    let needed = libraries(&program);
    assert!(!is_given || needed.is_empty(), "it is not static: {needed:?}");
    for library in needed {
        let copy = inside(library.to_str().unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&library, copy).unwrap();
    }
    for mounted in ["/proc", "/dev", "/sys", "/tmp"] {
        fs::create_dir_all(inside(mounted)).unwrap();
    }
    let mut mounts = format!("mount --bind '{0}' '{0}'\n", root.display());
    let volumes = place.path("volumes");
    fs::create_dir(&volumes).unwrap();
    let mut printed = String::new();
    for line in &image.preparation {
        let line = line.replacen("pinfold", env!("CARGO_BIN_EXE_pinfold"), 1);
        let output = Command::new("sh").args(["-c", &line]).current_dir(&volumes).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        printed += &String::from_utf8_lossy(&output.stdout);
    }
    let token = printed.trim().to_owned();
    let volume = |path: &str| {
        let of_path = image.mounted.iter().find(|(_, to)| to == path);
        volumes.join(&of_path.unwrap_or_else(|| panic!("{path} is no volume: {image:?}")).0)
    };
    image.volumes.iter().for_each(|path| _ = volume(path));
    for (from, path) in &image.mounted {
        let volume = &volume(path);
        if !from.starts_with("./") {
            // The engine makes it, for the image's user.
            fs::create_dir(volume).unwrap();
            chown(volume, Some(image.user), Some(image.user)).unwrap();
        }
        fs::create_dir_all(inside(path)).unwrap();
        mounts += &format!("mount --bind '{}' '{}'\n", volume.display(), inside(path).display());
    }
    let workspace = volume(&image.directory);
    fs::write(workspace.join("paper.pdf"), pdf()).unwrap();
    let tokens = volume("/etc/pinfold").join("tokens");
    let new_token = || {
        let output = place.pinfold(&["token", "new"]).arg(&tokens).arg("agent").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    // The mounts of every container.
    mounts += &format!("mount -t proc proc '{}'\n", inside("/proc").display());
    mounts +=
        &format!("touch '{0}' && mount --bind /dev/null '{0}'\n", inside("/dev/null").display());
    mounts += &format!("mount -o remount,bind,ro '{}'\n", root.display());
    let user = image.user;
    let script = format!(
        "set -e\n{mounts}cd '{0}'\nexec chroot --userspec={user}:{user} '{0}' \"$@\"",
        root.display()
    );
    let mut command = Command::new("unshare");
    // A process namespace, as in a container, so that `/proc` shows only the processes inside.
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script, "sh"]);
    for word in &image.command {
        command.arg(word.replace("0.0.0.0:8700", "0.0.0.0:0"));
    }
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(image.environment);
    let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut log = String::new();
    let port = loop {
        let line = lines.next().unwrap_or_else(|| panic!("it ends:\n{log}")).unwrap();
        log += &format!("{line}\n");
        let message = serde_json::from_str(&line).unwrap_or(Value::Null)["message"].clone();
        let address =
            message.as_str().and_then(|it| it.strip_prefix("listening on http://0.0.0.0:"));
        if let Some(port) = address.and_then(|it| it.strip_suffix("/mcp")) {
            break port.to_owned();
        }
    };
    let draining = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    let web = Web::opened(format!("127.0.0.1:{port}"), &token, "/mcp");
    assert_eq!(web.send("GET", "/readyz", &[], b"").body, "ok\n");
    let session = web.session();
    let path = |name: &str| format!("{}/{name}", image.directory);
    let write = json!({"file_path": path("new.txt"), "content": "new\n"});
    assert_eq!(called(&web, &session, "Write", &write)["success"], true);
    assert_eq!(fs::metadata(workspace.join("new.txt")).unwrap().uid(), image.user);
    let text = called(&web, &session, "Read", &json!({"file_path": path("paper.pdf")}));
    assert_eq!(text["success"], true, "{text}");
    let rotated = Web::opened(&web.address, &new_token(), "/mcp");
    eventually("the new token is not accepted", || is_let_in(&rotated));
    // The program itself cannot be changed, nor anything else of the image.
    let inner = child_of(process.id());
    let status = fs::read_to_string(format!("/proc/{inner}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(field("Uid:"), image.user.to_string());
    assert_eq!(field("CapEff:"), "0000000000000000");
    let mounts = fs::read_to_string(format!("/proc/{inner}/mountinfo")).unwrap();
    let top = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).unwrap();
    assert!(top.split(' ').nth(5).unwrap().starts_with("ro"), "{mounts}");
    kill_process(Pid::from_raw(inner).unwrap(), Signal::TERM).unwrap();
    assert!(process.wait().unwrap().success());
    draining.join().unwrap();
}

/// The child of a process.
fn child_of(parent: u32) -> i32 {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}
