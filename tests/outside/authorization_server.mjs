// A real authorization server on loopback, for oauth.py: npm oidc-provider with resource indicators, JWT access tokens,
// client_credentials, authorization code with PKCE, dynamic registration, and its RFC 8414 document.
//
//   node authorization_server.mjs PORT KEYS.json
// KEYS.json holds the signing keys; it is made when it is not there, so that a restart with the same file is the same
// server, and one with another file has rotated its key. People need no password: `login_hint` says who they are.
import { readFileSync, writeFileSync, existsSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { Provider } from 'oidc-provider';
import { exportJWK, generateKeyPair } from 'jose';

const [port, keyFile] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

if (!existsSync(keyFile)) {
  const keys = [];
  for (const alg of ['RS256', 'ES256']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true });
    keys.push({ ...await exportJWK(privateKey), alg, use: 'sig', kid: randomUUID() });
  }
  writeFileSync(keyFile, JSON.stringify({ keys }));
}

const names = { ann: 'Ann Miller', eve: 'Eve Lead' };
const SCOPES = 'workflow:read workflow:write workflow:supervise mcp:service';

const provider = new Provider(issuer, {
  jwks: JSON.parse(readFileSync(keyFile, 'utf8')),
  clients: [
    { client_id: 'alexa-service', client_secret: 'alexa-service-secret', grant_types: ['client_credentials'],
      redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_post', scope: SCOPES },
    { client_id: 'assistant', token_endpoint_auth_method: 'none', application_type: 'native', grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: ['http://127.0.0.1/callback'], response_types: ['code'], scope: `openid offline_access ${SCOPES}` },
  ],
  clientDefaults: { id_token_signed_response_alg: 'RS256' },
  scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    registration: { enabled: true, initialAccessToken: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: SCOPES, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 300,
        jwt: { sign: { alg: process.env.TOKEN_ALG ?? 'RS256' } },
      }),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, name: names[id] }) }),
  extraTokenClaims: (_, token) => (token.accountId ? { name: names[token.accountId] ?? token.accountId } : undefined),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ['only for tests'] },
});

// Signs in whoever `login_hint` names, and grants what is asked for.
provider.use(async (context, next) => {
  if (!context.path.startsWith('/interaction/')) return next();
  const { prompt, params, grantId, session } = await provider.interactionDetails(context.req, context.res);
  if (prompt.name === 'login') {
    const accountId = params.login_hint ?? 'ann';
    return provider.interactionFinished(context.req, context.res, { login: { accountId } }, { mergeWithLastSubmission: false });
  }
  const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
});

provider.on('server_error', (_, error) => console.error(error));
provider.listen(Number(port), '127.0.0.1', () => console.log(`ready ${issuer}`));
