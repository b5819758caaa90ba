// The pages of the portal: their elements by role and name, in the language of the window. The names are here only.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, launch, open, run } from "./browser.mjs";
import { cents, text } from "./portal_texts.mjs";

const { PORTAL_URL, MERCHANT_ID } = process.env;
const PHONE = { width: 390, height: 844 };
/** The ids of the names of the ways to send something back. */
const METHODS = { "mail-back": "method-mail", "express-returns": "method-express", "customer-keep": "method-keep" };
const RESOLUTIONS = { refund: "resolution-refund", exchange: "resolution-exchange", gift_card: "resolution-gift-card" };

let addresses = 0;

/** The portal in one window. */
export class Portal {
  /** @param {import("playwright-core").Page} page */
  constructor(page, { language = "en", merchant = MERCHANT_ID, hasScripts = true } = {}) {
    this.page = page;
    this.hasScripts = hasScripts;
    this.language = language;
    this.merchant = merchant;
  }

  t(id, values) {
    return text(this.language, id, values);
  }

  /** An amount as the pages write it. */
  money(cents) {
    return new Intl.NumberFormat(this.language, { style: "currency", currency: "USD" }).format(cents / 100);
  }

  goto(path = "") {
    return this.page.goto(`${PORTAL_URL}/${this.merchant}${path}`);
  }

  /** The same window at the portal of another merchant. */
  at(merchant) {
    return new Portal(this.page, { language: this.language, merchant, hasScripts: this.hasScripts });
  }

  heading() {
    return this.page.getByRole("heading", { level: 1 }).innerText();
  }

  /** Waits for a page. On a busy machine the portal may ask the shopper to try again in a moment. */
  async isAt(id, values) {
    const title = this.t(id, values);
    let shown = "";
    await eventually(() => `the page is "${title}", not "${shown}"`, async () => {
      shown = await this.heading();
      const busy = ["error-unavailable-title", "confirm-again-title"].map((id) => this.t(id));
      const text = await this.main();
      if (busy.some((it) => text.includes(it))) await this.page.reload();
      return shown === title;
    });
    assert.equal(await this.page.locator("html").getAttribute("lang"), this.language);
  }

  /** Waits for an alert with a text. */
  alert(id) {
    return this.page.getByRole("alert").filter({ hasText: this.t(id) }).waitFor();
  }

  press(id) {
    return this.page.getByRole("button", { name: this.t(id), exact: true }).click();
  }

  follow(id) {
    return this.page.getByRole("link", { name: this.t(id), exact: true }).first().click();
  }

  main() {
    return this.page.locator("main").innerText();
  }

  /** Fails unless the page has a text. */
  async shows(id, values) {
    const shown = await this.main();
    assert.ok(shown.includes(this.t(id, values)), `${this.t(id, values)} is not in ${shown}`);
  }

  // Find

  async find(order, key = order.email) {
    await this.goto();
    await this.isAt("find-title");
    await this.fillFind(order.identifier, key);
  }

  async fillFind(identifier, key) {
    await this.page.getByLabel(this.t("find-order")).fill(identifier);
    await this.page.getByRole("radio", { name: this.t("find-by-own") }).check();
    await this.page.getByLabel(this.t("find-key-both")).fill(key);
    await this.press("find-submit");
  }

  async findGift(identifier, code) {
    await this.goto();
    await this.page.getByLabel(this.t("find-order")).fill(identifier);
    await this.page.getByRole("radio", { name: this.t("find-by-gift") }).check();
    await this.page.getByLabel(this.t("find-gift"), { exact: true }).fill(code);
    await this.press("find-submit");
  }

  // Items

  row(title) {
    return this.page.getByRole("listitem").filter({ has: this.page.getByRole("heading", { level: 3, name: title, exact: true }) });
  }

  /** Types the number and the key of a further order. */
  async addOrder(identifier, key) {
    const details = this.page.locator("details").filter({ hasText: this.t("choose-add") });
    if ((await details.getAttribute("open")) === null) await this.page.getByText(this.t("choose-add"), { exact: true }).click();
    await this.page.getByLabel(this.t("find-order")).fill(identifier);
    await this.page.getByLabel(this.t("find-key-both")).fill(key);
    await this.press("choose-add-submit");
  }

  /** Chooses units: title, number and code of the reason. */
  async choose(title, count, reason) {
    const row = this.row(title);
    await row.waitFor();
    if ((await row.getByRole("spinbutton").count()) > 0) await row.getByRole("spinbutton").fill(String(count));
    else await row.getByRole("checkbox").setChecked(count > 0);
    if (reason) await row.getByRole("combobox").selectOption(reason);
  }

  // Instead

  group(title, count = 1) {
    return this.page.getByRole("group", { name: this.t("item-count", { count, title }), exact: true });
  }

  /** Chooses a compensation, and for an exchange the values of the fields. */
  async chooseResolution(title, resolution, { count = 1, color, size, shown } = {}) {
    const group = this.group(title, count);
    await group.getByRole("radio", { name: this.t(RESOLUTIONS[resolution]) }).check();
    if (color) await group.getByLabel(this.t("exchange-color")).selectOption(color);
    if (size) await group.getByLabel(this.t("exchange-size")).selectOption(size);
    if (shown) await this.showsDifference(group, ...shown);
  }

  /** The difference in price is beside the fields; without scripts, it is in the list of everything in stock. */
  async showsDifference(group, id, cents) {
    const text = this.t(id, { amount: this.money(cents) });
    const place = group.locator(this.hasScripts ? "[role=status]" : "[data-values]");
    await place.filter({ hasText: text }).first().waitFor({ state: this.hasScripts ? "visible" : "attached" });
  }

  // Method

  method(method) {
    return this.page.getByRole("radio", { name: this.t(METHODS[method]) });
  }

  // Check

  /** The amounts of the page in cents, by the ids of their names. */
  async amounts(...ids) {
    const list = this.page.locator("dl.amounts");
    const names = await list.getByRole("term").allInnerTexts();
    const values = await list.getByRole("definition").allInnerTexts();
    return ids.map((id) => {
      const position = names.indexOf(this.t(id));
      assert.notEqual(position, -1, `${this.t(id)} is not in ${names}`);
      return cents(values[position]);
    });
  }

  confirmButton() {
    return this.page.getByRole("button", { name: this.t("check-confirm"), exact: true });
  }

  /** Confirms the return. @returns its RMA identifier */
  async confirm() {
    await this.confirmButton().click();
    return this.rma();
  }

  /** The RMA identifier of the page that follows a confirmation. */
  async rma() {
    await this.isAt("return-new-title");
    return this.page.locator("#rma").innerText();
  }

  /** The steps from the chosen items to the last page before the confirmation. */
  async goOn(chosen, method = "mail-back") {
    await this.isAt("choose-title");
    for (const { title, count, reason } of chosen) await this.choose(title, count ?? 1, reason ?? "CHANGED_MIND");
    await this.press("form-continue");
    await this.isAt("resolution-title");
    for (const { title, resolution, ...others } of chosen) await this.chooseResolution(title, resolution ?? "refund", others);
    await this.press("form-continue");
    await this.isAt("method-title");
    await this.method(method).check();
    await this.press("form-continue");
    await this.isAt("check-title");
  }

  // Return

  /** The text of the QR code, read from the screen. */
  async qrCode() {
    const folder = mkdtempSync(join(tmpdir(), "portal-"));
    try {
      const path = join(folder, "code.png");
      await this.page.locator(".qr").screenshot({ path });
      return execFileSync("zbarimg", ["--quiet", "--raw", path], { encoding: "utf8" }).trim();
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

/** Opens a phone-sized window of a shopper with an address of its own, and checks that no page did anything wrong. */
export async function inPortal(browser, { language = "en", merchant, ...options }, test) {
  addresses += 1;
  const extraHTTPHeaders = { "x-forwarded-for": `10.200.${addresses >> 8}.${addresses & 255}` };
  const locale = language === "de" ? "de-DE" : "en-US";
  const { page, context, problems } = await open(browser, { viewport: PHONE, deviceScaleFactor: 2, locale, extraHTTPHeaders, baseURL: PORTAL_URL, ...options });
  try {
    await test(new Portal(page, { language, merchant, hasScripts: options.javaScriptEnabled !== false }), context);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

/** Runs each journey in two languages, with and without JavaScript. Journeys share no order, so two run at once. */
export async function runJourneys(journeys) {
  const browser = await launch();
  const tests = {};
  for (const [name, journey] of Object.entries(journeys)) {
    for (const language of ["en", "de"]) {
      for (const javaScriptEnabled of [true, false]) {
        const title = `${name} (${language}${javaScriptEnabled ? "" : ", without JavaScript"})`;
        tests[title] = () => inPortal(browser, { language, javaScriptEnabled }, journey);
      }
    }
  }
  await run(tests, 2);
  await browser.close();
}
