// @ts-check
/**
 * Additions to the server-rendered pages. Every page works without this module.
 *
 * - `data-copy="ID"` on a button copies the text of the element with that id.
 * - `data-live="SECONDS"` on an element with an id replaces its content with the current one.
 * - `data-newest="ID"` on a list shows a link when a newer entry exists; the list itself stays as it is.
 * - `data-check` on a form shows the browser's messages beside the fields.
 */

/** @type {{ createHTML(text: string): string }} */
const policy =
  // @ts-ignore Trusted Types are not part of TypeScript's DOM library.
  globalThis.trustedTypes?.createPolicy("pages", { createHTML: (/** @type {string} */ text) => text }) ??
  { createHTML: (text) => text };

/**
 * Loads the page at the current URL again.
 * @returns {Promise<Document | null>} null if the session ended or the server does not respond
 */
async function reload() {
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!response.ok || response.redirected) return null;
    return new DOMParser().parseFromString(policy.createHTML(await response.text()), "text/html");
  } catch {
    return null;
  }
}

/** @param {HTMLElement} element */
function isInUse(element) {
  const selection = getSelection();
  const selects = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  return element.contains(document.activeElement) || element.querySelector("details[open]") !== null || selects;
}

async function refresh() {
  const page = await reload();
  if (page === null) return;
  for (const element of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(element.id);
    if (!(element instanceof HTMLElement) || fresh === null || isInUse(element)) continue;
    if (fresh.innerHTML !== element.innerHTML) {
      element.replaceChildren(...fresh.childNodes);
      enhance(element);
    }
  }
  const list = document.querySelector("[data-newest]");
  const newest = page.querySelector("[data-newest]")?.getAttribute("data-newest");
  if (list !== null && newest && newest !== list.getAttribute("data-newest")) {
    document.getElementById("newer")?.removeAttribute("hidden");
  }
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const source = document.getElementById(button.dataset.copy ?? "");
  if (source === null) return;
  await navigator.clipboard.writeText(source.textContent ?? "");
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = label;
  }, 2000);
}

/** @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} field */
function check(field) {
  const place = document.getElementById(`${field.id}-error`);
  if (place === null) return;
  const valid = field.validity.valid;
  field.setAttribute("aria-invalid", String(!valid));
  place.textContent = valid ? "" : field.validationMessage;
}

/** @param {ParentNode} root */
function enhance(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    if (!(button instanceof HTMLButtonElement)) continue;
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  for (const form of root.querySelectorAll("form[data-check]")) {
    form.addEventListener("change", (event) => {
      const field = event.target;
      if (
        field instanceof HTMLInputElement ||
        field instanceof HTMLSelectElement ||
        field instanceof HTMLTextAreaElement
      ) {
        check(field);
      }
    });
  }
}

enhance(document);

const live = document.querySelector("[data-live], [data-newest]");
if (live !== null) {
  const seconds = Number(live.getAttribute("data-live") ?? 10) || 10;
  setInterval(() => {
    if (document.visibilityState === "visible") void refresh();
  }, seconds * 1000);
}
