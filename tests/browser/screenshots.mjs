// `make screenshots`: each view, light and dark, of a scripted hour of the demo server. Writes docs/images.
import fs from "node:fs";
import path from "node:path";
import * as harness from "./harness.mjs";

const OUT = path.join(harness.REPO, "docs/images");
const LARGEST = 150 * 1024;
const TOOLS = ["echo", "slow", "flaky", "broken", "rate_limited", "fetch_url", "client_file_read", "bad_arguments", "progress", "expired_token", "needs_permission", "ask"];
const SHOTS = [
  ["tools", "/"],
  ["tool", "/tools/demo/broken"],
  ["rules", "/rules?hit=1"],
  ["explain", "/explain"],
  ["integrations", "/integrations"],
  ["events", "/events?kind=transition"],
  ["config", "/config"],
];

const home = harness.scratch();
const demo = await harness.start("examples/demo_server", ["--listen", "127.0.0.1:0"], /demo server on (http:\S+)/);
await harness.run("examples/past", [`${home}/toolvane.redb`, ...TOOLS]);
const more = `integrations:
  maps: {credentials_required: [{env: MAPS_API_KEY}], setup_hint: "Put the key of the maps account into MAPS_API_KEY and restart."}
  files: {credentials_required: [{env: HOME}]}
tools:
  fetch_url: {integration: maps}
  client_file_read: {integration: files}
  broken: {advice: "Search with echo instead."}
`;
const toolvane = await harness.toolvane(home, demo.found[1], more);
const proxy = `${toolvane.proxy}/mcp`;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const write = (place, body) =>
  fetch(`${toolvane.admin}/v1/${place}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

await harness.list(proxy);
await write("health/PROJECT/default/slow/degraded", {
  reason: "The search index is being rebuilt; answers take longer.", expiresIn: "45m", signature: "maintenance", by: "nightly-jobs",
});
await write("override", {
  tool: "progress", scope: "PROJECT", scopeId: "default", force: "DOWN", reason: "Moving to the new cluster", expiresIn: "2h",
});
for (let second = 0; second < 9; second += 1) {
  for (let times = 0; times < 6; times += 1) await harness.call(proxy, "echo", { text: "hello" });
  for (const tool of ["broken", "flaky", "rate_limited", "needs_permission", "expired_token"]) await harness.call(proxy, tool, {}, "alice");
  await harness.call(proxy, "bad_arguments", { seats: 12, class: "economy" });
  await harness.call(proxy, "ask", {});
  await pause(1_000);
}
const chromium = await harness.browser();
fs.mkdirSync(OUT, { recursive: true });
for (const colorScheme of ["light", "dark"]) {
  const context = await chromium.newContext({ colorScheme, viewport: { width: 1240, height: 780 } });
  const page = await context.newPage();
  for (const [name, view] of SHOTS) {
    await page.goto(toolvane.admin + view);
    if (name === "explain") {
      await page.fill("#body", "the service is busy, try again later");
      await page.click("form.outcome button");
    } else {
      await page.waitForSelector("#link[data-state=live]");
    }
    const file = path.join(OUT, `${name}-${colorScheme}.png`);
    await page.screenshot({ path: file });
    const { size } = fs.statSync(file);
    console.log(`${path.relative(harness.REPO, file)}: ${(size / 1024).toFixed(0)} KiB`);
    if (size > LARGEST) throw new Error(`${file} is larger than 150 KiB`);
  }
  await context.close();
}
await chromium.close();
await toolvane.stop();
await demo.stop();
fs.rmSync(home, { recursive: true, force: true });
