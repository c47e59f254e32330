// A question, and an answer whose sentences lead to where they are from.

import { tool } from "./api.js";
import { announce, failure, h, heading, notice, passagePlace, place } from "./dom.js";
import { shortPlace, spot } from "./text.js";

export function askView(main, wanted, page) {
  let running = null;
  const field = h("input", { id: "question", autocomplete: "off", enterkeyhint: "go", placeholder: "When was the boiler last serviced?", "aria-label": "Your question" });
  const button = h("button", { type: "submit", class: "main" }, "Ask");
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  main.append(heading("Ask"), h("form", { class: "row ask-form", submit: entered }, field, button), answer);

  function entered(event) {
    event.preventDefault();
    const q = field.value.trim();
    if (!q) return;
    page.say(place(["ask"], { q }), true);
    ask(q);
  }

  async function ask(question) {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    answer.replaceChildren(h("p", { class: "quiet" }, "Reading what there is …"));
    answer.setAttribute("aria-busy", "true");
    try {
      const found = await tool("kb_ask", { question, with_text: true }, mine.signal);
      if (mine.signal.aborted) return;
      draw(found);
    } catch (error) {
      if (!mine.signal.aborted) answer.replaceChildren(failure(error, () => ask(question)));
    } finally {
      if (running === mine) answer.removeAttribute("aria-busy");
    }
  }

  function draw(found) {
    const cite = (n) => {
      const source = found.sources.find((one) => one.n === n);
      return source ? h("a", { class: "cite", href: passagePlace(source), title: source.title, "aria-label": `Source ${n}: ${source.title}` }, `[${n}]`) : "";
    };
    const sentences = found.sentences.map((one) => h("span", { class: one.supported ? null : "unsupported" },
      one.text, " ", one.citations.map(cite), one.supported ? null : h("span", { class: "badge" }, "not found in the sources"), " "));
    const cited = new Set(found.sentences.flatMap((one) => one.citations));
    answer.replaceChildren(
      ...found.warnings.map((text) => h("p", { class: "warning" }, text)),
      found.sentences.length ? h("p", { class: "said" }, sentences) : notice("No answer.", found.answer),
      !found.sentences.length ? "" : h("p", { class: "quiet" }, found.kind === "synthesis" ? "Written by a language model, each sentence checked against its sources." : "Sentences of the sources, as they stand there."),
      found.sources.length ? h("h2", {}, found.sources.every((source) => source.weak) ? "The nearest passages" : "Sources") : "",
      h("ol", { class: "sources" }, found.sources.map((source) => h("li", { value: source.n, class: cited.has(source.n) ? "cited" : null },
        h("span", { class: "n", "aria-hidden": "true" }, `[${source.n}]`),
        h("a", { href: passagePlace(source), "data-entry": true }, source.title),
        h("span", { class: "path" }, [shortPlace(source.source), spot(source)].filter(Boolean).join(" · ")),
        source.text ? h("details", {}, h("summary", {}, "Passage"), h("p", { class: "passage" }, source.text)) : null))),
    );
    announce(found.found ? "Answered" : "No answer");
  }

  const start = (query) => {
    field.value = query.get("q") ?? "";
    if (field.value) ask(field.value);
    else answer.replaceChildren(h("p", { class: "quiet" }, "The answer comes from what is kept here, and says where it is from."));
  };
  start(wanted.query);
  field.focus();
  return {
    update(next) {
      start(next.query);
      return true;
    },
    stop: () => running?.abort(),
  };
}
