// The page as a whole: which view is shown, the keys, the theme, and who is let in.

import { get, lockedOut, token } from "./api.js";
import { h } from "./dom.js";
import { addView, takeDrops } from "./add.js";
import { askView } from "./ask.js";
import { docView } from "./doc.js";
import { forgetFacets } from "./facets.js";
import { keysDialog, moveFocus } from "./keys.js";
import { packsView, topicsView } from "./learn.js";
import { libraryView } from "./library.js";
import { searchView } from "./search.js";
import { signInView } from "./signin.js";
import { jobsView, sourcesView, statsView } from "./state.js";

/** Each view: its title, the key behind `g`, the role it needs, and what shows it; without a key it is in no menu. */
const VIEWS = {
  search: { title: "Search", key: "s", show: searchView },
  ask: { title: "Ask", key: "q", show: askView },
  add: { title: "Add", key: "a", role: "writer", show: addView },
  library: { title: "Library", key: "l", show: libraryView },
  topics: { title: "Topics", key: "t", show: topicsView },
  packs: { title: "Packs", key: "p", show: packsView },
  sources: { title: "Sources", key: "o", role: "admin", show: sourcesView },
  jobs: { title: "Jobs", key: "j", role: "admin", show: jobsView },
  stats: { title: "Stats", key: "n", role: "admin", show: statsView },
  doc: { title: "Document", show: docView },
  signin: { title: "Sign in", show: signInView },
};
const ROLES = ["reader", "writer", "admin"];
const G_MS = 1200;

const main = document.getElementById("main");
const nav = document.getElementById("views");
const menu = document.getElementById("menu");
let role = "reader";
let current = { name: null, stop: () => {} };
// How many steps of ours lie behind, so that back never leads out of the page.
let depth = history.state?.depth ?? 0;
let gPressedMs = -Infinity;

function read(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: name in VIEWS ? name : "search", parts, query: new URLSearchParams(query) };
}

/** What a view may do with the page around it. */
const page = {
  /** Show another place, so that back leads here again. */
  go(hash) {
    if (location.hash === hash) show();
    else location.hash = hash;
  },
  /** Let the address say what is shown now; `isNew` makes a step for back. */
  say(hash, isNew = false) {
    if (location.hash === hash) return;
    depth += isNew ? 1 : 0;
    history[isNew ? "pushState" : "replaceState"]({ depth }, "", hash);
  },
  back() {
    if (depth > 0) history.back();
    else this.go("#/search");
  },
  title(text) {
    document.title = text ? `${text} – kb` : "kb";
  },
};

function show() {
  const wanted = read(location.hash);
  menu.setAttribute("aria-expanded", "false");
  for (const link of nav.querySelectorAll("a")) {
    if (link.dataset.view === wanted.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (wanted.name === current.name && current.update?.(wanted)) return;
  current.stop?.();
  document.querySelectorAll("dialog").forEach((one) => one.close());
  main.replaceChildren();
  main.dataset.view = wanted.name;
  page.title(wanted.name === "search" ? "" : VIEWS[wanted.name].title);
  window.scrollTo(0, 0);
  current = { name: wanted.name, ...VIEWS[wanted.name].show(main, wanted, page) };
  if (!main.contains(document.activeElement)) (main.querySelector("h1") ?? main).focus({ preventScroll: true });
}

/** The views of the menu that a role may use. */
function offered(role) {
  return Object.entries(VIEWS).filter(([, view]) => view.key && ROLES.indexOf(view.role ?? "reader") <= ROLES.indexOf(role));
}

/** Fill the menu with what whoever looks may use. */
async function fillNav() {
  if (token.get() === null && read(location.hash).name === "signin") return drawNav("reader");
  try {
    role = (await get("/v1/me")).role;
  } catch {
    role = "reader";
  }
  drawNav(role);
}

function drawNav(role) {
  const out = h("button", { type: "button", class: "plain", id: "leave", click: () => { token.forget(); page.go("#/signin"); show(); } }, "Sign out");
  out.hidden = !token.get();
  nav.replaceChildren(
    ...offered(role).map(([name, view]) => h("a", { href: `#/${name}`, "data-view": name, title: `g ${view.key}` }, view.title)),
    out,
  );
  for (const link of nav.querySelectorAll("a")) if (link.dataset.view === current.name) link.setAttribute("aria-current", "page");
}

const THEMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function showTheme() {
  const chosen = document.documentElement.dataset.theme ?? "auto";
  const button = document.getElementById("theme");
  button.textContent = { auto: "◐", light: "○", dark: "●" }[chosen];
  button.setAttribute("aria-label", `${THEMES[chosen]}; change`);
  button.title = THEMES[chosen];
}

function nextTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % names.length];
  if (next === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("kb.theme");
  } else {
    document.documentElement.dataset.theme = next;
    localStorage.setItem("kb.theme", next);
  }
  showTheme();
}

function toSearchField() {
  if (current.name !== "search") page.go("#/search");
  // The view is shown by the event that the new address brings.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const field = document.getElementById("q");
    field?.focus();
    field?.select();
  }));
}

function pressed(event) {
  // The keys of an input method are its own until its text is chosen; 229 is what Safari says of them.
  if (event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const isTyping = event.target.matches("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape") {
    if (isTyping) event.target.blur();
    else if (current.name !== "search") page.back();
    else return;
    event.preventDefault();
    return;
  }
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const mayMove = !isTyping || event.target.id === "q";
    if (mayMove && moveFocus(main, event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    return;
  }
  if (isTyping) return;
  if (event.timeStamp - gPressedMs < G_MS) {
    gPressedMs = -Infinity;
    const found = offered(role).find(([, view]) => view.key === event.key);
    if (found) {
      event.preventDefault();
      page.go(`#/${found[0]}`);
      return;
    }
  }
  const todo = {
    "/": toSearchField,
    "?": () => keysDialog(VIEWS),
    g: () => { gPressedMs = event.timeStamp; },
    j: () => moveFocus(main, 1),
    k: () => moveFocus(main, -1),
  }[event.key];
  if (todo) {
    event.preventDefault();
    todo();
  }
}

lockedOut.tell = () => {
  const before = location.hash;
  // Several requests may be refused at once; the first has said already where to come back to.
  if (read(before).name === "signin") return;
  const isRefused = token.get() !== null;
  token.forget();
  fillNav();
  page.go(`#/signin?${new URLSearchParams({ to: before, ...(isRefused ? { refused: "1" } : {}) })}`);
};

fillNav();
showTheme();
document.querySelector(".skip").addEventListener("click", (event) => {
  // Its address would be that of a view.
  event.preventDefault();
  main.focus();
});
document.getElementById("theme").addEventListener("click", nextTheme);
document.getElementById("help").addEventListener("click", () => keysDialog(VIEWS));
menu.addEventListener("click", () => menu.setAttribute("aria-expanded", String(menu.getAttribute("aria-expanded") !== "true")));
document.addEventListener("keydown", pressed);
document.addEventListener("kb:signed-in", fillNav);
// Whoever signs in may be somebody else.
document.addEventListener("kb:signed-in", forgetFacets);
takeDrops(page);
window.addEventListener("hashchange", () => {
  // Only a step that is new says nothing of itself.
  depth = history.state?.depth ?? depth + 1;
  history.replaceState({ depth }, "");
  show();
});
history.replaceState({ depth }, "");
show();
