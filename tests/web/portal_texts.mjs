// The texts of the portal, from the Fluent files, so that the tests name elements in every language.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** The messages of a language: id and pattern. */
function read(language) {
  const file = new URL(`../../crates/texts/locales/${language}.ftl`, import.meta.url);
  const messages = new Map();
  let id = "";
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const start = line.match(/^([a-z][\w-]*) = ?(.*)$/);
    if (start) {
      id = start[1];
      messages.set(id, start[2]);
    } else if (/^\s+\S|^\}/.test(line) && id) {
      messages.set(id, `${messages.get(id)}\n${line.trim()}`);
    }
  }
  return messages;
}

const FILES = new Map();

/** The variant of a selection that fits the value. */
function select(language, pattern, values) {
  const [, name] = pattern.match(/\{ \$(\w+) ->/) ?? [];
  const variants = [...pattern.matchAll(/(\*?)\[\s*([^\]]+?)\s*\]\s*([^\n]*)/g)];
  const value = values[name];
  const plural = typeof value === "number" ? new Intl.PluralRules(language).select(value) : "";
  const found = variants.find(([, , key]) => key === String(value)) ?? variants.find(([, , key]) => key === plural);
  return (found ?? variants.find(([, star]) => star === "*"))[3];
}

/**
 * A text in a language.
 * @param {"en" | "de"} language
 * @param {string} id
 * @param {Record<string, string | number>} values
 */
export function text(language, id, values = {}) {
  if (!FILES.has(language)) FILES.set(language, read(language));
  let pattern = FILES.get(language).get(id);
  assert.ok(pattern !== undefined, `${language}.ftl has no ${id}`);
  if (/->/.test(pattern)) pattern = select(language, pattern, values);
  return pattern
    .replace(/\{ \$(\w+) \}/g, (_, name) => String(values[name] ?? ""))
    .replace(/\{ "([^"]*)" \}/g, (_, literal) => literal.replace(/\\u([0-9A-Fa-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16))))
    .trim();
}

/** The cents of an amount as a page shows it: $1,234.56 or 1.234,56 $. */
export function cents(shown) {
  const [amount] = shown.match(/\d[\d.,\s\u00a0\u202f]*[.,]\d{2}(?!\d)/) ?? [];
  assert.ok(amount, `no amount: ${shown}`);
  return Number(amount.replace(/\D/g, ""));
}
