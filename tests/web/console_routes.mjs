// The routes of the console and the portal, read from their source, so that no test forgets a new one.

import { readdirSync, readFileSync } from "node:fs";

/**
 * The paths of a crate that take a method.
 * @param {"console" | "portal"} crate
 * @param {"get" | "post"} method
 */
export function routes(crate, method) {
  const folder = new URL(`../../crates/${crate}/src/`, import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".rs"));
  const paths = files.flatMap((name) => {
    const source = readFileSync(new URL(name, folder), "utf8");
    const attributes = [...source.matchAll(new RegExp(`#\\[${method}\\("([^"]+)"\\)\\]`, "g"))];
    const resources = [...source.matchAll(/web::resource\("([^"]+)"\)([^;]*)/g)];
    const own = resources.filter(([, , text]) => text.includes(`web::${method}()`));
    return [...attributes, ...own].map(([, path]) => path);
  });
  return [...new Set(paths)].sort();
}

/**
 * A path with values for its parameters. A parameter without a value becomes "x".
 * @param {string} path
 * @param {Record<string, string>} values
 */
export function filled(path, values) {
  return path.replace(/\{(\w+)(?::[^}]*)?\}/g, (_, name) => encodeURIComponent(values[name] ?? "x"));
}
