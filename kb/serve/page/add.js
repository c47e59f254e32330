// Adding: files dropped or picked, a page by its address, or a text; with how far each has come.

import { at, events, post, upload } from "./api.js";
import { announce, h, heading, place } from "./dom.js";
import { forgetFacets } from "./facets.js";
import { bytes } from "./text.js";

const AT_ONCE = 2;
/** What was added since the page was opened, the newest first; it outlives the view. */
const added = [];
let list = null;
let going = 0;
const waiting = [];

/** Files that are dropped anywhere on the page are added. */
export function takeDrops(page) {
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (is) => document.body.classList.toggle("dropping", is);
  window.addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    over(true);
  });
  window.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
  window.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    over(false);
    const { items, files } = event.dataTransfer;
    const folders = [...items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);
    const names = new Set(folders.map((entry) => entry.name));
    if (!document.getElementById("drop")) page.go("#/add");
    for (const name of names) {
      added.unshift({ name, state: "failed", text: "is a folder; `kb add` takes it, and keeps it current", doc: null });
    }
    takeFiles([...files].filter((file) => !names.has(file.name)), wishes());
    draw();
  });
}

/** The tags and visibility that the view says, if it is there. */
function wishes() {
  const tags = (document.getElementById("tags")?.value ?? "").split(",").map((tag) => tag.trim().replace(/^#/, "")).filter(Boolean);
  return { tags, visibility: document.getElementById("visibility")?.value || null };
}

function takeFiles(files, { tags, visibility }) {
  for (const file of files) {
    take(`${file.name} (${bytes(file.size)})`, () => upload(at("/v1/files", { name: file.name, tag: tags, visibility }), file));
  }
}

/** Add one thing when its turn comes, and follow it until it can be found. */
function take(name, send) {
  const item = { name, state: "waiting", text: "waits", doc: null };
  item.send = send;
  added.unshift(item);
  waiting.push(item);
  draw();
  pump();
}

function pump() {
  while (going < AT_ONCE && waiting.length) {
    going += 1;
    run(waiting.shift()).finally(() => { going -= 1; pump(); });
  }
}

async function run(item) {
  const tell = (state, text) => { Object.assign(item, { state, text }); draw(); };
  try {
    tell("sending", "is sent");
    const found = await item.send();
    item.doc = found.doc_id;
    item.warnings = found.warnings ?? [];
    forgetFacets();
    if (found.status === "unchanged") tell("ready", "was here already, unchanged");
    else if (found.indexed) tell("ready", "can be found");
    else await follow(item, tell);
    announce(`${item.name} ${item.text}`);
  } catch (error) {
    tell("failed", error.message);
    announce(`${item.name}: ${error.message}`);
  }
}

async function follow(item, tell) {
  tell("reading", "is kept, and is read now");
  // A stream has its own limit; long work is followed by several.
  while (item.state === "reading") {
    await events({ doc: item.doc }, (name, said) => {
      if (name === "done" && item.state === "reading") tell("ready", "is kept");
      if (name !== "doc") return;
      if (said.state === "failed") tell("failed", "is kept, but could not be read; Jobs says why");
      else if (said.state === "gone") tell("failed", "was removed in the meantime");
      else if (said.indexed) tell("ready", "can be found");
    });
  }
}

function draw() {
  if (!list?.isConnected) return;
  const done = { waiting: 0, sending: 0.35, reading: 0.7, ready: 1, failed: 1 };
  list.replaceChildren(...added.map((item) => h("li", { class: `adding ${item.state}` },
    item.doc ? h("a", { href: place(["doc", item.doc]), "data-entry": true }, item.name) : h("span", {}, item.name),
    h("progress", { max: "1", value: done[item.state], "aria-label": `Progress of ${item.name}` }),
    h("span", { class: "state" }, item.text),
    (item.warnings ?? []).map((text) => h("span", { class: "warning" }, text)))));
}

export function addView(main) {
  const picker = h("input", { type: "file", id: "files", multiple: true, class: "unseen", change: () => { takeFiles([...picker.files], wishes()); picker.value = ""; } });
  const address = h("input", { id: "url", type: "url", required: true, placeholder: "https://", pattern: "https?://.+" });
  const title = h("input", { id: "title", autocomplete: "off" });
  const text = h("textarea", { id: "text", rows: "6", required: true });
  list = h("ul", { class: "rows adding-list", "aria-label": "What was added" });

  const byAddress = (event) => {
    event.preventDefault();
    const url = address.value.trim();
    take(url, () => post("/v1/docs", { url, ...wishes() }));
    address.value = "";
  };
  const byText = (event) => {
    event.preventDefault();
    const value = { text: text.value, title: title.value.trim() || firstLine(text.value), ...wishes() };
    take(value.title, () => post("/v1/docs", value));
    text.value = "";
    title.value = "";
  };

  main.append(
    heading("Add"),
    h("div", { class: "card drop", id: "drop" },
      h("p", {}, h("strong", {}, "Drop files here"), ", or ", h("label", { for: "files", class: "button" }, "choose them"), picker),
      h("p", { class: "quiet" }, "Markdown, text, HTML and PDF. They are copied; the files stay where they are.")),
    h("div", { class: "pair" },
      h("div", {}, h("label", { for: "tags" }, "Tags, for all that is added"), h("input", { id: "tags", autocomplete: "off", placeholder: "house, heating" })),
      h("div", {}, h("label", { for: "visibility" }, "Who sees it"),
        h("select", { id: "visibility" }, [["", "only you, or as before"], ["shared", "everybody with a token"], ["public", "anybody"]].map(([value, said]) => h("option", { value }, said))))),
    h("form", { class: "card", submit: byAddress }, h("h2", {}, "A page"),
      h("label", { for: "url" }, "Address"), h("div", { class: "row" }, address, h("button", { type: "submit" }, "Fetch"))),
    h("form", { class: "card", submit: byText }, h("h2", {}, "A text"),
      h("label", { for: "title" }, "Title"), title, h("label", { for: "text" }, "Text, also as markdown"), text,
      h("div", { class: "row" }, h("button", { type: "submit" }, "Keep it"))),
    list,
  );
  draw();
  return { stop: () => { list = null; } };
}

function firstLine(text) {
  return text.trim().split("\n")[0].replace(/^#+\s*/, "").slice(0, 80);
}
