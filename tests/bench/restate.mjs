// The same job on Restate: a virtual object for each unit, whose exclusive handlers are the lock. The state of the object
// holds the workflow and its events; the ingress keeps the answer under the idempotency key. Its callers talk to the ingress
// of Restate itself, with the same bodies as the product's and the key in the header: there is no MCP in between, which is
// in its favour. Run by `wf-bench`, beside the server of Restate.
import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";
import sdk from "@restatedev/restate-sdk/package.json" with { type: "json" };

const ACTOR = "user:local";
const STEPS = Array.from({ length: 12 }, (_, n) => `reading_${String(n + 1).padStart(2, "0")}`);
const [LOW, HIGH] = [1.5, 6.0];

const result = (structuredContent) => ({ result: { structuredContent } });
const refused = (why) => result({ ok: false, outcome: "refused", duplicate: false, speech: why });

function answer(outcome, speech, asset, work, next) {
  const id = STEPS.find((step) => !(step in work.steps));
  const step = id && { id, kind: "number", prompt: `What is ${id}?`, unit: "bar", min: String(LOW), max: String(HIGH) };
  return result({
    ok: true, outcome, duplicate: false, speech, step, next_idempotency_key: `nk_${next}`,
    workflow: {
      id: work.id, revision: work.revision, assets: [{ role: "unit", id: asset }], owner: ACTOR,
      progress: { required: STEPS.length, settled: Object.keys(work.steps).length },
    },
  });
}

// One value in the state rather than one for each event, because every `set` is an entry of the journal; and no time, which
// would be another one: Restate itself keeps when a call came. Its random numbers are the same in a replay without an entry.
async function open(ctx, id) {
  const work = await ctx.get("work");
  return work && work.id === id && work.phase === "RUNNING" ? work : undefined;
}

function record(ctx, work, event) {
  work.revision += 1;
  work.events.push({ seq: work.revision, by: ACTOR, ...event });
  ctx.set("work", work);
}

const unit = restate.object({
  name: "unit",
  handlers: {
    start: async (ctx, call) => {
      const { procedure_id } = call.params.arguments;
      const held = await ctx.get("work");
      if (held && held.phase === "RUNNING") return refused("ASSET_LOCKED");
      const work = { id: ctx.rand.uuidv4(), procedure: procedure_id, phase: "RUNNING", revision: 0, steps: {}, events: [] };
      record(ctx, work, { kind: "workflow_started" });
      return answer("started", `${ctx.key} is started.`, ctx.key, work, ctx.rand.uuidv4());
    },
    step: async (ctx, call) => {
      const { workflow_id, step_id, value, idempotency_key } = call.params.arguments;
      const work = await open(ctx, workflow_id);
      if (!work) return refused("NOT_FOUND");
      if (!STEPS.includes(step_id) || step_id in work.steps) return refused("STEP_NOT_OPEN");
      if (!(Number(value) >= LOW && Number(value) <= HIGH)) return refused("OUT_OF_RANGE");
      work.steps[step_id] = { value, unit: "bar", by: ACTOR, key: idempotency_key };
      record(ctx, work, { kind: "step_recorded", step_id, value, unit: "bar", key: idempotency_key });
      return answer("recorded", `Recorded ${value} bar.`, ctx.key, work, ctx.rand.uuidv4());
    },
    finish: async (ctx, call) => {
      const { workflow_id, result: outcome } = call.params.arguments;
      const work = await open(ctx, workflow_id);
      if (!work) return refused("NOT_FOUND");
      work.phase = "COMPLETED";
      record(ctx, work, { kind: "workflow_completed", result: outcome });
      return answer("finished", `${ctx.key} is finished.`, ctx.key, work, ctx.rand.uuidv4());
    },
  },
});

const server = http2.createServer(restate.createEndpointHandler({ services: [unit] }));
server.listen(0, "127.0.0.1", () => {
  console.log(`settings: @restatedev/restate-sdk ${sdk.version}, Node ${process.versions.node}`);
  console.log(`http://127.0.0.1:${server.address().port}/mcp`);
});
