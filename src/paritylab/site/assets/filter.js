"use strict";
// Choose claims by result and words.
(() => {
  const cards = [...document.querySelectorAll(".card")];
  const words = cards.map((card) => card.textContent.toLowerCase());
  const find = document.getElementById("find");
  const boxes = [...document.querySelectorAll(".filter input[type=checkbox]")];
  const update = () => {
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const text = find.value.trim().toLowerCase();
    let shown = 0;
    cards.forEach((card, i) => {
      const show = wanted.has(card.dataset.result) && words[i].includes(text);
      card.hidden = !show;
      shown += show;
    });
    document.getElementById("shown").textContent = `${shown} of ${cards.length} claims`;
  };
  document.querySelector(".filter").addEventListener("input", update);
  document.querySelector(".filter").addEventListener("submit", (event) => event.preventDefault());
  update();
})();
