// The official TypeScript client v2 is asked back: its user confirms, refuses and chooses (MCP 2026-07-28).
//
// Run by run.sh as ts_client.mjs is: python harness.py node asking.mjs
// The client answers by itself with what its elicitation handler returns, and calls again with the state; `raw` calls show
// what goes over the wire and bring states back that the client would not.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const url = new URL(process.env.OUTSIDE_URL ?? assert.fail('OUTSIDE_URL is not set: run through harness.py'));

/** A client whose user answers each question with what `say` returns for it; the questions are kept. */
async function visitor(say, capabilities = { elicitation: { form: {} } }) {
  const client = new Client({ name: 'checkpoint-outside', version: '1' }, { capabilities, versionNegotiation: { mode: 'auto' } });
  const asked = [];
  if (capabilities.elicitation) {
    client.setRequestHandler('elicitation/create', async request => {
      asked.push(request.params);
      return say(request.params);
    });
  }
  await client.connect(new StreamableHTTPClientTransport(url));
  assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
  const call = async (name, args = {}) => (await client.callTool({ name, arguments: args })).structuredContent;
  return { call, asked, close: () => client.close() };
}

/** A call as it is on the wire. */
async function raw(name, args, brought = {}) {
  const params = {
    name, arguments: args, ...brought,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
    },
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method: 'tools/call', params }),
  });
  return response.json();
}

const yes = () => ({ action: 'accept', content: { confirm: true } });

/** A new inspection whose open step takes a number. */
async function atNumber(call, pump) {
  let view = await call('start_workflow', {
    procedure_id: 'pump-inspection', assets: { pump }, inputs: { work_order: 'WO 1' }, idempotency_key: randomUUID(),
  });
  while (view.step.kind !== 'number') {
    view = await call('submit_step', {
      workflow_id: view.workflow.id, step_id: view.step.id, value: 'yes', idempotency_key: view.next_idempotency_key,
    });
  }
  return view;
}

/** Arguments that record a value just above what is accepted, which is read back first. */
function tooHigh(view) {
  const digits = Number(view.step.decimals ?? 0);
  return {
    workflow_id: view.workflow.id, step_id: view.step.id, value: (Number(view.step.max) + 10 ** -digits).toFixed(digits),
    unit: view.step.unit, idempotency_key: view.next_idempotency_key,
  };
}

async function abandon(call, view) {
  const { next_idempotency_key: key } = await call('get_status', { workflow_id: view.workflow.id });
  const done = await call('finish_workflow', { workflow_id: view.workflow.id, result: 'abandoned', idempotency_key: key });
  assert.equal(done.outcome, 'finished', JSON.stringify(done));
}

const cases = {
  async 'a read-back is asked by the client and recorded after a yes; the work is ended the same way'() {
    const ann = await visitor(yes);
    const view = await atNumber(ann.call, 'PUMP-204');
    const told = await ann.call('submit_step', tooHigh(view));
    assert.equal(told.outcome, 'out_of_range', JSON.stringify(told));
    assert.equal(ann.asked.length, 1);
    assert.match(ann.asked[0].message, /6[.]01/);
    assert.deepEqual(ann.asked[0].requestedSchema.required, ['confirm']);
    assert.equal(ann.asked[0].requestedSchema.properties.confirm.type, 'boolean');
    await abandon(ann.call, view);
    assert.equal(ann.asked.length, 2);
    await ann.close();
  },
  async 'a no, and a user who goes away, record nothing'() {
    for (const answer of [{ action: 'decline' }, { action: 'cancel' }, { action: 'accept', content: { confirm: false } }]) {
      const bea = await visitor(({ message }) => (message.startsWith('Abandon') ? yes() : answer));
      const view = await atNumber(bea.call, 'PUMP-205');
      const told = await bea.call('submit_step', tooHigh(view));
      assert.equal(told.outcome, 'not_recorded', JSON.stringify(told));
      assert.equal(told.workflow.revision, view.workflow.revision);
      assert.equal(told.step.id, view.step.id);
      await abandon(bea.call, view);
      await bea.close();
    }
  },
  async 'one of several open works is chosen by the user'() {
    let pick = 0;
    const eve = await visitor(({ requestedSchema }) => {
      const field = requestedSchema.properties.choice;
      return field ? { action: 'accept', content: { choice: field.oneOf[pick].const } } : yes();
    });
    const works = [await atNumber(eve.call, 'PUMP-206'), await atNumber(eve.call, 'PUMP-207')];
    const seen = new Set();
    for (pick of [0, 1]) {
      const told = await eve.call('get_status');
      assert.equal(told.outcome, 'view', JSON.stringify(told));
      seen.add(told.workflow.id);
    }
    assert.deepEqual(seen, new Set(works.map(view => view.workflow.id)));
    for (const view of works) await abandon(eve.call, view);
    await eve.close();
  },
  async 'a client that cannot ask gets the token'() {
    const sam = await visitor(null, {});
    const view = await atNumber(sam.call, 'PUMP-208');
    const told = await sam.call('submit_step', tooHigh(view));
    assert.equal(told.outcome, 'needs_confirmation', JSON.stringify(told));
    const done = await sam.call('submit_step', { ...tooHigh(view), confirm_token: told.confirm.token });
    assert.equal(done.outcome, 'out_of_range');
    await sam.close();
    const end = await visitor(yes);
    await abandon(end.call, view);
    await end.close();
  },
  async 'a state is bound to its call, cannot be changed and counts once'() {
    const ann = await visitor(yes);
    const view = await atNumber(ann.call, 'PUMP-209');
    const args = tooHigh(view);
    const { result: question } = await raw('submit_step', args);
    assert.equal(question.resultType, 'input_required');
    const brought = { requestState: question.requestState, inputResponses: { confirm: yes() } };
    const refused = async (name, others, what) => {
      const { error } = await raw(name, others.args ?? args, { ...brought, ...others.brought });
      assert.equal(error?.code, -32602, `${what}: ${JSON.stringify(error)}`);
      return error.data.reason;
    };
    const state = question.requestState;
    const changed = `${state.slice(0, 40)}${state[40] === 'A' ? 'B' : 'A'}${state.slice(41)}`;
    assert.equal(await refused('submit_step', { brought: { requestState: changed } }, 'changed'), 'foreign');
    assert.equal(await refused('submit_step', { args: { ...args, value: '7.00' } }, 'another value'), 'foreign');
    assert.equal(await refused('check_value', {}, 'another tool'), 'foreign');
    const { result: told } = await raw('submit_step', args, brought);
    assert.equal(told.structuredContent.outcome, 'out_of_range', JSON.stringify(told));
    assert.equal(await refused('submit_step', {}, 'again'), 'used');
    const { result: again } = await raw('submit_step', args);
    assert.equal(again.structuredContent.duplicate, true, 'without the state, the call says what it recorded');
    await abandon(ann.call, view);
    await ann.close();
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`PASS asking: ${name}`);
  } catch (fault) {
    failed += 1;
    console.error(fault);
    console.log(`FAIL asking: ${name}: ${String(fault?.message ?? fault).replace(/\s+/g, ' ').slice(0, 900)}`);
  }
}
process.exit(failed ? 1 : 0);
