// Drives Debian's Chromium for the tests: reads a command a line, as JSON, and answers each with a line.
//
// node driver.mjs MODULES BROWSER
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [modules, executablePath] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const { chromium } = require("playwright-core");

const home = mkdtempSync(join(tmpdir(), "pinfold-browser-"));
const args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const options = { executablePath, headless: true, chromiumSandbox: false, args, env: { ...process.env, HOME: home } };
const browser = await chromium.launch(options);

/** What the page of a test may take until something is there, in milliseconds. The machine may be busy. */
const PATIENCE = 60_000;
const pages = [];

/** A new browser with cookies of its own; `settings` are Playwright's. */
async function open({ url, settings = {} }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...settings });
  context.setDefaultTimeout(PATIENCE);
  return { page: await added(context, url) };
}

/** Another tab of a browser. */
async function tab({ page, url }) {
  return { page: await added(pages[page].page.context(), url) };
}

async function added(context, url) {
  const page = await context.newPage();
  const known = { page, problems: [] };
  // Violations of the Content-Security-Policy are reported on the console.
  page.on("console", (message) => message.type() === "error" && known.problems.push(message.text()));
  page.on("pageerror", (error) => known.problems.push(String(error)));
  page.on("dialog", (dialog) => {
    known.problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return pages.push(known) - 1;
}

const commands = {
  open,
  tab,
  goto: async ({ page, url }) => ({ status: (await pages[page].page.goto(url))?.status() ?? null }),
  click: ({ page, at }) => pages[page].page.locator(at).first().click(),
  fill: ({ page, at, text }) => pages[page].page.locator(at).first().fill(text),
  press: ({ page, key }) => pages[page].page.keyboard.press(key),
  wait: ({ page, at }) => pages[page].page.locator(at).first().waitFor(),
  gone: ({ page, at }) => pages[page].page.locator(at).first().waitFor({ state: "detached" }),
  text: async ({ page, at }) => ({ text: await pages[page].page.locator(at).first().innerText() }),
  count: async ({ page, at }) => ({ count: await pages[page].page.locator(at).count() }),
  title: async ({ page }) => ({ title: await pages[page].page.title() }),
  run: async ({ page, code }) => ({ value: await pages[page].page.evaluate(code) }),
  size: ({ page, width, height }) => pages[page].page.setViewportSize({ width, height }),
  shot: ({ page, file }) => pages[page].page.screenshot({ path: file }),
  close: ({ page }) => pages[page].page.close(),
  problems: ({ page }) => ({ problems: pages[page].problems.splice(0) }),
  /** What axe finds that is serious. */
  axe: async ({ page }) => {
    const { source } = require("axe-core");
    const found = await pages[page].page.evaluate(`${source}; axe.run(document, { resultTypes: ["violations"] })`);
    const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return { found: serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  try {
    process.stdout.write(`${JSON.stringify({ ...(await commands[command](given)) })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ error: String(error) })}\n`);
  }
}
await browser.close();
rmSync(home, { recursive: true, force: true });
