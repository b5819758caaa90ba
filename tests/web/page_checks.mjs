// Checks of an open page that hold for the console and the portal: valid HTML, accessibility, no sideways scrolling,
// no squeezed check boxes, tables that become cards on small screens.

import { require } from "./browser.mjs";

const { HtmlValidate } = require("html-validate");
const AXE = require.resolve("axe-core/axe.min.js");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Rules that depend on the theme. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];
/** Below this width rows are cards, and no table scrolls. */
const CARDS_BELOW = 600;
/** The tables with the most data, which fit into a window of 1280 pixels. */
const FITTING = ["Deliveries", "Units of the return", "Lines of the order"];

const html = new HtmlValidate({
  extends: ["html-validate:recommended"],
  rules: {
    // Rules of style that our templates do not follow.
    "void-style": "off", "attr-quotes": "off", "no-trailing-whitespace": "off", "no-implicit-button-type": "off",
    "long-title": "off", "prefer-native-element": "off", "no-inline-style": "error", "require-sri": "off",
    // Safari forgets the roles of a table whose rows are cards.
    "no-redundant-role": "off",
  },
});

/** @param {string} text a page as the server sent it */
export async function invalidHtml(text) {
  const { results } = await html.validateString(text);
  return results.flatMap((result) => result.messages).map((one) => `HTML ${one.line}:${one.column} ${one.ruleId}: ${one.message}`);
}

async function violations(page, runOnly) {
  // No rule of these tags reads the style sheets themselves, so axe does not have to load them.
  const options = { runOnly, resultTypes: ["violations"], preload: false };
  // @ts-ignore axe is added to the page by the caller.
  const { violations } = await page.evaluate((options) => axe.run(options), options);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

async function overflow(page, width) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  const tables = await page.locator(".table-frame").evaluateAll((frames) =>
    frames.filter((frame) => frame.scrollWidth > frame.clientWidth).map((frame) => frame.getAttribute("aria-label")));
  const cut = tables.filter((name) => width < CARDS_BELOW || FITTING.includes(name)).map((name) => `the table ${name} scrolls sideways`);
  return wide > 0 ? [`scrolls sideways by ${wide} pixels`, ...cut] : cut;
}

/** Check boxes and radio buttons that a long label has made narrow. */
function squeezed(page) {
  return page.locator(".check input").evaluateAll((inputs) => inputs.flatMap((input) => {
    const { width, height } = input.getBoundingClientRect();
    return width < height ? [`the box ${input.outerHTML} is ${width} pixels wide and ${height} high`] : [];
  }));
}

/** Cells that do not have the heading of their column as a label for small screens. */
function wrongLabels(page) {
  return page.locator("tbody tr").evaluateAll((rows) => rows.flatMap((row) => {
    const headings = [...row.closest("table").tHead.rows[0].cells].map((cell) => (cell.querySelector(".visually-hidden") ? "" : cell.textContent));
    let column = 0;
    return [...row.cells].flatMap((cell) => {
      const heading = cell.colSpan > 1 ? "" : headings[column];
      column += cell.colSpan;
      return (cell.dataset.label ?? "") === heading ? [] : [`the cell ${cell.outerHTML} has not the label “${heading}”`];
    });
  }));
}

/** Removes the shadows of tables: axe measures no contrast on an image. */
function removeShadows(page) {
  return page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".table-frame { background-image: none }");
    document.adoptedStyleSheets.push(sheet);
  });
}

/**
 * Checks the open page in several looks: theme, width, the size of text in percent, and whether all rules count or
 * only those that depend on colours.
 * @param {{ colorScheme?: "light" | "dark", width: number, textSize?: number, onlyColors?: boolean, onlyWidth?: boolean }[]} looks
 * @returns {Promise<string[]>} findings
 */
export async function checkLooks(page, looks) {
  await page.addScriptTag({ path: AXE });
  await removeShadows(page);
  const findings = await wrongLabels(page);
  for (const { colorScheme = "light", width, textSize = 100, onlyColors = false, onlyWidth = false } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    await page.evaluate((size) => { document.documentElement.style.fontSize = size; }, textSize === 100 ? "" : `${textSize}%`);
    const found = onlyWidth ? [] : await violations(page, onlyColors ? COLOR_RULES : TAGS);
    found.push(...(await overflow(page, width)), ...(await squeezed(page)));
    findings.push(...found.map((text) => `${colorScheme} ${width} ${textSize} %: ${text}`));
  }
  return findings;
}
