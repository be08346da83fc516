// One stream for the page: each event is the live part as the server draws it now. A hidden page has no stream.

import { become } from "./become.js";

export function follow(at, live, pulse) {
  let source = null;
  let isStopped = false; // by the reader, with a key
  let isOver = false; // the server sent that nothing will change any more

  function showState(text, state) {
    pulse.textContent = text;
    pulse.className = `pulse ${state}`;
  }

  function open() {
    if (source !== null || isStopped || isOver || document.hidden) return;
    source = new EventSource(`/stream?at=${encodeURIComponent(at)}`);
    source.addEventListener("live", (event) => {
      const fresh = document.createElement("template");
      fresh.innerHTML = JSON.parse(event.data);
      become(live, fresh.content);
      showState("live", "on");
      document.body.dataset.beats = Number(document.body.dataset.beats ?? 0) + 1;
    });
    source.addEventListener("away", () => showState("no answer", "away"));
    source.addEventListener("end", () => {
      isOver = true;
      close("complete");
    });
    source.addEventListener("gone", () => {
      isOver = true;
      close("gone");
    });
    source.addEventListener("error", () => {
      showState("no answer", "away");
      if (source !== null && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(open, 3000);
      }
    });
  }

  function close(text) {
    if (source !== null) source.close();
    source = null;
    showState(text, "");
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close("paused") : open()));
  window.addEventListener("pagehide", () => close("paused"));
  window.addEventListener("pageshow", open);
  open();
  return {
    toggle() {
      isStopped = !isStopped;
      if (isStopped) close("stopped");
      else open();
    },
  };
}
