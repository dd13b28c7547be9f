//! Tokens: hashed at rest, rotated without a restart, limited to a mode.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Stdio;

use pinfold_testkit::mcp::alone;
use pinfold_testkit::skipped;
use serde_json::json;

use crate::{Place, called, eventually, holder, is_let_in, read, structured};

#[test]
fn a_token_is_printed_once_and_kept_as_a_hash() {
    let place = Place::new(&["one"]);
    let token = place.token("one", "agent", &["--read-only", "--max-sessions", "3"]);
    let file = place.token_file("one");
    let kept = fs::read_to_string(&file).unwrap();
    assert!(token.len() == 64 && !kept.contains(&token), "{kept}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The first one is no longer valid after the second `--keep-old`.
    for _ in 0..2 {
        place.token("one", "agent", &["--keep-old"]);
    }
    place.token("one", "second", &["--max-calls-per-second", "5"]);
    let listed = || {
        let output = place.pinfold(&["token", "list"]).arg(&file).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(listed(), "agent: mode plan, 3 sessions, 1 old valid\nsecond: 5 calls a second\n");
    let remove = |name: &str| {
        place.pinfold(&["token", "remove"]).arg(&file).arg(name).output().unwrap().status.code()
    };
    assert_eq!((remove("agent"), remove("agent"), remove("second")), (Some(0), Some(2), Some(0)));
    assert_eq!(listed(), "");
    // After the last one, the file accepts no token, and no token is created for it.
    assert_eq!(fs::read_to_string(&file).unwrap(), "[tokens]\n");
    let bad = place.pinfold(&["token", "new"]).arg(&file).arg("Not a name").output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
    fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let plain = place.pinfold(&["token", "new"]).arg(&file).arg("a").output().unwrap();
    assert!(String::from_utf8_lossy(&plain.stderr).contains("token in plain text"), "{plain:?}");
}

#[test]
fn tokens_that_are_made_at_once_are_all_kept() {
    let place = Place::new(&["one"]);
    let file = place.token_file("one");
    let names: Vec<String> = (0..16).map(|number| format!("agent{number:02}")).collect();
    let new = |name| {
        let mut command = place.pinfold(&["token", "new"]);
        command.arg(&file).arg(name).stdout(Stdio::null()).spawn().unwrap()
    };
    let running: Vec<_> = names.iter().map(new).collect();
    for mut process in running {
        assert!(process.wait().unwrap().success());
    }
    let listed = place.pinfold(&["token", "list"]).arg(&file).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    assert_eq!(listed.lines().collect::<Vec<_>>(), names);
    // Nothing else is left in the directory.
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let beside = fs::read_dir(file.parent().unwrap()).unwrap();
    let beside = beside.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    assert_eq!(beside.filter(|other| other.starts_with(&name)).collect::<Vec<_>>(), [name]);
}

#[test]
fn a_token_is_rotated_without_a_restart() {
    let place = Place::new(&["one"]);
    let old = place.token("one", "agent", &[]);
    let server = place.serve(&[]);
    assert!(server.token_line.starts_with("the hashes of the tokens are in "));
    let old = holder(&server, "one", &old);
    let session = old.session();
    let reads = |web| {
        called(web, &session, "file.read", &read("a.txt"))["content"].as_str()
            == Some("     1\tone\n")
    };
    assert!(reads(&old));
    // For a while both are valid, and the session continues with either.
    let new = holder(&server, "one", &place.token("one", "agent", &["--keep-old"]));
    eventually("the new token is not accepted", || is_let_in(&new));
    assert!(reads(&old) && reads(&new));
    // Then the old one ends.
    let newest = holder(&server, "one", &place.token("one", "agent", &[]));
    eventually("the old token is still accepted", || !is_let_in(&old) && !is_let_in(&new));
    assert!(reads(&newest));
    // The session ends when the token's name is removed.
    place.token("one", "other", &[]);
    let remove =
        place.pinfold(&["token", "remove"]).arg(place.token_file("one")).arg("agent").status();
    assert!(remove.unwrap().success());
    eventually("the removed token is still accepted", || !is_let_in(&newest));
    let again = holder(&server, "one", &place.token("one", "agent", &[]));
    eventually("a new token is not accepted", || is_let_in(&again));
    assert_eq!(again.call(&session, "file.read", &read("a.txt")).status, 404);
}

#[test]
fn a_token_file_stays_its_owners() {
    if !rustix::process::geteuid().is_root() {
        return skipped("NOT TRIED: only root can give a file to another user");
    }
    let place = Place::new(&["one"]);
    place.token("one", "agent", &[]);
    let file = place.token_file("one");
    // The server runs as another user than the one who rotates a token.
    chown(&file, Some(10_001), Some(10_002)).unwrap();
    place.token("one", "agent", &[]);
    let kept = fs::metadata(&file).unwrap();
    assert_eq!((kept.uid(), kept.gid(), kept.mode() & 0o777), (10_001, 10_002, 0o600));
}

#[test]
fn a_plain_token_is_rotated_too() {
    let place = Place::new(&["one"]);
    fs::create_dir(place.path("keys")).unwrap();
    let write = |text: &str| {
        fs::write(place.path("new"), text).unwrap();
        fs::set_permissions(place.path("new"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(place.path("new"), place.token_file("one")).unwrap();
    };
    write("the-first-token-of-this-test\n");
    let server = place.serve(&[]);
    let first = holder(&server, "one", "the-first-token-of-this-test");
    let second = holder(&server, "one", "the-second-token-of-this-test");
    assert!(is_let_in(&first) && !is_let_in(&second));
    write("the-second-token-of-this-test\n");
    eventually("the second is not let in", || is_let_in(&second) && !is_let_in(&first));
}

#[test]
fn a_token_file_that_is_not_right_lets_nobody_in() {
    let place = Place::new(&["one", "two"]);
    let (one, two) = (place.token("one", "agent", &[]), place.token("two", "agent", &[]));
    let server = place.serve(&[]);
    let (one, two) = (holder(&server, "one", &one), holder(&server, "two", &two));
    let session = one.session();
    let file = place.token_file("one");
    let right = fs::read_to_string(&file).unwrap();
    let ready = || server.send("GET", "/readyz", &[], b"").status;
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    let wrongs: [&dyn Fn(); 4] = [
        &|| fs::write(&file, right.replace("hashes", "hash")).unwrap(),
        &|| fs::write(&file, "").unwrap(),
        &|| mode(0o640),
        &|| fs::remove_file(&file).unwrap(),
    ];
    for wrong in wrongs {
        assert!(is_let_in(&one) && ready() == 200);
        wrong();
        eventually("somebody is let in", || !is_let_in(&one));
        assert_eq!(ready(), 503);
        // Others do not notice.
        assert!(is_let_in(&two));
        fs::write(&file, &right).unwrap();
        mode(0o600);
        eventually("nobody is let in", || is_let_in(&one) && ready() == 200);
    }
    // Existing sessions are not affected.
    assert_eq!(called(&one, &session, "file.read", &read("a.txt"))["content"], "     1\tone\n");
}

#[test]
fn a_token_can_be_limited_to_reading() {
    let place = Place::new(&["one"]);
    let plan = "[workspaces.two.permissions]\nmode = \"plan\"";
    fs::create_dir_all(place.root("two")).unwrap();
    place.configure(&(place.table("one", "") + &place.table("two", plan)));
    let reader = place.token("one", "reader", &["--mode", "plan"]);
    let writer = place.token("one", "writer", &[]);
    let loud = place.token("two", "loud", &["--mode", "bypassPermissions"]);
    let server = place.serve(&[]);
    let write = json!({"path": "new.txt", "content": "new\n"});
    let outcomes = |web: &pinfold_testkit::mcp::Web| {
        let params = json!({"name": "file.write", "arguments": write});
        let named = {
            let mut meta = alone("same");
            meta.insert("pinfold/session".into(), json!("same"));
            structured(&web.alone("tools/call", params.clone(), meta))
        };
        let client = structured(&web.alone("tools/call", params, alone("same")));
        let session = called(web, &web.session(), "file.write", &write);
        [named, client, session].map(|answer| answer["error"].as_str().map(str::to_owned))
    };
    let denied = || Some("permission_denied".to_owned());
    let writer = holder(&server, "one", &writer);
    assert_eq!(outcomes(&writer), [None, None, None]);
    let reader = holder(&server, "one", &reader);
    assert_eq!(outcomes(&reader), [denied(), denied(), denied()]);
    assert_eq!(
        called(&reader, &reader.session(), "file.read", &read("a.txt"))["content"],
        "     1\tone\n"
    );
    // A token's mode never allows more than the workspace's.
    assert_eq!(outcomes(&holder(&server, "two", &loud)), [denied(), denied(), denied()]);
    // A mode that changes ends the sessions that began in the other one.
    let session = writer.session();
    let file = place.token_file("one");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("[tokens.writer]", "[tokens.writer]\nmode = \"plan\"")).unwrap();
    let status = || writer.call(&session, "file.write", &write).status;
    eventually("the session goes on in the old mode", || status() == 404);
    assert_eq!(outcomes(&writer), [denied(), denied(), denied()]);
}
