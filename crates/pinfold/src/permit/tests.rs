//! How often a call evaluates policy.

use crate::commit::CommitError;
use crate::operations::Write;
use crate::{ApprovalAnswer, ApprovalRequest, Approver, Mode, Operation as _, Settings};

use super::*;

#[derive(Debug)]
struct Yes;

impl Approver for Yes {
    fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
        ApprovalAnswer::Once
    }
}

#[test]
fn a_write_that_is_planned_again_after_its_approval_evaluates_policy_once_for_each_access() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.permissions.mode = Mode::Ask;
    let session = crate::Session::with_settings([dir.path()], settings).unwrap().with_approver(Yes);
    let call = crate::CallOptions::default();
    let view = View::new(&session, &call);
    let commit = || {
        let (_, changes) = Write::new("a.txt", "text\n").plan(&view).unwrap();
        crate::Changes::commit(changes, &view)
    };
    assert!(matches!(commit(), Err(CommitError::Stale { .. })), "the user was asked");
    assert!(commit().is_ok());
    // Reading by the name as it was given, reading at the place that it leads to, and writing there.
    let evaluated: Vec<_> = {
        let decisions = view.decisions().0.lock().unwrap();
        decisions.iter().map(|((access, _, place, _), _)| (*access, place.is_some())).collect()
    };
    assert_eq!(evaluated, [(Access::Read, false), (Access::Read, true), (Access::Write, true)]);
}
