// Light or dark as last chosen, set before anything is drawn; unchosen, the system says.
"use strict";
{
  const chosen = localStorage.getItem("kb.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
