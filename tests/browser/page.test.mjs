// The status page in a real browser: every view loads, works without JavaScript, is live with it, is clean for keyboards and
// screen readers in both colour schemes, and takes a day of 500 tools without a stall.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";
import * as harness from "./harness.mjs";

const TOOLS = 500;
/** The longest task that is no stall, in milliseconds: generous, since the machine may be busy. */
const LONGEST_TASK = 1_000;
const VIEWS = ["/", "/tools/demo/tool_001", "/integrations", "/rules", "/explain", "/events", "/config"];

let home, backend, toolvane, chromium;

before(async () => {
  home = harness.scratch();
  backend = await harness.server(TOOLS);
  await harness.run("examples/past", [`${home}/toolvane.redb`, "--many", String(TOOLS)]);
  const more = 'integrations: {mail: {credentials_required: [{env: NOT_SET_ANYWHERE}], setup_hint: "Ask the operators."}}\ntools: {tool_004: {integration: mail}}\n';
  toolvane = await harness.toolvane(home, backend.url, more);
  await harness.list(`${toolvane.proxy}/mcp`);
  await harness.call(`${toolvane.proxy}/mcp`, "tool_001");
  chromium = await harness.browser();
});

after(async () => {
  await chromium?.close();
  await toolvane?.stop();
  await backend?.stop();
  fs.rmSync(home, { recursive: true, force: true });
});

/** A page that remembers what its console and its policy complained about. */
const open = async (options = {}) => {
  const context = await chromium.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith(toolvane.admin) || complaints.push(`asked ${request.url()}`));
  return { page, complaints, close: () => context.close() };
};

const audit = async (page) => {
  // The page's own policy lets no foreign script in: axe comes in through the protocol of the browser's debugger.
  await page.evaluate(harness.AXE);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations", "passes"] }));
  assert.ok(passes.length > 10 && passes.some(({ id }) => id === "color-contrast"), "axe looked at nothing");
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
};

for (const scheme of ["light", "dark"]) {
  test(`every view is clean for axe, for the console and for its policy, in ${scheme}`, async () => {
    const { page, complaints, close } = await open({ colorScheme: scheme });
    for (const view of VIEWS) {
      // A day of 500 tools has its own test: rules about single rows need no more than some of them.
      const answer = await page.goto(toolvane.admin + (view === "/" ? "/?q=tool_00" : view));
      assert.equal(answer.status(), 200, view);
      assert.deepEqual(await audit(page), [], view);
      assert.deepEqual(complaints, [], view);
    }
    await page.goto(`${toolvane.admin}/explain`);
    await page.fill("#status", "403");
    await page.click("form.outcome button");
    await page.waitForSelector(".answer h2");
    assert.deepEqual(await audit(page), [], "an answer");
    await page.setViewportSize({ width: 360, height: 800 });
    for (const view of VIEWS) {
      await page.goto(toolvane.admin + (view === "/" ? "/?q=tool_00" : view));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${view} is ${wide} pixels wider than a narrow screen`);
      assert.deepEqual(await audit(page), [], `${view}, narrow`);
    }
    assert.deepEqual(complaints, []);
    await close();
  });
}

test("every view works without JavaScript", async () => {
  const { page, complaints, close } = await open({ javaScriptEnabled: false });
  for (const view of VIEWS) {
    await page.goto(toolvane.admin + view);
    assert.ok((await page.textContent("h1")).length > 2, view);
    assert.match(await page.textContent(".fresh, .bottom"), /as of|started/, view);
  }
  await page.goto(`${toolvane.admin}/explain`);
  await page.fill("#status", "429");
  await page.fill("#headers", "retry-after: 77");
  await page.click("form.outcome button");
  assert.match(await page.textContent(".answer"), /rate-limited[^]*1m 17s|rate-limited[^]*77s/);
  await page.goto(toolvane.admin);
  await page.fill("#q", "tool_007");
  await page.click("form.find button");
  assert.equal(await page.locator("#tools tr").count(), 1);
  await page.click("#tools a");
  assert.match(await page.textContent("h1"), /tool_007/);
  assert.deepEqual(complaints, []);
  await close();
});

test("the keyboard reaches everything and shows where it is", async () => {
  const { page, close } = await open();
  await page.goto(`${toolvane.admin}/?q=tool_001`);
  const visited = [];
  while (!visited.includes("tool_001") && visited.length < 50) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => {
      const held = document.activeElement;
      const style = getComputedStyle(held);
      return { text: held.textContent.trim().slice(0, 20), id: held.id, outline: style.outlineStyle !== "none" };
    });
    assert.ok(seen.outline, `no outline on ${JSON.stringify(seen)}`);
    visited.push(seen.id || seen.text);
  }
  for (const wanted of ["Skip to content", "Rules", "q", "status", "Show", "tool_001"]) {
    assert.ok(visited.includes(wanted), `${wanted} in ${visited}`);
  }
  await close();
});

test("a day of 500 tools is shown without a stall, and stays so while it is live", async () => {
  const { page, complaints, close } = await open();
  await page.addInitScript(() => {
    globalThis.tasks = [];
    new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({
      type: "longtask",
      buffered: true,
    });
  });
  await page.goto(toolvane.admin);
  assert.equal(await page.locator("#tools tr").count(), TOOLS);
  assert.equal(await page.locator("#tools svg").count(), TOOLS);
  await page.waitForSelector("#link[data-state=live]");
  await harness.call(`${toolvane.proxy}/mcp`, "tool_002");
  const mark = `${toolvane.admin}/v1/health/PROJECT/default/tool_499`;
  const send = (to, body) => fetch(`${mark}/${to}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  await send("unavailable", { reason: "for a test", expiresIn: "10m" });
  const row = page.locator('#tools tr[data-key="demo/tool_499"]');
  await row.locator(".pill.down, .pill.retesting").waitFor();
  assert.match(await row.textContent(), /for a test/);
  assert.equal(await page.locator("#tools tr").first().getAttribute("data-key"), "demo/tool_499", "what is worst comes first");
  await send("available", { reason: "for a test" });
  await row.locator(".pill.ok").waitFor();
  const [tasks, nodes] = await page.evaluate(() => [globalThis.tasks, document.querySelectorAll("*").length]);
  console.log(`500 tools: ${nodes} nodes, longest task ${Math.max(0, ...tasks).toFixed(0)} ms of ${tasks.length}`);
  assert.ok(Math.max(0, ...tasks) < LONGEST_TASK, `tasks of ${tasks} ms`);
  assert.ok(nodes < 20_000, `${nodes} nodes`);
  assert.deepEqual(complaints, []);
  await close();
});

test("a backend that dies and returns is seen without a reload, by everybody who looks", async () => {
  const { page, complaints, close } = await open();
  await page.goto(`${toolvane.admin}/tools/demo/tool_003`);
  await page.evaluate(() => { globalThis.unloaded = false; });
  await page.waitForSelector("#link[data-state=live]");
  assert.match(await page.textContent("h1"), /OK/);
  await backend.stop();
  await harness.call(`${toolvane.proxy}/mcp`, "tool_003");
  await page.locator("h1 .pill.down, h1 .pill.retesting").waitFor();
  assert.match(await page.textContent("#tool"), /connect-refused/);
  await backend.back();
  await page.locator("h1 .pill.retesting").waitFor();
  await harness.call(`${toolvane.proxy}/mcp`, "tool_003");
  await page.locator("h1 .pill.ok").waitFor();
  assert.equal(await page.evaluate(() => globalThis.unloaded), false, "the page was never loaded anew");
  const news = await page.textContent("#at");
  assert.match(news, /UTC/);
  assert.deepEqual(complaints, []);
  await close();
});
