"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Light and dark: the system's wish until somebody asks for the other. A page from disk may have no storage.
  const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                  set: (value) => { try { localStorage.setItem("theme", value); } catch { /* for this visit only */ } } };
  const root = document.documentElement;
  if (store.get()) root.dataset.theme = store.get();
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store.set(root.dataset.theme);
  });

  // Legends: one click hides a contender in every figure and table.
  const hidden = new Set();
  const marked = all("[data-contender]").filter((item) => !item.closest("#every-run"));
  const note = document.getElementById("hidden-note");
  const show = () => {
    marked.forEach((item) => item.classList.toggle("off", item.dataset.contender.split(" ").some((name) => hidden.has(name))));
    all("[data-toggle]").forEach((button) => button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.toggle))));
    note.hidden = hidden.size === 0;
    note.querySelector("span").textContent = `${hidden.size} contender${hidden.size === 1 ? "" : "s"} hidden`;
  };
  all("[data-toggle]").forEach((button) => button.addEventListener("click", () => {
    const name = button.dataset.toggle;
    if (!hidden.delete(name)) hidden.add(name);
    show();
  }));
  note?.querySelector("button").addEventListener("click", () => { hidden.clear(); show(); });

  // Claims by verdict.
  all(".verdict-filter button").forEach((button) => button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(on));
    all(`.claim[data-verdict="${button.dataset.verdict}"]`).forEach((item) => { item.hidden = !on; });
  }));

  // Tables: a click on a heading sorts, words filter, a number of runs shows just them.
  const value = (cell) => (cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v.replace("inf", "Infinity")));
  const order = (a, b) => (typeof a === "number" && typeof b === "number"
    ? (a === b ? 0 : a < b ? -1 : 1) : String(a).localeCompare(String(b), "en", { numeric: true }));
  const narrow = (box, keep, words) => {
    const rows = all("tbody tr", box);
    rows.forEach((row, place) => { row.hidden = !keep(row, place); });
    const count = box.querySelector(".count");
    const left = rows.filter((row) => !row.hidden).length;
    count.hidden = left === rows.length;
    count.textContent = `${left} of ${rows.length} rows${words}`;
  };
  all(".table").forEach((box) => {
    const body = box.querySelector("tbody");
    all("tr", body).forEach((row, place) => { row.dataset.place = place; });
    all("th", box).forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      all("th", box).forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = all("tr", body).map((row) => [value(row.cells[column]), row]);
      rows.sort((a, b) => (down ? -1 : 1) * order(a[0], b[0]) || a[1].dataset.place - b[1].dataset.place);
      body.append(...rows.map((pair) => pair[1]));
    }));
    box.querySelector("input").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      narrow(box, (row) => words.every((word) => row.textContent.toLowerCase().includes(word)), "");
    });
  });
  const record = document.getElementById("every-run");
  all("button.runs").forEach((button) => button.addEventListener("click", () => {
    const wanted = new Set(button.dataset.runs.split(" ").flatMap((part) => {
      const [low, high = low] = part.split("-").map(Number);
      return Array.from({ length: high - low + 1 }, (_, step) => low + step);
    }));
    record.open = true;
    const box = record.querySelector(".table");
    box.querySelector("input").value = "";
    narrow(box, (row) => wanted.has(Number(row.dataset.place)), "; type a filter, or clear it, to see the others");
    record.scrollIntoView();
  }));
  // On paper nothing can be opened: evidence and words are; the record and the configuration stay in the files.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])").filter((item) => item.closest("#claims, header"));
    opened.forEach((item) => { item.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach((item) => { item.open = false; }); });
  const aim = () => { if (location.hash.startsWith("#run-")) { record.open = true; document.getElementById(location.hash.slice(1))?.scrollIntoView(); } };
  addEventListener("hashchange", aim);
  aim();
})();
