//! The cost of policy: the same call without rules, with Pinfold's own files below the root, and with twenty rules.

use std::path::Path;

use pinfold::{Permissions, Session, Settings};
use pinfold_dialects::{CLASSIC, Toolbox};
use serde_json::json;

use super::{answer, print_row, shortest};

pub(super) fn bench(tree: &Path, rounds: usize) {
    let plain = || Session::with_settings([tree], Settings::default()).unwrap();
    let own = || plain().with_denied_files([tree.join("etc/config"), tree.join("state/journal")]);
    let rules = || {
        let deny = (0..20).map(|number| format!("Read(secrets/{number}/**/*.key)")).collect();
        let permissions = Permissions { deny, ..Permissions::default() };
        Session::with_settings([tree], Settings::default().with_permissions(permissions)).unwrap()
    };
    let toolbox = |session| Toolbox::new(session, &[&CLASSIC]);
    let warm = [toolbox(plain()), toolbox(own()), toolbox(rules())];
    for (tool, arguments) in [
        ("Glob", json!({"pattern": "**/*.h"})),
        ("Grep", json!({"pattern": "zzz_not_there", "glob": "*.h"})),
    ] {
        let call = |toolbox: &Toolbox| {
            answer(toolbox, tool, &arguments);
            None
        };
        let times = shortest(
            rounds,
            &mut [
                &mut || call(&toolbox(plain())),
                &mut || call(&toolbox(own())),
                &mut || call(&toolbox(rules())),
                &mut || call(&warm[0]),
                &mut || call(&warm[1]),
                &mut || call(&warm[2]),
            ],
        );
        for (state, times) in [("cold", &times[..3]), ("warm", &times[3..])] {
            let name = format!("{tool} without rules, {state}");
            let others = [("own files below the root", times[1]), ("twenty rules", times[2])];
            print_row(&name, "ours", times[0], &others);
        }
    }
}
