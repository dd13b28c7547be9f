//! Where links lead, and where they may not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold_confine::{Error, Kind, OpenMethod, Workspace};
use tempfile::TempDir;

use crate::{both_ways, read, tree, write};

#[test]
fn links_inside_are_followed_and_links_out_are_refused() {
    both_ways(|dir, workspace| {
        let ws = dir.join("ws");
        symlink("a/b/deep.txt", ws.join("relative")).unwrap();
        symlink(ws.join("a/b/deep.txt"), ws.join("absolute")).unwrap();
        symlink("../a", ws.join("other/dir")).unwrap();
        symlink(&ws, ws.join("a/all")).unwrap();
        symlink("relative", ws.join("twice")).unwrap();
        for path in ["relative", "absolute", "other/dir/b/deep.txt", "a/all/relative", "twice"] {
            assert_eq!(read(workspace, path).unwrap(), "inside ws/a/b/deep.txt", "{path}");
            let place = workspace.file(&path.into()).unwrap().0;
            assert_eq!(place.path.to_string(), "a/b/deep.txt", "{path}");
        }

        symlink("../outside/secret.txt", ws.join("out")).unwrap();
        symlink(dir.join("outside/secret.txt"), ws.join("out-absolute")).unwrap();
        symlink("../../outside", ws.join("a/outdir")).unwrap();
        symlink("out", ws.join("out-twice")).unwrap();
        symlink("../outside/none", ws.join("out-dangling")).unwrap();
        symlink("/proc/self/root/etc/passwd", ws.join("magic")).unwrap();
        symlink("..", ws.join("up")).unwrap();
        for path in [
            "out",
            "out-absolute",
            "a/outdir/secret.txt",
            "out-twice",
            "out-dangling",
            "magic",
            "up/outside/secret.txt",
            "a/outdir/../ws/top.txt",
        ] {
            assert!(matches!(read(workspace, path), Err(Error::Outside)), "{path}");
            assert!(matches!(write(workspace, path), Err(Error::Outside)), "{path}");
        }
        assert!(!dir.join("outside/none").exists());
        assert_eq!(fs::read_to_string(dir.join("outside/secret.txt")).unwrap(), "secret");
    });
}

#[test]
fn a_link_is_looked_at_itself() {
    both_ways(|dir, workspace| {
        symlink("../outside/secret.txt", dir.join("ws/out")).unwrap();
        let seen = workspace.lstat(&"out".into()).unwrap();
        assert_eq!(seen.meta.kind, Kind::Symlink);
        assert_eq!(seen.link_target.as_deref(), Some(&b"../outside/secret.txt"[..]));
        symlink("a", dir.join("ws/dir")).unwrap();
        let seen = workspace.lstat(&"dir/b/deep.txt".into()).unwrap();
        assert_eq!(
            (seen.meta.kind, seen.place.path.to_string()),
            (Kind::File, "a/b/deep.txt".into())
        );
        assert_eq!(workspace.lstat(&".".into()).unwrap().meta.kind, Kind::Directory);
    });
}

#[test]
fn behind_a_link_that_leads_out_and_in_again_the_last_name_is_still_the_callers() {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = tree();
        let roots = ["ws", "second"].map(|root| dir.path().join(root));
        let workspace = Workspace::open(&roots, Some(method)).unwrap();
        symlink("../ws", roots[0].join("loop")).unwrap();
        symlink("../second", roots[0].join("across")).unwrap();
        for (number, link) in ["loop", "across"].into_iter().enumerate() {
            let root = &roots[number];
            fs::write(root.join("y"), "kept").unwrap();
            symlink("y", root.join("l")).unwrap();
            let (path, what) = (format!("{link}/l"), format!("{link} {method:?}"));

            let seen = workspace.lstat(&path.as_str().into()).unwrap();
            assert_eq!(seen.link_target.as_deref(), Some(&b"y"[..]), "{what}");
            assert_eq!((seen.place.root, seen.place.path.to_string()), (number, "l".into()));

            let removal = workspace.removal(&path.into(), &Default::default()).unwrap();
            removal.remove(Default::default()).map(drop).unwrap();
            assert!(!root.join("l").is_symlink(), "{what}");
            assert_eq!(fs::read_to_string(root.join("y")).unwrap(), "kept", "{what}");

            for new in ["new.txt", "fresh/new.txt"] {
                write(&workspace, format!("{link}/{new}")).unwrap();
                assert_eq!(fs::read_to_string(root.join(new)).unwrap(), "new", "{what}");
            }
            // The target of a link has to exist.
            let none = Path::new("..").join(root.file_name().unwrap()).join("none");
            symlink(none, root.join("dangling")).unwrap();
            let dangling = write(&workspace, format!("{link}/dangling"));
            assert!(matches!(dangling, Err(Error::Dangling)), "{what}: {dangling:?}");
        }
    }
}

#[test]
fn a_link_that_leads_out_of_a_root_that_was_moved_makes_nothing() {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = tree();
        let roots = ["ws/a/b", "ws"].map(|root| dir.path().join(root));
        let workspace = Workspace::open(&roots, Some(method)).unwrap();
        symlink("../new.txt", roots[0].join("link")).unwrap();
        fs::rename(roots[1].join("a"), roots[1].join("moved")).unwrap();
        let written = write(&workspace, "link");
        assert!(matches!(written, Err(Error::RootGone(_))), "{method:?}: {written:?}");
        assert!(!roots[1].join("a").exists(), "{method:?}");
    }
}

#[test]
fn links_that_go_nowhere_or_in_circles_end() {
    both_ways(|dir, workspace| {
        let ws = dir.join("ws");
        symlink("none", ws.join("dangling")).unwrap();
        symlink("circle", ws.join("circle")).unwrap();
        symlink("ping", ws.join("pong")).unwrap();
        symlink("pong", ws.join("ping")).unwrap();
        assert!(matches!(read(workspace, "dangling"), Err(Error::Dangling)));
        assert!(matches!(write(workspace, "dangling"), Err(Error::Dangling)));
        for path in ["circle", "ping", "circle/x"] {
            assert!(matches!(read(workspace, path), Err(Error::TooManyLinks)), "{path}");
            assert!(matches!(write(workspace, path), Err(Error::TooManyLinks)), "{path}");
        }
    });
}

#[test]
fn nothing_behind_a_link_is_looked_at_before_the_link_is_resolved() {
    both_ways(|dir, workspace| {
        symlink("../outside", dir.join("ws/out")).unwrap();
        let look = || workspace.file(&"out/secret.txt".into()).map(drop);
        let report = pinfold_confine::fault::inject(&[], look);
        assert!(matches!(report.result, Err(Error::Outside)));
        let first =
            if workspace.open_method() == OpenMethod::Kernel { "openat2" } else { "openat" };
        assert_eq!(report.calls[..2], ["stat", first], "{:?}", report.calls);
    });
}

#[test]
fn a_path_that_leaves_through_a_missing_directory_is_outside() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir_all(root.join("a")).unwrap();
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let workspace = Workspace::open([&root], Some(method)).unwrap();
        let look = |path: &str| workspace.lstat(&path.into()).map(drop);
        for path in ["nosuch/../../x", "nosuch/../../../etc/passwd", "a/no/such/../../../../x"] {
            assert!(matches!(look(path), Err(Error::Outside)), "{path}: {:?}", look(path));
            let target = workspace.target(&path.into(), &Default::default());
            assert!(matches!(target, Err(Error::Outside)), "{path}: {target:?}");
        }
        for path in ["nosuch/../a", "nosuch/../../ws/a", "a/nosuch/../../b"] {
            assert!(matches!(look(path), Err(Error::NotFound)), "{path}: {:?}", look(path));
        }
    }
}

#[test]
fn races_are_not_counted_as_links() {
    let dir = TempDir::new().unwrap();
    let at = dir.path().to_owned();
    fs::create_dir(at.join("real")).unwrap();
    fs::write(at.join("real/f"), "found").unwrap();
    symlink("real", at.join("link")).unwrap();
    let workspace = Workspace::open([&at], Some(OpenMethod::NameByName)).unwrap();
    // At each read of the symlink it is missing, and it is back before the next lookup.
    let swaps = |times: usize| -> Vec<pinfold_confine::fault::Meanwhile> {
        let swap = |nth: usize, act: fn(&Path)| {
            let at = at.clone();
            move |call| -> pinfold_confine::fault::Meanwhile {
                (call, nth, Box::new(move || act(&at.join("link"))))
            }
        };
        let remove = |link: &Path| fs::remove_file(link).unwrap();
        let make = |link: &Path| {
            let _ = symlink("real", link);
        };
        let opens = |nth: usize| swap(nth, make)("openat");
        let reads = |nth: usize| swap(nth, remove)("readlinkat");
        (1..=times).map(reads).chain((1..=times * 3 + 9).map(opens)).collect()
    };
    for (times, expected) in [(60, "found"), (150, "changed meanwhile")] {
        let report = pinfold_confine::fault::interleave(swaps(times), || {
            let mut text = String::new();
            let (_, mut file) = workspace.file(&"./link/../link/f".into())?;
            std::io::Read::read_to_string(&mut file, &mut text).map_err(Error::Os)?;
            Ok::<_, Error>(text)
        });
        let outcome = report.result.unwrap_or_else(|error| error.to_string());
        assert_eq!(outcome, expected, "{times}");
    }
}
