// Makes the pictures in docs/images: the main pages of the console in light and dark, at desktop and phone size.
// usage: screenshots.mjs FOLDER

import { mkdirSync } from "node:fs";
import { launch, open } from "./browser.mjs";
import { person, signIn } from "./people.mjs";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
const { session } = await person(`pictures-${Date.now()}@example.com`, "operator");
const merchant = process.env.MERCHANT_ID;

const browser = await launch();
/** @param {import("playwright-core").Page} page */
async function firstLink(page, path, selector) {
  await page.goto(path);
  return page.locator(selector).first().getAttribute("href");
}

const { page, context } = await open(browser);
await signIn(context, session);
const dead = await firstLink(page, "/deliveries?state=dead", "main tbody a");
await context.close();

const pages = {
  overview: "/",
  deliveries: "/deliveries",
  delivery: dead,
  replay: `/replays/new?merchant=${merchant}&state=dead`,
  endpoints: `/merchants/${merchant}/endpoints`,
  reference: "/reference",
};
for (const [name, path] of Object.entries(pages)) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, context } = await open(browser, { colorScheme, viewport: { width: 1280, height: 860 } });
    await signIn(context, session);
    await page.goto(path);
    await page.screenshot({ path: `${folder}/console-${name}-${colorScheme}.png` });
    await context.close();
  }
}
await browser.close();
