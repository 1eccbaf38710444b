//! The audit of what really happened finds nothing, however the run ended.

use wf_testkit::audit::history::cut_at;

use crate::audit_story::Story;

#[tokio::test]
async fn a_true_story_is_clean() {
    let story = Story::told().await;
    let audit = story.audited().await;
    assert_eq!(audit.violations, []);
    assert_eq!(audit.left_out, Vec::<String>::new());
    let commits = u64::try_from(story.commits.len()).unwrap();
    assert_eq!((audit.workflows, audit.commits), (3, commits), "{audit}");
    assert!(audit.messages > 4, "{audit}");
}

/// A power cut in the middle of any attempt, before or after what it commits: what was acknowledged before is in the
/// store, and of what was in flight nobody knows.
#[tokio::test]
async fn a_story_that_breaks_off_is_clean() {
    let whole = Story::told().await;
    for (index, attempt) in whole.attempts.iter().enumerate() {
        let before = if index == 0 { 0 } else { whole.commits_after[index - 1] };
        for commits in [before, whole.commits_after[index]] {
            let mut story = whole.clone();
            story.attempts = cut_at(&whole.attempts, attempt.sent_ns + 1);
            assert_eq!(story.attempts.len(), index + 1);
            story.commits.truncate(commits);
            let found = story.audited().await.violations;
            assert_eq!(found, [], "cut in attempt {index} with {commits} commits");
        }
    }
}
