// The official TypeScript clients (v1 and v2) authenticate by themselves: from a 401 without a challenge (/mcp) and from one
// with it (/mcp-std). Run by oauth.py beside a server and an authorization server:
//   node oauth_clients.mjs http://127.0.0.1:PORT
import assert from 'node:assert/strict';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2, UnauthorizedError as UnauthorizedV2 } from '@modelcontextprotocol/client';

const origin = process.argv[2] ?? assert.fail('the origin of the server is missing');
const callback = 'http://127.0.0.1/callback';
const info = { name: 'checkpoint-outside', version: '1' };

/** Follows an authorization request as a browser does; returns the address that leads back to the client. */
async function walk(url) {
  const cookies = new Map();
  for (let hop = 0; hop < 12; hop += 1) {
    const headers = cookies.size ? { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') } : {};
    const response = await fetch(url, { redirect: 'manual', headers });
    for (const line of response.headers.getSetCookie()) {
      const [pair] = line.split(';');
      cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    }
    const next = new URL(response.headers.get('location') ?? assert.fail(`${response.status} ${await response.text()}`), url);
    if (`${next.origin}${next.pathname}` === callback) return next;
    url = next;
  }
  return assert.fail('the authorization server goes in circles');
}

/** What a client needs to know of its user's machine. */
class Memory {
  get redirectUrl() { return callback; }
  get clientMetadata() {
    return {
      client_name: 'outside', redirect_uris: [callback], token_endpoint_auth_method: 'none', application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    };
  }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  saveDiscoveryState(state) { this.discovered = state; }
  discoveryState() { return this.discovered; }
  state() { return 'state-1'; }
  async redirectToAuthorization(url) { this.back = await walk(url); }
}

async function through(Client, Transport, Unauthorized, url) {
  const authProvider = new Memory();
  const connect = async () => {
    const client = new Client(info), transport = new Transport(new URL(url), { authProvider });
    try {
      await client.connect(transport);
      return client;
    } catch (fault) {
      if (!(fault instanceof Unauthorized) || !authProvider.back) throw fault;
      const back = authProvider.back.searchParams;
      // v2 checks `iss` of RFC 9207 and takes all parameters; v1 takes the code.
      await transport.finishAuth(transport instanceof TransportV2 ? back : back.get('code'));
      return undefined;
    }
  };
  const client = await connect() ?? await connect() ?? assert.fail('still unauthorized after signing in');
  const { tools } = await client.listTools();
  assert(tools.some(tool => tool.name === 'submit_step') && tools.every(tool => tool.name !== 'resolve_block'));
  const found = await client.callTool({ name: 'find_work', arguments: {} });
  assert.equal(found.structuredContent.ok, true);
  assert(authProvider.kept.scope.includes('workflow:write'), authProvider.kept.scope);
  await client.close();
}

let failed = 0;
for (const [name, ...parts] of [['v1', ClientV1, TransportV1, UnauthorizedV1], ['v2', ClientV2, TransportV2, UnauthorizedV2]]) {
  for (const [kind, path] of [['headerless', '/mcp'], ['challenge', '/mcp-std']]) {
    try {
      await through(...parts, `${origin}${path}`);
      console.log(`${name}: ${kind} ok`);
    } catch (fault) {
      failed += 1;
      console.error(fault);
      console.log(`${name}: ${kind} FAILED: ${String(fault?.message ?? fault).replace(/\s+/g, ' ').slice(0, 400)}`);
    }
  }
}
process.exit(failed ? 1 : 0);
