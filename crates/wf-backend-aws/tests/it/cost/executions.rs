//! What a state machine makes dearer: the rows that bind workflows to executions, measured as everything else.

use wf_backend_aws::execution::{Bound, Written};
use wf_core::models::Workflow;
use wf_core::ports::{BindingPort as _, ClockPort as _, LoadQuery, StorageBackendPort as _};

use super::page::{calls, is_on_the_page};
use super::{Meter, policy};
use crate::bench::Bench;
use crate::bound::{ARN, due, epoch, look, registers, signals};
use crate::cast::tenant;
use crate::plain_policy::id;

async fn workflow(bench: &Bench, work: &str) -> Workflow {
    let query = LoadQuery {
        tenant: tenant().clone(),
        workflow: Some(id(work)),
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    };
    let seen = bench.store.load(&query).await.expect("a read");
    seen.workflow.expect("a workflow")
}

/// A look at a workflow, measured.
async fn looked(meter: &mut Meter, work: &str) -> Bound {
    let workflow = workflow(&meter.bench, work).await;
    let look =
        async |bench: &Bench| look(&bench.store.bindings(), &workflow, bench.clock.now()).await;
    meter.measure("a workflow and its rows, read", look).await
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_page_says_what_a_state_machine_adds() {
    let change = |config: &mut wf_backend_aws::AwsConfig| {
        config.measure = true;
        config.state_machine_arn = Some(ARN.to_owned());
    };
    let bench = Bench::of(policy(), change).await;
    let mut meter = Meter { bench, keys: 0, lines: Vec::new() };
    let work = meter.start("UNIT-204").await;
    let (rows, now) = (meter.bench.store.bindings(), meter.bench.clock.now());
    let held = epoch(&rows, "one", now).await;
    let done = |written: Result<Written, _>| assert_eq!(written.ok(), Some(Written::Done));

    let bound = looked(&mut meter, &work).await;
    let record = async |_: &Bench| rows.record(&bound, held, now).await;
    done(meter.measure("its execution runs", record).await);
    let acknowledge = async |bench: &Bench| {
        bench.engine().acknowledge_orchestration(tenant(), &id(&work), 1).await
    };
    assert_eq!(meter.measure("its start is acknowledged", acknowledge).await, Ok(()));
    let started = workflow(&meter.bench, &work).await;
    let config = meter.bench.config.clone();
    assert!(registers(&config, &started.id, 1, "t-1", (0, now)).await);
    let bound = looked(&mut meter, &work).await;
    let told = async |_: &Bench| rows.drop_token(&bound, held, now).await;
    done(meter.measure("its execution is told", told).await);
    assert!(registers(&config, &started.id, 1, "t-2", (started.revision, now)).await);
    let bound = looked(&mut meter, &work).await;
    let settle = async |_: &Bench| rows.settle(&bound, held, now).await;
    done(meter.measure("it knows enough", settle).await);
    meter.submit(&work, 1, false).await;
    assert!(signals(&config, &started.id, 1, 1).await);
    let bound = looked(&mut meter, &work).await;
    let settle = async |_: &Bench| rows.settle(&bound, held, now).await;
    done(meter.measure("a look for another reason, once a day", settle).await);
    for step in 2..=super::STEPS {
        meter.submit(&work, step, false).await;
    }
    meter.finish(&work).await;
    let bound = looked(&mut meter, &work).await;
    let close = async |_: &Bench| rows.close(&bound, held, now).await;
    done(meter.measure("its execution has ended", close).await);
    let bound = looked(&mut meter, &work).await;
    let settle = async |_: &Bench| rows.settle(&bound, held, now).await;
    done(meter.measure("its binding is closed", settle).await);
    let idle = async |_: &Bench| due(&rows, now).await;
    let idle = meter.measure("the four shards, when nothing is to do", idle).await;
    assert_eq!(idle, []);
    is_on_the_page("executions", &calls(&meter));
}
