// The one way to the server: every request goes through `ask` or `events`.

const KEY = "kb.token";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
    this.title = TITLES[status] ?? (status >= 500 ? "The server could not answer" : undefined);
  }
}

const TITLES = {
  0: "The server cannot be reached",
  403: "Your token does not allow this",
  404: "This is not there",
  413: "This is too large",
  503: "The server is busy",
};

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY),
  forget() {
    sessionStorage.removeItem(KEY);
    localStorage.removeItem(KEY);
  },
  keep(secret, forLong) {
    this.forget();
    (forLong ? localStorage : sessionStorage).setItem(KEY, secret);
  },
};

/** Called when the server wants a token, or does not take the one that it got. */
export const lockedOut = { tell: () => {} };

async function sent(path, { method = "GET", body, media = "application/json", signal } = {}) {
  const headers = {};
  const secret = token.get();
  if (secret) headers.authorization = `Bearer ${secret}`;
  if (body !== undefined) headers["content-type"] = media;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal, credentials: "same-origin", cache: "no-cache" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "It may have been stopped. Start it with `kb serve`, then try again.");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401) lockedOut.tell();
  throw new ApiError(answer.status, problem.code ?? "unknown", problem.detail ?? answer.statusText);
}

/** The path with its query; values that are lists are said several times, empty ones not at all. */
export function at(path, asked = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined && one !== "") query.append(name, String(one));
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export async function get(path, asked, signal) {
  return (await sent(at(path, asked), { signal })).json();
}

export async function text(path, signal) {
  return (await sent(path, { signal })).text();
}

export async function post(path, value = {}, signal) {
  return (await sent(path, { method: "POST", body: JSON.stringify(value), signal })).json();
}

export async function upload(path, file, signal) {
  return (await sent(path, { method: "POST", body: file, media: "application/octet-stream", signal })).json();
}

export function tool(name, value, signal) {
  return post(`/v1/tools/${name}`, value, signal);
}

/** Hear what happens, event by event, until the server has said all or `signal` ends it. */
export async function events(asked, heard, signal) {
  const answer = await sent(at("/v1/events", asked), { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: ?(.*)$/m.exec(block)?.[1];
      const data = [...block.matchAll(/^data: ?(.*)$/gm)].map((found) => found[1]).join("\n");
      if (name) heard(name, data ? JSON.parse(data) : null);
    }
  }
}
