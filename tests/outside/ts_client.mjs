// The official TypeScript clients (v1 and v2) drive the pump inspection, in both protocol generations, over HTTP and over the
// standard input and output of a server that they start.
//
// Run by run.sh from the folder that holds node_modules, beside a fresh server:
//   python harness.py node ts_client.mjs      (reads OUTSIDE_URL and OUTSIDE_REPOSITORY)
// The clients validate structured content against each tool's outputSchema and throw when it does not fit;
// ajv checks it again under two drafts, and against docs/result.schema.json.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv from 'ajv';
import Ajv2020 from 'ajv/dist/2020.js';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';

const url = new URL(process.env.OUTSIDE_URL ?? assert.fail('OUTSIDE_URL is not set: run through harness.py'));
const fullSchema = JSON.parse(readFileSync(join(process.env.OUTSIDE_REPOSITORY, 'docs', 'result.schema.json'), 'utf8'));
const info = { name: 'checkpoint-outside', version: '1' };

const clients = [
  ['v1, 2025-11-25', '2025-11-25', async () => {
    const client = new ClientV1(info), transport = new TransportV1(url);
    await client.connect(transport);
    return [client, transport.protocolVersion];
  }],
  ['v2 by default, 2025-11-25', '2025-11-25', () => connectV2({}, new TransportV2(url))],
  ['v2 auto, 2026-07-28', '2026-07-28', () => connectV2({ versionNegotiation: { mode: 'auto' } }, new TransportV2(url))],
  ['v1 over stdio, 2025-11-25', '2025-11-25', async () => {
    const client = new ClientV1(info), transport = new StdioV1(command());
    // This client tells its transport, and nobody else, what was negotiated.
    let negotiated;
    transport.setProtocolVersion = version => { negotiated = version; };
    await client.connect(transport);
    return [client, negotiated];
  }],
  ['v2 over stdio by default, 2025-11-25', '2025-11-25', () => connectV2({}, new StdioV2(command()))],
  ['v2 over stdio auto, 2026-07-28', '2026-07-28', () => connectV2({ versionNegotiation: { mode: 'auto' } }, new StdioV2(command()))],
];

/** A server of its own, over a file of its own. */
function command() {
  const folder = mkdtempSync(join(tmpdir(), 'checkpoint-outside-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return { command: process.env.OUTSIDE_BIN, args: ['serve', '--stdio', '--database', join(folder, 'checkpoint.db')], stderr: 'ignore' };
}

async function connectV2(options, transport) {
  const client = new ClientV2(info, options);
  await client.connect(transport);
  return [client, client.getNegotiatedProtocolVersion()];
}

/** `strict` refuses unknown keywords, so a misspelt one in a schema fails here. */
function compile(schema, Dialect) {
  const { $schema: _, ...rest } = schema;
  return new Dialect({ strict: true, strictTypes: false, strictRequired: false, allErrors: true, validateFormats: false }).compile(rest);
}

/** Calls tools and checks each answer; returns the structured content. */
function caller(client, tools) {
  const full = compile(fullSchema, fullSchema.$schema?.includes('draft-07') ? Ajv : Ajv2020);
  const outputs = new Map(tools.map(tool => [tool.name, [compile(tool.outputSchema, Ajv), compile(tool.outputSchema, Ajv2020)]]));
  return async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args });
    const out = result.structuredContent;
    for (const validate of [...outputs.get(name), full])
      assert(validate(out), `${name}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(out)}`);
    assert.equal(result.content[0].text, out.speech);
    assert.deepEqual(JSON.parse(result.content[1].text), out);
    assert.equal(Boolean(result.isError), !out.ok);
    return out;
  };
}

function goodValue(step) {
  const digits = Number(step.decimals ?? 0);
  switch (step.kind) {
    case 'number': return ((Number(step.min) + Number(step.max)) / 2).toFixed(digits);
    case 'choice': return step.choices[0].id;
    case 'confirm': return 'yes';
    case 'text': return 'nothing to add';
    default: return assert.fail(`no value for a step of kind ${step.kind}`);
  }
}

const tooHigh = step => (Number(step.max) + 10 ** -Number(step.decimals ?? 0)).toFixed(Number(step.decimals ?? 0));

async function submit(call, view, value = goodValue(view.step)) {
  const { id, unit } = view.step;
  const args = { workflow_id: view.workflow.id, step_id: id, value, ...(unit && { unit }), idempotency_key: view.next_idempotency_key };
  const out = await call('submit_step', args);
  return out.outcome === 'needs_confirmation' ? call('submit_step', { ...args, confirm_token: out.confirm.token }) : out;
}

function expect(out, outcome) {
  assert.equal(out.outcome, outcome, JSON.stringify(out));
  return out;
}

async function inspect(client) {
  const { tools } = await client.listTools();
  const call = caller(client, tools);
  expect(await call('find_work'), 'list');
  const start = { procedure_id: 'pump-inspection', assets: { pump: 'PUMP-204' }, inputs: { work_order: 'WO 1' }, idempotency_key: randomUUID() };
  let view = expect(await call('start_workflow', start), 'started');
  const again = await call('start_workflow', start);
  assert.equal(again.duplicate, true);
  assert.deepEqual({ ...again, duplicate: false }, view);
  const workflow_id = view.workflow.id;
  // An error is a tool result too and must fit the same schema: strict clients reject one that does not.
  const refused = expect(await call('submit_step', { workflow_id, step_id: 'no-such-step', value: '1' }), 'error');
  assert.equal(refused.error.code, 'VALIDATION_ERROR');
  while (view.step.kind !== 'number') view = expect(await submit(call, view), 'recorded');
  view = expect(await submit(call, view, tooHigh(view.step)), 'out_of_range');
  assert.equal(view.workflow.state, 'BLOCKED');
  view = expect(await call('resolve_block', {
    workflow_id, block_id: view.blocks[0].id, decision: 'require_redo', comment: 'gauge was not zeroed',
    idempotency_key: view.next_idempotency_key,
  }), 'resolved');
  while (view.step) view = expect(await submit(call, view), 'recorded');
  const done = expect(await call('finish_workflow', { workflow_id, result: 'passed', idempotency_key: view.next_idempotency_key }), 'finished');
  assert.equal(done.workflow.state, 'COMPLETED');
  const full = await call('get_status', { workflow_id, detail: 'full' });
  assert.deepEqual(full.history.map(event => event.seq), [...Array(full.workflow.revision).keys()].map(i => i + 1));
  const procedure = 'workflow://procedures/pump-inspection';
  const { resources } = await client.listResources();
  assert(resources.some(resource => resource.uri === procedure), JSON.stringify(resources));
  for (const [uri, has] of [[procedure, 'pump-inspection'], [`workflow://workflows/${workflow_id}`, workflow_id]])
    assert((await client.readResource({ uri })).contents[0].text.includes(has));
  // An unknown tool is a protocol error, not a result.
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }));
}

let failed = 0;
for (const [name, revision, connect] of clients) {
  const began = performance.now();
  try {
    const [client, negotiated] = await connect();
    assert.equal(negotiated, revision);
    await inspect(client);
    await client.close();
    console.log(`PASS ts_client: ${name}: the whole inspection (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (fault) {
    failed += 1;
    console.error(fault);
    console.log(`FAIL ts_client: ${name}: ${String(fault?.message ?? fault).replace(/\s+/g, ' ').slice(0, 900)}`);
  }
}
process.exit(failed ? 1 : 0);
