// The page is complete without this file. With it, the page stays up to date, and keys navigate it.

import { follow } from "./follow.js";
import { listen } from "./keys.js";

const at = document.body.dataset.at;
const feed = at === undefined ? null : follow(at, document.getElementById("live"), document.getElementById("pulse"));
listen(feed);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button === null) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
