// One stream for the page: each event is the live part as the server draws it now. Nothing is asked while nobody can see it.

import { become } from "./become.js";

export function follow(at, live, pulse) {
  let source = null;
  let isHeld = false; // by the reader, with a key
  let isOver = false; // the server said that nothing will change any more

  function tell(words, state) {
    pulse.textContent = words;
    pulse.className = `pulse ${state}`;
  }

  function open() {
    if (source !== null || isHeld || isOver || document.hidden) return;
    source = new EventSource(`/stream?at=${encodeURIComponent(at)}`);
    source.addEventListener("live", (event) => {
      const fresh = document.createElement("template");
      fresh.innerHTML = JSON.parse(event.data);
      become(live, fresh.content);
      tell("live", "on");
      document.body.dataset.beats = Number(document.body.dataset.beats ?? 0) + 1;
    });
    source.addEventListener("away", () => tell("no answer", "away"));
    source.addEventListener("end", () => {
      isOver = true;
      close("complete");
    });
    source.addEventListener("gone", () => {
      isOver = true;
      close("gone");
    });
    source.addEventListener("error", () => {
      tell("no answer", "away");
      if (source !== null && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(open, 3000);
      }
    });
  }

  function close(words) {
    if (source !== null) source.close();
    source = null;
    tell(words, "");
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close("paused") : open()));
  window.addEventListener("pagehide", () => close("paused"));
  window.addEventListener("pageshow", open);
  open();
  return {
    hold() {
      isHeld = !isHeld;
      if (isHeld) close("held");
      else open();
    },
  };
}
