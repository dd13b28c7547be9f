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

use pinfold_testkit::mcp::Web;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Place, called, eventually, read, recipe};

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

/// A directory with the units, which run this program instead of the installed one.
fn units(place: &Place, directory: &Path, replace: &[(&str, &str)]) {
    fs::create_dir_all(directory).unwrap();
    for name in ["pinfold.service", "pinfold.socket"] {
        let mut text = recipe(name);
        for (from, to) in replace {
            text = text.replace(from, to);
        }
        fs::write(directory.join(name), text).unwrap();
    }
    let _ = place;
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_units_are_right_and_leave_the_service_little() {
    if !has("systemd-analyze") {
        eprintln!("!!! THE UNITS WERE NOT CHECKED: there is no `systemd-analyze` !!!");
        return;
    }
    let place = Place::new(&[]);
    let directory = place.path("units");
    units(&place, &directory, &[("/usr/bin/pinfold", env!("CARGO_BIN_EXE_pinfold"))]);
    let analyze = |arguments: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        let output = command.args(arguments).current_dir(&directory).output().unwrap();
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

#[test]
fn systemd_starts_the_service_at_the_first_connection() {
    let root = rustix::process::geteuid().is_root();
    if !Path::new("/run/systemd/system").exists() || !root {
        eprintln!(
            "!!! THE UNITS WERE NOT STARTED: this is not root's, or systemd does not run !!!"
        );
        return;
    }
    let place = Place::new(&["one"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let token = place.token("one", "agent", &[]);
    let own = place.dir.path().to_str().unwrap();
    let config = place.path("config/pinfold/config.toml");
    let name = format!("pinfold-test-{}", std::process::id());
    // As the user of the test, on its own files; everything else is as in the unit.
    let replaced = [
        ("/usr/bin/pinfold", env!("CARGO_BIN_EXE_pinfold")),
        ("/etc/pinfold/config.toml", config.to_str().unwrap()),
        ("ReadWritePaths=/srv", &format!("ReadWritePaths={own}")),
        ("User=pinfold\nGroup=pinfold\n", ""),
        ("=pinfold\n", &format!("={name}\n")),
        ("pinfold.socket", &format!("{name}.socket")),
        ("PrivateTmp=yes\n", ""),
        ("PrivateUsers=yes\n", ""),
        ("ProtectHome=yes\n", ""),
        ("/var/lib/pinfold", &format!("/var/lib/{name}")),
        ("127.0.0.1:8700", &format!("127.0.0.1:{port}")),
    ];
    units(&place, &place.path("units"), &replaced);
    let installed = Path::new("/run/systemd/system");
    for end in ["service", "socket"] {
        let from = place.path("units").join(format!("pinfold.{end}"));
        fs::copy(from, installed.join(format!("{name}.{end}"))).unwrap();
    }
    let systemctl = |arguments: &[&str]| {
        let output = Command::new("systemctl").args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let (socket, service) = (format!("{name}.socket"), format!("{name}.service"));
    systemctl(&["daemon-reload"]);
    let tried = std::panic::catch_unwind(|| {
        assert!(systemctl(&["start", &socket]).0);
        assert_eq!(systemctl(&["is-active", &service]).1, "inactive");
        let web = Web::opened(format!("127.0.0.1:{port}"), &token, "/mcp/one");
        let session = web.session();
        assert_eq!(called(&web, &session, "file.read", &read("a.txt"))["total_lines"], 1);
        assert_eq!(systemctl(&["is-active", &service]).1, "active");
        assert!(systemctl(&["stop", &service, &socket]).0);
        eventually("it is not down", || systemctl(&["is-active", &service]).1 == "inactive");
    });
    systemctl(&["stop", &socket, &service]);
    for end in ["service", "socket"] {
        fs::remove_file(installed.join(format!("{name}.{end}"))).unwrap();
    }
    systemctl(&["daemon-reload"]);
    _ = fs::remove_dir_all(format!("/var/lib/{name}"));
    if let Err(problem) = tried {
        std::panic::resume_unwind(problem);
    }
}
