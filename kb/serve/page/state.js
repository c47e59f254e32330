// How it stands: what is kept current, what is still to do, and how much there is.

import { events, get, post, text } from "./api.js";
import { announce, failure, h, heading, notice } from "./dom.js";
import { facets } from "./facets.js";
import { bars, columns } from "./graph.js";
import { ago, bytes, many, spell } from "./text.js";

const MONTHS = 18;
const TAGS = 8;

export function sourcesView(main) {
  const stop = new AbortController();
  const body = h("div", { "aria-busy": "true" });
  main.append(heading("Sources"), h("p", { class: "lead" }, "What is looked at again by ", h("code", {}, "kb sync-all"), "."), body);
  const load = async () => {
    try {
      const found = await get("/v1/sources", { limit: 1000 }, stop.signal);
      const nowMs = Date.now();
      body.replaceChildren(found.sources.length
        ? h("ul", { class: "rows stacked" }, found.sources.map((one) => h("li", {},
            h("span", { class: "strong breaks", tabindex: "0", "data-entry": true }, one.location),
            h("span", { class: "quiet" }, `${one.kind}, last synced ${ago(one.synced_ms, nowMs)}`),
            one.failures ? h("span", { class: "bad-text" }, `failed ${many(one.failures, "time")}: ${one.last_error ?? "no reason is known"}`) : null,
            one.files_failed ? h("span", { class: "bad-text" }, `${many(one.files_failed, ["site", "feed"].includes(one.kind) ? "page" : "file")} could not be taken in`) : null,
            one.last_error && !one.failures ? h("span", { class: "bad-text" }, one.last_error) : null,
            one.gone_since_ms ? h("span", { class: "bad-text" }, `gone for some time: first missed ${ago(one.gone_since_ms, nowMs)}`) : null)))
        : notice("Nothing is kept current.", "`kb add` of a folder or a page registers it."));
    } catch (error) {
      if (!stop.signal.aborted) body.replaceChildren(failure(error, load));
    } finally {
      body.removeAttribute("aria-busy");
    }
  };
  load();
  return { stop: () => stop.abort() };
}

export function jobsView(main) {
  const stop = new AbortController();
  const counts = h("p", { class: "lead", "aria-live": "polite" });
  const body = h("div", {});
  main.append(heading("Jobs"), counts, body);

  let newest = 0;
  const load = async () => {
    newest += 1;
    const mine = newest;
    try {
      const [open, failed] = await Promise.all([get("/v1/jobs", { limit: 100 }, stop.signal), get("/v1/jobs", { state: "failed", limit: 100 }, stop.signal)]);
      if (mine !== newest) return;
      const rest = open.jobs.filter((job) => job.status !== "failed");
      body.replaceChildren(
        failed.jobs.length ? h("h2", {}, "Failed for good") : "",
        h("ul", { class: "rows stacked" }, failed.jobs.map((job) => row(job, h("button", { type: "button", click: () => retry(job) }, "Try again")))),
        rest.length ? h("h2", {}, "Others") : "",
        h("ul", { class: "rows stacked" }, rest.map((job) => row(job))),
        open.jobs.length || failed.jobs.length ? "" : notice("Nothing is to do.", "All that was added can be found."));
    } catch (error) {
      if (!stop.signal.aborted) body.replaceChildren(failure(error, load));
    }
  };
  const retry = async (job) => {
    try {
      await post(`/v1/jobs/${encodeURIComponent(job.job_id)}/retry`);
      announce("It is tried again");
      await load();
    } catch (error) {
      body.prepend(failure(error));
    }
  };
  const listen = async () => {
    try {
      // A stream has its own limit; the view may be open for longer.
      while (!stop.signal.aborted) {
        await events({}, (name, said) => {
          if (name !== "queue") return;
          counts.textContent = `${said.ready} waiting, ${said.running} running, ${said.failed} failed`;
          load();
        }, stop.signal);
      }
    } catch {
      // The list is there without it; it only does not change by itself.
    }
  };
  load();
  listen();
  return { stop: () => stop.abort() };
}

function row(job, action = null) {
  return h("li", { class: "job" },
    h("span", { class: "strong", tabindex: "0", "data-entry": true }, `${job.kind} ${job.path ?? job.subject}`),
    h("span", { class: "quiet" }, `${job.job_id}, ${job.status}, ${many(job.attempts, "attempt")}, added ${ago(job.added_ms, Date.now())}`),
    job.reason ? h("span", { class: job.status === "failed" ? "bad-text" : "quiet" }, job.reason) : null,
    action);
}

export function statsView(main) {
  const stop = new AbortController();
  const body = h("div", { "aria-busy": "true" });
  main.append(heading("Stats"), body);
  const load = async () => {
    try {
      const { spaces } = await facets();
      // The counts are those of the server's own home, and so should the rest be.
      const space = spaces.length > 1 ? spaces[0] : null;
      const [stats, values, growth, metrics] = await Promise.all([
        get("/v1/stats", {}, stop.signal), get("/v1/facets", { space, limit: 200 }, stop.signal),
        get("/v1/growth", { space, limit: MONTHS }, stop.signal), text("/metrics", stop.signal)]);
      body.replaceChildren(space ? h("p", { class: "lead" }, `Of the ${space} space, which this server works on.`) : "", ...drawn(stats, values, growth, metrics));
    } catch (error) {
      if (!stop.signal.aborted) body.replaceChildren(failure(error, load));
    } finally {
      body.removeAttribute("aria-busy");
    }
  };
  load();
  return { stop: () => stop.abort() };
}

function drawn(stats, values, growth, metrics) {
  const figure = (value, name) => h("div", { class: "figure" }, h("span", { class: "number" }, value), h("span", {}, name));
  const shown = (value) => value.toLocaleString("en");
  const most = (rows) => rows.toSorted((a, b) => b.docs - a.docs).slice(0, TAGS).map(({ value, docs }) => [value, docs]);
  return [
    h("div", { class: "figures" }, figure(shown(stats.docs.active ?? 0), "documents"), figure(shown(stats.passages), "passages"), figure(shown(stats.vectors), "vectors"), figure(shown(stats.entities), "names and links"), figure(bytes(stats.disk_bytes), "on disk")),
    h("div", { class: "plots" },
      columns("Documents, by month", growth.months.map(({ month, total }) => [month, total])),
      columns("Added, by month", growth.months.map(({ month, docs }) => [month, docs])),
      bars("Kinds", most(values.kinds)),
      values.tags.length ? bars("Tags", most(values.tags)) : "",
      bars("What waits", [["documents", stats.ledger.pending ?? 0], ["jobs ready", stats.jobs.ready ?? 0], ["running", stats.jobs.running ?? 0], ["failed", stats.jobs.failed ?? 0]]),
      bars("Answers, by how long they took", times(metrics))),
    ...atWork(stats),
    ...caches(stats),
    h("p", { class: "quiet breaks" }, `Model: ${stats.model}`),
    stats.pages_without_text ? h("p", { class: "warning" }, `${many(stats.pages_without_text, "page")} of PDFs have no text; they are pictures, and cannot be found.`) : "",
  ];
}

/** What the workers of machines that share the home do, and when it ends. */
function atWork({ nodes = [], texts_waiting: waiting = 0, seconds_left: left = null }) {
  if (!nodes.length && !waiting) return [];
  const end = left === null ? "" : `, about ${spell(left)} left`;
  return [
    h("h2", {}, "At work"),
    h("ul", { class: "rows stacked" }, nodes.map((one) => h("li", {},
      h("span", { class: "strong breaks", tabindex: "0", "data-entry": true }, one.node),
      h("span", { class: "quiet" }, `${many(one.workers, "worker")}: ${many(one.texts, "text")}, ${one.texts_per_s.toLocaleString("en")} a second`)))),
    waiting ? h("p", { class: "quiet" }, `${many(waiting, "text")} to be embedded${end}`) : "",
  ];
}

/** How far the caches of machines that share the home have come, and which are wrong. */
function caches({ caches: nodes = [] }) {
  if (!nodes.length) return [];
  return [
    h("h2", {}, "Caches"),
    h("ul", { class: "rows stacked" }, nodes.map((one) => h("li", {},
      h("span", { class: "strong breaks", tabindex: "0", "data-entry": true }, one.node),
      h("span", { class: "quiet" }, `${one.behind ? `${many(one.behind, "change")} behind` : "level"}, as of ${new Date(one.seen_ms).toLocaleString()}`),
      one.problems.map((problem) => h("span", { class: "warning breaks" }, `${problem}; run kb check --repair there`))))),
  ];
}

/** How many answers took how long since the server started, from its metrics; theirs add up. */
function times(metrics) {
  const found = [...metrics.matchAll(/^kb_http_request_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)];
  const name = (bound) => (bound < 1 ? `${bound * 1000} ms` : `${bound} s`);
  return found.map(([, bound, count], i) => [
    bound === "+Inf" ? `over ${name(Number(found[i - 1][1]))}` : `to ${name(Number(bound))}`,
    Number(count) - Number(found[i - 1]?.[2] ?? 0),
  ]);
}
