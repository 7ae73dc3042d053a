"use strict";
// Before the first paint: the theme chosen last time, if any.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage may be forbidden */ }
document.documentElement.classList.add("js");
