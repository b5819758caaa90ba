// The speed of the portal on a phone, as Lighthouse emulates it for its mobile scores: a CPU that is four times slower,
// and slow 4G (150 ms round trip, 1.6 Mbit/s down, 750 kbit/s up). A busy machine makes a page slower and never faster,
// so the best of some tries counts, and the time is not judged if more programs wait for a processor than there are.

import assert from "node:assert/strict";
import { cpus, loadavg } from "node:os";
import { launch, run } from "./browser.mjs";
import { deepLink, publish } from "./portal_shop.mjs";

const PHONE = { viewport: { width: 412, height: 823 }, deviceScaleFactor: 1.75, isMobile: true, hasTouch: true };
const CPU_SLOWDOWN = 4;
const NETWORK = { offline: false, latency: 150, downloadThroughput: (1.6 * 1024 * 1024) / 8, uploadThroughput: (750 * 1024) / 8 };
const TRIES = 10;
/** The largest element is painted within this time, in milliseconds. */
const MAX_PAINT = 1_200;
const MAX_BYTES = 30_000;

const browser = await launch();

/** The time of the largest paint so far, after the next frame was painted. */
const largestPaint = (page) => page.evaluate(() => new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const observer = new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime));
    observer.observe({ type: "largest-contentful-paint", buffered: true });
  }));
}));

/** Opens a page for the first time. @returns its time in milliseconds, and the bytes and URLs of its requests without pictures */
async function open(url) {
  const context = await browser.newContext(PHONE);
  try {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", NETWORK);
    await session.send("Emulation.setCPUThrottlingRate", { rate: CPU_SLOWDOWN });
    const urls = new Map();
    let bytes = 0;
    session.on("Network.responseReceived", ({ requestId, type, response }) => {
      if (type !== "Image") urls.set(requestId, response.url);
    });
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      if (urls.has(requestId)) bytes += encodedDataLength;
    });
    const response = await page.goto(url);
    return { status: response.status(), paint: await largestPaint(page), bytes, urls: [...urls.values()] };
  } finally {
    await context.close();
  }
}

function checkPaint(paint) {
  if (loadavg()[0] > cpus().length) console.log("        the machine is busy: the time is not judged");
  else assert.ok(paint <= MAX_PAINT, `${paint} ms`);
}

/** Opens a page until it is fast enough. @returns the fastest try */
async function fastest(url) {
  let best;
  for (let tries = 0; tries < TRIES && !(best?.paint <= MAX_PAINT); tries += 1) {
    const opened = await open(url);
    if (opened.status === 200 && !(best?.paint <= opened.paint)) best = opened;
  }
  assert.ok(best, `${url} was never shown`);
  console.log(`        largest paint ${best.paint.toFixed(0)} ms, ${best.bytes} bytes in ${best.urls.length} requests without pictures`);
  return best;
}

await run({
  "the first page": async () => {
    const { paint, bytes, urls } = await fastest(`${process.env.PORTAL_URL}/${process.env.MERCHANT_ID}`);
    checkPaint(paint);
    assert.ok(bytes < MAX_BYTES, `${bytes} bytes`);
    // The page, three style sheets and two scripts.
    assert.ok(urls.length <= 6, urls.join("\n"));
  },
  "a link in an e-mail, with pictures of the items": async () => {
    const order = await publish([{ sku: "COTTON-TEE-RUST-M", quantity: 2 }, "TRAIL-SHOE-NAVY-42", "FAMILY-TENT-OLIVE"]);
    const { url } = await deepLink(order.identifier);
    const { paint, bytes } = await fastest(url);
    checkPaint(paint);
    assert.ok(bytes < MAX_BYTES, `${bytes} bytes`);
  },
});
await browser.close();
