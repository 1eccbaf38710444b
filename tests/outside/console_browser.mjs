// The console in Chromium, driven by Playwright: console.py starts it beside a server and says in $CONSOLE what there is.
//
// Prints PASS and FAIL lines as every suite does. Screenshots and axe's report go to the folder that it is given.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const given = JSON.parse(process.env.CONSOLE ?? assert.fail('CONSOLE is not set: run console.py'));
const require = createRequire(import.meta.url);
const AXE = { path: require.resolve('axe-core/axe.min.js') };
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const path = id => `/console/workflows/${id}`;
const report = { axe: null, tags: TAGS, pages: [] };
let failed = 0;

const program = await chromium.launch({ executablePath: given.program, args: ['--no-sandbox', '--font-render-hinting=none'] });

async function test(title, body) {
  const began = Date.now();
  try {
    await body();
    console.log(`PASS console: ${title} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (fault) {
    failed += 1;
    console.error(fault.stack);
    console.log(`FAIL console: ${title}: ${String(fault.message).replace(/\s+/g, ' ').slice(0, 900)}`);
  }
}

/** A tab whose page must not run anything, load anything or complain. */
async function tab({ width = 1280, theme = 'light', script = true, cookies = [] } = {}) {
  const context = await program.newContext({
    baseURL: given.base, viewport: { width, height: 800 }, colorScheme: theme, javaScriptEnabled: script, locale: 'en-GB',
  });
  context.setDefaultTimeout(10_000);
  if (script) await context.addInitScript(AXE);
  await context.addCookies(cookies);
  const page = await context.newPage();
  page.complaints = [];
  page.on('console', line => line.type() === 'error' && !line.text().includes('status of 4') && page.complaints.push(line.text()));
  page.on('pageerror', error => page.complaints.push(String(error)));
  page.on('dialog', dialog => { page.complaints.push(`dialog: ${dialog.message()}`); return dialog.dismiss(); });
  page.on('request', request => request.url().startsWith(given.base) || request.url().startsWith('data:') || page.complaints.push(request.url()));
  return page;
}

async function close(page) {
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

async function signIn(page, token = given.supervisor) {
  await page.goto('/console/sign-in');
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** What axe finds, by rule. */
async function findings(page) {
  const found = await page.evaluate(async tags => {
    const result = await axe.run(document, { runOnly: { type: 'tag', values: tags }, preload: false, resultTypes: ['violations', 'incomplete'] });
    const brief = one => ({ rule: one.id, impact: one.impact, where: one.nodes.map(node => node.target.join(' ')).slice(0, 4) });
    return { version: axe.version, checked: result.passes.length, violations: result.violations.map(brief), open: result.incomplete.map(brief) };
  }, TAGS);
  report.axe = found.version;
  return found;
}

/** The element that has the focus, and whether that can be seen. */
const focus = page => page.evaluate(() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  return {
    tag: at.tagName.toLowerCase(), id: at.id, name: at.getAttribute('name'), text: at.textContent.trim(), type: at.type, value: at.value,
    action: at.form?.getAttribute('action'), ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    inView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
});

/** Presses Tab until the focus is on what is wanted; every stop on the way must be visible. */
async function tabTo(page, wanted, what) {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press('Tab');
    const at = await focus(page);
    if (at.tag === 'body') continue;
    assert.ok(at.ring, `the focus cannot be seen on ${JSON.stringify(at)}`);
    assert.ok(at.inView, `the focus is out of sight on ${JSON.stringify(at)}`);
    if (wanted(at)) return at;
  }
  return assert.fail(`no Tab leads to ${what}`);
}

const link = text => at => at.tag === 'a' && at.text === text;
const press = async (page, wanted, what) => { await tabTo(page, wanted, what); await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]); };

await test('a wrong token is refused with a clear text, and nothing is shown', async () => {
  const page = await tab();
  for (const token of ['nonsense', given.foreign]) {
    await signIn(page, token);
    const alert = page.getByRole('alert');
    assert.match(await alert.textContent(), /Not signed in\. This token was not accepted/);
    assert.equal(await page.getByLabel('Access token').inputValue(), '');
  }
  await page.goto('/console/assets');
  assert.match(page.url(), /sign-in\?next=/);
  await close(page);
});

await test('by keyboard alone: sign in, walk all pages, decide on a block, sign out', async () => {
  const page = await tab();
  await page.goto(path(given.stopped));
  await page.keyboard.press('Tab');
  assert.equal((await focus(page)).text, 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal((await focus(page)).id, 'main');
  await tabTo(page, at => at.id === 'token', 'the token');
  await page.keyboard.type(given.supervisor);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  // Back where it began.
  assert.equal(new URL(page.url()).pathname, path(given.stopped));
  await tabTo(page, at => at.type === 'radio', 'a decision');
  for (let n = 0; n < 5 && (await focus(page)).value !== 'require_redo'; n += 1) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await tabTo(page, at => at.name === 'comment', 'the words');
  await page.keyboard.type('the sensor was loose');
  await press(page, at => at.text === 'Decide', 'the button');
  assert.match(await page.getByRole('status').textContent(), /^Done\. /);
  assert.match(await page.locator('main').textContent(), /the sensor was loose/);
  // What is loaded again is a page, not a form.
  await page.reload();
  assert.match(await page.getByRole('status').textContent(), /^Done\. /);
  for (const [text, title] of [['Assets', 'Assets'], ['Messages', 'Messages'], ['Work', 'Work']]) {
    await press(page, link(text), text);
    assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), title);
  }
  await tabTo(page, at => at.id === 'show', 'the filter');
  await page.keyboard.type('Stop');
  await press(page, at => at.text === 'Filter', 'the filter');
  assert.match(page.url(), /show=blocked/);
  await press(page, at => at.tag === 'a' && at.text.includes('PUMP-5') || at.text.toLowerCase().includes('pump 5'), 'a workflow');
  assert.equal(new URL(page.url()).pathname, path(given.plain));
  await press(page, at => at.text === 'Sign out', 'signing out');
  assert.match(await page.getByRole('status').textContent(), /You are signed out/);
  await page.goto('/console');
  assert.match(page.url(), /sign-in/);
  await close(page);
});

await test('without JavaScript everything works; a technician sees no forms', async () => {
  const page = await tab({ script: false });
  await signIn(page);
  await page.goto(path(given.plain));
  await page.getByRole('radio').nth(1).check();
  await page.getByLabel('Why, in your words').fill('seen');
  await page.getByRole('button', { name: 'Decide' }).click();
  assert.match(await page.getByRole('status').textContent(), /Done/);
  await close(page);
  const other = await tab({ script: false });
  await signIn(other, given.technician);
  await other.goto(path(given.held));
  assert.equal(await other.locator('form[action$="/release"]').count(), 0);
  assert.equal(await other.getByRole('link', { name: 'Messages' }).count(), 0);
  assert.equal((await other.goto('/console/messages')).status(), 403);
  await close(other);
});

await test('a lock is released once though its form is sent three times', async () => {
  const page = await tab();
  await signIn(page);
  await page.goto(path(given.held));
  await page.getByText('by hand').click();
  const form = page.locator('form[action$="/release"]');
  await page.getByLabel('Reason').fill('tablet lost');
  const fields = {};
  for (const input of await form.locator('input').all()) fields[await input.getAttribute('name')] = await input.inputValue();
  const send = headers => page.context().request.post(`${path(given.held)}/release`, { form: fields, headers, maxRedirects: 0 });
  for (const origin of ['null', 'http://evil.example', given.base.replace(/\d+$/, '1')]) {
    assert.equal((await send({ origin })).status(), 403, origin);
  }
  assert.equal((await send({})).status(), 403, 'without an origin');
  const both = await Promise.all([send({ origin: given.base }), send({ origin: given.base })]);
  const said = await Promise.all(both.map(async answer => {
    assert.equal(answer.status(), 303);
    return (await page.context().request.get(answer.headers().location)).text();
  }));
  assert.equal(said.filter(text => text.includes('had been sent before')).length, 1);
  await form.getByRole('button').click();
  assert.match(await page.getByRole('status').textContent(), /had been sent before: it was done once/);
  assert.match(await page.locator('.assets').textContent(), /not held any more/);
  await close(page);
});

await test('what people wrote is text', async () => {
  const page = await tab();
  await signIn(page);
  await page.goto(path(given.hostile));
  assert.match(await page.locator('.timeline').textContent(), /<script>alert\(1\)<\/script><img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator('main script, main img').count(), 0);
  await close(page);
});

await test('the evidence is a file', async () => {
  const page = await tab();
  await signIn(page);
  await page.goto(path(given.over));
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download the evidence' }).click()]);
  assert.equal(file.suggestedFilename(), `evidence-${given.over}.json`);
  await file.saveAs(`${given.folder}/evidence.json`);
  await close(page);
});

const PAGES = [
  ['refused', null], ['work', '/console'], ['nothing', '/console?q=nothing+is+called+so'], ['finished', '/console?show=completed'],
  ['assets', '/console/assets'], ['messages', '/console/messages'], ['delivered', '/console/messages?show=delivered'],
  ['stopped', path(given.stays)], ['hostile', path(given.hostile)], ['over', path(given.over)],
  ['unknown', path('nothing')], ['no-page', '/console/nowhere'],
];

// At once: each has its own tabs.
await Promise.all([360, 1280].map(width => test(`axe finds nothing on ${PAGES.length} pages, light and dark, ${width} pixels`, async () => {
  const page = await tab({ width });
  const stranger = await tab({ width });
  await signIn(page);
  await signIn(stranger, 'wrong');
  const all = [];
  for (const [name, address] of PAGES) {
    const at = address ? page : stranger;
    if (address) await at.goto(address);
    for (const summary of await at.locator('summary').all()) await summary.click();
    await at.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
    for (const theme of ['light', 'dark']) {
      await at.emulateMedia({ colorScheme: theme });
      const found = await findings(at);
      report.pages.push({ page: name, theme, width, ...found });
      // axe cannot tell the contrast of a single sign; each stands beside its word, in the colour of the word.
      const unclear = found.open.filter(one => one.rule !== 'color-contrast' || !one.where.every(where => where.includes('aria-hidden')));
      all.push(...[...found.violations, ...unclear].map(one => ({ page: name, theme, ...one })));
      await at.screenshot({ path: `${given.folder}/${name}-${theme}-${width}.png` });
    }
    const wide = await at.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name} is ${wide} pixels too wide`);
  }
  assert.equal(report.pages.filter(one => one.width === width).length, PAGES.length * 2);
  assert.deepEqual(all, []);
  await close(stranger);
  await close(page);
})));

await test('control: faults that are put into a page are found', async () => {
  const page = await tab({ theme: 'dark' });
  await signIn(page);
  const rules = async spoil => {
    await page.goto('/console');
    await page.evaluate(spoil);
    return (await findings(page)).violations.filter(one => ['serious', 'critical'].includes(one.impact)).map(one => one.rule);
  };
  assert.deepEqual(await rules(() => {}), []);
  assert.ok((await rules(() => document.querySelector('main').append(document.createElement('input')))).includes('label'));
  assert.ok((await rules(() => { document.querySelector('h1').style.color = '#333'; })).includes('color-contrast'));
  assert.ok((await rules(() => document.documentElement.removeAttribute('lang'))).includes('html-has-lang'));
  await close(page);
});

writeFileSync(`${given.folder}/report.json`, JSON.stringify(report, null, 1));
await program.close();
process.exit(failed === 0 ? 0 : 1);
