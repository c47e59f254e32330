// Signing in: a token is asked for, tried, and kept as long as its owner says.

import { get, token } from "./api.js";
import { h, heading } from "./dom.js";

export function signInView(main, { query }, page) {
  const field = h("input", { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", placeholder: "kb_…" });
  const keeps = h("input", { type: "checkbox", id: "keep" });
  const said = h("p", { class: "bad-text", role: "alert" }, query.get("refused") ? "The token that was used is not taken any more." : "");
  const button = h("button", { type: "submit", class: "main" }, "Sign in");
  const form = h("form", { class: "card narrow", submit: tried },
    h("label", { for: "token" }, "Token"), field,
    h("label", { class: "check", for: "keep" }, keeps, "Keep it in this browser, also when it is closed"),
    said, h("div", { class: "row" }, button));

  async function tried(event) {
    event.preventDefault();
    button.disabled = true;
    said.textContent = "";
    token.keep(field.value.trim(), keeps.checked);
    try {
      await get("/v1/docs", { limit: 1 });
      document.dispatchEvent(new CustomEvent("kb:signed-in"));
      const to = query.get("to") ?? "";
      page.go(/^#\/(?!signin)/.test(to) ? to : "#/search");
    } catch (error) {
      token.forget();
      said.textContent = error.status === 401 ? "This is no token of this server, or it was removed." : error.message;
      field.select();
    } finally {
      button.disabled = false;
    }
  }

  main.append(
    heading("Sign in"),
    h("p", { class: "lead" }, "On the machine that it runs on, ", h("code", {}, "kb token link"), " prints a link that opens this page. Anywhere else it wants a token, which whoever runs it makes with ", h("code", {}, "kb token add NAME"), "."),
    form,
  );
  field.focus();
}
