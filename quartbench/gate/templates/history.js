(() => {
  // One field finds series by words, in every module; another shows only those that have changed.
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const field = document.getElementById("find");
  const changed = document.getElementById("changed");
  const count = document.getElementById("found");
  const panels = all(".series");
  const find = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    panels.forEach((panel) => {
      const text = panel.dataset.name.toLowerCase();
      panel.hidden = (changed.checked && panel.dataset.changes === "0") || !words.every((word) => text.includes(word));
    });
    all(".benchmark").forEach((box) => { box.hidden = all(".series", box).every((panel) => panel.hidden); });
    all(".module").forEach((box) => { box.hidden = all(".benchmark", box).every((part) => part.hidden); });
    const left = panels.filter((panel) => !panel.hidden).length;
    count.textContent = left === panels.length ? `${left} series` : `${left} of ${panels.length} series`;
  };
  field.addEventListener("input", find);
  changed.addEventListener("change", find);
  // A link to a series that is filtered away shows everything again.
  const aim = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.closest("[hidden]")) { field.value = ""; changed.checked = false; find(); target.scrollIntoView(); }
  };
  addEventListener("hashchange", aim);
  // Pointing at a drawing says the nearest value and its commit, in the place of the latest.
  const source = document.getElementById("names");
  const names = JSON.parse(source.textContent);
  const room = Number(source.dataset.room);
  const say = (event) => {
    const drawing = event.target.closest(".series svg");
    if (!drawing) return;
    const box = drawing.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width - room) / (1 - 2 * room);
    const place = Math.min(Math.max(Math.round(share * (names.length - 1)), 0), names.length - 1);
    const word = drawing.dataset.said.split("|")[place];
    drawing.parentNode.querySelector("header span").textContent = `${word || "no value"} · ${names[place].slice(0, 40)}`;
  };
  document.addEventListener("pointermove", say);
  document.addEventListener("pointerout", (event) => {
    const panel = event.target.closest?.(".series");
    const word = panel?.querySelector("header span");
    if (word && !panel.querySelector("svg").contains(event.relatedTarget)) word.textContent = word.dataset.latest;
  });
  find();
})();
