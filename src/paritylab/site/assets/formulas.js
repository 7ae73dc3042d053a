"use strict";
// A formula in the text that is wider than its line scrolls, and then the keyboard can reach it.
(() => {
  const look = () => {
    for (const box of document.querySelectorAll(".formula")) {
      if (box.scrollWidth > box.clientWidth) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", "formula");
      } else for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  };
  document.fonts.ready.then(look);
  addEventListener("resize", look);
})();
