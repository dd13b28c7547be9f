//! Three replicas behind a proxy: each can continue a conversation's approvals.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pinfold_testkit::mcp::{Reply, Web, alone, answer};
use pinfold_testkit::provided;
use serde_json::{Value, json};

use crate::{Place, eventually, holder};

const SKIPPED: &str = "REPLICAS WERE NOT TRIED BEHIND A PROXY";

/// A proxy that ends with the test.
struct Proxy {
    process: Child,
    address: String,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a proxy with its configuration in `deploy`, on the ports of this test.
fn proxy(place: &Place, program: &Path, recipe: &str, replicas: &[Web]) -> Proxy {
    let port = free_port();
    let mut text = crate::recipe(recipe);
    for (number, replica) in replicas.iter().enumerate() {
        text = text.replace(&format!("127.0.0.1:870{}", number + 1), &replica.address);
    }
    text = text.replace("127.0.0.1:8700", &format!("127.0.0.1:{port}"));
    let file = place.path(recipe);
    let own = place.dir.path().display();
    let mut command = Command::new(program);
    if recipe.starts_with("nginx") {
        // The recipe is a file in `conf.d`; this is the one that includes it.
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {own}/{what};"))
            .join("\n");
        text = format!(
            "daemon off; master_process off; pid {own}/nginx.pid; error_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}\n{text}\n}}\n"
        );
        command.args(["-e", "stderr", "-p"]).arg(place.dir.path()).arg("-c").arg(&file);
    } else {
        command.arg("-f").arg(&file);
    }
    fs::write(&file, text).unwrap();
    let process = command.stdin(Stdio::null()).spawn().unwrap();
    let proxy = Proxy { process, address: format!("127.0.0.1:{port}") };
    eventually("the proxy does not listen", || TcpStream::connect(&proxy.address).is_ok());
    proxy
}

/// A call that asks for approval, or answers the request of an earlier one.
fn round(web: &Web, content: &str, answered: Option<(&Value, &str)>) -> Reply {
    let arguments = json!({"path": "a.txt", "content": content});
    let mut call = json!({"name": "file.write", "arguments": arguments});
    if let Some((state, answer)) = answered {
        call["requestState"] = state.clone();
        let content = json!({"answer": answer});
        call["inputResponses"] = json!({"approve": {"action": "accept", "content": content}});
    }
    let mut meta = alone("agent");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    meta.insert("pinfold/session".into(), json!("conversation"));
    web.alone("tools/call", call, meta)
}

/// The state in an approval request.
fn asked(reply: &Reply) -> Value {
    let message = reply.message();
    assert_eq!(message["result"]["resultType"], "input_required", "{message}");
    message["result"]["requestState"].clone()
}

fn replicas(place: &Place, key: &str) -> Vec<Web> {
    let key = place.path(key);
    let key = key.to_str().unwrap();
    (0..3).map(|_| place.serve(&["--state-key-file", key, "--no-journal"])).collect()
}

fn place() -> (Place, String) {
    let place = Place::new(&["one"]);
    place.configure(&place.table("one", "[workspaces.one.permissions]\nmode = \"default\""));
    let token = place.token("one", "agent", &[]);
    (place, token)
}

/// An approval that one replica has asked for is answered by another, after the first was killed.
fn a_killed_replica_is_not_missed(program: &Path, recipe: &str) {
    let (place, token) = place();
    let mut replicas = replicas(&place, "state.key");
    let proxy = proxy(&place, program, recipe, &replicas);
    let web = Web::opened(&proxy.address, &token, "/mcp/one");
    let content = || fs::read_to_string(place.file("one", "a.txt")).unwrap();
    // The first two are killed after they have asked, and any running one answers.
    for (number, text) in ["first\n", "second\n", "third\n"].into_iter().enumerate() {
        let state = match replicas.get_mut(number).filter(|_| number < 2) {
            Some(replica) => {
                let state = asked(&round(&holder(replica, "one", &token), text, None));
                replica.process().kill().unwrap();
                replica.process().wait().unwrap();
                state
            }
            None => asked(&round(&web, text, None)),
        };
        let done = round(&web, text, Some((&state, "allow once")));
        assert_eq!(answer(&done.message())["bytes_written"], text.len(), "{done:?}");
        assert_eq!(content(), text);
    }
}

#[test]
fn replicas_behind_haproxy_go_on_with_each_others_approvals() {
    if let Some(haproxy) = provided("PINFOLD_HAPROXY", SKIPPED) {
        a_killed_replica_is_not_missed(haproxy.as_ref(), "haproxy.cfg");
    }
}

#[test]
fn replicas_behind_nginx_go_on_with_each_others_approvals() {
    if let Some(nginx) = provided("PINFOLD_NGINX", SKIPPED) {
        a_killed_replica_is_not_missed(nginx.as_ref(), "nginx.conf");
    }
}

#[test]
fn a_session_stays_with_its_replica_behind_haproxy() {
    let Some(haproxy) = provided("PINFOLD_HAPROXY", SKIPPED) else { return };
    let (place, token) = place();
    let mut replicas = replicas(&place, "state.key");
    let proxy = proxy(&place, haproxy.as_ref(), "haproxy.cfg", &replicas);
    let web = Web::opened(&proxy.address, &token, "/mcp/one");
    let sessions: Vec<String> = (0..6).map(|_| web.session()).collect();
    let alive = || {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let ask = |session: &String| web.post(&[("Mcp-Session-Id", session)], &ping).status;
        sessions.iter().map(ask).filter(|status| *status == 200).count()
    };
    assert_eq!(alive(), 6);
    assert_eq!(alive(), 6);
    // The sessions of a replica end with it. Others of the same client continue.
    replicas[0].process().kill().unwrap();
    replicas[0].process().wait().unwrap();
    assert!((1..6).contains(&alive()), "{}", alive());
    web.session();
}

#[test]
fn an_approval_counts_once_for_all_replicas() {
    let (place, token) = place();
    let replicas = replicas(&place, "state.key");
    let [first, second, third] = [0, 1, 2].map(|it| holder(&replicas[it], "one", &token));
    let state = asked(&round(&first, "two\n", None));
    // A denial on one is not replaced by an approval on another.
    let denied = round(&second, "two\n", Some((&state, "deny")));
    assert_eq!(answer(&denied.message())["error"], "permission_denied", "{denied:?}");
    asked(&round(&third, "two\n", Some((&state, "allow once"))));
    let state = asked(&round(&second, "two\n", None));
    let done = round(&third, "two\n", Some((&state, "allow once")));
    assert_eq!(answer(&done.message())["bytes_written"], 4, "{done:?}");
    fs::write(place.file("one", "a.txt"), "one\n").unwrap();
    // The file is unchanged, but the answer is used up.
    asked(&round(&first, "two\n", Some((&state, "allow once"))));
    assert_eq!(fs::read_to_string(place.file("one", "a.txt")).unwrap(), "one\n");
}

#[test]
fn a_state_is_worth_nothing_to_others() {
    let (place, token) = place();
    let other = place.token("one", "other", &[]);
    let replica = &replicas(&place, "state.key")[0];
    let stranger = &replicas(&place, "another.key")[0];
    let state = asked(&round(&holder(replica, "one", &token), "two\n", None));
    let refused = |reply: Reply| {
        let message = reply.message();
        assert_eq!(message["error"]["code"], -32602, "{message}");
    };
    // The state is refused by a server with another key, and for another token.
    refused(round(&holder(stranger, "one", &token), "two\n", Some((&state, "allow once"))));
    refused(round(&holder(replica, "one", &other), "two\n", Some((&state, "allow once"))));
    let done = round(&holder(replica, "one", &token), "two\n", Some((&state, "allow once")));
    assert_eq!(answer(&done.message())["bytes_written"], 4, "{done:?}");
}

#[test]
fn a_key_that_others_may_read_or_that_is_short_is_refused() {
    let (place, _) = place();
    let key = place.path("key");
    let refused = |named: &str| {
        let mut serve = place.pinfold(&["serve", "--http", "127.0.0.1:0", "--state-key-file"]);
        let output = serve.arg(&key).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(named) && printed.contains("/key"), "{printed}");
    };
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    for others in [0o640, 0o604, 0o644] {
        mode(others);
        refused("chmod 600");
    }
    mode(0o600);
    fs::write(&key, "0123456789abcdef0123456789abcde\n").unwrap();
    refused("it has 31 bytes; at least 32 are needed");
    // A missing key is created.
    fs::remove_file(&key).unwrap();
    let _server = place.serve(&["--state-key-file", key.to_str().unwrap()]);
    let made = fs::metadata(&key).unwrap();
    assert_eq!((made.permissions().mode() & 0o777, made.len()), (0o600, 65));
}
