// g and a letter go to a page, / searches, j and k go through the rows of a table, p stops and starts the updates, ? shows the keys.

const FIELDS = "input, select, textarea, [contenteditable]";
const PATIENCE_MS = 1500; // between g and its letter

export function listen(feed) {
  const dialog = document.getElementById("keys");
  let goAt = -Infinity;
  const show = document.getElementById("show-keys");
  show.hidden = false;
  show.addEventListener("click", () => dialog.showModal());

  const actions = {
    "/": () => document.getElementById("find").focus(),
    "?": () => dialog.showModal(),
    j: () => step(1),
    k: () => step(-1),
    p: () => feed?.toggle(),
    g: () => {
      goAt = performance.now();
    },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(FIELDS) || dialog.open) return;
    const isGoing = performance.now() - goAt < PATIENCE_MS;
    goAt = -Infinity;
    const link = isGoing ? document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`) : null;
    if (link !== null) link.click();
    else if (event.key in actions) actions[event.key]();
    else return;
    event.preventDefault();
  });
}

function step(by) {
  const links = [...document.querySelectorAll("[data-row] a:first-of-type")].filter((link) => link.closest("td") === link.closest("tr")?.cells[0]);
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}
