// @ts-check
/**
 * Additions to the server-rendered pages. Every page works without this module.
 *
 * - `data-copy="ID"` on a button copies the text of the element with that id. `data-copied` and
 *   `data-not-copied` on the button translate its messages.
 * - `data-live="SECONDS"` on an element with an id replaces its content with the current one. An element
 *   that a person reads, selects or operates keeps its content, also while the mouse is on one of its buttons:
 *   the button of a click must be the one that the person sees. Open `details` with an id stay open. While the
 *   page cannot be refreshed, it says since when. `data-stale` ("… {time} …") and `data-reload` on `main`
 *   translate that.
 * - `data-load="URL"` on an element replaces its content with that of the URL when the page is shown. Until
 *   then, and if it fails, the element offers the links in `data-failed`.
 * - `data-newest="ID"` on a list shows the element `#newer` when a newer entry exists; the list itself
 *   stays as it is.
 * - `data-check` on a form shows the browser's messages beside the fields.
 * - `data-preview="ID"` on a form puts the values of its fields into the query of the style sheet with that
 *   id, for the parameters that the query has. `data-color-of="ID"` on a colour input makes it edit the text
 *   field with that id. `data-shows="ID"` on an element shows the text of the field with that id.
 */

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} FormField */

/** @type {{ createHTML(text: string): string }} */
const policy =
  // @ts-expect-error Trusted Types are not part of TypeScript's DOM library.
  globalThis.trustedTypes?.createPolicy("pages", { createHTML: (/** @type {string} */ text) => text }) ??
  { createHTML: (text) => text };

/** Pauses between refreshes, in milliseconds. A server that does not respond is asked less often. */
const SLOWEST = 60_000;
/** A page that nobody uses stops refreshing, so that its session can end. */
const UNUSED = 10 * 60_000;

let usedAt = Date.now();
let refreshedAt = Date.now();

/**
 * Loads the page at the current URL again, or a part of a page.
 * @param {string} url
 * @returns {Promise<Document | "ended" | "unavailable">}
 */
async function load(url = location.href) {
  try {
    const response = await fetch(url, { headers: { accept: "text/html" }, redirect: "manual" });
    if (response.type === "opaqueredirect" || response.status === 401 || response.status === 404) return "ended";
    if (!response.ok) return "unavailable";
    return new DOMParser().parseFromString(policy.createHTML(await response.text()), "text/html");
  } catch {
    return "unavailable";
  }
}

/**
 * Whether a person operates the element, is about to press one of its buttons, or selects text in it.
 * @param {Element} element
 */
function isInUse(element) {
  const selection = getSelection();
  const selects = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  const points = element.querySelector("button:hover, .button:hover") !== null;
  return selects || points || element.contains(document.activeElement) || element.matches(":active");
}

/**
 * Replaces the content of an element by that of its current version.
 * @param {Element} element
 * @param {Element} fresh
 */
function update(element, fresh) {
  for (const details of element.querySelectorAll("details[open][id]")) {
    fresh.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
  }
  showCopyButtons(fresh);
  if (fresh.innerHTML !== element.innerHTML) element.replaceChildren(...fresh.childNodes);
}

/** @param {Document} page the current version of this page */
function show(page) {
  for (const element of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(element.id);
    if (fresh !== null && !isInUse(element)) update(element, fresh);
  }
  const shown = document.querySelector("[data-newest]")?.getAttribute("data-newest");
  const newest = page.querySelector("[data-newest]")?.getAttribute("data-newest");
  if (newest && newest !== shown) document.getElementById("newer")?.removeAttribute("hidden");
}

/** The texts about a page that is not refreshed. Pages in other languages set them on `main`. */
function staleTexts() {
  const main = document.querySelector("main");
  const isEnglish = document.documentElement.lang.startsWith("en");
  const text = main?.dataset.stale ?? (isEnglish ? "Not refreshed since {time} UTC." : "");
  return { main, text, reload: main?.dataset.reload ?? "Reload the page" };
}

/**
 * Says since when the page has not been refreshed, or that it is current again.
 * @param {boolean} isCurrent
 */
function showAge(isCurrent) {
  const shown = document.getElementById("not-refreshed");
  if (isCurrent) {
    refreshedAt = Date.now();
    shown?.remove();
    return;
  }
  const { main, text, reload } = staleTexts();
  if (shown === null && text) {
    const note = document.createElement("p");
    note.id = "not-refreshed";
    note.className = "note warn";
    note.setAttribute("role", "status");
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = reload;
    const time = new Date(refreshedAt).toISOString().slice(11, 16);
    note.append(`${text.replace("{time}", time)} `, link);
    main?.prepend(note);
  }
}

/** Refreshes the page while it is visible and in use. */
function keepCurrent() {
  const live = [...document.querySelectorAll("[data-live], [data-newest]")];
  if (live.length === 0) return;
  const interval = Math.min(...live.map((element) => Number(element.getAttribute("data-live")) || 10)) * 1000;
  let pause = interval;
  let isLoading = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, pause);
  };
  const refresh = async () => {
    const isUnused = Date.now() - usedAt > UNUSED;
    if (isUnused) showAge(false);
    if (isLoading || document.hidden || isUnused) return;
    isLoading = true;
    const page = await load();
    isLoading = false;
    showAge(page instanceof Document);
    if (page === "ended") return;
    pause = page === "unavailable" ? Math.min(pause * 2, SLOWEST) : interval;
    if (page !== "unavailable") show(page);
    wait();
  };
  const resume = () => {
    const wasUnused = Date.now() - usedAt > UNUSED;
    usedAt = Date.now();
    if (wasUnused) void refresh();
  };
  for (const event of ["pointermove", "keydown", "scroll"]) addEventListener(event, resume, { passive: true });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void refresh();
  });
  wait();
}

/** @param {Element} element */
async function fill(element) {
  const failed = element.querySelector("[data-failed]");
  failed?.setAttribute("hidden", "");
  const part = await load(element.getAttribute("data-load") ?? "");
  element.removeAttribute("aria-busy");
  failed?.removeAttribute("hidden");
  element.replaceChildren(...(part instanceof Document ? part.body.childNodes : [failed ?? ""]));
  element.dispatchEvent(new CustomEvent("filled", { bubbles: true }));
}

/** @param {ParentNode} root */
function showCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button[data-copy]")) button.removeAttribute("hidden");
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const source = document.getElementById(button.dataset.copy ?? "");
  if (source === null) return;
  const text = source instanceof HTMLInputElement ? source.value : source.textContent;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text ?? "");
    button.textContent = button.dataset.copied ?? "Copied";
  } catch {
    button.textContent = button.dataset.notCopied ?? "Not copied";
  }
  setTimeout(() => {
    button.textContent = label;
  }, 2000);
}

/** @type {(target: EventTarget | null) => target is FormField} */
const isField = (target) =>
  target instanceof HTMLInputElement ||
  target instanceof HTMLSelectElement ||
  target instanceof HTMLTextAreaElement;

/**
 * Shows the browser's message beside a field.
 * @param {FormField} field
 * @returns {boolean} whether there is a place for the message
 */
function check(field) {
  const place = document.getElementById(`${field.id}-error`);
  if (place === null) return false;
  const described = new Set((field.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean));
  field.setAttribute("aria-describedby", [...described.add(place.id)].join(" "));
  field.setAttribute("aria-invalid", String(!field.validity.valid));
  place.textContent = field.validity.valid ? "" : field.validationMessage;
  return true;
}

/** @param {HTMLFormElement} form */
function checkForm(form) {
  form.addEventListener("change", ({ target }) => {
    if (isField(target)) check(target);
  });
  form.addEventListener(
    "invalid",
    (event) => {
      if (!isField(event.target) || !check(event.target)) return;
      event.preventDefault();
      if (form.querySelector(":is(input, select, textarea):invalid") === event.target) event.target.focus();
    },
    true,
  );
}

/**
 * Keeps a text field and its colour input equal. A colour input needs six digits.
 * @param {EventTarget | null} target the field that changed
 */
function matchColors(target) {
  if (!(target instanceof HTMLInputElement)) return;
  const text = document.getElementById(target.dataset.colorOf ?? "");
  if (text instanceof HTMLInputElement) {
    text.value = target.value;
    check(text);
    return;
  }
  const picker = document.querySelector(`input[data-color-of="${CSS.escape(target.id)}"]`);
  if (!(picker instanceof HTMLInputElement) || !target.validity.valid) return;
  picker.value = target.value.replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3");
}

/** @param {HTMLFormElement} form */
function showPreview(form) {
  for (const element of document.querySelectorAll("[data-shows]")) {
    const field = document.getElementById(element.getAttribute("data-shows") ?? "");
    if (field instanceof HTMLInputElement) element.textContent = field.value.trim() || field.placeholder;
  }
  const style = document.getElementById(form.dataset.preview ?? "");
  if (!(style instanceof HTMLLinkElement)) return;
  const url = new URL(style.href);
  for (const name of [...url.searchParams.keys()]) {
    const field = form.elements.namedItem(name);
    const isUsable = field instanceof HTMLInputElement && field.value !== "" && field.validity.valid;
    if (isUsable) url.searchParams.set(name, field.value);
  }
  if (url.href !== style.href) style.href = url.href;
}

/** @param {HTMLFormElement} form */
function keepPreview(form) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  for (const picker of form.querySelectorAll("input[data-color-of]")) picker.removeAttribute("hidden");
  form.addEventListener("input", ({ target }) => {
    matchColors(target);
    clearTimeout(timer);
    timer = setTimeout(() => showPreview(form), 100);
  });
}

/**
 * Fills the suggestions of a field while a person types.
 * @param {HTMLInputElement} field
 */
function suggest(field) {
  const list = document.getElementById(field.getAttribute("list") ?? "");
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const fillList = async () => {
    const part = await load(`${field.dataset.suggest}?q=${encodeURIComponent(field.value.trim())}`);
    if (part instanceof Document) list?.replaceChildren(...part.querySelectorAll("option"));
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void fillList(), 150);
  });
  field.addEventListener("focus", () => void fillList(), { once: true });
}

/** Keeps the choice of exact times while the browser is open. */
function keepExactTimes() {
  const box = document.getElementById("exact-times");
  if (!(box instanceof HTMLInputElement)) return;
  box.checked = sessionStorage.getItem("exact-times") === "true";
  box.addEventListener("change", () => sessionStorage.setItem("exact-times", String(box.checked)));
}

for (const field of document.querySelectorAll("input[data-suggest]")) {
  if (field instanceof HTMLInputElement) suggest(field);
}
keepExactTimes();
for (const form of document.querySelectorAll("form[data-preview]")) {
  if (form instanceof HTMLFormElement) keepPreview(form);
}
for (const form of document.querySelectorAll("form[data-check]")) {
  if (form instanceof HTMLFormElement) checkForm(form);
}
for (const element of document.querySelectorAll("[data-load]")) void fill(element);
showCopyButtons(document);
// On small screens the navigation scrolls. It begins at the current page.
const current = document.querySelector(".side [aria-current]");
const side = current?.closest(".side");
if (side && current instanceof HTMLElement) side.scrollLeft = current.offsetLeft - side.clientWidth / 2;
document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("button[data-copy]") : null;
  if (button instanceof HTMLButtonElement) void copy(button);
});
keepCurrent();
