"use strict";
// Fetches the live parts of the page every second and replaces them when they have changed. The forms stay untouched.
const link = document.getElementById("link");
let shown = "";

function put(html) {
  const open = new Set([...document.querySelectorAll("details[open]")].map((each) => each.dataset.key));
  const focused = document.activeElement && document.activeElement.closest("[data-key]");
  const key = focused ? focused.dataset.key : null;
  const news = document.createElement("template");
  news.innerHTML = html;
  for (const part of news.content.querySelectorAll("[data-live]")) {
    document.querySelector(`[data-live="${part.dataset.live}"]`).replaceWith(part);
  }
  for (const each of document.querySelectorAll("[data-key]")) {
    if (open.has(each.dataset.key)) each.open = true;
    if (each.dataset.key === key) (each.querySelector("summary") || each).focus({ preventScroll: true });
  }
}

async function refresh() {
  try {
    const answer = await fetch("/console/live" + window.location.search, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const html = await answer.text();
    if (html !== shown) {
      put(html);
      shown = html;
    }
    link.textContent = "";
  } catch {
    link.textContent = "The sandbox is not responding.";
  }
  window.setTimeout(refresh, 1000);
}

document.getElementById("zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone;
document.getElementById("offset").value = String(-new Date().getTimezoneOffset());

refresh();
