// Keeps a view live: when something happens, the same page is fetched again and what changed is put in its place. All that is
// shown is made on the server; without this script the page is the same, as of the time that it says.
"use strict";
(() => {
  const PERIOD = 10_000;
  const PAUSE = 1_000;
  const link = document.getElementById("link");
  const news = document.getElementById("news");
  // What the server said of each row, to see which have changed.
  const said = new WeakMap();
  let timer = 0;
  let busy = false;
  let again = false;

  const say = (state, words) => {
    link.dataset.state = state;
    link.textContent = words;
  };

  const remember = (root) => root.querySelectorAll("[data-key]").forEach((row) => said.set(row, row.outerHTML));

  const replace = (old, fresh) => {
    const held = document.activeElement;
    const href = old.contains(held) ? held.getAttribute("href") : null;
    old.replaceWith(fresh);
    if (href !== null) fresh.querySelector(`a[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
  };

  const rows = (old, fresh, told) => {
    const known = new Map([...old.children].map((row) => [row.dataset.key, row]));
    let at = old.firstElementChild;
    for (const row of [...fresh.children]) {
      const html = row.outerHTML;
      let mine = known.get(row.dataset.key);
      known.delete(row.dataset.key);
      if (!mine || said.get(mine) !== html) {
        const became = row.querySelector(".pill")?.textContent;
        if (mine && became !== mine.querySelector(".pill")?.textContent) told.push(`${row.dataset.key}: ${became}`);
        if (mine && mine === at) at = row;
        if (mine) replace(mine, row);
        said.set(row, html);
        mine = row;
      }
      if (mine === at) at = at.nextElementSibling;
      else old.insertBefore(mine, at);
    }
    known.forEach((row) => row.remove());
  };

  const show = (fresh) => {
    const told = [];
    for (const region of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(region.id);
      if (!other) continue;
      if ("rows" in region.dataset) rows(region, other, told);
      else if (region.outerHTML !== other.outerHTML) replace(region, other);
    }
    if (told.length > 0) news.textContent = told.slice(0, 3).join(", ") + (told.length > 3 ? ` and ${told.length - 3} more` : "");
  };

  const refresh = async () => {
    timer = 0;
    if (busy || document.hidden) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      else if (answer.status === 401) say("lost", "signed out, as of");
    } catch {
      // The stream says that the connection is lost.
    } finally {
      busy = false;
      if (again) soon();
    }
  };

  const soon = () => {
    if (timer === 0) timer = setTimeout(refresh, PAUSE);
  };

  document.querySelectorAll("[data-rows]").forEach(remember);
  const stream = new EventSource("/v1/events");
  stream.addEventListener("open", () => {
    if (link.dataset.state === "lost") soon();
    say("live", "live, as of");
  });
  stream.addEventListener("error", () => say("lost", "connection lost, as of"));
  for (const kind of [...document.body.dataset.kinds.split(" "), "missed", "reset"]) stream.addEventListener(kind, soon);
  setInterval(refresh, PERIOD);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) soon();
  });
})();
