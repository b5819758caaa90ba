import { launch, open } from "./browser.mjs";
import { person, signIn } from "./people.mjs";
import { publish, addMerchant, change } from "./portal_shop.mjs";
const browser = await launch();
const suffix = Date.now();
const M = process.env.MERCHANT_ID;
const { session } = await person(`tour-${suffix}@example.com`, "operator");
const win = async (options, f) => { const { page, context } = await open(browser, options); await signIn(context, session); try { await f(page); } finally { await context.close(); } };
const width = (page) => page.evaluate(() => document.documentElement.scrollWidth);
await win({ viewport: { width: 375, height: 800 } }, async (page) => {
  for (const [path, row] of [["/deliveries?state=dead", "tbody tr"], ["/audit?actor=x", "main"], ["/exchange-orders?state=placed", "tbody tr"], ["/discrepancies?state=open", "tbody tr"], ["/merchants", "tbody tr"], ["/people", "tbody tr"], ["/replays?state=finished", "tbody tr"]]) {
    await page.goto(path);
    const first = page.locator(`main ${row}`).first();
    const box = (await first.count()) ? await first.boundingBox() : null;
    console.log("375", path, "first row y", box?.y, "width", await width(page));
  }
  await page.goto("/lookup?q=" + "x".repeat(2000));
  console.log("lookup 2000: width", await width(page), await page.title());
  for (const p of ["/deliveries?text=" + "x".repeat(2000), "/merchants?q=" + "y".repeat(2000), "/audit?actor=" + "z".repeat(2000), "/deliveries?ordering_key=" + "k".repeat(2000)+"&merchant="+"m".repeat(300)]) {
    const r = await page.goto(p); console.log(p.slice(0, 30), r.status(), "width", await width(page));
  }
  await page.goto("/"); await page.screenshot({ path: "/tmp/shots/phone-overview.png" });
  await page.goto("/deliveries?state=dead"); await page.screenshot({ path: "/tmp/shots/phone-deliveries.png" });
});
await win({ viewport: { width: 1280, height: 800 } }, async (page) => {
  for (const path of ["/deliveries?state=zombie", "/deliveries?after=zzz", "/audit?after=abc", "/deliveries?kind=x&outcome=y&status=abc", "/exchange-orders?state=zombie", "/discrepancies?state=zombie", "/replays?state=zombie", "/replays?after=zzz", "/merchants/%00", "/merchants/demo/orders/%00", "/lookup?q=%00", "/discrepancies?after=zzz", "/exchange-orders?after=zzz", "/people?after=%00","/warehouse/outbound?after=zzz", "/warehouse/receipts?after=zzz", "/warehouse/inbound?after=zzz", "/lookup?q=a&q=b", "/deliveries/x/y", "/merchants/demo/clients?after=%00", "/invitation?x=1", "/sign-in?next=/&next=/x", "/replays/exchange/zzz", "/replays/exchange/00000000-0000-0000-0000-000000000000?also=zzz", "/merchants/demo/returns/RMA-1?after=zzz", "/deliveries?from=9999999"]) {
    const r = await page.goto(path);
    const text = await page.locator("main").innerText().catch(async () => (await page.content()).slice(0, 200));
    const raw = /deserialize|parsing|unknown variant|UUID|\{"/.exec(text);
    console.log(r.status(), path, raw ? "RAW " + text.slice(Math.max(0, raw.index - 80), raw.index + 120).replace(/\n/g, " ") : "", (await page.locator("nav[aria-label=Main]").count()) ? "" : "NO MENU");
  }
  await page.goto("/merchants/" + M + "/endpoints"); await page.screenshot({ path: "/tmp/shots/endpoints.png" });
  await page.goto("/"); await page.screenshot({ path: "/tmp/shots/overview.png", fullPage: true });
  await page.goto("/deliveries?state=dead"); await page.screenshot({ path: "/tmp/shots/deliveries.png" });
  const link = await page.locator("tbody th a").first().getAttribute("href").catch(() => null);
  if (link) { await page.goto(link); await page.screenshot({ path: "/tmp/shots/delivery.png", fullPage: true }); }
  await page.goto("/replays"); await page.screenshot({ path: "/tmp/shots/replays.png" });
  await page.goto("/account"); await page.screenshot({ path: "/tmp/shots/account.png", fullPage: true });
  await page.goto("/merchants"); await page.screenshot({ path: "/tmp/shots/merchants.png" });
  await page.goto(`/merchants/${M}/new-warehouse`); await page.screenshot({ path: "/tmp/shots/warehouse.png" });
});
await browser.close();
