// @ts-check
/**
 * Additions to the pages of a return. Every page works without this module.
 *
 * - `data-stepper` around a number field shows its buttons, which change the number by `data-by`.
 * - `data-count` on a number field or a check box is the number of units to return.
 * - `data-when="ID"` on an element shows it while the field with that id is not zero and not unticked.
 * - `data-script` on a disabled field enables it, so that the server knows that scripts run.
 * - `data-keep` on a form puts its fields into the URL of this page, so that Back shows them again.
 * - `data-next="ID"` on a form makes its field `next` lead to this page with the fields of the form ID.
 * - `data-once` on a form ignores a second click on its button.
 * - `data-pickers="TEXT"` around lists shows the variant of the chosen values with its picture, or TEXT if there
 *   is none.
 */

/** The longest query of a URL, as on the server. */
const MAX_QUERY = 6 * 1024;

/** @param {HTMLFormElement} form the fields of which make the URL of this page */
function urlWith(form) {
  // Items that are not chosen need no place in the URL of a long order.
  const isSet = (/** @type {[string, FormDataEntryValue]} */ [name, value]) =>
    value !== "" && !(name.startsWith("count.") && value === "0");
  const fields = [...new FormData(form)].filter(isSet).map(([name, value]) => [name, String(value)]);
  const query = new URLSearchParams(fields).toString();
  return query.length > MAX_QUERY ? undefined : `${location.pathname}?${query}`;
}

/** @param {HTMLInputElement} field */
function showReason(field) {
  const isNeeded =
    field.type === "checkbox" ? field.checked : Number(field.value) !== 0 || field.validity.badInput;
  for (const part of document.querySelectorAll(`[data-when="${CSS.escape(field.id)}"]`)) {
    part.toggleAttribute("hidden", !isNeeded);
  }
  const [less, more] = field.parentElement?.querySelectorAll("button") ?? [];
  if (less) less.disabled = Number(field.value) <= Number(field.min);
  if (more) more.disabled = Number(field.value) >= Number(field.max);
}

/** @param {HTMLButtonElement} button */
function step(button) {
  const field = button.closest("[data-stepper]")?.querySelector("input");
  if (!field) return;
  const wanted = (Number(field.value) || 0) + Number(button.dataset.by);
  field.value = String(Math.min(Math.max(wanted, Number(field.min)), Number(field.max)));
  field.dispatchEvent(new Event("input", { bubbles: true }));
  if (button.disabled) field.focus();
}

/** @param {Element} root lists whose values lead to a variant */
function showVariant(root) {
  const lists = [...root.querySelectorAll("select")];
  const chosen = lists.map((list) => list.value);
  const variants = [...root.querySelectorAll("[data-values]")].map((element) => ({
    element,
    /** @type {string[]} */
    values: JSON.parse(element.getAttribute("data-values") ?? "[]"),
  }));
  lists.forEach((list, position) => {
    if (position === 0) return;
    for (const option of list.options) {
      const fits = variants.some(({ values }) =>
        values.every((value, index) =>
          index === position ? value === option.value : !chosen[index] || value === chosen[index],
        ),
      );
      option.disabled = option.value !== "" && !fits;
    }
  });
  const found = variants.find(({ values }) => values.every((value, index) => value === chosen[index]));
  const isComplete = chosen.every((value) => value !== "");
  const none = root.getAttribute("data-pickers") ?? "";
  const shown = found ? [...found.element.childNodes].map((node) => node.cloneNode(true)) : [none];
  root.querySelector("[role=status]")?.replaceChildren(...(isComplete ? shown : []));
}

/** @param {ParentNode} root */
function showVariants(root) {
  for (const pickers of root.querySelectorAll("[data-pickers]")) showVariant(pickers);
}

/** Brings the parts that scripts control up to date; a browser may have restored the fields. */
function refresh() {
  for (const field of document.querySelectorAll("input[data-count]")) {
    if (field instanceof HTMLInputElement) showReason(field);
  }
  for (const form of document.querySelectorAll("form[data-once]")) form.removeAttribute("data-sent");
  showVariants(document);
}

for (const field of document.querySelectorAll("[data-script]")) field.removeAttribute("disabled");
for (const button of document.querySelectorAll("[data-stepper] button")) button.removeAttribute("hidden");
refresh();
addEventListener("pageshow", refresh);
document.addEventListener("filled", ({ target }) => {
  if (target instanceof Element) showVariants(target);
});
document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("[data-stepper] button") : null;
  if (button instanceof HTMLButtonElement) step(button);
});
document.addEventListener("input", ({ target }) => {
  if (!(target instanceof Element)) return;
  if (target instanceof HTMLInputElement && target.dataset.count !== undefined) showReason(target);
  const pickers = target.closest("[data-pickers]");
  if (pickers !== null) showVariant(pickers);
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  if (form.dataset.once !== undefined) {
    if (form.dataset.sent !== undefined) event.preventDefault();
    form.dataset.sent = "";
  }
  const kept = form.dataset.keep === undefined ? undefined : urlWith(form);
  if (kept !== undefined) history.replaceState(null, "", kept);
  const source = document.getElementById(form.dataset.next ?? "");
  const next = form.elements.namedItem("next");
  const url = source instanceof HTMLFormElement ? urlWith(source) : undefined;
  if (next instanceof HTMLInputElement && url !== undefined) next.value = url;
});
