// The job on Restate, as its documents say: a virtual object for each asset, whose exclusive handlers change its state, and an
// idempotency key for each call. Run by peers/restate.py: PORT
//
// The lock of the asset and the rule of one reading a step are two conditions of this program's own code.
import * as restate from "@restatedev/restate-sdk";

const asset = restate.object({
  name: "asset",
  handlers: {
    start: async (ctx, { run }) => {
      const holder = await ctx.get("holder");
      if (holder && holder !== run) return { ok: false, why: "locked" };
      ctx.set("holder", run);
      return { ok: true };
    },
    record: async (ctx, { run, step, value }) => {
      if ((await ctx.get("holder")) !== run) return { ok: false, why: "not held" };
      const readings = (await ctx.get(run)) ?? [];
      if (readings.some(([known]) => known === step)) return { ok: false, why: "the step has a reading" };
      ctx.set(run, [...readings, [step, value]]);
      return { ok: true };
    },
    finish: async (ctx, { run }) => {
      if ((await ctx.get("holder")) === run) ctx.clear("holder");
      return { ok: true };
    },
    read: restate.handlers.object.shared(async (ctx, { run }) => (await ctx.get(run)) ?? []),
  },
});

restate.serve({ services: [asset], port: Number(process.argv[2]) });
