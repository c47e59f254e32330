// Elements are made one by one, and texts are texts: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** An element; attributes that are functions listen to the event of that name. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A link out of the page, or plain text where the address is no http, https or mailto one. */
export function outward(address, ...children) {
  const href = safeAddress(address);
  if (href === null) return h("span", {}, ...children);
  return h("a", { href, rel: "noopener noreferrer", target: "_blank" }, ...children);
}

/** The page that a known host has of a repository's file, or the source as it is. */
export function viewOf(source) {
  const [, host, path, ref, file] = /^git\+(?:https:\/\/|ssh:\/\/(?:[^@/]*@)?)([^/:@]+)(\/[^#]+?)(?:\.git)?(?:(?<!\/)@([^@#]+))?#(.+)$/.exec(source) ?? [];
  const between = [[/^github\.com$/, "blob/"], [/^gitlab\./, "-/blob/"], [/^(?:codeberg\.org|gitea\..+|bitbucket\.org)$/, "src/"]].find(([known]) => known.test(host ?? ""));
  return between ? `https://${host}${path}/${between[1]}${ref ?? "HEAD"}/${file}` : source;
}

/** The address as a browser reads it, or null where a link must not lead there. */
export function safeAddress(address) {
  if (!/^(https?:\/\/|mailto:)/i.test(address)) return null;
  try {
    const found = new URL(address);
    return ["http:", "https:", "mailto:"].includes(found.protocol) ? found.href : null;
  } catch {
    return null;
  }
}

/** Say something to who listens instead of looking. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

/** A link within the page: the view's name, its parts, and what else it shows. */
export function place(parts, shown = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(shown)) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined && one !== "" && one !== false) query.append(name, one);
    }
  }
  const text = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Where a passage is read: its doc, at the passage; `spaces` are those that are read here. */
export function passagePlace(hit, spaces = []) {
  return place(["doc", hit.doc_id], { at: hit.chunk_id, line: hit.line, space: elsewhere(hit.source_space, spaces) });
}

/** The space, where it is another than the server's own, the first of those that are read here. */
export function elsewhere(space, spaces) {
  return spaces.length > 1 && space !== spaces[0] ? space : null;
}

/** The space in words, where there are several that it could be. */
export function spaceName(space, spaces) {
  return spaces.length > 1 ? `${space} space` : null;
}

/** Something to say in the place of what is not there. */
export function notice(title, text, ...more) {
  return h("div", { class: "notice" }, h("p", { class: "notice-title" }, title), text ? h("p", {}, text) : null, ...more);
}

/** What went wrong, in words, and a way to try again. */
export function failure(error, again) {
  const retry = again ? h("button", { type: "button", click: again }, "Try again") : null;
  return h("div", { class: "notice bad", role: "alert" }, h("p", { class: "notice-title" }, error.title ?? "This did not work"), h("p", {}, error.message), retry);
}

/** A heading that opens a view and takes the focus when it is come to. */
export function heading(text, ...more) {
  return h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, text), ...more);
}

/** Ask before something that cannot be taken back at once; true for yes. */
export function confirmed(question, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "ask", close: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("p", {}, question),
      h("div", { class: "row end" },
        h("button", { type: "button", class: "plain", click: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "button", class: "danger", click: () => dialog.close("yes") }, yes)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
