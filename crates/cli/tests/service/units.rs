//! The systemd units in `deploy`, and what they rely on: socket activation and `sd_notify`.

use std::fs::{self, File};
use std::io::Read as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pinfold_testkit::mcp::{Web, alone, answer};
use pinfold_testkit::skipped;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::image::pdf;
use crate::{Place, called, exists, read, recipe};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Starts the server as systemd does: the socket is file 3, and LISTEN_PID is the server's own id.
fn activated(place: &Place, listener: TcpListener, notify: &str) -> Running {
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(env!("CARGO_BIN_EXE_pinfold"));
    shell.args(["serve", "--http", "systemd"]).env("NOTIFY_SOCKET", notify);
    shell.env("XDG_STATE_HOME", place.path("state")).env("XDG_CONFIG_HOME", place.path("config"));
    shell.env_remove("PINFOLD_TOKEN").env_remove("PINFOLD_LOG");
    let log = File::create(place.path("log")).unwrap();
    shell.stdin(Stdio::from(OwnedFd::from(listener))).stderr(log);
    Running(shell.spawn().unwrap())
}

fn received(manager: &UnixDatagram) -> String {
    let mut text = [0; 100];
    let length = manager.recv(&mut text).unwrap();
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[test]
fn a_socket_that_systemd_passes_is_served_and_the_manager_is_told() {
    let place = Place::new(&["one"]);
    let token = place.token("one", "agent", &[]);
    let abstract_name = format!("pinfold-test-{}", std::process::id());
    let path = place.path("notify");
    let abstract_address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    for (manager, name) in [
        (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
        (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{abstract_name}")),
    ] {
        manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        // A client that comes before the server is ready waits in the socket.
        let web = Web::opened(at, &token, "/mcp/one");
        let early = std::net::TcpStream::connect(at).unwrap();
        let mut server = activated(&place, listener, &name);
        assert_eq!(received(&manager), "READY=1");
        let session = web.session();
        assert_eq!(called(&web, &session, "file.read", &read("a.txt"))["total_lines"], 1);
        drop(early);
        kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
        assert_eq!(received(&manager), "STOPPING=1");
        assert!(server.0.wait().unwrap().success());
    }
}

#[test]
fn without_a_socket_or_with_one_for_everybody_it_does_not_start() {
    let place = Place::new(&["one"]);
    let output = place.pinfold(&["serve", "--http", "systemd"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("LISTEN_FDS"), "{output:?}");
    let mut server = activated(&place, TcpListener::bind("0.0.0.0:0").unwrap(), "/nowhere");
    assert_eq!(server.0.wait().unwrap().code(), Some(2));
    let mut log = String::new();
    File::open(place.path("log")).unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("--allow-remote"), "{log}");
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_units_are_right_and_leave_the_service_little() {
    if !has("systemd-analyze") {
        return skipped("THE UNITS WERE NOT CHECKED: there is no `systemd-analyze`");
    }
    let place = Place::new(&[]);
    let directory = place.dir.path();
    for name in ["pinfold.service", "pinfold.socket"] {
        let text = recipe(name).replace("/usr/bin/pinfold", env!("CARGO_BIN_EXE_pinfold"));
        fs::write(directory.join(name), text).unwrap();
    }
    let analyze = |arguments: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        let output = command.args(arguments).current_dir(directory).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), printed + &String::from_utf8_lossy(&output.stdout))
    };
    let (right, printed) = analyze(&["verify", "./pinfold.service", "./pinfold.socket"]);
    // It also complains about other units of this machine.
    let own: Vec<&str> = printed.lines().filter(|line| line.contains("pinfold")).collect();
    assert!(right && own.is_empty(), "{printed}");
    // From 0 (nothing is left to attack with) to 100; 50 and more is "medium".
    let threshold = ["security", "--offline=true", "--threshold=10", "./pinfold.service"];
    let (right, printed) = analyze(&threshold);
    assert!(right, "{printed}");
}

/// Starts systemd on a copy of this machine's files, in namespaces and in a control group of its own. What it changes is in
/// memory, apart from `$1`, which it has at `/mnt`.
const BOOT: &str = r#"
mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work /mnt/root /mnt/groups
mount -t cgroup2 cgroup2 /mnt/groups
group=/mnt/groups$(sed -n 's/^0:://p' /proc/self/cgroup)/pinfold-test-$$
mkdir "$group"
(
  echo 0 > "$group/cgroup.procs"
  exec timeout --signal=KILL 240 unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child sh -ec '
    mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
    cd /mnt/root
    mount -t proc proc proc
    mount --bind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    mount -t sysfs -o ro sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs tmpfs run
    mount -t tmpfs tmpfs tmp
    mount --rbind /dev dev
    mount --bind "$1" mnt
    cp "$2" usr/bin/pinfold
    rm -rf etc/systemd/system
    mkdir -p etc/systemd/system
    cp mnt/trial.service etc/systemd/system
    pivot_root . tmp
    umount -l /tmp
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      /lib/systemd/systemd --unit=trial.service --log-level=err' sh "$1" "$2"
) || true
find "$group" -depth -type d -exec rmdir {} ';'
"#;

const TRIAL_UNIT: &str = "[Unit]
AllowIsolate=yes
Requires=basic.target
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
TimeoutStartSec=200
StandardOutput=file:/mnt/output
StandardError=inherit
ExecStart=/bin/sh -ex /mnt/trial
";

/// Runs the commands of the page, and calls the service.
const TRIAL: &str = r#"
touch /mnt/begun
cd /mnt
mkdir -p /srv/website /srv/handbook
cp paper.pdf /srv/website
sh -ex recipe > tokens
token=$(head -1 tokens)
call() {
  curl --silent --fail --header "Authorization: Bearer $token" --header "Mcp-Name: $1" \
    --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' \
    --header 'MCP-Protocol-Version: 2026-07-28' --header 'Mcp-Method: tools/call' \
    --data "@$2.json" http://127.0.0.1:8700/mcp/website
}
systemctl is-active pinfold.service > before || true
call Write write > write.answer
call Read pdf > pdf.answer
systemctl is-active pinfold.service > after
# Root rotates the token of a server that runs as another user.
token=$(pinfold token new /etc/pinfold/website.tokens alice)
until call Read pdf > rotated.answer; do sleep 0.1; done
sh -ex own > log
systemctl stop pinfold.socket pinfold.service
systemctl show --property=Result --value pinfold.service > result
"#;

#[test]
fn systemd_starts_the_service_of_the_page_at_the_first_connection() {
    let skip = |why: &str| skipped(&format!("THE UNITS WERE NOT STARTED: {why}"));
    if !rustix::process::geteuid().is_root() || !Path::new("/lib/systemd/systemd").exists() {
        return skip("this is not root's, or there is no systemd");
    }
    let place = Place::new(&[]);
    let page = include_str!("../../../../docs/DEPLOY.md");
    let block = |text: &str, kind: &str, number: usize| {
        let start = format!("```{kind}\n");
        text.split(&start).nth(number).unwrap().split("```").next().unwrap().to_owned()
    };
    let section = page.split("\n## ").find(|section| section.starts_with("systemd\n")).unwrap();
    let call = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments, "_meta": alone("agent")});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let write = json!({"file_path": "/srv/website/new.txt", "content": "new\n"});
    fs::create_dir(place.path("deploy")).unwrap();
    for (name, text) in [
        ("deploy/pinfold.service", recipe("pinfold.service")),
        ("deploy/pinfold.socket", recipe("pinfold.socket")),
        ("config.toml", block(page, "toml", 1)),
        ("recipe", block(section, "sh", 1)),
        ("own", block(section, "sh", 2)),
        ("trial.service", TRIAL_UNIT.to_owned()),
        ("trial", TRIAL.to_owned()),
        ("write.json", call("Write", write)),
        ("pdf.json", call("Read", json!({"file_path": "/srv/website/paper.pdf"}))),
        ("paper.pdf", pdf()),
    ] {
        fs::write(place.path(name), text).unwrap();
    }
    let mut boot = Command::new("unshare");
    boot.args(["--mount", "sh", "-ec", BOOT, "sh"]).arg(place.dir.path());
    boot.arg(env!("CARGO_BIN_EXE_pinfold"));
    let output = boot.stdin(Stdio::null()).output().unwrap();
    if !exists(place.path("begun")) {
        return skip(&format!("it does not start here: {output:?}"));
    }
    let said = |name: &str| fs::read_to_string(place.path(name)).unwrap_or_default();
    let all = format!("{}\n{output:?}", said("output"));
    assert_eq!([said("before"), said("after")], ["inactive\n", "active\n"], "{all}");
    for name in ["write", "pdf", "rotated"] {
        let message: Value = serde_json::from_str(&said(&format!("{name}.answer"))).expect(&all);
        assert_eq!(answer(&message)["success"], true, "{message}");
    }
    assert!(said("log").contains("new.txt"), "{all}");
    assert_eq!(said("result"), "success\n", "{all}");
}
