// Journeys of people through the console, in a real browser, with and without JavaScript.

import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { call, eventually, launch, open, run, totp } from "./browser.mjs";
import { invite, person, signIn } from "./people.mjs";
import { addMerchant } from "./portal_shop.mjs";
import { delivery, publishOrder, setShop, startExchange, startReturn } from "./shop.mjs";

const suffix = Date.now();
const PASSWORD = "a long and quiet sentence";
const browser = await launch();

/** Opens a window, runs a test in it and checks that no page did anything wrong. */
async function inWindow(options, test) {
  const { page, context, problems } = await open(browser, options);
  try {
    await test(page, context);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

const heading = (page) => page.getByRole("heading", { level: 1 }).innerText();
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

/** Accepts an invitation as a person would. @returns the key of the authenticator app */
async function accept(page, url) {
  await page.goto(url);
  const secret = (await page.locator("#secret").innerText()).replaceAll(" ", "");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("The same password again").fill("something else");
  await page.getByLabel("Code that the app shows now").fill(totp(secret));
  await press(page, "Set up my account");
  // A rejected form says why, beside the field.
  assert.match(await page.locator("#password_again-error").innerText(), /\w/);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("The same password again").fill(PASSWORD);
  await page.getByLabel("Code that the app shows now").fill(totp(secret));
  await press(page, "Set up my account");
  assert.equal(await heading(page), "Your recovery codes");
  const codes = (await page.locator("#codes").innerText()).trim().split(/\s+/);
  assert.equal(codes.length, 10);
  await page.getByRole("link", { name: "I have stored them" }).click();
  return { secret, codes };
}

async function signInAs(page, email, code) {
  await page.goto("/sign-in");
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByLabel("Code from your authenticator app").fill(code);
  await press(page, "Sign in");
}

/** A dead delivery of the demo merchant. @returns the RMA identifier */
async function deadLetter(name) {
  const order = `WEB-${name}-${suffix}`;
  await publishOrder(order);
  await setShop(false);
  const rma = await startReturn(order, 1);
  await delivery(rma, "dead");
  await setShop(true);
  return rma;
}

/** From an invitation to a message that is delivered. */
async function fixDelivery(javaScriptEnabled) {
  const name = javaScriptEnabled ? "js" : "plain";
  const rma = await deadLetter(name);
  const email = `operator-${name}-${suffix}@example.com`;
  const { url } = await invite(email, "operator");
  await inWindow({ javaScriptEnabled }, async (page) => {
    const { secret, codes } = await accept(page, url);
    await press(page, "Sign out");
    assert.equal(await heading(page), "Sign in to Backhaul");
    await signInAs(page, email, "000000");
    await page.getByText("is wrong").waitFor();
    await signInAs(page, email, codes[0]);
    assert.equal(await heading(page), "Overview");
    assert.notEqual(secret, "");

    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Deliveries" }).click();
    await page.getByLabel("State").selectOption("dead");
    await page.getByLabel("Ordering key").fill(`rma:${rma}`);
    await press(page, "Show");
    await page.getByRole("row").filter({ hasText: `rma:${rma}` }).getByRole("link").first().click();
    assert.match(await page.locator("#summary").innerText(), /503/);
    assert.equal(await page.locator("ol.timeline > li").count(), 6);

    await page.getByRole("link", { name: `rma:${rma}` }).click();
    await page.getByRole("link", { name: "Replay these" }).click();
    await page.getByRole("heading", { name: "1 delivery matches" }).waitFor();
    await page.getByLabel("Type 1 to confirm").fill("7");
    await press(page, "Replay 1 delivery");
    assert.match(await page.locator("#typed-error").innerText(), /\w/);
    await page.getByLabel("Type 1 to confirm").fill("1");
    await press(page, "Replay 1 delivery");
    await page.getByText("Started by").waitFor();
    await delivery(rma, "delivered");
    await eventually("the page shows the end of the replay", async () => {
      if (!javaScriptEnabled) await page.reload();
      return /finished/.test(await page.locator("main").innerText());
    });
    assert.match(await page.locator("main").innerText(), new RegExp(email));

    await page.goto(`/lookup?q=${rma}`);
    assert.match(await page.locator("main").innerText(), new RegExp(rma));
    await page.goto("/account");
    assert.match(await page.locator("main").innerText(), /This session|this one|current/i);
    await press(page, "Sign out");
    await page.goto("/deliveries");
    assert.equal(await heading(page), "Sign in to Backhaul");
  });
}

/** A merchant's administrator signs in with the app's code, corrects an endpoint and sends a sample to it. */
async function fixEndpoint() {
  const { merchant } = await addMerchant();
  const email = `fixer-${suffix}@example.com`;
  const { url } = await invite(email, "merchant-admin", merchant);
  await inWindow({}, async (page) => {
    const { secret } = await accept(page, url);
    await press(page, "Sign out");
    // The code of this time step was used to accept the invitation.
    await signInAs(page, email, totp(secret, 1));
    assert.notEqual(await heading(page), "Sign in to Backhaul");
    const message = page.getByRole("listitem").filter({ hasText: "Accept a message" });
    assert.match(await message.innerText(), /open|next step/);

    const setUrl = async (path) => {
      await page.goto(`/merchants/${merchant}/endpoints/rma`);
      await page.locator("main input[name=url]").fill(`${process.env.SANDBOX_URL}${path}`);
      await press(page, "Save");
    };
    await setUrl("/no-such-path");
    const sendSample = async () => {
      await page.goto(`/merchants/${merchant}/endpoints`);
      await page.getByRole("button", { name: /^Send sample to/ }).first().click();
      return page.getByRole("status").filter({ hasText: /accepted/i }).innerText();
    };
    assert.match(await sendSample(), /^Not accepted: response 404/);
    await setUrl("/rmas");
    assert.match(await sendSample(), /^Accepted with 200/);
    await page.goto("/");
    assert.match(await message.innerText(), /The last sample was accepted/);
    await setShop(true);
  });
}

/** From a return with a missing unit to its waiver, with the months before and after. */
async function waive(javaScriptEnabled) {
  const name = javaScriptEnabled ? "js" : "plain";
  const order = `WEB-WAIVE-${name}-${suffix}`;
  await publishOrder(order);
  const rma = await startExchange(order, 1);
  const { session } = await person(`waiver-${name}-${suffix}@example.com`, "merchant-admin", process.env.MERCHANT_ID);
  const viewport = javaScriptEnabled ? { width: 1280, height: 900 } : { width: 390, height: 844 };
  await inWindow({ javaScriptEnabled, viewport }, async (page, context) => {
    await signIn(context, session);
    await page.goto("/overdue");
    await page.getByRole("navigation", { name: "Overdue exchanges" }).getByRole("link", { name: "By month" }).click();
    assert.match(await page.getByRole("row").nth(1).innerText(), /\d\.\d\d USD/);
    await page.goto(`/merchants/${process.env.MERCHANT_ID}/returns/${rma}`);
    await page.getByRole("link", { name: "Waive …" }).click();
    const unit = page.locator("input[name=unit]");
    await unit.uncheck();
    await page.getByLabel("Reason").fill("The carrier lost it");
    await press(page, "Waive");
    assert.match(await page.locator("#unit-error").innerText(), /\w/);
    assert.equal(await page.getByLabel("Reason").inputValue(), "The carrier lost it");
    await unit.check();
    await press(page, "Waive");
    await page.getByText("The units are waived.").waitFor();
    assert.match(await page.locator("main").innerText(), /waived[^]*Note: The carrier lost it/);
    assert.equal(await page.getByRole("link", { name: "Waive …" }).count(), 0);
  });
}

/** From the page of an order to a return on the terms of a quote, and to the list of returns. */
async function returnForShopper(javaScriptEnabled) {
  const name = javaScriptEnabled ? "js" : "plain";
  const order = `WEB-RETURN-${name}-${suffix}`;
  await publishOrder(order);
  const { session } = await person(`starter-${name}-${suffix}@example.com`, "merchant-admin", process.env.MERCHANT_ID);
  const viewport = javaScriptEnabled ? { width: 1280, height: 900 } : { width: 375, height: 800 };
  await inWindow({ javaScriptEnabled, viewport }, async (page, context) => {
    await signIn(context, session);
    const start = page.getByRole("link", { name: "Start a return …" });
    await eventually("the units of the order are known", async () => {
      await page.goto(`/merchants/${process.env.MERCHANT_ID}/orders/${order}`);
      return start.isVisible();
    });
    await press(page, "Link for the shopper");
    assert.match(await page.locator("#value-1").innerText(), /^https?:/);
    await page.getByRole("link", { name: "Back to the order" }).click();
    await start.click();
    await press(page, "Show the quote");
    assert.match(await page.locator("#unit-error").innerText(), /\w/);
    await page.locator("input[name=unit]").first().check();
    await press(page, "Show the quote");
    await page.getByRole("heading", { name: "Quote" }).waitFor();
    await press(page, "Start the return");
    await page.getByText("The return is started.").waitFor();
    const [, rma] = (await heading(page)).split(" ");
    await delivery(rma, "delivered");
    await page.goto("/returns");
    await page.getByRole("link", { name: /^Not sent/ }).click();
    assert.match(await page.getByRole("row").filter({ hasText: rma }).innerText(), /not sent[^]*yes/);
  });
}

/** From an example to a saved policy, and back to the version before. */
async function changePolicy(javaScriptEnabled) {
  const { merchant } = await addMerchant();
  const name = javaScriptEnabled ? "js" : "plain";
  const { session } = await person(`policy-${name}-${suffix}@example.com`, "operator");
  const viewer = await person(`policy-viewer-${name}-${suffix}@example.com`, "merchant-viewer", merchant);
  const rules = (page) => page.locator("main ol.list strong").allInnerTexts();
  await inWindow({ javaScriptEnabled }, async (page, context) => {
    await signIn(context, session);
    await page.goto(`/merchants/${merchant}`);
    await page.getByRole("link", { name: "Returns policy" }).click();
    await page.getByText("There are no rules").waitFor();
    for (const example of ["A holiday window", "A free return for faulty goods"]) {
      await page.getByText("Add an example", { exact: true }).click();
      await press(page, example);
    }
    assert.deepEqual(await rules(page), ["holiday", "faulty-goods"]);
    await press(page, "Move up faulty-goods");
    assert.deepEqual(await rules(page), ["faulty-goods", "holiday"]);
    await press(page, "Save");
    await page.getByText("The policy is saved.").waitFor();
    assert.match(await page.locator("main ol.list").innerText(), /holiday If the order was placed from 1 November 2026[^]*Otherwise:/);
    await press(page, "Remove holiday");
    await press(page, "Save");
    assert.deepEqual(await rules(page), ["faulty-goods"]);
    await page.getByRole("link", { name: "Versions", exact: true }).click();
    assert.match(await page.locator("main ol.timeline > li").first().innerText(), /in use[^]*removed\s+holiday/);
    await page.getByRole("button", { name: /^Use this again/ }).first().click();
    await page.getByText("The policy is saved.").waitFor();
    assert.deepEqual(await rules(page), ["faulty-goods", "holiday"]);
  });
  await inWindow({ javaScriptEnabled }, async (page, context) => {
    await signIn(context, viewer.session);
    await page.goto("/merchant/policy");
    assert.deepEqual(await rules(page), ["faulty-goods", "holiday"]);
    assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
    await page.goto("/merchant/policy/versions");
    assert.equal(await page.getByRole("button", { name: /^Use this again/ }).count(), 0);
  });
}

await run({
  "a policy is written from examples, and an earlier version is used again": () => changePolicy(true),
  "a policy without JavaScript": () => changePolicy(false),
  "from an invitation to a delivered message": () => fixDelivery(true),
  "the same without JavaScript": () => fixDelivery(false),
  "from a wrong endpoint to an accepted sample": fixEndpoint,

  "a merchant's person replays a delivery of their own merchant": async () => {
    const rma = await deadLetter("own");
    const { session } = await person(`admin-${suffix}@example.com`, "merchant-admin", process.env.MERCHANT_ID);
    await inWindow({}, async (page, context) => {
      await signIn(context, session);
      await page.goto(`/deliveries?ordering_key=rma:${rma}`);
      await page.getByRole("row").filter({ hasText: `rma:${rma}` }).getByRole("link").first().click();
      await press(page, "Replay");
      await delivery(rma, "delivered");
      assert.equal((await page.goto("/new-merchant")).status(), 403);
    });
  },

  "a return is started for a shopper": () => returnForShopper(true),
  "a return is started without JavaScript on a phone": () => returnForShopper(false),

  "an exchanged unit that does not come back is waived": () => waive(true),
  "the same without JavaScript on a phone": () => waive(false),

  "a viewer changes nothing": async () => {
    const { session } = await person(`viewer-${suffix}@example.com`, "merchant-viewer", process.env.MERCHANT_ID);
    await inWindow({}, async (page, context) => {
      await signIn(context, session);
      for (const path of ["/", "/deliveries", "/merchant", "/merchant/endpoints", "/merchant/clients"]) {
        await page.goto(path);
        const actions = page.locator("main form[method=post] button");
        assert.deepEqual(await actions.allInnerTexts(), [], path);
      }
    });
  },

  "an ended session keeps the form": async () => {
    const someone = await person(`ended-${suffix}@example.com`, "operator");
    await inWindow({}, async (page, context) => {
      await signIn(context, someone.session);
      await page.goto("/people/new");
      await page.getByLabel("E-mail address").fill(`kept-${suffix}@example.com`);
      await page.getByLabel("Role").selectOption("support");
      const second = await context.newPage();
      await second.goto("/account");
      await second.getByRole("button", { name: "Sign out everywhere" }).click();
      await press(page, "Make an invitation link");
      assert.equal(await heading(page), "Your session ended");
      const kept = await page.locator("input[type=hidden]").evaluateAll((inputs) => inputs.map((input) => input.value));
      assert.ok(kept.includes(`kept-${suffix}@example.com`), String(kept));
    });
  },

  "headers and cookies": async () => {
    const response = await fetch(`${process.env.CONSOLE_URL}/sign-in`);
    const header = (name) => response.headers.get(name);
    assert.match(header("content-security-policy"), /default-src 'none'.*require-trusted-types-for 'script'/);
    assert.equal(header("cache-control"), "no-store");
    assert.equal(header("x-content-type-options"), "nosniff");
    const page = await response.text();
    const [, style] = page.match(/href="(\/assets\/[^"]+\.css)"/);
    const [, script] = page.match(/src="(\/assets\/[^"]+\.js)"/);
    const size = async (path) => {
      const response = await fetch(process.env.CONSOLE_URL + path);
      assert.match(response.headers.get("cache-control"), /immutable/);
      return gzipSync(Buffer.from(await response.arrayBuffer())).length;
    };
    assert.ok((await size(script)) < 8_000, "the script is too large");
    assert.ok((await size(style)) < 30_000, "the style sheet is too large");
  },

  "markup in every field is shown as text": async () => {
    const order = `WEB-MARKUP-${suffix}`;
    const markup = `<script>throw 1</script><img src=x onerror="throw 2">"'&amp;`;
    await publishOrder(order, markup);
    const rma = await startReturn(order, 1);
    const { session } = await person(`markup-${suffix}@example.com`, "operator");
    await inWindow({}, async (page, context) => {
      await signIn(context, session);
      const merchant = process.env.MERCHANT_ID;
      for (const path of [
        `/lookup?q=${encodeURIComponent(markup)}`, `/deliveries?merchant=${merchant}&ordering_key=${encodeURIComponent(markup)}`,
        `/merchants/${merchant}/orders/${order}`, `/merchants/${merchant}/returns/${rma}`, `/deliveries?text=${encodeURIComponent(markup)}`,
      ]) {
        await page.goto(path);
        assert.equal(await page.locator("main img, main script").count(), 0, path);
      }
      await page.goto(`/merchants/${merchant}/orders/${order}`);
      assert.match(await page.locator("main").innerText(), /<script>throw 1<\/script>/);
    });
  },
});
await browser.close();
