// Makes the pictures of the portal in docs/images, at the size of a phone.
// usage: portal_screenshots.mjs FOLDER

import { mkdirSync } from "node:fs";
import { launch } from "./browser.mjs";
import { inPortal } from "./portal_page.mjs";
import { publish } from "./portal_shop.mjs";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
const TEE = "Heavy cotton T-shirt, Rust, M";
const SHOE = "Trail running shoe, Navy, 42";

const browser = await launch();
const order = await publish([{ sku: "COTTON-TEE-RUST-M", quantity: 2, discount: 500 }, "TRAIL-SHOE-NAVY-42", "LINEN-SHIRT-SAND-L", "CANVAS-BAG-NAVY"]);
await inPortal(browser, {}, async (portal) => {
  const picture = async (name) => {
    await portal.page.waitForLoadState("networkidle");
    await portal.page.screenshot({ path: `${folder}/portal-${name}.png` });
  };
  await portal.goto();
  await picture("find");
  await portal.fillFind(order.identifier, order.email);
  await portal.choose(TEE, 1, "TOO_LARGE");
  await picture("choose");
  await portal.goOn([
    { title: TEE, reason: "TOO_LARGE" },
    { title: SHOE, reason: "TOO_SMALL", resolution: "exchange", color: "Navy", size: "43" },
  ]);
  await picture("check");
  await portal.confirm();
  await picture("return");
});
await browser.close();
