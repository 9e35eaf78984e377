"use strict";
// Copy buttons. A page that was opened from a file may have no clipboard: then the text is selected for the keyboard.
(() => {
  const buttons = document.querySelectorAll(".copy button");
  if (!buttons.length) return;
  const told = document.createElement("output");
  told.className = "unseen";
  document.body.append(told);

  const selected = element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return document.execCommand("copy");
  };
  const copied = async element => {
    try {
      await navigator.clipboard.writeText(element.textContent);
      return true;
    } catch {
      return selected(element);
    }
  };
  for (const button of buttons) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      button.textContent = told.textContent = await copied(button.previousElementSibling) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => { button.textContent = "Copy"; told.textContent = ""; }, 3000);
    });
  }
})();

// Search, and filters by action, kind, file and origin.
(() => {
  const at = id => document.getElementById(id);
  const bar = at("filters"), search = at("search"), clear = at("clear"), shown = at("shown");
  if (!bar) return;
  const rows = [...document.querySelectorAll("li[data-action]")];
  const selects = ["action", "kind", "file", "origin"].map(at);
  const groups = [...document.querySelectorAll("li.group")].map(item => (
    { item, details: item.querySelector("details"), name: item.querySelector(".name"), label: "", count: 0 }));
  const sections = [...document.querySelectorAll("section.changes")].map(item => ({ item, count: 0 }));
  for (const group of groups) group.label = group.name.textContent;
  const byItem = new Map([...groups, ...sections].map(each => [each.item, each]));
  const waiting = document.querySelector("details.waiting");
  const folds = waiting ? [{ item: waiting, details: waiting, count: 0 }] : [];
  for (const fold of folds) byItem.set(fold.item, fold);
  const homes = rows.map(row => ["li.group", "section", "details.waiting"]
    .map(name => byItem.get(row.closest(name))).filter(Boolean));
  const texts = [];
  const text = n => texts[n] ??= rows[n].textContent.toLowerCase();
  const OPEN = 300;

  for (const select of selects) {
    const counts = new Map();
    for (const row of rows) {
      const value = row.dataset[select.id];
      if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    select.append(new Option("any " + select.id, ""));
    for (const [value, count] of [...counts].sort((a, b) => a[0] < b[0] ? -1 : 1))
      select.append(new Option(`${value} (${count.toLocaleString("en")})`, value));
    select.hidden = counts.size < 2;
  }

  const matches = (n, words, wanted) =>
    wanted.every(select => rows[n].dataset[select.id] === select.value) &&
    words.every(word => text(n).includes(word));

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter(select => select.value);
    const filtering = words.length + wanted.length > 0;
    for (const each of [...groups, ...sections, ...folds]) each.count = 0;
    let count = 0;
    rows.forEach((row, n) => {
      const visible = !filtering || matches(n, words, wanted);
      if (row.hidden === visible) row.hidden = !visible;
      if (visible) {
        count += 1;
        for (const home of homes[n]) home.count += 1;
      }
    });
    for (const group of groups) {
      group.item.hidden = !group.count;
      group.details.open = filtering && group.count > 0 && group.count <= OPEN;
      group.name.textContent = filtering ? `${group.count.toLocaleString("en")} of ${group.label}` : group.label;
    }
    for (const fold of folds) {
      fold.item.hidden = !fold.count;
      fold.details.open = filtering && fold.count > 0;
    }
    for (const section of sections) section.item.hidden = !section.count;
    clear.hidden = !filtering;
    shown.textContent = filtering
      ? (count ? `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown` : "Nothing matches.")
      : `${rows.length.toLocaleString("en")} in all`;
  };

  search.addEventListener("input", filter);
  for (const select of selects) select.addEventListener("change", filter);
  clear.addEventListener("click", () => {
    search.value = "";
    for (const select of selects) select.value = "";
    filter();
    search.focus();
  });
  bar.hidden = false;
  filter();
})();
