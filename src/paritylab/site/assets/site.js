"use strict";
// What every page can do: the menu, light and dark, copying commands.
(() => {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage may be forbidden */ }
    document.dispatchEvent(new Event("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));

  const menu = document.getElementById("menu");
  menu.addEventListener("click", () => {
    const open = menu.getAttribute("aria-expanded") !== "true";
    menu.setAttribute("aria-expanded", String(open));
  });

  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed from disk everywhere */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button.copy");
    if (!button) return;
    const done = await copy(button.dataset.copy);
    button.textContent = done ? "Copied" : "Select and copy";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });

  if (document.body.dataset.live) {
    // Shown by 'paritylab serve': reload when it has built the site anew.
    let built = null;
    const look = async () => {
      try {
        const answer = await (await fetch("/api/live.json", { cache: "no-store" })).json();
        if (built !== null && answer.built !== built && !document.getElementById("live")) location.reload();
        built = answer.built;
        document.dispatchEvent(new CustomEvent("live", { detail: answer }));
      } catch { document.dispatchEvent(new CustomEvent("live", { detail: null })); }
    };
    addEventListener("load", look); // the page's own script listens by then
    setInterval(look, 2000);
  }
})();
